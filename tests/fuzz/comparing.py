"""One scenario, two answers: graphsched's and the oracle's, compared field by field.

A request goes in, differences come out as lines that name field, graphsched's value and the oracle's. Compared is what
the contract of `evaluate` fixes: outcome, every node's status, plugin, reasons, scores and total, feasible, best and
selected nodes, what PreFilter or PreEnqueue said, and the final message. How an error is worded is not.

Invariant: nothing is compared after the first pod that the two place differently; what follows is another story.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import msgspec

from graphsched.app import evaluate
from tests.fuzz.wishes import Json
from tests.oracle import program

_FIELDS = ("outcome", "feasible", "best", "selected", "byNomination", "preFilter", "gated", "reserve", "message")


@dataclasses.dataclass(frozen=True, slots=True)
class Difference:
    """Where the two answers part.

    `kind` is the path without names and numbers: differences of one kind have, as a rule, one cause.
    """

    path: str
    kind: str
    ours: object
    theirs: object

    def __str__(self) -> str:
        return f"{self.path}: graphsched {_text(self.ours)}, oracle {_text(self.theirs)}"


@dataclasses.dataclass(frozen=True, slots=True)
class Compared:
    """A scenario with both answers and their differences."""

    request: Json
    ours: Json
    theirs: Json
    differences: tuple[Difference, ...]

    @property
    def invalid(self) -> bool:
        """Whether the API server would have refused an object: then nothing is promised."""
        refused = any("invalid" in text or "forbidden" in text for text in self.theirs["warnings"])
        return bool(self.theirs.get("error")) or refused


def compare(oracle: program.Oracle, request: Json) -> Compared:
    """Ask both."""
    line = msgspec.json.encode(request)
    oracle.send(line)
    # Our own answer is made while the oracle makes its.
    ours: Json = msgspec.json.decode(msgspec.json.encode(evaluate.answer(line)))
    theirs = oracle.receive()
    return Compared(request, ours, theirs, tuple(differences(ours, theirs)))


def differences(ours: Json, theirs: Json) -> Iterator[Difference]:
    """Where two answers to one request part."""
    if ours.get("error") or theirs.get("error"):
        if ours.get("error") != theirs.get("error"):
            yield Difference("error", "error", ours.get("error"), theirs.get("error"))
        return
    if len(ours["results"]) != len(theirs["results"]):
        yield Difference("results", "results", len(ours["results"]), len(theirs["results"]))
    for number, (mine, other) in enumerate(zip(ours["results"], theirs["results"], strict=False)):
        place = f"results[{number}]"
        for field in _FIELDS:
            left, right = mine.get(field), other.get(field)
            if (left or None) != (right or None):
                yield Difference(f"{place}.{field}", field, left, right)
        yield from _of_nodes(mine.get("nodes") or {}, other.get("nodes") or {}, place)
        if mine.get("selected") != other.get("selected"):
            return


def _of_nodes(mine: Json, other: Json, place: str) -> Iterator[Difference]:
    if sorted(mine) != sorted(other):
        yield Difference(f"{place}.nodes", "nodes", sorted(mine), sorted(other))
    for name in sorted(set(mine) & set(other)):
        left, right = mine[name], other[name]
        for field in ("status", "plugin", "reasons", "total"):
            if left.get(field) != right.get(field):
                yield Difference(f"{place}.nodes.{name}.{field}", f"nodes.{field}", left.get(field), right.get(field))
        scored, expected = left.get("scores") or {}, right.get("scores") or {}
        for plugin in sorted(set(scored) | set(expected)):
            if scored.get(plugin) != expected.get(plugin):
                path = f"{place}.nodes.{name}.scores.{plugin}"
                yield Difference(path, f"nodes.scores.{plugin}", scored.get(plugin), expected.get(plugin))


def _text(value: object) -> str:
    return "nothing" if value is None else msgspec.json.encode(value).decode()
