"""`graphsched simulate`: what would happen to the pending pods of a cluster.

Options come in from `cli`, `simulation` does the work, results go to stdout as a table, JSON or YAML, and to an HTML
report on request. Timings go to stderr (or into the JSON with --timings), so that results are equal byte for byte.
"""

from __future__ import annotations

import pathlib
import sys

import msgspec

from graphsched.app import offline, ordering, simulation, terminal
from graphsched.base.values import errors, nodes
from graphsched.explain import causes, wording
from graphsched.sources import state

_PENDING_SHOWN = 20
_NAMED_SHOWN = 5


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the user asked for; see the command's help."""

    paths: tuple[str, ...]
    output: terminal.Output = terminal.Output.TABLE
    order: simulation.Order = simulation.Order.QUEUE
    config: str = ""
    scheduler: str = ""
    report: str = ""
    show_all: bool = False
    timings: bool = False


class Timings(msgspec.Struct, frozen=True):
    """How long it took; only there with --timings."""

    seconds: float
    decisions_per_second: float


class UsageOut(msgspec.Struct, frozen=True):
    """One resource: CPU in milli-cores, memory in bytes, GPUs in thousandths, others in whole units."""

    resource: str
    used: int
    offered: int
    percent: float


class Result(msgspec.Struct, frozen=True, omit_defaults=True):
    """The JSON and YAML output. Lists are sorted by pod.

    Attributes:
        nodes: Number of nodes.
        pods: Number of pods by state: bound before, placed, pending, gated.
        usage: By resource.
        placed: Pods that found a node.
        pending: Pods that found none, with the message kube-scheduler would write.
        gated: Pods held back by scheduling gates.
        timings: How long it took.
    """

    nodes: int
    pods: dict[str, int]
    usage: tuple[UsageOut, ...]
    placed: tuple[simulation.Placed, ...]
    pending: tuple[simulation.Pending, ...]
    gated: tuple[str, ...] = ()
    timings: Timings | None = None


def command(options: Options) -> int:
    """Run; returns 0 when every pod found a node, 1 when some did not.

    Raises:
        InputError: The input is not usable, or the report can not be written.
    """
    if options.report:
        _check_writable(options.report)
    cluster = offline.load(options.paths, config=options.config)
    offline.settle()
    nothing = _nothing(cluster, options.scheduler)
    if nothing:
        terminal.note(f"graphsched: nothing to place: {nothing}")
    with terminal.progress("deciding", len(cluster.pending)) as advance:
        run = simulation.run(
            cluster,
            order=options.order,
            decider=offline.decider(options.config),
            scheduler=options.scheduler,
            arrange=ordering.offline(options.config),
            advance=advance,
        )
    if options.output is terminal.Output.TABLE:
        tables(run, show_all=options.show_all)
    else:
        terminal.data(result(run, timings=options.timings), options.output)
    terminal.note(speed(run))
    if options.report:
        _write_report(run, options.report)
    return 1 if run.pending or run.gated else 0


def result(run: simulation.Run, *, timings: bool = False) -> Result:
    """The run as the machine-readable output."""
    speed = Timings(round(run.seconds, 6), round(run.decisions / max(run.seconds, 1e-9), 1)) if timings else None
    return Result(
        nodes=len(run.cluster.nodes),
        pods={
            "bound": sum(bool(pod.node) for pod in run.cluster.pods),
            "placed": len(run.placed),
            "pending": len(run.pending),
            "gated": len(run.gated),
        },
        usage=tuple(UsageOut(each.resource, each.used, each.offered, each.percent) for each in run.usage),
        placed=tuple(sorted(run.placed, key=lambda placed: placed.pod)),
        pending=tuple(sorted(run.pending, key=lambda pending: pending.pod)),
        gated=tuple(sorted(run.gated)),
        timings=speed,
    )


def speed(run: simulation.Run) -> str:
    """How many decisions were made, and how fast."""
    rate = run.decisions / max(run.seconds, 1e-9)
    return f"{wording.count(run.decisions, 'decision')} in {run.seconds:.2f} s ({rate:,.0f} a second)"


