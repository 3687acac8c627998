"""How things are said: amounts, counts, lists. One place, so that all texts sound alike.

Exact numbers come in, text goes out. Amounts are rounded for reading where a unit makes them short, and never so that
"1 of 1 free" could refuse a pod: what is free is rounded down, what is missing is rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from graphsched.base.values import labels, nodes, pods

_BINARY = ((1 << 60, "Ei"), (1 << 50, "Pi"), (1 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki"))
_BYTES = frozenset({nodes.MEMORY, nodes.EPHEMERAL_STORAGE})


def amount(resource: str, value: int, *, up: bool = False) -> str:
    """An amount of a resource with its unit: `500m CPU`, `1.5 CPUs`, `12.5Gi memory`, `4 nvidia.com/gpu`.

    Args:
        resource: Name of the resource.
        value: In the unit of `nodes.Amounts`.
        up: Round up (what is missing) instead of down (what is free).
    """
    if resource == nodes.CPU:
        if abs(value) < 1000:
            return f"{value}m CPU" if value else "0 CPUs"
        text = f"{value // 1000}{f'.{value % 1000:03d}'.rstrip('0') if value % 1000 else ''}"
        return f"{text} CPU{'' if value == 1000 else 's'}"
    if resource in _BYTES or resource.startswith("hugepages-"):
        return f"{size(value, up=up)} {resource}"
    if resource == nodes.PODS:
        return count(value, "pod")
    return f"{value} {resource}"


def size(value: int, *, up: bool = False) -> str:
    """Bytes with at most two decimals of a binary unit, rounded down or up."""
    for unit, suffix in _BINARY:
        if abs(value) >= unit:
            hundredths = (math.ceil if up else math.floor)(value * 100 / unit)
            whole, rest = divmod(hundredths, 100)
            return f"{whole}{f'.{rest:02d}'.rstrip('0') if rest else ''}{suffix}"
    return str(value)


def gpus(demand: pods.GpuDemand) -> str:
    """A demand for shareable GPUs: `4 G2 GPUs`, `810/1000 of one T4 or V100 GPU`."""
    models = f"{either(demand.models)} " if demand.models else ""
    if demand.milli < 1000:
        return f"{demand.milli}/1000 of one {models}GPU"
    return f"{demand.count} {models}GPU{'' if demand.count == 1 else 's'}"


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 node`, `1,213 nodes`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def selector(chosen: labels.Selector) -> str:
    """A label selector as kubectl writes it: `app=db`, `tier in (a,b)`, `!old`; empty for one that selects all."""
    return ",".join(_requirement(each) for each in chosen.requirements)


def _requirement(requirement: labels.Requirement) -> str:
    key, values = requirement.key, ",".join(requirement.values)
    match requirement.operator:
        case labels.Operator.EXISTS:
            return key
        case labels.Operator.DOES_NOT_EXIST:
            return f"!{key}"
        case labels.Operator.IN:
            return f"{key}={values}" if len(requirement.values) == 1 else f"{key} in ({values})"
        case labels.Operator.NOT_IN:
            return f"{key}!={values}" if len(requirement.values) == 1 else f"{key} notin ({values})"
        case labels.Operator.GT:
            return f"{key}>{values}"
        case labels.Operator.LT:
            return f"{key}<{values}"


def either(items: Sequence[str]) -> str:
    """`a`, `a or b`, `a, b or c`."""
    return _joined(items, "or")


def both(items: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return _joined(items, "and")


def _joined(items: Sequence[str], word: str) -> str:
    return ", ".join(items) if len(items) < 2 else f"{', '.join(items[:-1])} {word} {items[-1]}"


def duration(seconds: float) -> str:
    """`850ms`, `12s`, `3m12s`, `2h5m`, `3d4h`: two units at most."""
    if seconds < 1:
        return f"{max(0, round(seconds * 1000))}ms"
    whole = int(seconds)
    for size_s, unit, smaller_s, smaller in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= size_s:
            rest = whole % size_s // smaller_s
            return f"{whole // size_s}{unit}{f'{rest}{smaller}' if rest else ''}"
    return f"{whole}s"
