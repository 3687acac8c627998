"""Reachability: what the physical layer says of the way from each node to a place, held against a requirement.

One of the three consumers of the layers, beside feasibility (resources, `constraints/feasibility`) and compliance
(policy, `policy/compliance`). A requirement comes in, the nodes that fall short of it go out, each with what is in the
way. A way that nobody knows is neither short nor long: the node is refused, and the reason says unknown.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable, Iterator

import numpy as np

from graphsched.base.values import keys, labels, policies
from graphsched.decision import trace
from graphsched.graph import distances, routes, view


class Measure(typing.NamedTuple):
    """One property of the way that is required.

    Attributes:
        metric: What is measured.
        bound: The most of it, or of bandwidth the least.
        goals: Where the way may lead; the best of them counts.
        found: A row, to the best of the goals; NaN where no way to any is known.
        unknown, short: What is in the way of a node where it is not known, or not enough.
    """

    metric: routes.Metric
    bound: float
    goals: list[keys.VertexKey]
    found: routes.Amounts
    unknown: str
    short: str

    @property
    def missed(self) -> trace.Mask:
        """Bool a row: what is known is not enough."""
        with np.errstate(invalid="ignore"):
            found: trace.Mask = (
                self.found < self.bound if self.metric is routes.Metric.BANDWIDTH else self.found > self.bound
            )
        return found


def shortfalls(graph: view.View, path: policies.Path) -> Iterator[tuple[str, trace.Mask]]:
    """What is in the way, and bool a row of the nodes for which it is; a node may stand in several."""
    for each in measures(graph, path):
        yield each.unknown, np.isnan(each.found)
        yield each.short, each.missed
    if path.same_domain:
        yield from _domain(graph, path, title(path.to))


def measures(graph: view.View, path: policies.Path) -> Iterator[Measure]:
    """What is required of the way, held against what is known of it."""
    goals, where = goals_of(graph, path.to), title(path.to)
    if path.hops_max is not None:
        hops = (np.where(each < 0, np.nan, each) for each in map(graph.routes.hops, goals))
        unknown, short = f"unknown number of hops to {where}", f"more than {path.hops_max} hops to {where}"
        yield Measure(routes.Metric.HOPS, path.hops_max, goals, _best(graph, hops, np.fmin), unknown, short)
    if path.latency_ms_max is not None:
        found = _best(graph, map(graph.routes.latency, goals), np.fmin)
        unknown, short = f"unknown latency to {where}", f"more than {path.latency_ms_max:g} ms to {where}"
        yield Measure(routes.Metric.LATENCY, path.latency_ms_max, goals, found, unknown, short)
    if path.bandwidth_mbps_min is not None:
        found = _best(graph, map(graph.routes.bottleneck, goals), np.fmax)
        unknown, short = f"unknown bandwidth to {where}", f"less than {path.bandwidth_mbps_min:g} Mbps to {where}"
        yield Measure(routes.Metric.BANDWIDTH, path.bandwidth_mbps_min, goals, found, unknown, short)


def prepare(graph: view.View, path: policies.Path, expired: distances.Expired) -> bool:
    """Do the searches that `shortfalls` would, until `expired`; whether all of them are done. What was done is kept."""
    goals = goals_of(graph, path.to)
    return all(graph.routes.prepare(metric, goals, expired) for metric in metrics_of(path))


def metrics_of(path: policies.Path) -> list[routes.Metric]:
    """In what the way is measured."""
    limits = (
        (routes.Metric.HOPS, path.hops_max),
        (routes.Metric.LATENCY, path.latency_ms_max),
        (routes.Metric.BANDWIDTH, path.bandwidth_mbps_min),
    )
    return [metric for metric, limit in limits if limit is not None]


def title(goal: keys.VertexKey) -> str:
    """What a goal is called: `node n1`, `zone=a`, `place slurm/leaf-1`."""
    kind, name = keys.kind_of(goal), keys.name_of(goal)
    if kind != keys.Kind.DOMAIN:
        return f"{kind} {name}"
    label, _, value = name.partition("=")
    return f"{label.rpartition('/')[2]}={value}"


def goals_of(graph: view.View, goal: keys.VertexKey) -> list[keys.VertexKey]:
    """The vertices that a rule means: the goal itself, or the domains whose label has that value.

    A domain's key begins with what holds it (`us-east/a`), which whoever writes a rule need not know.
    """
    if keys.kind_of(goal) != keys.Kind.DOMAIN:
        return [goal]
    prefix, _, value = goal.rpartition("=")
    known = graph.topology.domains()
    if goal in known:
        return [goal]
    return [each for each in known if each.startswith(f"{prefix}=") and _innermost(each) == value]


def _innermost(domain: keys.VertexKey) -> str:
    """The value of the label that a domain's key ends in."""
    return domain.partition("=")[2].rpartition("/")[2].rpartition(":")[2]


def _best(graph: view.View, found: Iterable[routes.Amounts], better: np.ufunc) -> routes.Amounts:
    """Of several goals the best one for each row; what is not known of one is left to the others."""
    best: routes.Amounts = np.full(graph.columns.capacity, np.nan)
    for each in found:
        best = better(best, each)
    return best


def _domain(graph: view.View, path: policies.Path, where: str) -> Iterator[tuple[str, trace.Mask]]:
    """Nodes whose label has another value than there, or none; all of them where it is not known there."""
    label = path.same_domain
    values = _values(graph, path.to, label)
    if not values:
        yield f"unknown {label} of {where}", np.ones(graph.columns.capacity, np.bool_)
        return
    wanted = labels.Requirement(label, labels.Operator.IN, tuple(sorted(values)))
    yield f"another {label} than {where}", ~graph.attributes.holds(wanted, slice(None))


def _values(graph: view.View, goal: keys.VertexKey, label: str) -> set[str]:
    """Values of the label there: the node's own, or those of the nodes in the domain."""
    if keys.kind_of(goal) == keys.Kind.NODE:
        names = [keys.name_of(goal)]
    else:
        names = [name for domain in goals_of(graph, goal) for name in graph.topology.members(domain)]
    found = set()
    for name in names:
        node = graph.node(name)
        value = dict(node.labels).get(label) if node is not None else None
        if value:
            found.add(value)
    return found