def tables(run: simulation.Run, *, names: bool = True, show_all: bool = False) -> None:
    """Write the result for people; without `names` pending pods are counted by cause and not listed."""
    terminal.line(summary(run))
    terminal.line()
    terminal.table(
        [("resource", "left"), ("used", "right"), ("of", "right"), ("", "right"), ("", "left")],
        [
            [
                "GPU" if usage.resource == simulation.GPU else usage.resource,
                amount(usage.resource, usage.used),
                amount(usage.resource, usage.offered),
                f"{usage.percent:.1f} %",
                terminal.bar(usage.used / usage.offered if usage.offered else 0.0),
            ]
            for usage in run.usage
            # How many pods a node takes is news only where it begins to matter.
            if usage.resource != nodes.PODS or usage.percent >= 1
        ],
    )
    if run.pending:
        _pending(run, names=names, show_all=show_all)
    if run.gated:
        terminal.line(
            f"\n  {wording.count(len(run.gated), 'pod')} held back by scheduling gates: {', '.join(run.gated[:5])}"
        )


def _nothing(cluster: state.ClusterState, scheduler: str) -> str:
    """Why there is no pod to place; empty where there is one."""
    if not cluster.pods:
        return "no pods"
    if not cluster.pending:
        return f"it holds {wording.count(len(cluster.pods), 'pod')}, all of them bound"
    named = sorted({pod.scheduler for pod in cluster.pending})
    if not scheduler or scheduler in named:
        return ""
    return f"no pending pod names the scheduler {scheduler}, but {', '.join(named[:_NAMED_SHOWN])}"


def summary(run: simulation.Run) -> str:
    """The first line: how many of how many found a node."""
    total = len(run.placed) + len(run.pending) + len(run.gated)
    where = f"on {wording.count(len(run.cluster.nodes), 'node')}"
    if not total:
        return f"There is no pod to place {where}."
    if not run.pending and not run.gated:
        return f"All {wording.count(total, 'pod')} found a node {where}."
    share = 100 * len(run.placed) / total if total else 0.0
    left = f"{len(run.pending) + len(run.gated):,} stay pending"
    return f"{len(run.placed):,} of {wording.count(total, 'pod')} found a node {where} ({share:.1f} %); {left}."


def amount(resource: str, value: int) -> str:
    """An amount of the usage table."""
    if resource in {nodes.CPU, simulation.GPU}:
        return f"{value / 1000:,.1f}"
    if resource in {nodes.MEMORY, nodes.EPHEMERAL_STORAGE}:
        return wording.size(value)
    return f"{value:,}"


def _pending(run: simulation.Run, *, names: bool, show_all: bool) -> None:
    terminal.line()
    counted = causes.of_pods(run.graph.view(), run.decider, [pending.pod for pending in run.pending])
    terminal.table(
        [("pending", "right"), ("because, as the cluster is now", "left"), ("e.g.", "left")],
        [
            [f"{len(names):,}", cause, ", ".join(names[:2]) + (", …" if len(names) > 2 else "")]
            for cause, names in counted
        ],
    )
    if not names:
        return
    shown = run.pending if show_all else run.pending[:_PENDING_SHOWN]
    terminal.line()
    terminal.table(
        [("pod", "left"), ("message", "left")],
        [[pending.pod, pending.message] for pending in shown],
    )
    if len(shown) < len(run.pending):
        terminal.line(f"  … and {len(run.pending) - len(shown):,} more (--all shows them)")


def _check_writable(path: str) -> None:
    """Said before the work is done, not after."""
    folder = pathlib.Path(path).parent
    if not folder.is_dir():
        raise errors.InputError(path, problem="its folder does not exist", remedy=f"make {folder} first")
    if pathlib.Path(path).is_dir():
        raise errors.InputError(path, problem="is a folder", remedy="name a file, e.g. report.html")


def _write_report(run: simulation.Run, path: str) -> None:
    from graphsched.app import reporting

    try:
        pathlib.Path(path).write_text(reporting.html(run), encoding="utf-8")
    except OSError as error:
        raise errors.InputError(path, problem=f"can not be written: {error.strerror}") from error
    terminal.note(f"report: {path}")
    sys.stderr.flush()
