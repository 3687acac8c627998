"""`graphsched shadow`: may a team trust the cut-over; how another scheduler's choices compare with ours.

A scheduler that runs in mode shadow is asked at its debug endpoint, and a `shadow.Report` comes back. It is written as
a table of agreement, the worst disagreements with their reasons and one line that sums up, or as JSON or YAML.
"""

from __future__ import annotations

import math

import msgspec

from graphsched.app import asking, shadow, terminal
from graphsched.base.values import errors
from graphsched.explain import wording

_TIMEOUT_S = 10.0
_ANSWER_BYTES_MAX = 16 << 20

TITLES = {
    shadow.Result.SAME: "the same node",
    shadow.Result.EQUAL: "another node of equal score",
    shadow.Result.UNSCHEDULABLE: "left pending by both",
    shadow.Result.LOWER: "a node of lower score than ours",
    shadow.Result.PENDING: "left pending, we would place it",
    shadow.Result.NONE: "placed, we would leave it pending",
    shadow.Result.REFUSED: "a node that we would refuse",
}


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the user asked for; see the command's help."""

    server: asking.Server = asking.Server()
    output: terminal.Output = terminal.Output.TABLE
    limit: int = 10
    at_least: float = 95.0


def command(options: Options) -> int:
    """Report; returns 0 when the two agree well enough, 1 when they do not or nothing was compared yet.

    Raises:
        InputError: The share that is asked for is none.
        ClusterError: The running scheduler can not be asked, or is not in mode shadow.
    """
    if not 0.0 <= options.at_least <= 100.0:
        raise errors.InputError("--at-least", problem=f"{options.at_least:g} is no share", remedy="use 0 to 100")
    body = asking.get(
        options.server,
        f"/debug/shadow?limit={options.limit}",
        timeout_s=_TIMEOUT_S,
        bytes_max=_ANSWER_BYTES_MAX,
        instead="start one with graphsched run --mode shadow, or use --server",
    )
    try:
        report = msgspec.json.decode(body, type=shadow.Report)
    except msgspec.DecodeError as error:
        raise errors.ClusterError(
            f"{options.server.url}: not an answer of graphsched of this version ({error})"
        ) from error
    if missing := [result.value for result in shadow.Result if result not in report.results]:
        raise errors.ClusterError(
            f"{options.server.url}: not an answer of graphsched of this version (it does not count {missing[0]})"
        )
    if options.output is terminal.Output.TABLE:
        _write(report)
    else:
        terminal.data({**msgspec.to_builtins(report), "verdict": verdict(report)}, options.output)
    return 0 if trusted(report, at_least=options.at_least) else 1


def trusted(report: shadow.Report, *, at_least: float) -> bool:
    """Whether so many percent agree, and no pod is where, or placed though, we would not have placed it."""
    wrong = report.results[shadow.Result.REFUSED] + report.results[shadow.Result.NONE]
    return report.compared > 0 and not wrong and 100.0 * report.agreed >= at_least * report.compared


def verdict(report: shadow.Report) -> str:
    """The one line that sums up."""
    if not report.compared:
        return f"No pod of {report.scheduler} was compared yet."
    parts = [f"{report.results[shadow.Result.REFUSED]:,} on nodes we would refuse"]
    for result, words in (
        (shadow.Result.NONE, "placed that we would leave pending"),
        (shadow.Result.PENDING, "left pending that we would place"),
    ):
        if report.results[result]:
            parts.append(f"{report.results[result]:,} {words}")
    both = ", or pending with both" if report.results[shadow.Result.UNSCHEDULABLE] else ""
    return (
        f"{report.agreed:,} of {wording.count(report.compared, 'pod')}: same node or equal score{both} "
        f"({_percent(report.agreed, report.compared)}); {', '.join(parts)}."
    )


def _write(report: shadow.Report) -> None:
    since = wording.duration(report.seconds)
    terminal.line(
        f"{report.scheduler} beside graphsched for {since}, {wording.count(report.compared, 'pod')} compared."
    )
    if report.compared:
        rows = [
            [TITLES[result], f"{count:,}", _percent(count, report.compared), _remark(result, report)]
            for result, count in report.results.items()
        ]
        terminal.table([("outcome", "left"), ("pods", "right"), ("share", "right"), ("", "left")], rows)
    for count, words in (
        (report.undecided, "wait; too early to say anything"),
        (report.not_compared.get("unseen", 0), "not compared: bound before seen waiting"),
        (report.not_compared.get("gone", 0), "not compared: deleted too soon"),
    ):
        if count:
            terminal.line(f"  {wording.count(count, 'pod')} {words}.")
    if report.worst:
        terminal.line()
        terminal.line(f"The worst of {wording.count(report.disagreements, 'disagreement')}:")
        terminal.table(
            [("pod", "left"), ("theirs", "left"), ("ours", "left"), ("difference", "left")],
            [[found.pod, found.theirs or "-", found.ours or "-", difference(found)] for found in report.worst],
        )
    terminal.line()
    terminal.line(verdict(report))


def _remark(result: shadow.Result, report: shadow.Report) -> str:
    count = report.results[result]
    if result is not shadow.Result.LOWER or not count:
        return ""
    return f"by {report.gap_sum / count:.1f} points on average, {report.gap_most} at most"


def difference(found: shadow.Finding) -> str:
    """In what they differ, in words."""
    unsettled = f" ({wording.count(found.in_flight, 'other pod')} just being bound)" if found.in_flight else ""
    if found.result is shadow.Result.LOWER:
        return f"score {found.their_score} instead of {found.our_score}{unsettled}"
    reasons = "; ".join(found.reasons)
    if found.result is shadow.Result.REFUSED:
        return f"refused by {found.plugin or 'graphsched'}: {reasons}{unsettled}"
    if found.result is shadow.Result.NONE:
        return f"no node found: {reasons}{unsettled}"
    return "it was left pending"


def _percent(part: int, whole: int) -> str:
    """One place after the point, and never up: 100.0 % means all."""
    return f"{math.floor(1000 * part / whole) / 10:.1f} %"
