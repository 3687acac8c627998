"""The engine benchmark.

Comes in: the command line. Goes out: a table, and a JSON file if asked. Absolute numbers vary from run to run of a
shared machine, so each row has its plain way beside it, timed in the same run: the same decisions with every node
evaluated anew each time, by the same checks and scores but without the class cache and its dirty rows.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import time

import msgspec

from benchmarks.engine import workloads
from graphsched.decision import cycle
from graphsched.graph import store


class Row(msgspec.Struct, frozen=True):
    """One line of the table: microseconds for a decision including what it changes in the graph."""

    work: str
    decisions: int
    us: float
    plain_us: float

    @property
    def ratio(self) -> float:
        """How many times the plain way takes."""
        return self.plain_us / self.us


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine", description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=pathlib.Path, help="write the rows as JSON")
    parser.add_argument("--plain", type=int, default=200, help="decisions timed the plain way (default: 200)")
    options = parser.parse_args(arguments)
    rows = [_measure(work, options.plain) for work in workloads.ALL]
    print(f"{'work':<44}{'decisions/s':>12}{'µs':>8}{'plain µs':>10}{'ratio':>7}")
    for row in rows:
        print(f"{row.work:<44}{1e6 / row.us:>12,.0f}{row.us:>8.0f}{row.plain_us:>10.0f}{row.ratio:>6.1f}×")
    if options.output is not None:
        options.output.write_text(json.dumps([msgspec.structs.asdict(row) for row in rows], indent=1) + "\n")
    return 0


def _measure(work: workloads.Work, plain: int) -> Row:
    graph, pods = work.build()
    decider = cycle.Decider()
    begun = time.perf_counter()
    for pod in pods:
        workloads.place(graph, pod, decider.decide(graph.view(), pod))
    us = (time.perf_counter() - begun) / len(pods) * 1e6
    return Row(work.name, len(pods), us, _plain(work, plain))


def _plain(work: workloads.Work, count: int) -> float:
    """Microseconds for a decision when nothing is remembered, taken over the first pods of the work."""
    graph: store.Store
    graph, pods = work.build()
    begun = time.perf_counter()
    for pod in pods[:count]:
        workloads.place(graph, pod, cycle.Decider().decide(graph.view(), pod))
    return (time.perf_counter() - begun) / min(count, len(pods)) * 1e6


if __name__ == "__main__":
    raise SystemExit(main())
