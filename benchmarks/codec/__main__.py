"""How long a patch takes into bytes and back.

Usage: python -m benchmarks.codec [--rows N] [--json FILE]

Two patches are measured: links between nodes, as a network prober sends them, and pods of a few workloads, as a watch
of another process would. The plain way beside them is msgspec's MessagePack of the same values, which checks types but
no ranges, no duplicates and no keys. The time is process time, the least of several rounds.

Then whole graphs are handed out as a running scheduler does it, see `whole`.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import time
import typing
from collections.abc import Callable

import msgspec

from benchmarks.codec import patches, whole
from graphsched.base.values import pods, relations
from graphsched.graph import codec, delta

ROUNDS = 15
WHOLES = ((20_000, 0), (20_000, 1000), (100_000, 0))
"""Pods, and the most rows of a patch where the graph is cut into several."""

Answer = dict[str, float | str]


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
    answers = [measure("links", patches.links(options.rows)), measure("pods", patches.pods_of_workloads(options.rows))]
    wholes = [
        msgspec.to_builtins(whole.measure(nodes_count=5000, pods_count=pods_count, rows_max=rows_max))
        for pods_count, rows_max in WHOLES
    ]
    for table in (answers, wholes):
        columns = list(table[0])
        print("  ".join(f"{column:>15}" for column in columns))
        for answer in table:
            print("  ".join(f"{answer[column]!s:>15}" for column in columns))
        print()
    if options.json:
        options.json.write_text(json.dumps([*answers, *wholes], indent=1) + "\n")


if __name__ == "__main__":
    main()
