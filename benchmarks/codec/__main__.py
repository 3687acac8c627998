"""How long a patch takes into bytes and back.

Usage: python -m benchmarks.codec [--rows N] [--json FILE]

Two patches are measured: links between nodes, as a network prober sends them, and pods of a few workloads, as a watch
of another process would. The plain way beside them is msgspec's MessagePack of the same values, which checks types but
no ranges, no duplicates and no keys. The time is process time, the least of several rounds.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import time
import typing
from collections.abc import Callable

import msgspec

from graphsched.base.values import keys, labels, pods, relations
from graphsched.graph import codec, delta

ROUNDS = 15
WORKLOADS = 20

Answer = dict[str, float | str]


def links(rows: int) -> delta.Patch:
    """Links between nodes, each with numbers of its own."""
    patch = delta.Patch()
    for number in range(rows):
        edge = keys.EdgeID(
            keys.node_key(f"n{number // 20}"), keys.node_key(f"n{number % 20 + 500}"), keys.EdgeKind.LINK
        )
        patch.edges[edge] = relations.Link(0.1 + number / 1000, 100_000.0 - number, 1 - number / (2 * rows))
    return patch


def pods_of_workloads(rows: int) -> delta.Patch:
    """Pods of a few workloads, which share spec and labels."""
    specs = [
        pods.Spec(demand=pods.Demand((("cpu", 100 + number),), 100 + number, 1 << 20)) for number in range(WORKLOADS)
    ]
    label_sets = [labels.from_mapping({"app": f"app-{number}", "tier": "web"}) for number in range(WORKLOADS)]
    patch = delta.Patch()
    for number in range(rows):
        spec = specs[number % WORKLOADS]
        patch.set_vertex(
            pods.Pod(
                keys.pod_key("default", f"app-{number % WORKLOADS}-{number:06d}"),
                f"00000000-0000-4000-8000-{number:012d}",
                spec,
                spec.demand,
                label_sets[number % WORKLOADS],
                node=f"n{number % 500}",
                created=1.7e9 + number,
            )
        )
    return patch


def fastest_us(work: Callable[[], object]) -> float:
    """Process time of the fastest round, in microseconds."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best * 1e6


def measure(name: str, patch: delta.Patch) -> Answer:
    """Both directions of one patch, beside the plain way."""
    data = codec.encode(patch)
    assert codec.decode(data) == patch
    values: list[typing.Any] = [*patch.vertices.values(), *patch.edges.items()]
    plain = msgspec.msgpack.encode(values)
    form: typing.Any = list[pods.Pod] if patch.vertices else list[tuple[tuple[str, str, str], relations.Link]]
    return {
        "patch": name,
        "rows": len(patch),
        "encode_us": round(fastest_us(lambda: codec.encode(patch))),
        "decode_us": round(fastest_us(lambda: codec.decode(data))),
        "bytes": len(data),
        "plain_encode_us": round(fastest_us(lambda: msgspec.msgpack.encode(values))),
        "plain_decode_us": round(fastest_us(lambda: msgspec.msgpack.decode(plain, type=form))),
        "plain_bytes": len(plain),
    }


def main() -> None:
    """Measure, print a table, and write JSON where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=1000, help="rows in each patch (default 1000)")
    parser.add_argument("--json", type=pathlib.Path, help="write the numbers to this file as well")
    options = parser.parse_args()
    answers = [measure("links", links(options.rows)), measure("pods", pods_of_workloads(options.rows))]
    columns = list(answers[0])
    print("  ".join(f"{column:>15}" for column in columns))
    for answer in answers:
        print("  ".join(f"{answer[column]!s:>15}" for column in columns))
    if options.json:
        options.json.write_text(json.dumps(answers, indent=1) + "\n")


if __name__ == "__main__":
    main()
