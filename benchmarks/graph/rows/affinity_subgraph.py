"""NodeAffinity subgraph: the edges from a pod's rules to the nodes they hold for, as bytes and back.

Ours is the message that a follower of the affinity graph begins with: names and columns, checked whole when it is
taken. The plain way pickles a list of named tuples. Megabytes are those of the content (14 bytes an edge, and the
names), the same for both, so that a longer encoding does not look faster.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
import typing
from collections.abc import Callable

import numpy as np

from benchmarks.graph import frame
from benchmarks.plain import affinity as plain
from graphsched.graph import edge_codec, edges

NODES, RULES, SEED = 500, 3, 1
NAME = "NodeAffinity subgraph"
SHAPE = f"{NODES} nodes × {RULES} rules, {NODES * RULES:,} edges of random weight, seed {SEED}"
REFERENCE = "42 → 196 MB/s; p99 decode 187 → 23 µs; 12 → 0 allocations"
_ROUNDS, _QUICK_ROUNDS = 2000, 20
_QUICK_NODES = 20
_EDGE_BYTES = 14


def _names(nodes: int) -> list[str]:
    return [f"requires/rule-{number}" for number in range(RULES)] + [f"node/worker-{each:05}" for each in range(nodes)]


def _change(nodes: int) -> edges.Change:
    """All rules hold for all nodes."""
    rng = np.random.default_rng(SEED)
    sources = np.repeat(np.arange(RULES), nodes)
    targets = np.tile(np.arange(RULES, RULES + nodes), RULES)
    weights = rng.random(len(sources), np.float32)
    return edges.Change(edges.Table().ids, edges.identities(sources, targets, 1), weights, 0, _names(nodes))


def _edges(change: edges.Change, names: list[str]) -> list[plain.Edge]:
    ids = change.ids
    columns = (edges.sources(ids), edges.targets(ids), edges.kinds(ids), change.weights)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [plain.Edge(names[source], names[target], kind, weight) for source, target, kind, weight in rows]


def _microseconds(work: Callable[[], object], rounds: int) -> list[float]:
    """How long each of many goes takes; the collector runs as it does in a program."""
    taken = []
    for _ in range(rounds):
        begun = time.thread_time_ns()
        work()
        taken.append((time.thread_time_ns() - begun) / 1000)
    return taken


def _blocks(work: Callable[[], object]) -> int:
    """Memory blocks of Python that what `work` makes holds on to."""
    work()
    gc.collect()
    gc.disable()
    try:
        before = sys.getallocatedblocks()
        kept = work()
        made = sys.getallocatedblocks() - before
        del kept
    finally:
        gc.enable()
    return made


def _decoded(data: bytes) -> edges.Change:
    message = edge_codec.decode(data, kinds=2)
    assert isinstance(message, edge_codec.Message)
    return message.change


def _per_edge(decode: Callable[[bytes], object], encode: Callable[[int], bytes], nodes: int) -> float:
    """Blocks that each further edge costs, from that many nodes to a hundred times as many."""
    few, many = encode(nodes), encode(100 * nodes)
    edges_more = RULES * 99 * nodes
    return max(0.0, round((_blocks(lambda: decode(many)) - _blocks(lambda: decode(few))) / edges_more, 2))


def run(*, quick: bool) -> frame.Outcome:
    """Encode and decode the same subgraph both ways."""
    rounds, nodes = (_QUICK_ROUNDS, _QUICK_NODES) if quick else (_ROUNDS, NODES)
    change, names = _change(nodes), _names(nodes)
    message = edge_codec.Message(change, 1, 0, 0)
    objects = _edges(change, names)
    ours, theirs = edge_codec.encode(message), plain.encode(objects)
    decoded = _decoded(ours)
    equal = _edges(decoded, list(decoded.names)) == plain.decode(theirs)
    megabytes = (_EDGE_BYTES * len(objects) + sum(map(len, names))) / 1e6
    taken: dict[str, list[float]] = {"plain encode": [], "ours encode": [], "plain decode": [], "ours decode": []}
    works: dict[str, Callable[[], typing.Any]] = {
        "plain encode": lambda: plain.encode(objects),
        "ours encode": lambda: edge_codec.encode(message),
        "plain decode": lambda: plain.decode(theirs),
        "ours decode": lambda: _decoded(ours),
    }
    # In turns, so that a noisy neighbour bothers all of them.
    for _ in range(10):
        for name, work in works.items():
            taken[name] += _microseconds(work, rounds // 10)
    median = {name: statistics.median(each) for name, each in taken.items()}
    p99 = {name: float(np.percentile(each, 99)) for name, each in taken.items()}
    rates = [megabytes * 1e6 / (median[f"{way} encode"] + median[f"{way} decode"]) for way in ("plain", "ours")]
    return frame.Outcome(
        equal=equal,
        measures=(
            frame.Ratio("encode + decode", "MB/s", rates[0], rates[1], 4.7, more=True),
            frame.Ratio("decode, 99th percentile", "µs", p99["plain decode"], p99["ours decode"], 8.0),
            frame.Limit(
                "blocks of Python kept for each edge decoded", "", _per_edge(_decoded, _encoded_of, nodes), 0.0
            ),
        ),
        notes=(
            (
                f"encode {median['plain encode']:.0f} → {median['ours encode']:.0f} µs, "
                f"decode {median['plain decode']:.0f} → {median['ours decode']:.0f} µs; "
                f"{len(theirs):,} → {len(ours):,} bytes"
            ),
            f"pickle keeps {_per_edge(plain.decode, _pickled_of, nodes):.2f} blocks for each edge",
        ),
    )


def _encoded_of(nodes: int) -> bytes:
    return edge_codec.encode(edge_codec.Message(_change(nodes), 1, 0, 0))


def _pickled_of(nodes: int) -> bytes:
    return plain.encode(_edges(_change(nodes), _names(nodes)))
