"""The graph's numbers as rows of a table: what, how many, and what else is to be said."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from graphsched.explain import wording
from graphsched.explain.atlas import stats, telling


def rows(found: stats.Stats, now: float) -> list[list[str]]:
    """The rows; `now` is seconds since the epoch, for what has an age."""
    told = [
        ["vertices", f"{sum(found.vertices.values()):,}", _listed(found.vertices)],
        ["edges", f"{sum(found.edges.values()):,}", _listed(found.edges)],
    ]
    resources = map(_resource, found.resources)
    return [*told, *_shape(found.shape), *_links(found.links, now), *map(_level, found.levels), *resources]


def _shape(shape: stats.Shape) -> list[list[str]]:
    if not shape.components:
        return []
    busiest = f" at {shape.busiest}" if shape.busiest else ""
    alone = f"; {wording.count(shape.alone, 'vertex', 'vertices')} alone" if shape.alone else ""
    return [
        ["degree", f"{shape.degree_mean:g}", f"on average, {shape.degree_max:,} at most{busiest}"],
        ["components", f"{shape.components:,}", f"the largest of {shape.largest:,}{alone}"],
        ["adjacency", f"{wording.size(shape.adjacency_bytes)}B", "the edges as they are walked, packed, both ways"],
        ["diameter", f"≥ {shape.diameter_min:,}", "edges: found by walking to the farthest vertex twice"],
    ]


def _links(links: stats.Links, now: float) -> list[list[str]]:
    told = []
    if links.by_health:
        told += [
            ["links", f"{sum(links.by_health.values()):,}", f"by health: {_listed(links.by_health)}"],
            ["", "", f"latency {_spread(links.latency_ms, links.latency_unknown, telling.latency)}"],
            ["", "", f"bandwidth {_spread(links.bandwidth_mbps, links.bandwidth_unknown, telling.bandwidth)}"],
        ]
    if links.measured_oldest is not None:
        age = wording.duration(max(0.0, now - links.measured_oldest))
        told.append(["", "", f"{links.measured:,} were measured, the one longest ago {age} ago"])
    if links.unattached:
        told.append(
            ["unattached", f"{links.unattached:,}", "ties that miss an end: it is not in the graph, or not yet"]
        )
    return told


def _level(level: stats.Level) -> list[str]:
    same = level.nodes_min == level.nodes_max
    size = wording.count(level.nodes_max, "node") if same else f"{level.nodes_min:,} to {level.nodes_max:,} nodes"
    return ["domains", f"{level.domains:,}", f"{level.label}: {size}{' each' if level.domains > 1 else ''}"]


def _resource(amount: stats.Amount) -> list[str]:
    """What is requested of what may be used, and what makes the difference to what there is."""
    of = functools.partial(wording.amount, amount.resource)
    share = f"{100 * amount.requested / amount.usable:.1f}%" if amount.usable else "–"
    parts = [f"{of(amount.requested)} of {of(amount.allocatable)} offered"]
    if amount.usable < amount.allocatable:
        parts.append(f"{of(amount.usable)} of them under ceilings")
    if amount.capacity > amount.allocatable:
        parts.append(f"{of(amount.capacity)} installed")
    if amount.reserved:
        parts.append(f"{of(amount.reserved)} kept for their holders")
    return ["requested", share, ", ".join(parts)]


def _listed(counts: Mapping[str, int]) -> str:
    """`32 pods, 4 nodes` without the plural: greatest first."""
    return ", ".join(f"{number:,} {name}" for name, number in sorted(counts.items(), key=lambda each: -each[1]))


def _spread(values: tuple[float, float, float] | None, unknown: int, told: Callable[[float], str]) -> str:
    if values is None:
        return "unknown"
    least, median, greatest = values
    known = told(least) if least == greatest else f"{told(least)} to {told(greatest)}, median {told(median)}"
    return f"{known}; unknown of {unknown:,}" if unknown else known
