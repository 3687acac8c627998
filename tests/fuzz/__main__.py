"""`make fuzz`: scenarios for as long as asked, graphsched against the oracle.

A failing scenario is shrunk and printed as one line of JSON that can be piped into `graphsched evaluate` and into
`python -m tests.oracle.program --serve`. One scenario is printed for each kind of difference. Ends with 1 if there was
any, else with 0.
"""

from __future__ import annotations

import argparse
import pathlib
import sys
import time

import msgspec

from tests.controlplane import binaries
from tests.fuzz import comparing, coverage, scenarios, shrinking
from tests.fuzz.wishes import Json
from tests.oracle import program

KINDS_MAX = 12
"""Kinds of differences that are shrunk and shown; more would only bury the first."""


def main() -> int:
    """Run; returns the exit status."""
    options = _options()
    extras = frozenset(filter(None, options.extras.split(",")))
    try:
        path = options.oracle or binaries.ensure_oracle()
    except binaries.BuildError as error:
        sys.stderr.write(f"fuzz: {error}\n")
        return 2
    met = coverage.Coverage(extras)
    started = time.monotonic()
    number = options.first
    failed: dict[str, int] = {}
    invalid = 0
    with program.Oracle(path) as oracle:
        while number - options.first < options.scenarios and time.monotonic() - started < options.seconds:
            request = scenarios.scenario(options.seed, number, extras=extras)
            number += 1
            compared = comparing.compare(oracle, request)
            met.add(compared.theirs)
            if compared.invalid:
                invalid += 1
                if options.invalid:
                    _say(f"{request['id']}: {compared.theirs.get('error') or compared.theirs['warnings']}")
                continue
            if compared.differences:
                kind = compared.differences[0].kind
                failed[kind] = failed.get(kind, 0) + 1
                if failed[kind] == 1 and len(failed) <= KINDS_MAX:
                    _report(oracle, request, kind)
    took = time.monotonic() - started
    done = number - options.first
    _say(met.table())
    _say(
        f"{done:,} scenarios of seed {options.seed} in {took:.0f} s ({done / max(took, 1e-9):.0f}/s), "
        f"{invalid} invalid, {sum(failed.values())} with differences {failed or ''}"
    )
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (default: 60)")
    parser.add_argument("--scenarios", type=int, default=1 << 60, help="how many at most")
    parser.add_argument("--seed", type=int, default=1, help="which series (default: 1)")
    parser.add_argument("--first", type=int, default=0, help="number of the first scenario")
    parser.add_argument("--extras", default="", help=f"also: {','.join(scenarios.EXTRAS)}")
    parser.add_argument("--oracle", type=pathlib.Path, help="a program that is built already")
    parser.add_argument("--invalid", action="store_true", help="show what the API server would refuse")
    return parser.parse_args()


def _report(oracle: program.Oracle, request: Json, kind: str) -> None:
    """Shrink a failing scenario and show it."""

    def fails(candidate: Json) -> bool:
        compared = comparing.compare(oracle, candidate)
        return not compared.invalid and any(each.kind == kind for each in compared.differences)

    small = shrinking.shrink(request, fails)
    _say(f"{request['id']} differs ({kind}):")
    for difference in comparing.compare(oracle, small).differences:
        _say(f"  {difference}")
    _say(msgspec.json.encode(small).decode())


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
