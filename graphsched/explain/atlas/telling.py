"""Vertices, edges and amounts of a map in words, the same in every kind of picture."""

from __future__ import annotations

from collections.abc import Mapping

from graphsched.base.values import nodes
from graphsched.explain import wording
from graphsched.explain.atlas import maps


def latency(milliseconds: float | None) -> str:
    """`0.2 ms`, `350 µs` below a tenth of a millisecond, `? ms` where nobody knows."""
    if milliseconds is None:
        return "? ms"
    return f"{milliseconds * 1000:.3g} µs" if 0 < milliseconds < 0.1 else f"{milliseconds:.4g} ms"


def bandwidth(mbps: float | None) -> str:
    """`100 Gbps`, `250 Mbps`, `? Mbps` where nobody knows."""
    if mbps is None:
        return "? Mbps"
    return f"{mbps / 1000:.4g} Gbps" if mbps >= 1000 else f"{mbps:.4g} Mbps"


def edge(told: maps.Edge) -> str:
    """What is to be said beside an edge; empty for one whose kind says it all."""
    known = told.attributes
    parts: list[str] = []
    if told.kind is maps.Relation.LINK:
        parts += [latency(_number(known, "latency_ms"))] if "latency_ms" in known else []
        parts += [bandwidth(_number(known, "bandwidth_mbps"))] if "bandwidth_mbps" in known else []
        if known.get("down"):
            parts.append("down")
        elif health(told) < 1:
            parts.append(f"health {health(told):.2g}")
    elif told.kind in {maps.Relation.DEPENDS_ON, maps.Relation.CALLS}:
        rate, most = _number(known, "rate"), _number(known, "latency_ms_max")
        parts += [f"×{rate:g}"] if rate not in {None, 1.0} else []
        parts += [f"≤ {latency(most)}"] if most is not None else []
    elif told.kind is maps.Relation.RUNS and known.get("promised"):
        parts.append("promised")
    return " · ".join(parts)


def health(told: maps.Edge) -> float:
    """The health of a link; 1 for any other edge."""
    found = _number(told.attributes, "health")
    return 1.0 if found is None else found


def attributes(known: Mapping[str, object]) -> list[str]:
    """A line for each attribute."""
    return [f"{name}: {_value(name, value)}" for name, value in known.items()]


def printable(words: str) -> str:
    """Words that stay on their line of a terminal, and move nothing else there, whatever somebody called something."""
    return words if words.isprintable() else "".join(each if each.isprintable() else "�" for each in words)


def share(known: Mapping[str, object]) -> float | None:
    """The greatest share in use of what may be used of a vertex of the resource layer; None for any other."""
    had, taken = known.get("allocatable"), known.get("requested")
    if not isinstance(had, Mapping):
        return None
    used, most = (each if isinstance(each, Mapping) else {} for each in (taken, known.get("ceilings")))
    usable = {name: min(had[name], most.get(name, had[name])) for name in had}
    shares = [used.get(name, 0) / usable[name] for name in had if usable[name]]
    return max(shares, default=0.0)


def used(known: Mapping[str, object]) -> str:
    """`2.5 of 4 CPUs, 3 of 110 pods`: what is in use of a vertex of the resource layer; empty for any other."""
    had, taken = known.get("allocatable"), known.get("requested")
    if not isinstance(had, Mapping):
        return ""
    used_of = taken if isinstance(taken, Mapping) else {}
    first = [name for name in (nodes.CPU, nodes.MEMORY) if name in had]
    others = [name for name in had if name not in first and used_of.get(name)]
    return ", ".join(_of(name, used_of.get(name, 0), had[name]) for name in (*first, *others))


def limits(known: Mapping[str, object]) -> list[str]:
    """What an operator grants of a vertex of the resource layer, in words: a part for each limit there is.

    `at most 3 CPUs`, `keeps 2 CPUs for team-a, 500m CPU unused`, `above the watermark of cpu (92.5 %)`.
    """
    ceilings, reserved, left = (
        each if isinstance(each, Mapping) else {}
        for each in (known.get("ceilings"), known.get("reserved"), known.get("reserved_left"))
    )
    parts = [f"at most {_amounts(ceilings)}"] if ceilings else []
    for holder, amounts in reserved.items():
        unused = left.get(holder)
        parts.append(
            f"keeps {_amounts(amounts)} for {holder}" + (f", {_amounts(unused)} unused" if unused else ", all used")
        )
    marks, fullness = known.get("watermarks"), known.get("fullness")
    if isinstance(marks, Mapping) and isinstance(fullness, Mapping):
        parts += [
            f"above the watermark of {resource} ({fullness[resource]:g} %)"
            for resource, side in marks.items()
            if side == "above"
        ]
    return parts


def _amounts(amounts: Mapping[str, int]) -> str:
    return wording.both([wording.amount(resource, amount) for resource, amount in amounts.items()])


def _of(resource: str, taken: int, had: int) -> str:
    if resource == nodes.CPU:
        return f"{taken / 1000:g} of {had / 1000:g} CPUs"
    if resource == nodes.PODS:
        return f"{taken} of {wording.count(had, 'pod')}"
    if resource == nodes.MEMORY:
        return f"{wording.size(taken)} of {wording.size(had)} memory"
    return f"{taken} of {had} {resource}"


def _number(known: Mapping[str, object], name: str) -> float | None:
    value = known.get(name)
    return float(value) if isinstance(value, int | float) else None


def _value(name: str, value: object) -> str:
    if isinstance(value, Mapping):
        if name in {"capacity", "allocatable", "requested", "requests", "amounts", "available", "ceilings"}:
            return ", ".join(wording.amount(resource, amount) for resource, amount in value.items())
        if name in {"reserved", "reserved_left"}:
            return "; ".join(f"{holder}: {_value('amounts', amounts)}" for holder, amounts in value.items())
        return ", ".join(f"{key}={each}" for key, each in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
