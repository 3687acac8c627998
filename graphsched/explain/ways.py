"""The ways that a pod's placement was weighed by: from a node to what it wants to be near, and to its partners.

A view and a pod come in, one `Way` for each target and partner goes out, with the links it crosses and how old what is
known of the worst of them is. It is computed when somebody asks, never in a decision.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np

from graphsched.base.values import keys, pods, relations
from graphsched.decision import ways
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
        pods: Of a partner, how many pods of it there are.
        places: At how many places these run, or how many there are of what the pod wants to be near.
        considered: How many of the pods, or of those places, were looked at; 0 for all of them.
    """

    node: str
    title: str
    path: str = ""
    hops: int = 0
    latency_ms: float | None = None
    bandwidth_mbps: float | None = None
    health: float | None = None
    age_s: float | None = None
    pods: int = 0
    places: int = 0
    considered: int = 0

    def __str__(self) -> str:
        """One line, without indentation."""
        if not self.path:
            found = f"no way from {self.node} is known"
        elif not self.hops:
            found = f"on {self.node} itself"
        else:
            found = f"{self.path} ({self.facts})"
        return f"{self.title}: {found}" + (f"; {self.cut}" if self.cut else "")

    @property
    def cut(self) -> str:
        """What was not looked at; empty where everything was."""
        if not self.considered:
            return ""
        if not self.pods:
            return f"the first {self.considered:,} of {self.places:,} places were considered"
        return (
            f"{self.considered:,} of {self.pods:,} pods were considered, those at the {ways.ORIGINS_MAX} of "
            f"{self.places:,} places with most"
        )

    @property
    def facts(self) -> str:
        """Length, time, width, and the worst link with its age."""
        told = [wording.count(self.hops, "hop")]
        if self.latency_ms is not None:
            told.append(f"{self.latency_ms:g} ms")
        if self.bandwidth_mbps is not None:
            told.append(f"{self.bandwidth_mbps:g} Mbps")
        if self.health is not None and (self.health < 1 or self.age_s is not None):
            age = "" if self.age_s is None else f", measured {wording.duration(self.age_s)} ago"
            told.append(f"worst link at health {self.health:.2g}{age}")
        return ", ".join(told)


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
    every = [key for each in wanted.near for key in graph.routes.resolve(each)]
    targets = every[: nearness.TARGETS_MAX]
    known = [(int(hops), key) for key in targets if (hops := graph.routes.hops(key)[row]) >= 0]
    if known:
        goal = min(known)[1]
        found = told(graph, node, title_of(goal), goal, routes.Metric.HOPS, now)
    else:
        found = Way(node, wording.either([title_of(each) for each in wanted.near]))
    if len(every) > len(targets):
        found = msgspec.structs.replace(found, places=len(every), considered=len(targets))
    yield found


def _partners(graph: view.View, pod: pods.Pod, node: str, now: float) -> Iterator[Way]:
    metric = nearness.metric_of(graph)
    row = graph.columns.rows[node]
    asked = pod.spec, pod.namespace, pod.labels
    for partner in partners.drawing(graph.groups, graph.callers, graph.selections, *asked):
        found = ways.reach(graph, partner)
        if found is None:
            continue
        each = ways.from_node(graph, found, metric, row)
        known = np.fmin.reduce(each)
        goals = [keys.node_key(graph.columns.names[number]) for number in found.rows[each == known].tolist()]
        way = told(graph, node, partner.title, min(goals), metric, now) if goals else Way(node, partner.title)
        yield with_cut(way, found)


def with_cut(way: Way, found: ways.Reach) -> Way:
    """The way with what was not looked at."""
    if not found.left_out:
        return way
    considered = found.pods - found.left_out
    return msgspec.structs.replace(way, pods=found.pods, places=found.places, considered=considered)


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
        return title_of(key)
    return keys.name_of(key).rpartition("/")[2]


def title_of(key: keys.VertexKey) -> str:
    """What a person calls a target: `zone a`, `n1`, `leaf-12`."""
    if keys.kind_of(key) != keys.Kind.DOMAIN:
        return keys.name_of(key).rpartition("/")[2]
    label, _, path = keys.name_of(key).partition("=")
    return f"{label.rpartition('/')[2]} {path.rpartition(':')[2].rpartition('/')[2]}"
