"""`python -m tests.faults`: play the fault table on a real control plane, and say which cells held.

Comes in: how many seeds (or which), which voyages. Goes out: a table, and for each failure what is broken and the
command that repeats it; exit code 1 when there is one. Few seeds at a time share a control plane: one that keeps what
thousands of voyages left behind gets slower with each, until what is late is the machine.
"""

import argparse
import gc
import sys
import time

from tests.controlplane import cluster as clusters
from tests.faults import fleet, table

SEEDS_A_CLUSTER = 2
"""As many as `make test-cluster` plays on one."""


def main() -> int:
    """Play; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=20, help="how many seeds each voyage is played with")
    parser.add_argument("--first", type=int, default=0, help="the first seed, to share the work among processes")
    parser.add_argument("--seed", type=int, help="this seed alone")
    parser.add_argument("--only", action="append", default=[], help="a voyage, e.g. 503/bind; may be repeated")
    parser.add_argument("--at-once", type=int, default=fleet.AT_ONCE, help="voyages at the same time")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds) if options.seed is None else (options.seed,)
    chosen = [each for each in table.voyages() if not options.only or f"{each[0].name}/{each[1]}" in options.only]
    if not chosen:
        parser.error(f"no such voyage; known: {', '.join(f'{fault.name}/{call}' for fault, call in table.voyages())}")
    began = time.monotonic()
    results: list[fleet.Result] = []
    for start in range(0, len(seeds), SEEDS_A_CLUSTER):
        some = seeds[start : start + SEEDS_A_CLUSTER]
        wanted = [(*each, seed) for seed in some for each in chosen]
        with clusters.Cluster(clusters.Options(authorization="AlwaysAllow")) as cluster:
            played = fleet.run(cluster, wanted, options.at_once)
        results += played
        broken = sum(bool(each.failure) for each in played)
        print(
            f"seeds {some[0]} to {some[-1]}: {len(played)} voyages, {broken} failed, {time.monotonic() - began:.0f} s",
            flush=True,
        )
        gc.collect()
    print(fleet.shown(results))
    failed = [each for each in results if each.failure]
    print(
        f"{len(results)} voyages of {len(table.Phase)} phases, {len(failed)} failed, {time.monotonic() - began:.0f} s"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
