"""Reachability: what the physical layer says of the way from each node to a place, held against a requirement.

One of the three consumers of the layers, beside feasibility (resources, `constraints/feasibility`) and compliance
(policy, `policy/compliance`). A requirement comes in, the nodes that fall short of it go out, each with what is in the
way. A way that nobody knows is neither short nor long: the node is refused, and the reason says unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from graphsched.base.values import keys, labels, policies
from graphsched.decision import trace
from graphsched.graph import distances, routes, view


def shortfalls(graph: view.View, path: policies.Path) -> Iterator[tuple[str, trace.Mask]]:
    """What is in the way, and bool a row of the nodes for which it is; a node may stand in several."""
    goals = goals_of(graph, path.to)
    where = title(path.to)
    if path.hops_max is not None:
        yield from _hops(graph, goals, where, path.hops_max)
    if path.latency_ms_max is not None:
        yield from _latency(graph, goals, where, path.latency_ms_max)
    if path.bandwidth_mbps_min is not None:
        yield from _bandwidth(graph, goals, where, path.bandwidth_mbps_min)
    if path.same_domain:
        yield from _domain(graph, path, where)


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


def _hops(graph: view.View, goals: list[keys.VertexKey], where: str, most: int) -> Iterator[tuple[str, trace.Mask]]:
    found = np.full(graph.columns.capacity, -1, np.int64)
    for goal in goals:
        hops = graph.routes.hops(goal).astype(np.int64)
        found = np.where((found < 0) | ((hops >= 0) & (hops < found)), hops, found)
    yield f"unknown number of hops to {where}", found < 0
    yield f"more than {most} hops to {where}", found > most


def _latency(
    graph: view.View, goals: list[keys.VertexKey], where: str, most: float
) -> Iterator[tuple[str, trace.Mask]]:
    found = _best(graph, map(graph.routes.latency, goals), np.fmin)
    yield f"unknown latency to {where}", np.isnan(found)
    yield f"more than {most:g} ms to {where}", found > most


def _bandwidth(
    graph: view.View, goals: list[keys.VertexKey], where: str, least: float
) -> Iterator[tuple[str, trace.Mask]]:
    found = _best(graph, map(graph.routes.bottleneck, goals), np.fmax)
    yield f"unknown bandwidth to {where}", np.isnan(found)
    yield f"less than {least:g} Mbps to {where}", found < least


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
