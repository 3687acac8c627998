"""The ways that a pod's placement was weighed by: from a node to what it wants to be near, and to its partners.

A view and a pod come in, one `Way` for each target and partner goes out, with the links it crosses and how old what is
known of the worst of them is. It is computed when somebody asks, never in a decision.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from graphsched.base.values import keys, pods, relations
from graphsched.decision.scoring import nearness
from graphsched.explain import wording
from graphsched.graph import partners, routes, view


class Way(msgspec.Struct, frozen=True, gc=False):
    """The way from a node to the nearest of what the pod wants to be near, or of a partner's pods.

    Attributes:
        node: Where it begins.
        title: What it leads to: `Service default/cache`, `zone a`.
        path: As people read it: `web-1 ─0.2 ms─ leaf-12 ─0.4 ms─ storage-3`; empty where no way is known.
        hops: Its edges.
        latency_ms: The time one way; None where it is not known.
        bandwidth_mbps: The least bandwidth; None where it is not known.
        health: Of its least healthy link; None where it crosses none.
        age_s: How long ago that one was measured; None where it never was, or nobody says what time it is.
    """

    node: str
    title: str
    path: str = ""
    hops: int = 0
    latency_ms: float | None = None
    bandwidth_mbps: float | None = None
    health: float | None = None
    age_s: float | None = None

    def __str__(self) -> str:
        """One line, without indentation."""
        if not self.path:
            return f"{self.title}: no way from {self.node} is known"
        if not self.hops:
            return f"{self.title}: on {self.node} itself"
        told = [wording.count(self.hops, "hop")]
        if self.latency_ms is not None:
            told.append(f"{self.latency_ms:g} ms")
        if self.bandwidth_mbps is not None:
            told.append(f"{self.bandwidth_mbps:g} Mbps")
        if self.health is not None and (self.health < 1 or self.age_s is not None):
            age = "" if self.age_s is None else f", measured {wording.duration(self.age_s)} ago"
            told.append(f"worst link at health {self.health:.2g}{age}")
        return f"{self.title}: {self.path} ({', '.join(told)})"


def of_node(graph: view.View, pod: pods.Pod, node: str, *, now: float) -> tuple[Way, ...]:
    """The ways from this node; none for a pod that neither names a place nor has partners.

    Args:
        graph: The view.
        pod: The pod.
        node: Name of a node that the view has.
        now: Seconds since the epoch; 0.0 where nobody says.
    """
    if pod.spec.graph is None and not graph.groups and not graph.callers:
        return ()
    return (*_near(graph, pod, node, now), *_partners(graph, pod, node, now))


def _near(graph: view.View, pod: pods.Pod, node: str, now: float) -> Iterator[Way]:
    wanted = pod.spec.graph
    if wanted is None or not wanted.near:
        return
    row = graph.columns.rows[node]
    targets = [key for each in wanted.near for key in graph.routes.resolve(each)][: nearness.TARGETS_MAX]
    known = [(int(hops), key) for key in targets if (hops := graph.routes.hops(key)[row]) >= 0]
    if not known:
        yield Way(node, wording.either([_title(each) for each in wanted.near]))
        return
    goal = min(known)[1]
    yield told(graph, node, _title(goal), goal, routes.Metric.HOPS, now)


def _partners(graph: view.View, pod: pods.Pod, node: str, now: float) -> Iterator[Way]:
    metric = nearness.metric_of(graph)
    row = graph.columns.rows[node]
    told = pod.spec, pod.namespace, pod.labels
    found = partners.drawing(graph.groups, graph.callers, graph.selections, *told)
    for partner in found:
        rows = np.flatnonzero(graph.crowd.counts(partner.matcher))
        if not len(rows):
            continue
        goals = [keys.node_key(name) for name in sorted(graph.columns.names[each] for each in rows.tolist())]
        if keys.node_key(node) in goals:
            yield told(graph, node, partner.title, keys.node_key(node), metric, now)
            continue
        known = []
        for goal in goals[: nearness.TARGETS_MAX]:
            found_there = graph.routes.hops(goal) if metric is routes.Metric.HOPS else _amounts(graph, metric, goal)
            distance = float(found_there[row])
            if distance >= 0:
                known.append((distance, goal))
        if known:
            yield told(graph, node, partner.title, min(known)[1], metric, now)
        else:
            yield Way(node, partner.title)


def _amounts(graph: view.View, metric: routes.Metric, goal: keys.VertexKey) -> routes.Amounts:
    return graph.routes.latency(goal) if metric is routes.Metric.LATENCY else graph.routes.cost(goal)


def told(graph: view.View, node: str, title: str, goal: keys.VertexKey, metric: routes.Metric, now: float) -> Way:
    """The best way from the node to the goal in this metric."""
    route = graph.routes.route(keys.node_key(node), goal, metric)
    if route is None:
        return Way(node, title)
    worst = min(route.links, key=lambda link: (link.health, link.at), default=None)
    return Way(
        node=node,
        title=title,
        path=path_text(route),
        hops=route.hops,
        latency_ms=None if route.latency_ms is None or not route.links else round(route.latency_ms, 3),
        bandwidth_mbps=route.bandwidth_mbps,
        health=None if worst is None else worst.health,
        age_s=None if worst is None or not worst.at or not now else max(now - worst.at, 0.0),
    )


def path_text(route: routes.Route) -> str:
    """The way as people read it."""
    steps = (f" {_stroke(leg.link)} {_short(leg.end)}" for leg in route.legs)
    return "".join((_short(route.vertices[0]), *steps))


def _stroke(link: relations.Link | None) -> str:
    if link is None:
        return "─"
    if link.latency_ms is not None:
        return f"─{link.latency_ms:g} ms─"
    if link.cost is not None:
        return f"─cost {link.cost}─"
    return f"─{link.bandwidth_mbps:g} Mbps─" if link.bandwidth_mbps is not None else "──"


def _short(key: keys.VertexKey) -> str:
    """A vertex by what people call it: a node's name, a domain's label and value, a place without who describes it."""
    if keys.kind_of(key) == keys.Kind.DOMAIN:
        return _title(key)
    return keys.name_of(key).rpartition("/")[2]


def _title(key: keys.VertexKey) -> str:
    """What a person calls a target: `zone a`, `n1`, `leaf-12`."""
    if keys.kind_of(key) != keys.Kind.DOMAIN:
        return keys.name_of(key).rpartition("/")[2]
    label, _, path = keys.name_of(key).partition("=")
    return f"{label.rpartition('/')[2]} {path.rpartition(':')[2].rpartition('/')[2]}"
