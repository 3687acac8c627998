"""A simulation as a report: measures the graph and the run, and hands finished values to `explain.report`.

A `simulation.Run` comes in, HTML goes out. Which pods are explained can be named; otherwise the last placed one and the
commonest kind of pending one are.
"""

from __future__ import annotations

import graphsched
from graphsched.app import simulation
from graphsched.base.values import keys, nodes
from graphsched.explain import causes, report, telling, why, wording
from graphsched.explain.pictures import bars, curve, topology

_CAUSES_MAX = 10
_NAMES = {nodes.CPU: "CPUs", nodes.MEMORY: "memory", simulation.GPU: "GPUs"}
_SIZES = ("CPU only", "part of a GPU", "1 GPU", "2 GPUs", "3 to 4 GPUs", "5 to 8 GPUs", "more than 8 GPUs")


def html(
    run: simulation.Run, *, title: str = "graphsched simulation", subtitle: str = "", timings: bool = False
) -> str:
    """The whole page; with `timings` it also tells how fast decisions were."""
    return report.html(page(run, title=title, subtitle=subtitle, timings=timings))


def page(run: simulation.Run, *, title: str, subtitle: str, timings: bool) -> report.Page:
    """The page's content."""
    counted = causes.of_pods(run.graph.view(), run.decider, [pending.pod for pending in run.pending])
    pictures = [_topology(run)]
    if run.arrivals:
        pictures.append(_curve(run))
    if counted:
        pictures.append(_causes(counted))
    if any(node.gpus for node in run.cluster.nodes) and run.decisions:
        pictures.append(_sizes(run))
    return report.Page(
        title=title,
        subtitle=subtitle or _subtitle(run),
        tiles=tuple(_tiles(run, timings=timings)),
        pictures=tuple(pictures),
        explanations=tuple(_explanations(run, counted)),
        pending=tuple((pending.pod, pending.message) for pending in run.pending),
        footer=f"graphsched {graphsched.__version__}." + ("" if timings else " Equal input gives an equal page."),
    )


def _subtitle(run: simulation.Run) -> str:
    waiting = len(run.cluster.pending)
    return (
        f"{wording.count(len(run.cluster.nodes), 'node')}, {wording.count(waiting, 'pending pod')}, "
        "each decided in turn by the engine that also runs live."
    )


def _tiles(run: simulation.Run, *, timings: bool) -> list[report.Tile]:
    left = len(run.pending) + len(run.gated)
    tiles = [
        report.Tile(f"{len(run.placed):,}", f"of {wording.count(len(run.placed) + left, 'pod')} placed", "good"),
        report.Tile(f"{left:,}", "stay pending", "bad" if left else "good"),
    ]
    for usage in run.usage:
        if usage.resource in _NAMES:
            share = 100 * usage.used / usage.offered if usage.offered else 0.0
            tiles.append(report.Tile(f"{share:.1f} %", f"of the {_NAMES[usage.resource]} in use"))
    if timings and run.seconds > 0:
        tiles.append(report.Tile(f"{run.decisions / run.seconds:,.0f}", "decisions a second"))
    return tiles


def _topology(run: simulation.Run) -> report.Picture:
    kinds = [(_kind(node), node) for node in run.cluster.nodes]
    sizes: dict[str, int] = {}
    for kind, node in kinds:
        sizes[kind] = sizes.get(kind, 0) + max(node.gpus, 1)
    ordered = sorted(kinds, key=lambda entry: (-sizes[entry[0]], entry[0], entry[1].name))
    has_gpus = any(node.gpus for node in run.cluster.nodes)
    caption = (
        "One box a node, one cell a GPU; the line below is the node's CPU in use. A free cell over a full line is a "
        "GPU that nobody can reach. Point at a node for its figures."
        if has_gpus
        else "One box a node, coloured by its CPU in use. Point at a node for its figures."
    )
    legend = (*topology.legend(), *((("cpu1", "CPU in use"),) if has_gpus else ()))
    markup = topology.draw(_glyph(run, node, kind) for kind, node in ordered)
    return report.Picture("Where the load is", caption, markup, tuple(legend))


def _kind(node: nodes.Node) -> str:
    offered = dict(node.allocatable)
    cpus = wording.amount(nodes.CPU, offered.get(nodes.CPU, 0))
    if node.gpus:
        return f"{node.gpu_model or 'GPU'}: {wording.count(node.gpus, 'GPU')}, {cpus}"
    named = dict(node.labels).get("node.kubernetes.io/instance-type", "")
    return f"{named}: {cpus}" if named else cpus


