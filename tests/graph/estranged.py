"""Patches whose values are not what they should be: every field of every row, and what rows are called, may be wrong.

Comes in: a good patch and dice. Goes out: a patch of the same types, of which a few values are others. What no type
allows is not made: the codec can not say it, and mypy sees to the rest.
"""

from __future__ import annotations

import collections
import enum
import random
import typing

import msgspec

from graphsched.base.values import keys
from graphsched.graph import delta

INTEGERS = (-1, 0, 1, 3, (1 << 31) - 1, 1 << 31, 1 << 55, (1 << 55) + 1, (1 << 63) - 1, -(1 << 63))
FLOATS = (float("nan"), float("inf"), float("-inf"), -1.0, 0.0, 0.5, 1.5, 5e-324, 1e308)
TEXTS = ("", "x", "x/y", "pod/default/web", "node/n1", "place/slurm/leaf-1", "\0", "ü" * 300)
KEYS = tuple(map(keys.VertexKey, TEXTS))


def patch(good: delta.Patch, rng: random.Random, struck: collections.Counter[str]) -> delta.Patch:
    """The patch after one to three strokes; `struck` counts the types that were struck, those of parts included."""
    made = delta.Patch(set(good.removed), set(good.cut), dict(good.vertices), dict(good.edges))
    for _ in range(rng.randint(1, 3)):
        match rng.randrange(8):
            case 0 | 1 | 2:
                key = rng.choice(sorted(made.vertices))
                made.vertices[key] = _other(made.vertices[key], rng, struck)
            case 3 | 4:
                edge = rng.choice(sorted(made.edges, key=str))
                made.edges[edge] = _other(made.edges[edge], rng, struck)
            case 5:
                one, two = (rng.choice(sorted(made.vertices)) for _ in range(2))
                made.vertices[rng.choice([one, *KEYS])] = made.vertices[two]
            case 6:
                edge = rng.choice(sorted(made.edges, key=str))
                value = made.edges.pop(edge)
                made.edges[_renamed(edge, made, rng)] = value
            case _:
                made.removed.add(rng.choice([*sorted(made.vertices), *KEYS]))
                made.cut.add(_renamed(rng.choice(sorted(made.edges, key=str)), made, rng))
    return made


def _renamed(edge: keys.EdgeID, within: delta.Patch, rng: random.Random) -> keys.EdgeID:
    """An edge between others, the other way round, or of another kind."""
    ends = [edge.target, edge.source, *sorted(within.vertices), *KEYS]
    return keys.EdgeID(rng.choice(ends), rng.choice(ends), rng.choice([edge.kind, *keys.EdgeKind]))


Value = typing.TypeVar("Value")


def _other(value: Value, rng: random.Random, struck: collections.Counter[str]) -> Value:
    """Another value of the same type, or the same where there is none."""
    return typing.cast("Value", _changed(value, rng, struck))


def _changed(
    value: typing.Any, rng: random.Random, struck: collections.Counter[str], *, within: bool = False
) -> typing.Any:
    if isinstance(value, msgspec.Struct):
        struck[type(value).__name__] += 1
        field = rng.choice(value.__struct_fields__)
        return msgspec.structs.replace(value, **{field: _changed(getattr(value, field), rng, struck)})
    if isinstance(value, enum.Enum):
        return rng.choice(list(type(value)))
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice(INTEGERS)
    if isinstance(value, float):
        return rng.choice(FLOATS)
    if isinstance(value, str):
        return rng.choice([*TEXTS, value[:-1], value + value])
    if isinstance(value, tuple) and value:
        at = rng.randrange(len(value))
        changed = (*value[:at], _changed(value[at], rng, struck, within=True), *value[at + 1 :])
        # A tuple in a tuple is a pair of a name and what goes with it, and stays one.
        return changed if within else rng.choice([changed, (), value[::-1], value + value])
    return value
