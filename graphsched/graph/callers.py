"""Who names whom: the peers that placed pods say they exchange data with, found from the side of those who are named.

To exchange data has no direction, so a pod that others name is drawn to them as they are to it. `about` tells which
calls are about a pod. Whoever makes one carries a mark among the labels that the term index knows of it, whose key is
no key that a label can have: so those who make a call are a matcher like any other, and are counted for each node.

Comes in: what placed pods ask of the graph, and what Services select, from `store`. Goes out: calls, to `partners`.
Invariant: a call is known exactly as long as a placed pod makes it, and is about the pods that its peer selects now.
"""

from __future__ import annotations

import msgspec

from graphsched.base.values import labels, pods
from graphsched.graph import inverted, scopes, selections

CALLS_MAX = 32
"""Calls about one pod that count, those of the greatest rates: as many as the peers that it may name itself."""

_EVERYWHERE = labels.Selector()


class Call(msgspec.Struct, frozen=True, gc=False):
    """What all pods have in common that name the same peer at the same rate.

    Attributes:
        namespace, service, selector, rate: As in `pods.Peer`.
    """

    namespace: str
    service: str
    selector: labels.Selector | None
    rate: float

    @property
    def mark(self) -> str:
        """The key of the label that those who make it are known by; it holds blanks, as no key of a user's does."""
        chosen = "" if self.selector is None else ", ".join(map(_text, self.selector.requirements))
        return f"calls {self.namespace} {self.service} [{chosen}] {self.rate!r}"

    @property
    def makers(self) -> scopes.Scope:
        """The pods that make it, wherever they are."""
        return scopes.Scope(
            labels.Selector((labels.Requirement(self.mark, labels.Operator.EXISTS),)), namespace_selector=_EVERYWHERE
        )


class Callers:
    """The calls that placed pods make."""

    def __init__(self, selecting: selections.Selections) -> None:
        """Find what Services select in `selecting`."""
        self._selecting = selecting
        self._known: dict[Call, _Known] = {}
        self._calls: dict[int, Call] = {}
        self._index = inverted.SelectorIndex(inverted.LiveKeys())
        self._of_service: dict[tuple[str, str], dict[Call, None]] = {}
        self._next = 0

    def __bool__(self) -> bool:
        """Whether there is any call."""
        return bool(self._known)

    def hold(self, wanted: pods.GraphDemand) -> None:
        """A pod that asks for this was placed."""
        for call in calls_of(wanted):
            known = self._known.get(call)
            if known is None:
                known = self._known[call] = _Known(self._next)
                self._next += 1
                self._calls[known.number] = call
                if call.selector is None:
                    self._of_service.setdefault((call.namespace, call.service), {})[call] = None
                self._file(call, known)
            known.uses += 1

    def drop(self, wanted: pods.GraphDemand) -> None:
        """A pod that was held is placed no more."""
        for call in calls_of(wanted):
            known = self._known[call]
            known.uses -= 1
            if known.uses:
                continue
            if known.filed:
                self._index.remove(known.number)
            del self._known[call], self._calls[known.number]
            if call.selector is None:
                there = self._of_service[call.namespace, call.service]
                del there[call]
                if not there:
                    del self._of_service[call.namespace, call.service]

    def reselect(self, namespace: str, service: str) -> None:
        """The Service came, went or selects otherwise."""
        for call in self._of_service.get((namespace, service), ()):
            known = self._known[call]
            if known.filed:
                self._index.remove(known.number)
            self._file(call, known)

    def about(self, namespace: str, pod_labels: labels.Labels) -> list[Call]:
        """The calls that are about such a pod, at most `CALLS_MAX`, the greatest rates first."""
        if not self._known:
            return []
        found = (self._calls[number] for number in self._index.matching(pod_labels))
        here = (call for call in found if call.namespace == namespace)
        return sorted(here, key=lambda call: (-call.rate, call.mark))[:CALLS_MAX]

    def content(self) -> dict[Call, int]:
        """Every call, with the number of those who make it; for audits."""
        return {call: known.uses for call, known in self._known.items()}

    def _file(self, call: Call, known: _Known) -> None:
        chosen = call.selector
        if chosen is None:
            chosen = self._selecting.service(call.namespace, call.service)
        known.filed = chosen is not None
        if chosen is not None:
            self._index.add(known.number, chosen.requirements)


class _Known:
    """A call with the number of its makers, the number that its selector goes by, and whether that is filed."""

    __slots__ = ("filed", "number", "uses")

    def __init__(self, number: int) -> None:
        self.number = number
        self.uses = 0
        self.filed = False


def calls_of(wanted: pods.GraphDemand) -> tuple[Call, ...]:
    """The calls of a pod that asks for this, each once."""
    made = (Call(peer.namespace, peer.service, peer.selector, peer.rate) for peer in wanted.peers)
    return tuple(dict.fromkeys(made))


def labels_of(pod: pods.Pod) -> labels.Labels:
    """The labels that the term index knows of the pod: its own, and the marks of its calls."""
    wanted = pod.spec.graph
    if wanted is None or not wanted.peers:
        return pod.labels
    return tuple(sorted((*pod.labels, *((call.mark, "") for call in calls_of(wanted)))))


def _text(requirement: labels.Requirement) -> str:
    return f"{requirement.key} {requirement.operator.value} {'|'.join(requirement.values)}"
