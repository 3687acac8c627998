"""
What a person and a machine get to see of the runs.

Comes in: `measure.Result`s. Goes out: a table with ratios for the terminal, a JSON document, and the sentences that say
which of the asked-for bounds do not hold. Pure but for reading what machine this is.
"""

import dataclasses
import os
import pathlib
import platform
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.live import measure

#: Column title, field, digits, and whether more is better.
_COLUMNS = (
    ("pods/s", "pods_per_s", 1),
    ("CPU ms/pod", "cpu_ms_per_pod", 2),
    ("… settled", "cpu_ms_per_pod_settled", 2),
    ("peak RSS MB", "rss_peak_mb", 0),
    ("ready s", "ready_s", 1),
    ("events", "events", 0),
)
_WIDTH = 12
#: The share of the machine that others may use while a number is still taken at its word.
_QUIET = 0.05


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What the ratio of one number to the first scheduler's must keep: at least or at most."""

    field: str
    at_least: float | None = None
    at_most: float | None = None


#: graphsched's own bars by kind of workload: basic at 5,000 nodes and 5,000 pods, the others at 2,000 pods.
BOUNDS = {
    "basic": (
        Bound(field="pods_per_s", at_least=1.3),
        Bound(field="cpu_ms_per_pod", at_most=0.4),
        Bound(field="rss_peak_mb", at_most=1.0),
    ),
    "affinity": (Bound(field="pods_per_s", at_least=3.0),),
    "spread": (Bound(field="pods_per_s", at_least=2.0),),
}


def medians(results: Sequence[measure.Result]) -> dict[str, dict[str, float]]:
    """By scheduler, the median of each number over its runs, in the order in which they were first measured."""
    by_scheduler: dict[str, list[measure.Result]] = {}
    for result in results:
        by_scheduler.setdefault(result.scheduler, []).append(result)
    return {
        name: {field: statistics.median(getattr(one, field) for one in runs) for _, field, _ in _COLUMNS}
        for name, runs in by_scheduler.items()
    }


def ratios(results: Sequence[measure.Result]) -> dict[str, dict[str, float]]:
    """By scheduler but the first, each median divided by the first scheduler's."""
    (_, base), *others = medians(results).items()
    return {
        name: {field: value / base[field] for field, value in numbers.items() if base[field]}
        for name, numbers in others
    }


def table(results: Sequence[measure.Result]) -> str:
    """The medians and ratios as text."""
    one = results[0]
    runs = max(sum(other.scheduler == result.scheduler for other in results) for result in results)
    lines = [
        f"{one.nodes:,} nodes, {one.pods:,} pods ({one.kind}, created {one.arrival}),"
        " each scheduler on a fresh API server" + (f", median of {runs}" if runs > 1 else ""),
        " " * 18 + "".join(f"{title:>{_WIDTH}}" for title, _, _ in _COLUMNS),
    ]
    for name, numbers in medians(results).items():
        cells = (f"{numbers[field]:>{_WIDTH},.{digits}f}" for _, field, digits in _COLUMNS)
        lines.append(f"{name:18}" + "".join(cells))
    first = results[0].scheduler
    for name, quotients in ratios(results).items():
        cells = (
            f"{quotients[field]:>{_WIDTH - 2}.2f} ×" if field in quotients else " " * _WIDTH for _, field, _ in _COLUMNS
        )
        lines.append(f"{name[:10] + ' / ' + first[:4]:18}" + "".join(cells))
    faults = [f"{result.scheduler}: {fault}" for result in results for fault in result.faults]
    if faults:
        lines += ["", "WRONG:", *(f"  {fault}" for fault in faults)]
    else:
        lines += ["", "Every pod was bound exactly once; no node is over-committed."]
    return "\n".join(lines)


def broken(results: Sequence[measure.Result]) -> list[str]:
    """A sentence for each bound of their kind of workload that a scheduler's ratio to the first does not keep."""
    bounds = BOUNDS[results[0].kind]
    found = []
    for name, quotients in ratios(results).items():
        for bound in bounds:
            value = quotients.get(bound.field)
            if value is None:
                continue
            if bound.at_least is not None and value < bound.at_least:
                found.append(f"{name}: {bound.field} is {value:.2f} ×, at least {bound.at_least:.2f} × is asked for")
            if bound.at_most is not None and value > bound.at_most:
                found.append(f"{name}: {bound.field} is {value:.2f} ×, at most {bound.at_most:.2f} × is asked for")
    return found


def disturbance(results: Sequence[measure.Result]) -> str:
    """A warning where other programs took so much of the machine that the numbers mean little, else nothing."""
    worst = max(results, key=lambda result: result.others_share)
    if worst.others_share <= _QUIET:
        return ""
    return (
        f"Other programs used up to {worst.others_share:.0%} of the machine ({worst.scheduler}'s run):"
        " measure again when it is quiet."
    )


def document(results: Sequence[measure.Result], versions: Mapping[str, str]) -> dict[str, Any]:
    """Everything, for a machine to read."""
    return {
        "machine": _machine(),
        "versions": dict(versions),
        "medians": medians(results),
        "ratios": ratios(results),
        "runs": [dataclasses.asdict(result) for result in results],
    }


def _machine() -> dict[str, Any]:
    text = pathlib.Path("/proc/cpuinfo").read_text()
    models = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cores": os.cpu_count(),
        "model": models[0] if models else platform.machine(),
        "memory_gib": round(memory / (1 << 30), 1),
        "kernel": platform.release(),
    }
