"""The rules of one graph, compiled, and what they say of each kind of pod.

`of` finds the book of a view; a decision asks it for a `rulings.Ruling`. Of a rule the part about pods is asked once
for each kind of pod and the part about nodes once for each node, and again for nodes that changed. Nothing of a pod but
these answers enters a ruling, so kinds of which all rules say the same share one. It is kept until a rule, a node or,
where a way is required, the topology changes, or others need its room.

Whoever may not take long calls `prepare` first, which does all of that in pieces: compiling, asking nodes and the pod,
searching for the ways that the rules which match require.

Invariant: what a book says equals asking every rule about the pod and every node anew (a property in the tests).
"""

from __future__ import annotations

import collections
import itertools
import typing
import weakref

import numpy as np

from graphsched.base.values import keys, labels, pods, policies
from graphsched.decision import context as contexts, trace
from graphsched.decision.constraints import check
from graphsched.decision.policy import answers, columns, requirements, rulings
from graphsched.graph import distances, rules, view

KINDS_MAX = 1024
"""Kinds of pods whose answers are kept; one takes a byte a rule."""
RULINGS_MAX = 256
RULINGS_BYTES_MAX = 32 << 20
"""How many rulings are kept, and how much they may hold together: one takes a byte a node for each rule that refuses or
weighs, and up to nine for all of them. The one asked for last is kept whatever it takes: a decision asks for it several
times."""
CHUNK = 8
"""Nodes asked by one rule between two looks at the time: a fraction of a millisecond, and some 60 ms with an expression
that goes on until the engine stops it (7 ms each), which happens once: see `expressions.OVERRUNS_MAX`."""


class Kind(typing.NamedTuple):
    """What rules can tell pods apart by. `spec` is the identity of a spec that is interned."""

    spec: int
    namespace: str
    labels: labels.Labels
    priority: int


_NEVER = -1


class _Known:
    """What is kept of a kind of pod."""

    __slots__ = ("answers", "spec", "version")

    def __init__(self, spec: pods.Spec) -> None:
        # Kept, so that its identity is not handed to another one.
        self.spec = spec
        self.version = _NEVER
        # A byte a rule, in the order of the columns; fewer while not all were asked.
        self.answers = b""


