"""The way from one vertex to another, leg by leg, as values and in words.

A `routes.Route` comes in, which says over what the way leads. A `Journey` goes out: what each leg is like, how long ago
that was measured, where it is narrowest.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from graphsched.base.values import keys
from graphsched.explain import wording
from graphsched.explain.atlas import maps, naming, survey, telling
from graphsched.graph import routes, store

Holds = Callable[[keys.VertexKey, keys.VertexKey], bool]
"""Whether the first vertex holds the second."""


class Leg(msgspec.Struct, frozen=True, kw_only=True):
    """One edge of the way.

    Attributes:
        source, target: Keys of its ends.
        kind: `link`; `climbs` to what holds the source; `descends` to what the source holds.
        latency_ms, bandwidth_mbps, health: Of a link; None where nobody knows.
        measured: When the link was last measured, seconds since the epoch; None for what was stated and never measured.
        age_s: How long ago that was.
        by: Who says so.
    """

    source: str
    target: str
    kind: str
    latency_ms: float | None = None
    bandwidth_mbps: float | None = None
    health: float | None = None
    measured: float | None = None
    age_s: float | None = None
    by: str = ""


class Journey(msgspec.Struct, frozen=True, kw_only=True):
    """A way.

    Attributes:
        source, target: Keys of its ends.
        metric: Of all ways this is the best by it: `hops`, `latency`, `bandwidth`, `cost`.
        hops: Number of its edges.
        latency_ms: One way, every link's divided by its health; None where that is not known.
        bandwidth_mbps: Of the narrowest link, times its health; None where that is not known.
        bottleneck: Which leg that is, counted from 0; None where that is not known.
        legs: In order.
    """

    format: str = "graphsched.graph.path/v1"
    source: str
    target: str
    metric: str
    hops: int
    latency_ms: float | None = None
    bandwidth_mbps: float | None = None
    bottleneck: int | None = None
    legs: tuple[Leg, ...] = ()


def journey(found: routes.Route, metric: routes.Metric, *, holds: Holds, now: float) -> Journey:
    """The way as values; `now` is seconds since the epoch."""
    legs = tuple(_leg(leg, holds, now) for leg in found.legs)
    widths = {
        number: leg.bandwidth_mbps * (leg.health or 1.0)
        for number, leg in enumerate(legs)
        if leg.bandwidth_mbps is not None
    }
    return Journey(
        source=found.vertices[0],
        target=found.vertices[-1],
        metric=metric.value,
        hops=found.hops,
        latency_ms=found.latency_ms,
        bandwidth_mbps=found.bandwidth_mbps,
        bottleneck=min(widths, key=lambda number: (widths[number], number))
        if widths and found.bandwidth_mbps is not None
        else None,
        legs=legs,
    )


def holding_in(graph: store.Store) -> Holds:
    """What holds what in the physical layer of this graph."""
    edges = survey.survey(graph, (maps.Layer.PHYSICAL,)).edges
    held = {(edge.source, edge.target) for edge in edges if edge.kind is maps.Relation.CONTAINS}
    return lambda outer, inner: (outer, inner) in held


def headline(told: Journey) -> str:
    """The way in one line."""
    parts = [wording.count(told.hops, "hop")]
    if any(leg.kind == "link" for leg in told.legs):
        parts.append("latency unknown" if told.latency_ms is None else f"{telling.latency(told.latency_ms)} one way")
        if told.bottleneck is None or told.bandwidth_mbps is None:
            parts.append("bandwidth unknown")
        else:
            narrow = told.legs[told.bottleneck]
            ends = f"{naming.short(narrow.source)} → {naming.short(narrow.target)}"
            parts.append(f"{telling.bandwidth(told.bandwidth_mbps)} at the narrowest, {ends}")
    elif told.hops:
        parts.append("no link: latency and bandwidth unknown")
    return f"{naming.short(told.source)} → {naming.short(told.target)}: {' · '.join(parts)}"


def rows(told: Journey) -> list[list[str]]:
    """A row for each leg: from, to, over what, latency, bandwidth, health, when it was measured."""
    return [
        [
            naming.short(leg.source),
            naming.short(leg.target),
            leg.kind,
            *(
                [telling.latency(leg.latency_ms), telling.bandwidth(leg.bandwidth_mbps), f"{leg.health:.2g}", _age(leg)]
                if leg.health is not None
                else ["", "", "", ""]
            ),
        ]
        for leg in told.legs
    ]


def _leg(leg: routes.Leg, holds: Holds, now: float) -> Leg:
    link = leg.link
    if link is None:
        return Leg(source=leg.start, target=leg.end, kind="descends" if holds(leg.start, leg.end) else "climbs")
    return Leg(
        source=leg.start,
        target=leg.end,
        kind="link",
        latency_ms=link.latency_ms,
        bandwidth_mbps=link.bandwidth_mbps,
        health=link.health,
        measured=link.at or None,
        age_s=round(max(0.0, now - link.at), 3) if link.at else None,
        by=link.by,
    )


def _age(leg: Leg) -> str:
    by = f" by {leg.by}" if leg.by else ""
    return f"stated{by}" if leg.age_s is None else f"{wording.duration(leg.age_s)} ago{by}"
