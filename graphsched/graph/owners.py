"""The terms that placed pods own: what existing pods demand of, or wish for, a newcomer.

Required anti-affinity of a placed pod keeps others away, and its required and preferred terms add to the scores of pods
they select. Asking every placed pod would be the O(n²) this replaces: equal terms are interned here with the number of
owners per node, and `select` finds those that pick a given pod through an inverted index.

Comes in: specs of pods that are placed and removed, by `matchers.MatcherIndex`. Goes out: hits, read by decisions.
Invariant: a term is known exactly as long as a placed pod owns it.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator

import msgspec

from graphsched.base.values import labels, pods
from graphsched.graph import inverted, scopes, tallies


class Kind(enum.IntEnum):
    """What owning a term means."""

    REQUIRED_ANTI_AFFINITY = 0
    """Pods that it selects may not share the owner's domain."""
    REQUIRED_AFFINITY = 1
    """Pods that it selects are drawn to the owner, by the scorer's hard affinity weight; the term's weight is 0."""
    PREFERRED_AFFINITY = 2
    """Pods that it selects are drawn to the owner, by the term's weight."""
    PREFERRED_ANTI_AFFINITY = 3
    """Pods that it selects are pushed from the owner, by the term's weight."""


class OwnedTerm(msgspec.Struct, frozen=True, gc=False):
    """A term as its owner carries it. `weight` is 0 for required terms."""

    kind: Kind
    weight: int
    topology_key: str
    scope: scopes.Scope


class Hit(msgspec.Struct, frozen=True, gc=False):
    """A term that selects the pod asked about.

    Attributes:
        topology_key: The node label whose values are the domains.
        weight: 0 for required terms.
        counts: Owners per row, shape (rows,), int32, read-only, followed until the number of rows changes.
    """

    topology_key: str
    weight: int
    counts: tallies.Counts


def has_terms(spec: pods.Spec) -> bool:
    """Whether a pod with this spec owns any term."""
    return bool(
        spec.pod_anti_affinity or spec.pod_affinity or spec.preferred_pod_affinity or spec.preferred_pod_anti_affinity,
    )


def terms_of(spec: pods.Spec) -> Iterator[OwnedTerm]:
    """Every term of the spec, with repeats: a term listed twice counts twice."""
    for term in spec.pod_anti_affinity:
        yield OwnedTerm(Kind.REQUIRED_ANTI_AFFINITY, 0, term.topology_key, scopes.of_term(term))
    for term in spec.pod_affinity:
        yield OwnedTerm(Kind.REQUIRED_AFFINITY, 0, term.topology_key, scopes.of_term(term))
    for wish in spec.preferred_pod_affinity:
        yield OwnedTerm(Kind.PREFERRED_AFFINITY, wish.weight, wish.term.topology_key, scopes.of_term(wish.term))
    for wish in spec.preferred_pod_anti_affinity:
        yield OwnedTerm(Kind.PREFERRED_ANTI_AFFINITY, wish.weight, wish.term.topology_key, scopes.of_term(wish.term))


class _Entry:
    """One distinct term while it has owners; `owners` also counts those that are on no row."""

    __slots__ = ("number", "owners", "tally", "term")

    def __init__(self, number: int, term: OwnedTerm) -> None:
        self.number = number
        self.term = term
        self.owners = 0
        self.tally = tallies.Tally()


class OwnerIndex:
    """The distinct terms owned by placed pods, with their owners per row."""

    def __init__(self, live_keys: inverted.LiveKeys) -> None:
        """`live_keys` is told of every pod label key that an owned term reads."""
        self._entries: dict[OwnedTerm, _Entry] = {}
        self._by_number: dict[int, _Entry] = {}
        self._next = 0
        self._by_kind = {kind: inverted.SelectorIndex(live_keys) for kind in Kind}
        # Interned specs are looked up by identity, which costs nothing; the entry keeps the spec alive, so that its
        # identity is not given to another one.
        self._specs: dict[int, tuple[pods.Spec, tuple[_Entry, ...], list[int]]] = {}

    def hold(self, spec: pods.Spec, row: int) -> None:
        """A pod with this spec was placed on `row`; -1 stands for a node that is not known."""
        known = self._specs.get(id(spec))
        if known is None:
            known = self._specs[id(spec)] = (spec, tuple(map(self._intern, terms_of(spec))), [0])
        known[2][0] += 1
        for entry in known[1]:
            entry.owners += 1
            if row >= 0:
                entry.tally.add(row, 1)

    def drop(self, spec: pods.Spec, row: int) -> None:
        """A pod that was held with this very spec, on `row`, is gone."""
        _, entries, uses = self._specs[id(spec)]
        for entry in entries:
            entry.owners -= 1
            if row >= 0:
                entry.tally.add(row, -1)
            if not entry.owners:
                self._forget(entry)
        uses[0] -= 1
        if not uses[0]:
            del self._specs[id(spec)]

    def select(
        self, kind: Kind, pod_labels: labels.Labels, *, namespace: str, namespace_labels: labels.Labels, rows: int
    ) -> list[Hit]:
        """Terms of this kind that select such a pod and have an owner on some row, oldest first.

        Constant time while no term of the kind is alive.
        """
        index = self._by_kind[kind]
        if not len(index):
            return []
        hits = []
        for number in index.matching(pod_labels):
            entry = self._by_number[number]
            term = entry.term
            if entry.tally.total and term.scope.covers(namespace, namespace_labels):
                hits.append(Hit(term.topology_key, term.weight, entry.tally.dense(rows)))
        return hits

    def counts(self) -> dict[OwnedTerm, dict[int, int]]:
        """Owners per row of every term that is alive, for audits."""
        return {term: entry.tally.as_dict() for term, entry in self._entries.items()}

    def _intern(self, term: OwnedTerm) -> _Entry:
        entry = self._entries.get(term)
        if entry is None:
            entry = self._entries[term] = self._by_number[self._next] = _Entry(self._next, term)
            self._next += 1
            if term.scope.selector is not None:
                self._by_kind[term.kind].add(entry.number, term.scope.selector.requirements)
        return entry

    def _forget(self, entry: _Entry) -> None:
        del self._entries[entry.term]
        del self._by_number[entry.number]
        if entry.term.scope.selector is not None:
            self._by_kind[entry.term.kind].remove(entry.number)