def _glyph(run: simulation.Run, node: nodes.Node, kind: str) -> topology.Glyph:
    graph = run.graph
    row = graph.columns.rows[node.name]
    offered = dict(node.allocatable)

    def used(resource: str) -> int:
        return int(graph.columns.column(graph.columns.requested, resource)[row])

    cpu = used(nodes.CPU) / offered[nodes.CPU] if offered.get(nodes.CPU) else 0.0
    devices = [1 - int(free) / 1000 for free in graph.devices.free[: node.gpus, row]] if node.gpus else [cpu]
    figures = [node.name]
    if node.gpus:
        figures.append(f"{sum(devices):.2f} of {wording.count(node.gpus, 'GPU')}")
    figures.append(f"{used(nodes.CPU) / 1000:,.1f} of {wording.amount(nodes.CPU, offered.get(nodes.CPU, 0))}")
    memory = wording.size(offered.get(nodes.MEMORY, 0))
    figures.append(f"{wording.size(used(nodes.MEMORY))} of {memory} memory")
    figures.append(wording.count(len(graph.on_node(node.name)), "pod"))
    return topology.Glyph(kind, tuple(devices), cpu, " · ".join(figures))


def _curve(run: simulation.Run) -> report.Picture:
    offered = {usage.resource: usage.offered for usage in run.usage}

    def line(name: str, style: str, amounts: list[int], resource: str) -> curve.Series:
        return curve.Series(name, tuple(amount / offered[resource] for amount in amounts), style)

    series = []
    if offered.get(simulation.GPU):
        series.append(line("GPU asked for", "asked", [each.asked_gpu for each in run.arrivals], simulation.GPU))
        series.append(line("GPU", "gpu", [each.used_gpu for each in run.arrivals], simulation.GPU))
    if offered.get(nodes.CPU):
        series.append(line("CPU", "cpu", [each.used_cpu for each in run.arrivals], nodes.CPU))
    if offered.get(nodes.MEMORY):
        series.append(line("memory", "memory", [each.used_memory for each in run.arrivals], nodes.MEMORY))
    first = next((number for number, each in enumerate(run.arrivals) if each.pending), None)
    marks = [] if first is None else [curve.Mark(first, f"first pod without a node: number {first + 1:,}")]
    return report.Picture(
        "How it filled up",
        "Share of the cluster in use after each decision, in the order of arrival.",
        curve.draw(series, axis="pods", marks=marks),
    )


def _causes(counted: list[tuple[str, list[str]]]) -> report.Picture:
    rows = [
        bars.Row(cause, ((len(names), "pending", "pods"),), wording.count(len(names), "pod"))
        for cause, names in counted[:_CAUSES_MAX]
    ]
    return report.Picture(
        "What refused the pending pods",
        "The one reason to look at first, on the cluster as it stands at the end.",
        bars.draw(rows, label="Pending pods by cause"),
    )


def _sizes(run: simulation.Run) -> report.Picture:
    placed, pending = dict.fromkeys(_SIZES, 0), dict.fromkeys(_SIZES, 0)
    found = {each.pod for each in run.placed}
    for pod in run.cluster.pending:
        gpu = pod.spec.gpu
        size = _size(0, 0) if gpu is None else _size(gpu.count, gpu.milli)
        (placed if pod.full_name in found else pending)[size] += 1
    rows = [
        bars.Row(
            size,
            ((placed[size], "placed", "placed"), (pending[size], "pending", "pending")),
            f"{placed[size]:,}" + (f" + {pending[size]:,} pending" if pending[size] else ""),
        )
        for size in _SIZES
        if placed[size] or pending[size]
    ]
    return report.Picture(
        "Who found a place",
        "Pods by the GPUs they ask for.",
        bars.draw(rows, label="Pods by GPUs asked for"),
        (("placed", "placed"), ("pending", "pending")),
    )


def _size(count: int, milli: int) -> str:
    if not count:
        return _SIZES[0]
    if milli < 1000:
        return _SIZES[1]
    return _SIZES[2 if count == 1 else 3 if count == 2 else 4 if count <= 4 else 5 if count <= 8 else 6]


def _explanations(run: simulation.Run, counted: list[tuple[str, list[str]]]) -> list[tuple[str, str]]:
    chosen = []
    if run.placed:
        chosen.append(("A pod that was placed", run.placed[-1].pod))
    if counted:
        chosen.append(("A pod that stays pending", counted[0][1][0]))
    return [(heading, explained(run, name)) for heading, name in chosen]


def explained(run: simulation.Run, name: str) -> str:
    """What `graphsched explain` says of the pod `namespace/name` at the end of the run."""
    view = run.graph.view()
    pod = view.pod(keys.VertexKey(f"{keys.Kind.POD.value}/{name}"))
    return "" if pod is None else telling.text(why.explain(view, pod, run.decider))
