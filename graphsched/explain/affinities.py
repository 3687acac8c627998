"""The affinity graph: which rule of a pod reaches which node, as a table of edges for pictures and caches.

A rule is what pods say of nodes, and its name is what it says, so that pods that say the same share it: required (node
selector and required node affinity), preferred (one term with its weight) or tolerated (the node's taints). An edge
leads from the rule to every node it holds for. At ten thousand nodes these are too many to be objects: they are made,
kept and told as columns, and brought up to date for the nodes that changed and the rules that came or went.

Comes in: a store. Goes out: an `edges.Ledger`. Invariant: after `refresh` the table is what the checks of a decision
say of every node, and what it would be if it were made afresh.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterator

import msgspec
import numpy as np
import numpy.typing as npt

from graphsched.base.values import keys, pods
from graphsched.decision.constraints import check, identity
from graphsched.graph import edges, store as stores, view as views

RULES_MAX = 2000
"""Told at a time; a rule that comes when there are so many is told when another one has gone."""
NAMES_MAX = edges.NAMES_MAX // 2
"""Numbers are never used again; when so many are gone, everything is numbered anew."""

_Rows = npt.NDArray[np.intp]
_Mask = npt.NDArray[np.bool_]
_REQUIRED, _TAINTS = identity.NodeAffinity(), identity.TaintToleration()


class Kind(enum.IntEnum):
    """What an edge says of the rule and the node."""

    REQUIRES = 0
    """The node is one of those that are allowed."""
    PREFERS = 1
    """The node is liked; the weight is that of the term, a hundredth for each point."""
    TOLERATES = 2
    """The node is tainted, and every taint that would keep pods away is tolerated."""


KINDS = len(Kind)


class _Rule(msgspec.Struct, frozen=True):
    """A rule: its name, the kind and weight of its edges, and where it holds."""

    name: str
    kind: Kind
    weight: float
    holds: Callable[[views.View, _Rows], _Mask]


class Affinities:
    """Keeps the table.

    Attributes:
        ledger: The edges, from names of rules to keys of nodes; another one whenever `lives` has counted up.
        lives: How often everything was numbered anew.
    """

    def __init__(self) -> None:
        self.lives = 0
        self._said: dict[int, tuple[pods.Spec, tuple[_Rule, ...]]] = {}
        self._begin()

    def _begin(self) -> None:
        self.ledger = edges.Ledger()
        self._rules: dict[str, _Rule] = {}
        self._generation = -1
        # Which node stood in each row when it was last looked at; -1 for none.
        self._numbers: npt.NDArray[np.int64] = np.zeros(0, np.int64)

    def refresh(self, store: stores.Store) -> edges.Ledger:
        """Bring the table up to the store's present generation; returns the ledger."""
        if store.generation == self._generation:
            return self.ledger
        if len(self.ledger.names) > NAMES_MAX:
            self.lives += 1
            self._begin()
        wanted = self._wanted(store)
        columns, view = store.columns, store.view()
        grown = columns.capacity - len(self._numbers)
        before = np.concatenate([self._numbers, np.full(max(0, grown), -1)])
        dirty = np.flatnonzero(columns.reshaped > self._generation)
        now = before.copy()
        for row in dirty.tolist():
            now[row] = self.ledger.names.number(keys.node_key(columns.names[row])) if columns.live[row] else -1
        staying = [rule for name, rule in self._rules.items() if name in wanted]
        fresh = [rule for name, rule in wanted.items() if name not in self._rules]
        fresh = fresh[: max(0, RULES_MAX - len(staying))]
        # Edges that may be otherwise: of the rules that stay, those of nodes that changed; and all of the others.
        gone = {name for name in self._rules if name not in wanted}
        touched = np.unique(np.concatenate([before[dirty], now[dirty]]))
        maybe = [self._of(rule, touched[touched >= 0]) for rule in staying]
        maybe += [self._all_of(name) for name in gone]
        held = [self._holding(rule, view, dirty[columns.live[dirty]], now) for rule in staying]
        held += [self._holding(rule, view, np.flatnonzero(columns.live), now) for rule in fresh]
        weights = [rule.weight for rule in (*staying, *fresh)]
        self._rules = {rule.name: rule for rule in (*staying, *fresh)}
        self._numbers, self._generation = now, store.generation
        self._tell(maybe, held, weights)
        return self.ledger

    def _tell(self, maybe: list[edges.IDs], held: list[edges.IDs], weights: list[float]) -> None:
        """Have in the table what holds, and of what might have been there nothing else."""
        table = self.ledger.table
        ids = np.concatenate([np.zeros(0, np.uint64), *held])
        strengths = np.repeat(np.array(weights, np.float32), [len(each) for each in held])
        order = np.argsort(ids)
        ids, strengths = ids[order], strengths[order]
        candidates = np.unique(np.concatenate([np.zeros(0, np.uint64), *maybe]))
        candidates = candidates[edges.find(table.ids, candidates)[1]]
        # A rule's weight is part of its name, so an edge that is there is as it should be.
        new = ~edges.find(table.ids, ids)[1]
        removed = candidates[~edges.find(ids, candidates)[1]]
        if len(removed) or new.any():
            self.ledger.update(edges.Change(removed, ids[new], strengths[new]))

    def _of(self, rule: _Rule, numbers: npt.NDArray[np.int64]) -> edges.IDs:
        return edges.identities(self.ledger.names.number(rule.name), numbers, rule.kind)

    def _all_of(self, name: str) -> edges.IDs:
        """The edges of a rule, which stand together."""
        number = self.ledger.names.number(name)
        start, end = np.searchsorted(self.ledger.table.ids, edges.identities([number, number + 1], 0, 0))
        return self.ledger.table.ids[start:end]

    def _holding(self, rule: _Rule, view: views.View, rows: _Rows, numbers: npt.NDArray[np.int64]) -> edges.IDs:
        return self._of(rule, numbers[rows[rule.holds(view, rows)]])

    def _wanted(self, store: stores.Store) -> dict[str, _Rule]:
        """The rules of all pods, by name, in the order in which pods came."""
        said: dict[int, tuple[pods.Spec, tuple[_Rule, ...]]] = {}
        for pod in store.all_pods():
            spec = pod.spec
            # Specs are shared, and kept alive here while their address stands for them.
            if id(spec) not in said:
                known = self._said.get(id(spec))
                said[id(spec)] = known if known is not None else (spec, tuple(_rules(spec)))
        self._said = said
        return {rule.name: rule for _, rules in said.values() for rule in rules}


