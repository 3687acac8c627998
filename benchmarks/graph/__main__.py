"""The graph benchmark.

Comes in: the command line. Goes out: for every row the plain way, ours, their ratio, the bar and whether it is reached,
and what the reference implementation reached; JSON if asked. Exit code 1 if a bar is missed or answers differ. Each
row runs in a process of its own, so that what one leaves behind does not slow another.
"""

from __future__ import annotations

import argparse
import pathlib
import subprocess
import sys
import tempfile

import msgspec

from benchmarks.graph import frame

ROW_S_MAX = 3600


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; return the exit code."""
    rows = {row.NAME: row for row in frame.find()}
    parser = argparse.ArgumentParser(prog="python -m benchmarks.graph", description=__doc__.split("\n")[0])
    parser.add_argument(
        "--row", action="append", choices=sorted(rows), metavar="NAME", help="only this row; repeatable"
    )
    parser.add_argument(
        "--quick", action="store_true", help="tiny sizes: are the answers equal? the times mean nothing"
    )
    parser.add_argument("--list", action="store_true", help="list the rows")
    parser.add_argument("--output", type=pathlib.Path, help="write the outcomes as JSON")
    options = parser.parse_args(arguments)
    chosen = [rows[name] for name in options.row or sorted(rows)]
    if options.list:
        for row in chosen:
            print(f"{row.NAME}: {row.SHAPE}")
        return 0
    outcomes: dict[str, frame.Outcome] = {}
    for row in chosen:
        alone = len(chosen) == 1
        outcomes[row.NAME] = outcome = row.run(quick=options.quick) if alone else _apart(row, quick=options.quick)
        _show(row, outcome, quick=options.quick)
    if options.output is not None:
        options.output.write_bytes(msgspec.json.format(msgspec.json.encode(outcomes), indent=1) + b"\n")
    if options.quick:
        return 0 if all(outcome.equal for outcome in outcomes.values()) else 1
    return 0 if all(outcome.passed for outcome in outcomes.values()) else 1


def _apart(row: frame.Row, *, quick: bool) -> frame.Outcome:
    """Run a row in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "outcome.json")
        command = [sys.executable, "-m", "benchmarks.graph", "--row", row.NAME, "--output", str(path)]
        done = subprocess.run(
            [*command, *(["--quick"] if quick else [])], capture_output=True, text=True, check=False, timeout=ROW_S_MAX
        )
        if not path.exists():
            sys.stderr.write(done.stderr)
            return frame.Outcome(equal=False, measures=(), notes=(f"ended with exit code {done.returncode}",))
        return msgspec.json.decode(path.read_bytes(), type=dict[str, frame.Outcome])[row.NAME]


def _show(row: frame.Row, outcome: frame.Outcome, *, quick: bool) -> None:
    print(f"\n{row.NAME}: {row.SHAPE}")
    print(f"  {'':<44}{'plain':>14}{'ours':>14}{'ratio':>9}{'bar':>8}")
    for each in outcome.measures:
        verdict = "" if quick else ("pass" if each.passed else "FAIL")
        if isinstance(each, frame.Limit):
            limit = f"≤{each.at_most:g}"
            print(f"  {each.what:<44}{'':>14}{_value(each.ours, each.unit):>14}{'':>9}{limit:>8}  {verdict}")
            continue
        bar, verdict = (f"≥{each.bar:g}", verdict) if each.bar else ("", "")
        print(
            f"  {each.what:<44}{_value(each.plain, each.unit):>14}{_value(each.ours, each.unit):>14}"
            f"{each.ratio:>8.4g}×{bar:>8}  {verdict}"
        )
    print(f"  answers {'equal' if outcome.equal else 'DIFFER'}; reference: {row.REFERENCE}")
    for note in outcome.notes:
        print(f"  {note}")
    sys.stdout.flush()


def _value(value: float, unit: str) -> str:
    return f"{value:,.0f} {unit}" if value >= 1000 else f"{value:.3g} {unit}"


if __name__ == "__main__":
    raise SystemExit(main())
