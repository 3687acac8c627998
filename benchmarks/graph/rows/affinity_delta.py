"""Delta: what it costs to tell a follower that a few edges of a large affinity graph changed.

Ours takes what changed from the ledger, encodes it, decodes and checks it, and applies it to the follower's table. The
plain way has no other means than to send the whole graph: a dictionary, pickled. Of the edges that change, half get
another weight, a quarter go and as many come. Changing the sender's own graph is part of neither. Many followers are
told of each change, one after another, so that the time is that of a feed at work and not of its first call. Processor
time is compared, which neighbours on the machine do not add to.
"""

from __future__ import annotations

import gc
import statistics
import time

import numpy as np
import numpy.typing as npt

from benchmarks.graph import frame
from benchmarks.plain import affinity as plain
from graphsched.graph import edge_codec, edges, followers

NODES, RULES, EDGES, SEED = 10_000, 500, 50_000, 1
NAME = "delta"
SHAPE = f"{NODES:,} nodes, {RULES} rules, {EDGES:,} random edges, 1 % and 0.1 % of them changed a round, seed {SEED}"
REFERENCE = "328 → 14 → 2.1 ms; bytes −95.7 %, −99.4 %"
_BARS = {0.01: (23.0, 0.957), 0.001: (150.0, 0.994)}
_ROUNDS, _QUICK_ROUNDS = 21, 2
_COPIES = 32
_EPOCH = 7


class Sender:
    """The graph, held both ways."""

    def __init__(self, nodes: int, count: int) -> None:
        self.rng = np.random.default_rng(SEED)
        self.nodes = nodes
        self.names = [f"requires/rule-{number}" for number in range(RULES)]
        self.names += [f"node/worker-{number:05}" for number in range(nodes)]
        self.ledger = edges.Ledger()
        for name in self.names:
            self.ledger.names.number(name)
        ids = self._strangers(count)
        self.ledger.update(edges.Change(ids=ids, weights=self.rng.random(len(ids), np.float32)))
        self.graph: plain.Graph = {}
        self._copy(self.ledger.table.ids, self.ledger.table.weights)

    def _strangers(self, count: int) -> edges.IDs:
        """So many edges that are not there."""
        found: npt.NDArray[np.uint64] = np.zeros(0, np.uint64)
        while len(found) < count:
            sources = self.rng.integers(0, RULES, count)
            targets = self.rng.integers(RULES, RULES + self.nodes, count)
            ids = edges.identities(sources, targets, 1)
            found = np.union1d(found, ids[~edges.find(self.ledger.table.ids, ids)[1]])
        return np.sort(self.rng.choice(found, count, replace=False))

    def _copy(self, ids: edges.IDs, weights: edges.Weights) -> None:
        for key, weight in zip(self._keys(ids), weights.tolist(), strict=True):
            self.graph[key] = weight

    def _keys(self, ids: edges.IDs) -> list[plain.Key]:
        rows = zip(edges.sources(ids).tolist(), edges.targets(ids).tolist(), edges.kinds(ids).tolist(), strict=True)
        return [(self.names[source], self.names[target], kind) for source, target, kind in rows]

    def change(self, count: int) -> None:
        """Change so many edges, in both."""
        table = self.ledger.table
        chosen = self.rng.choice(table.ids, count - count // 4, replace=False)
        removed, other = np.sort(chosen[: count // 4]), chosen[count // 4 :]
        ids = np.sort(np.concatenate([other, self._strangers(count // 4)]))
        weights = self.rng.random(len(ids), np.float32)
        self.ledger.update(edges.Change(removed, ids, weights))
        for key in self._keys(removed):
            del self.graph[key]
        self._copy(ids, weights)


def run(*, quick: bool) -> frame.Outcome:
    """Keep a copy up to date both ways, some rounds of each share of changed edges."""
    sender = Sender(100, 500) if quick else Sender(NODES, EDGES)
    copies = [followers.EdgeFollower(kinds=2) for _ in range(_COPIES)]
    begin = edge_codec.Message(sender.ledger.whole(), _EPOCH, sender.ledger.generation, sender.ledger.generation)
    whole = edge_codec.encode(begin)
    for copy in copies:
        copy.take(whole)
    measures: list[frame.Ratio | frame.Limit] = []
    notes = [f"the whole graph in our own columns has {len(whole):,} bytes"]
    equal = True
    for share, (speed, smaller) in _BARS.items():
        count = max(4, round(share * len(sender.graph)))
        taken: dict[str, list[float]] = {"plain": [], "ours": []}
        theirs = ours = 0
        for _ in range(_QUICK_ROUNDS if quick else _ROUNDS):
            sender.change(count)
            seconds, theirs, received = _plainly(sender.graph)
            taken["plain"].append(seconds)
            equal = equal and received == sender.graph
            del received
            for copy in copies:
                seconds, ours = _ours(sender.ledger, copy)
                taken["ours"].append(seconds)
        equal = equal and all(_held(copy) == sender.graph for copy in copies)
        plain_ms, ours_ms = (1000 * statistics.median(taken[way]) for way in ("plain", "ours"))
        measures += [
            frame.Ratio(f"{share:.1%} changed: diff to apply", "ms", plain_ms, ours_ms, speed),
            frame.Ratio(f"{share:.1%} changed: bytes", "kB", theirs / 1000, ours / 1000, 1 / (1 - smaller)),
        ]
        # Now and then a follower lays the changes of late into its table; the median does not see that.
        means = [1000 * statistics.fmean(taken[way]) for way in ("plain", "ours")]
        notes.append(f"{share:.1%}: on average {means[0]:.3g} → {means[1]:.3g} ms, {means[0] / means[1]:.3g}×")
        notes.append(
            f"{share:.1%}: bytes −{1 - ours / theirs:.2%}, and −{1 - ours / len(whole):.2%} beside the whole in columns"
        )
    return frame.Outcome(equal=equal, measures=tuple(measures), notes=tuple(notes))


def _plainly(graph: plain.Graph) -> tuple[float, int, plain.Graph]:
    """Send the whole graph: seconds, bytes, and what was received."""
    gc.collect()
    gc.disable()
    try:
        begun = time.thread_time()
        data = plain.encode(graph)
        received: plain.Graph = plain.decode(data)
        return time.thread_time() - begun, len(data), received
    finally:
        gc.enable()


def _ours(ledger: edges.Ledger, copy: followers.EdgeFollower) -> tuple[float, int]:
    """Send what changed: seconds and bytes."""
    gc.disable()
    try:
        begun = time.thread_time()
        change = ledger.since(copy.generation)
        assert change is not None
        data = edge_codec.encode(edge_codec.Message(change, _EPOCH, copy.generation, ledger.generation))
        copy.take(data)
        return time.thread_time() - begun, len(data)
    finally:
        gc.enable()


def _held(copy: followers.EdgeFollower) -> plain.Graph:
    """The copy, edge by edge."""
    ids, names = copy.table.ids, copy.names
    rows = zip(edges.sources(ids).tolist(), edges.targets(ids).tolist(), edges.kinds(ids).tolist(), strict=True)
    keyed = [(names[source], names[target], kind) for source, target, kind in rows]
    return dict(zip(keyed, copy.table.weights.tolist(), strict=True))
