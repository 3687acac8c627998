"""`make fuzz`: scenarios or event sequences for as long as asked, graphsched against the oracle.

What fails is shrunk and printed as one line of JSON. A scenario can be piped into `graphsched evaluate` and into
`python -m tests.oracle.program --serve`, a sequence into `python -m tests.fuzz --replay`. One is printed for each kind
of difference. Ends with 1 if there was any, else with 0.
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
import sys
import time
from collections.abc import Callable, Sequence

import msgspec

from tests.controlplane import binaries
from tests.fuzz import comparing, coverage, living, scenarios, sequences, shrinking
from tests.fuzz.wishes import Json
from tests.oracle import program

KINDS_MAX = 12
"""Kinds of differences that are shrunk and shown; more would only bury the first."""
ENDLESS = 1 << 60


@dataclasses.dataclass(frozen=True, slots=True)
class Answered:
    """What became of one request."""

    theirs: Sequence[Json]
    differences: Sequence[comparing.Difference]
    invalid: str = ""
    """Why nothing is promised."""


def main() -> int:
    """Run; returns the exit status."""
    options = _options()
    try:
        path = options.oracle or binaries.ensure_oracle()
    except binaries.BuildError as error:
        sys.stderr.write(f"fuzz: {error}\n")
        return 2
    with program.Oracle(path) as oracle:
        if options.replay:
            return _replay(oracle)
        if options.sequences is not None:
            return _run(oracle, options, "sequences", sequences.sequence, _lived)
        return _run(oracle, options, "scenarios", scenarios.scenario, _scenario)


def _run(
    oracle: program.Oracle,
    options: argparse.Namespace,
    noun: str,
    make: Callable[..., Json],
    ask: Callable[[program.Oracle, Json], Answered],
) -> int:
    extras = frozenset(filter(None, options.extras.split(",")))
    most = options.scenarios if options.sequences is None else options.sequences
    met = coverage.Coverage(extras)
    started = time.monotonic()
    number = options.first
    failed: dict[str, int] = {}
    invalid = 0
    while number - options.first < most and time.monotonic() - started < options.seconds:
        request = make(options.seed, number, extras=extras)
        number += 1
        answered = ask(oracle, request)
        for theirs in answered.theirs:
            met.add(theirs)
        if answered.invalid:
            invalid += 1
            if options.invalid:
                _say(f"{request['id']}: {answered.invalid}")
        elif answered.differences:
            kind = answered.differences[0].kind
            failed[kind] = failed.get(kind, 0) + 1
            if failed[kind] == 1 and len(failed) <= KINDS_MAX:
                _report(oracle, request, kind, ask)
    took = time.monotonic() - started
    done = number - options.first
    _say(met.table())
    _say(
        f"{done:,} {noun} of seed {options.seed} in {took:.0f} s ({done / max(took, 1e-9):.0f}/s), "
        f"{invalid} invalid, {sum(failed.values())} with differences {failed or ''}"
    )
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, help="how long (default: 60, with --sequences N until they are done)")
    parser.add_argument("--scenarios", type=int, default=ENDLESS, help="how many at most")
    parser.add_argument(
        "--sequences", type=int, nargs="?", const=ENDLESS, help="event sequences instead, and how many at most"
    )
    parser.add_argument("--seed", type=int, default=1, help="which series (default: 1)")
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    parser.add_argument(
        "--extras", default=",".join(scenarios.EXTRAS), help="fields that may be left out (default: %(default)s)"
    )
    parser.add_argument("--oracle", type=pathlib.Path, help="a program that is built already")
    parser.add_argument("--invalid", action="store_true", help="show what the API server would refuse")
    parser.add_argument("--replay", action="store_true", help="carry out the sequences on standard input, one a line")
    options = parser.parse_args()
    if options.seconds is None:
        counted = options.sequences is not None and options.sequences < ENDLESS
        options.seconds = float("inf") if counted else 60.0
    return options


def _scenario(oracle: program.Oracle, request: Json) -> Answered:
    compared = comparing.compare(oracle, request)
    why = str(compared.theirs.get("error") or compared.theirs["warnings"]) if compared.invalid else ""
    return Answered([compared.theirs], compared.differences, why)


def _lived(oracle: program.Oracle, request: Json) -> Answered:
    lived = living.compare(oracle, request)
    return Answered(lived.theirs, lived.differences, lived.invalid)


def _replay(oracle: program.Oracle) -> int:
    found = False
    for line in sys.stdin.buffer:
        for difference in living.compare(oracle, msgspec.json.decode(line)).differences:
            found = True
            _say(str(difference))
    return 1 if found else 0


def _report(oracle: program.Oracle, request: Json, kind: str, ask: Callable[[program.Oracle, Json], Answered]) -> None:
    """Shrink what failed and show it."""

    def fails(candidate: Json) -> bool:
        try:
            answered = ask(oracle, candidate)
        except (LookupError, TypeError):
            # Too much was left out for it to be a request at all.
            return False
        return not answered.invalid and any(each.kind == kind for each in answered.differences)

    small = shrinking.shrink(request, fails)
    _say(f"{request['id']} differs ({kind}):")
    for difference in ask(oracle, small).differences:
        _say(f"  {difference}")
    _say(msgspec.json.encode(small).decode())


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