def _rules(spec: pods.Spec) -> Iterator[_Rule]:
    """What the pod says of nodes."""
    if spec.selector or spec.affinity is not None:
        what = {"selector": spec.selector, "affinity": spec.affinity}
        yield _Rule(_name(Kind.REQUIRES, what), Kind.REQUIRES, 1.0, lambda view, rows: _REQUIRED.own(view, spec, rows))
    for preferred in spec.preferred:
        yield _Rule(
            _name(Kind.PREFERS, preferred),
            Kind.PREFERS,
            preferred.weight / 100,
            functools.partial(_liked, preferred.term),
        )
    if spec.tolerations:
        yield _Rule(_name(Kind.TOLERATES, spec.tolerations), Kind.TOLERATES, 1.0, _Tolerated(spec))


def _name(kind: Kind, what: object) -> str:
    return f"{kind.name.lower()}/{msgspec.json.encode(what).decode()}"


def _liked(term: pods.NodeTerm, view: views.View, rows: _Rows) -> _Mask:
    return identity.term_holds(view, term, rows)


class _Tolerated:
    """Where the pod's tolerations let it in although there are taints."""

    def __init__(self, spec: pods.Spec) -> None:
        self._subject = check.Subject(spec)

    def __call__(self, view: views.View, rows: _Rows) -> _Mask:
        """Bool for each row."""
        tainted = view.attributes.taints.ids[rows] >= 0
        mask: _Mask = _TAINTS.passes(view, self._subject, rows) & tainted
        return mask
