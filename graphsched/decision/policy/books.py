"""The rules of one graph, compiled, and what they say of each kind of pod.

`of` finds the book of a view; a decision asks it for a `rulings.Ruling`. Of a rule the part about pods is asked once
for each kind of pod and the part about nodes once for each node, and again for nodes that changed. A ruling is kept
until a rule, a node or, where a way is required, the topology changes.

Invariant: what a book says equals asking every rule about the pod and every node anew (a property in the tests).
"""

from __future__ import annotations

import collections
import typing
import weakref
from collections.abc import Callable

import numpy as np

from graphsched.base.values import keys, labels, pods, policies
from graphsched.decision import context as contexts
from graphsched.decision.constraints import check
from graphsched.decision.policy import answers, columns, reachability, rulings
from graphsched.graph import rules, view

KINDS_MAX = 1024
"""Kinds of pods whose rulings are kept; one takes 2 bytes a node for each rule that matches it."""
CHUNK = 8
"""Nodes asked one by one between two looks at the time: well under a millisecond with three expressions, and some 60 ms
with one that goes on until the engine stops it (7 ms each)."""

Expired = Callable[[], bool]


class Kind(typing.NamedTuple):
    """What rules can tell pods apart by. `spec` is the identity of a spec that is interned."""

    spec: int
    namespace: str
    labels: labels.Labels
    priority: int


class _Known:
    """What is kept of a kind of pod."""

    __slots__ = ("answers", "ruling", "spec", "stamp", "version")

    def __init__(self, spec: pods.Spec) -> None:
        # Kept, so that its identity is not handed to another one.
        self.spec = spec
        self.version = -1
        self.answers: list[int] = []
        self.stamp: tuple[int, int] = (-1, -1)
        self.ruling = rulings.NOTHING


class Book:
    """Compiled rules.

    Attributes:
        columns: The rules in force, the greatest priority first, then by policy and number.
        broken: Rules that are left out, with the reason.
    """

    def __init__(self) -> None:
        self.columns: list[columns.Column] = []
        self.broken: dict[keys.VertexKey, str] = {}
        self._compiled: dict[keys.VertexKey, columns.Column] = {}
        self._version = -1
        self._seen = -1
        self._stamp = 0
        self._requires = False
        self._kinds: collections.OrderedDict[Kind, _Known] = collections.OrderedDict()

    def refresh(self, graph: view.View, expired: Expired = contexts.never) -> bool:
        """Bring the columns up to date, until `expired`; whether all of it is done. What was done is kept."""
        if self._version != graph.rules.version:
            self._compile(graph.rules)
        if self._seen != graph.generation:
            self._mark(graph)
        slow = [each for each in self.columns if each.slow and each.stale.any()]
        for column in self.columns:
            if not column.slow and column.stale.any():
                self._stamp += 1
                column.update(graph, np.flatnonzero(column.stale), {})
        while slow and not expired():
            stale = np.zeros(len(slow[0].stale), np.bool_)
            for column in slow:
                stale |= column.stale
            rows, prepared = np.flatnonzero(stale)[:CHUNK], dict[int, typing.Any]()
            for column in slow:
                column.update(graph, rows[column.stale[rows]], prepared)
            self._stamp += 1
            slow = [each for each in slow if each.stale.any()]
        return not slow

    def ruling(self, graph: view.View, subject: check.Subject) -> rulings.Ruling:
        """What the rules say of such a pod."""
        self.refresh(graph)
        kind = Kind(id(subject.spec), subject.namespace, subject.labels, subject.priority)
        known = self._kinds.get(kind)
        if known is None:
            known = self._kinds[kind] = _Known(subject.spec)
            if len(self._kinds) > KINDS_MAX:
                self._kinds.popitem(last=False)
        else:
            self._kinds.move_to_end(kind)
        if known.version != self._version:
            known.answers = [column.of_pod(subject) for column in self.columns]
            known.version, known.stamp = self._version, (-1, -1)
        stamp = self._stamp, graph.topology.version if self._requires else 0
        if known.stamp != stamp:
            known.ruling = self._rule(graph, known.answers)
            known.stamp = stamp
        return known.ruling

    def _rule(self, graph: view.View, of_pod: list[int]) -> rulings.Ruling:
        matched = [
            (column.rule, rulings.together(answer, column.answers))
            for answer, column in zip(of_pod, self.columns, strict=True)
            if answer != answers.NO
        ]
        return rulings.rule(matched, lambda path: reachability.shortfalls(graph, path))

    def _compile(self, found: rules.Rules) -> None:
        before, self._compiled = self._compiled, {}
        for rule in found.all():
            column = before.get(rule.key)
            self._compiled[rule.key] = column if column is not None and column.rule == rule else columns.Column(rule)
        self.columns = [column for column in self._compiled.values() if not column.problem]
        self.broken = {key: column.problem for key, column in self._compiled.items() if column.problem}
        self._requires = any(column.rule.action is policies.Action.REQUIRE for column in self.columns)
        self._version = found.version
        self._stamp += 1

    def _mark(self, graph: view.View) -> None:
        """Mark the rows whose nodes have changed since the last time; a new column has no answer yet."""
        changed = graph.columns.reshaped > self._seen
        some = bool(changed.any())
        for column in self.columns:
            column.resize(graph.columns.capacity)
            if some:
                column.stale |= changed
        self._seen = graph.generation


_BOOKS: weakref.WeakKeyDictionary[rules.Rules, Book] = weakref.WeakKeyDictionary()


def of(graph: view.View) -> Book:
    """The book of the graph that this is a view of."""
    found = _BOOKS.get(graph.rules)
    if found is None:
        found = _BOOKS[graph.rules] = Book()
    return found
