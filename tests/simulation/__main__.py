"""Simulate clusters in trouble: `python -m tests.simulation --seeds 1000`, or one seed again with `--seed 7 --trace`.

Exit code 0 when all checks of all seeds hold, 1 when some do not. Every failing seed is named with the command that
repeats it exactly.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import contextlib
import functools
import multiprocessing
import os
import sys
import time

from tests.simulation import mutations, runs

COMMAND = "python -m tests.simulation"


def main(arguments: list[str] | None = None) -> int:
    """Run as told; returns the exit code."""
    parser = argparse.ArgumentParser(prog=COMMAND, description="Simulate the scheduler in clusters full of trouble.")
    parser.add_argument("--seeds", type=int, default=100, help="how many (default: 100)")
    parser.add_argument("--first", type=int, default=1, help="the first seed (default: 1)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one a core)")
    parser.add_argument("--seed", type=int, help="this seed alone")
    parser.add_argument("--trace", action="store_true", help="with --seed: print all that happened")
    parser.add_argument("--broken", choices=sorted(mutations.BY_NAME), help="break the scheduler in this way")
    parser.add_argument(
        "--mutations", action="store_true", help="break the scheduler in every way, and tell which seed sees it"
    )
    options = parser.parse_args(arguments)
    seeds = range(options.first, options.first + options.seeds)
    if options.mutations:
        return _mutations(seeds, jobs=options.jobs)
    if options.seed is not None:
        return _one(options.seed, trace=options.trace, broken=options.broken or "")
    return _many(seeds, jobs=options.jobs)


def _one(seed: int, *, trace: bool, broken: str) -> int:
    with mutations.BY_NAME[broken].patch() if broken else contextlib.nullcontext():
        result = runs.simulate(seed)
    if trace:
        _say("\n".join(result.trace.lines))
    _say(
        f"seed {seed}: trace {result.trace.digest}, {len(result.trace.lines)} lines, {result.seconds:.0f} virtual"
        f" seconds, {result.calls} calls"
    )
    for failure in result.failures:
        _say(f"  {failure}")
    return 1 if result.failures else 0


def _many(seeds: range, *, jobs: int) -> int:
    began = time.monotonic()
    failing: list[int] = []
    seen: collections.Counter[str] = collections.Counter()
    virtual_s, calls, busiest = 0.0, 0, 0
    show = sys.stderr.isatty()
    with _pool(jobs) as pool:
        for number, found in enumerate(pool.map(runs.summary, seeds, chunksize=4), start=1):
            virtual_s, calls, busiest = virtual_s + found.seconds, calls + found.calls, max(busiest, found.busiest)
            seen.update(found.seen)
            if found.failures:
                failing.append(found.seed)
                _say(f"seed {found.seed}: {len(found.failures)} failures, again: {COMMAND} --seed {found.seed} --trace")
                for failure in found.failures[:3]:
                    _say(f"  {failure}")
            if show:
                sys.stderr.write(f"\r{number} of {len(seeds)} seeds, {len(failing)} fail ")
                sys.stderr.flush()
    if show:
        sys.stderr.write("\n")
    for kind, count in sorted(seen.items()):
        _say(f"{count:10,} {kind}")
    _say(
        f"{len(seeds)} seeds, {len(failing)} fail; {virtual_s / 3600:.0f} virtual hours and {calls:,} calls"
        f" (at most {busiest} a minute) in {time.monotonic() - began:.0f} s"
    )
    return 1 if failing else 0


def _mutations(seeds: range, *, jobs: int) -> int:
    """Find the first seed that sees each breakage; exit code 1 when none of these sees one of them."""
    unseen = 0
    with _pool(jobs) as pool:
        found = pool.map(functools.partial(mutations.first_seed, seeds=seeds), sorted(mutations.BY_NAME))
        for name, (seed, failure) in zip(sorted(mutations.BY_NAME), found, strict=True):
            unseen += seed is None
            told = "no seed sees it" if seed is None else f"seed {seed}: {failure}"
            _say(f"{name} ({mutations.BY_NAME[name].wrong}): {told}")
    return 1 if unseen else 0


def _pool(jobs: int) -> concurrent.futures.ProcessPoolExecutor:
    context = multiprocessing.get_context("spawn")
    return concurrent.futures.ProcessPoolExecutor(max_workers=jobs, mp_context=context)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