class _Rulings:
    """What is kept of rulings, by the answers about the pod, the one asked for last at the end; all for one stamp."""

    def __init__(self) -> None:
        self._stamp = (_NEVER, _NEVER)
        self._kept: collections.OrderedDict[bytes, rulings.Ruling] = collections.OrderedDict()
        self._size = 0

    def get(self, answered: bytes, stamp: tuple[int, int]) -> rulings.Ruling | None:
        """The ruling that holds; None where it has to be made."""
        found = self._kept.get(answered) if stamp == self._stamp else None
        if found is not None:
            self._kept.move_to_end(answered)
        return found

    def keep(self, answered: bytes, stamp: tuple[int, int], ruling: rulings.Ruling) -> None:
        """Keep one that was not there, and of the others what there is room for."""
        if stamp != self._stamp:
            self._kept.clear()
            self._stamp, self._size = stamp, 0
        self._kept[answered] = ruling
        self._size += ruling.size
        while len(self._kept) > 1 and (len(self._kept) > RULINGS_MAX or self._size > RULINGS_BYTES_MAX):
            _, least = self._kept.popitem(last=False)
            self._size -= least.size


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
        self._version = _NEVER
        self._seen = _NEVER
        self._stale = False
        self._stamp = 0
        self._requires = False
        self._requirements = requirements.Requirements()
        self._kinds: collections.OrderedDict[Kind, _Known] = collections.OrderedDict()
        self._rulings = _Rulings()

    def refresh(self, graph: view.View, expired: distances.Expired = contexts.never) -> bool:
        """Bring the columns up to date, until `expired`; whether all of it is done. What was done is kept."""
        renewed = self._version != graph.rules.version
        if renewed and not self._compile(graph.rules, expired):
            return False
        if renewed or self._seen != graph.generation:
            self._mark(graph)
        if not self._stale:
            return True
        for column in self.columns:
            if not column.slow and column.stale.any():
                if expired():
                    return False
                self._stamp += 1
                column.update(graph, np.flatnonzero(column.stale), {})
        slow = [each for each in self.columns if each.slow and each.stale.any()]
        while slow:
            if expired() or not self._ask_some(graph, slow, expired):
                return False
            slow = [each for each in slow if each.stale.any()]
        self._stale = False
        return True

    def prepare(self, graph: view.View, subject: check.Subject, expired: distances.Expired) -> bool:
        """Do the work that `ruling` would cost for such a pod, until `expired`; whether all of it is done."""
        if not self.refresh(graph, expired):
            return False
        known = self._kind(subject)
        if not self._asked(known, subject, expired):
            return False
        if self._rulings.get(known.answers, self._now(graph)) is not None:
            return True
        for answer, column in zip(known.answers, self.columns, strict=True):
            path = column.rule.path
            if answer == answers.NO or path is None:
                continue
            if not self._requirements.prepare(graph, path, self._stamp, expired):
                return False
        return True

    def ruling(self, graph: view.View, subject: check.Subject) -> rulings.Ruling:
        """What the rules say of such a pod, whatever it takes to find out."""
        self.refresh(graph)
        known = self._kind(subject)
        self._asked(known, subject)
        now = self._now(graph)
        found = self._rulings.get(known.answers, now)
        if found is None:
            found = self._rule(graph, known.answers)
            self._rulings.keep(known.answers, now, found)
        return found

    def required(self, graph: view.View, subject: check.Subject) -> list[tuple[policies.Rule, trace.Mask]]:
        """The rules that require something for such a pod, and bool a row of the nodes they are about."""
        self.ruling(graph, subject)
        return [
            (column.rule, column.answers == answers.YES)
            for answer, column in zip(self._kind(subject).answers, self.columns, strict=True)
            if answer == answers.YES and column.rule.action is policies.Action.REQUIRE and column.rule.path is not None
        ]

    def overruled(self, graph: view.View, subject: check.Subject, row: int) -> list[policies.Rule]:
        """The rule that allows such a pod the row's node, then those of lower priority that would deny it.

        The greatest priority first; empty where nobody would deny it, or the rules refuse it all the same.
        """
        allowed = self.ruling(graph, subject).allowed
        if allowed is not None and not allowed[row]:
            return []
        # Whatever matches first is what decides; it allows, as the node would be refused otherwise.
        matching = [
            column.rule
            for answer, column in zip(self._kind(subject).answers, self.columns, strict=True)
            if column.rule.action in rulings.DECIDING and answers.NO not in {answer, int(column.answers[row])}
        ]
        denying = [each for each in matching if each.action is policies.Action.DENY]
        return [matching[0], *denying] if denying else []

    def _kind(self, subject: check.Subject) -> _Known:
        """What is kept of such pods."""
        kind = Kind(id(subject.spec), subject.namespace, subject.labels, subject.priority)
        known = self._kinds.get(kind)
        if known is None:
            known = self._kinds[kind] = _Known(subject.spec)
            if len(self._kinds) > KINDS_MAX:
                self._kinds.popitem(last=False)
        else:
            self._kinds.move_to_end(kind)
        return known

    def _asked(self, known: _Known, subject: check.Subject, expired: distances.Expired = contexts.never) -> bool:
        """Ask the rules about the pod, until `expired`; whether all of them were."""
        if known.version != self._version:
            known.version, known.answers = self._version, b""
        if len(known.answers) < len(self.columns):
            answered = bytearray(known.answers)
            for column in itertools.islice(self.columns, len(answered), None):
                if expired():
                    break
                answered.append(column.of_pod(subject))
            known.answers = bytes(answered)
        return len(known.answers) == len(self.columns)

    def _now(self, graph: view.View) -> tuple[int, int]:
        """What a ruling goes by; it holds until that changes."""
        return self._stamp, graph.topology.version if self._requires else 0

    def _rule(self, graph: view.View, of_pod: bytes) -> rulings.Ruling:
        matched = [
            (column.rule, rulings.together(answer, column.answers))
            for answer, column in zip(of_pod, self.columns, strict=True)
            if answer != answers.NO
        ]
        return rulings.rule(matched, lambda path: self._requirements.shortfalls(graph, path, self._stamp))

    def _compile(self, found: rules.Rules, expired: distances.Expired) -> bool:
        """Compile rules that are new, until `expired`; once all of them are they are in force."""
        wanted = {rule.key: rule for rule in found.all()}
        for key, rule in wanted.items():
            column = self._compiled.get(key)
            if column is None or (column.rule is not rule and column.rule != rule):
                if expired():
                    return False
                self._compiled[key] = columns.Column(rule)
        self._compiled = {key: self._compiled[key] for key in wanted}
        self.columns = [column for column in self._compiled.values() if not column.problem]
        self.broken = {key: column.problem for key, column in self._compiled.items() if column.problem}
        paths = {column.rule.path for column in self.columns if column.rule.path is not None}
        self._requires = bool(paths)
        self._requirements.keep(paths)
        self._version = found.version
        self._stamp += 1
        self._stale = True
        return True

    def _mark(self, graph: view.View) -> None:
        """Mark the rows whose nodes have changed since the last time; a new column has no answer yet."""
        changed = graph.columns.reshaped > self._seen
        some = bool(changed.any())
        for column in self.columns if some or self._stale else ():
            column.resize(graph.columns.capacity)
            if some:
                column.stale |= changed
        self._stale = self._stale or some
        self._seen = graph.generation

    def _ask_some(self, graph: view.View, slow: list[columns.Column], expired: distances.Expired) -> bool:
        """Have these rules answer for the next nodes that any of them has no answer for; False once time is up."""
        stale = np.zeros(len(slow[0].stale), np.bool_)
        for column in slow:
            stale |= column.stale
        rows, prepared = np.flatnonzero(stale)[:CHUNK], dict[int, typing.Any]()
        self._stamp += 1
        for column in slow:
            column.update(graph, rows[column.stale[rows]], prepared)
            if expired():
                return False
        return True


_BOOKS: weakref.WeakKeyDictionary[rules.Rules, Book] = weakref.WeakKeyDictionary()


def of(graph: view.View) -> Book:
    """The book of the graph that this is a view of."""
    found = _BOOKS.get(graph.rules)
    if found is None:
        found = _BOOKS[graph.rules] = Book()
    return found
