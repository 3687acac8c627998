"""
The live benchmark: kube-scheduler and graphsched in turn on a fresh real API server, under the same load.

Comes in: the command line. Goes out: a table with ratios, a JSON file if asked, and the exit code: 0 done, 1 a
scheduler did something wrong or an asked-for bound does not hold, 2 it could not be measured.
"""

import argparse
import json
import pathlib
import shlex
import sys
from typing import get_args

from benchmarks.live import measure, report, schedulers, workloads
from tests.controlplane import binaries, processes

_EXAMPLES = """examples:
  python -m benchmarks.live
  python -m benchmarks.live --nodes 500 --pods 1000 --schedulers kube-scheduler
  python -m benchmarks.live --kind affinity --check
  python -m benchmarks.live --repeat 3 --check --output live.json
"""


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmark; return the exit code."""
    options = _parser().parse_args(arguments)
    kind = workloads.KINDS[options.kind]
    program = shlex.split(options.graphsched)
    if "graphsched" in options.schedulers and not program and not schedulers.GRAPHSCHED.exists():
        return _complain(f"{schedulers.GRAPHSCHED} is missing: run 'make setup'")
    results: list[measure.Result] = []
    try:
        programs = binaries.ensure()
        for turn in range(options.repeat):
            for name in options.schedulers:
                prefix = f"{name} {turn + 1}/{options.repeat}" if options.repeat > 1 else name
                results.append(
                    measure.run(
                        schedulers.known(program)[name],
                        kind=options.kind,
                        nodes=options.nodes,
                        pods=options.pods or kind.pods,
                        arrival=options.arrival,
                        programs=programs,
                        say=measure.Say(prefix, quiet=options.quiet),
                    ),
                )
    except (binaries.BuildError, processes.ProcessDiedError, processes.DeadlineError, measure.StalledError) as error:
        return _complain(str(error))
    print(report.table(results))
    busy = report.disturbance(results)
    if busy:
        print(busy)
    broken = report.broken(results) if options.check else []
    for sentence in broken:
        print(f"NOT MET: {sentence}")
    if options.output is not None:
        versions = {"kubernetes": binaries.KUBERNETES_VERSION, "python": sys.version.split()[0]}
        options.output.write_text(json.dumps(report.document(results, versions), indent=1) + "\n")
    return 1 if broken or any(result.faults for result in results) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.live",
        description="Measure schedulers in turn on fresh real API servers under the same load.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--nodes", type=_positive, default=5000, help="nodes in the cluster (default 5000)")
    counts = ", ".join(f"{kind.pods} {name}" for name, kind in workloads.KINDS.items())
    parser.add_argument("--pods", type=_at_least_two, help=f"pods to schedule (default {counts})")
    parser.add_argument(
        "--schedulers",
        type=_names,
        default=list(schedulers.USUAL),
        metavar="NAME,NAME",
        help=f"which of {', '.join(schedulers.ALL)}; ratios are to the first (default {','.join(schedulers.USUAL)})",
    )
    kinds = "; ".join(f"{name}: {kind.about}" for name, kind in workloads.KINDS.items())
    parser.add_argument("--kind", choices=list(workloads.KINDS), default="basic", help=f"{kinds} (default basic)")
    parser.add_argument(
        "--graphsched",
        default="",
        metavar="COMMAND",
        help='how graphsched is started (default: the console script in .venv), e.g. "python -m graphsched"',
    )
    parser.add_argument(
        "--arrival",
        choices=get_args(measure.Arrival),
        default="during",
        help="create the pods while the scheduler runs, or before it starts (default during)",
    )
    parser.add_argument("--repeat", type=_positive, default=1, help="runs of each, of which the median counts")
    parser.add_argument("--output", type=pathlib.Path, metavar="FILE", help="write everything as JSON")
    parser.add_argument("--check", action="store_true", help="exit 1 unless graphsched keeps its bounds")
    parser.add_argument("--quiet", action="store_true", help="no progress on standard error")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return number


def _at_least_two(text: str) -> int:
    number = int(text)
    if number < 2:
        raise argparse.ArgumentTypeError(f"{text} is not at least 2: the clock runs from the first to the last")
    return number


def _names(text: str) -> list[str]:
    names = text.split(",")
    unknown = [name for name in names if name not in schedulers.ALL]
    if unknown:
        raise argparse.ArgumentTypeError(f"no scheduler {unknown[0]!r}; there are {', '.join(schedulers.ALL)}")
    return names


def _complain(text: str) -> int:
    print(f"bench-live: {text}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
