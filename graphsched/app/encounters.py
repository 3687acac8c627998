"""Which pods came, went and changed their labels, for those that wait because of the company on the nodes.

Comes in: pods before and after a change, from `tidings.News`. Goes out: whether a change may flip a term of a waiting
pod, or a term of somebody who left. Pods that no term can tell apart (namespace, labels) are noted once, so a workload
of a thousand replicas is one entry.

A namespace selector is taken to select every namespace: their labels are not at hand, and every doubt is a yes.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable

import msgspec

from graphsched.base.values import labels, pods

KINDS_MAX = 512
"""More kinds of pods than this are not looked at one by one: every answer is yes."""

_Entry = typing.TypeVar("_Entry")
Kind = tuple[str, labels.Labels]
"""Namespace and labels."""


class Encounters(msgspec.Struct, gc=False):
    """What happened to pods that count on nodes; the values of the dicts mean nothing.

    Attributes:
        arrived: Pods that were bound.
        departed: Pods that left, each with the required anti-affinity terms it had.
        ending: Pods that began to terminate: topology spread no longer counts them.
        relabelled: Namespace, labels before, labels after.
    """

    arrived: dict[Kind, None] = msgspec.field(default_factory=dict)
    departed: dict[tuple[Kind, tuple[pods.PodTerm, ...]], None] = msgspec.field(default_factory=dict)
    ending: dict[Kind, None] = msgspec.field(default_factory=dict)
    relabelled: dict[tuple[str, labels.Labels, labels.Labels], None] = msgspec.field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether anything happened."""
        return bool(self.arrived or self.departed or self.ending or self.relabelled)

    @property
    def many(self) -> bool:
        """Whether more happened than is looked at."""
        return max(len(self.arrived), len(self.departed), len(self.ending), len(self.relabelled)) > KINDS_MAX

    def came(self, pod: pods.Pod) -> None:
        """The pod counts on a node now."""
        self.arrived[pod.namespace, pod.labels] = None

    def left(self, pod: pods.Pod) -> None:
        """The pod no longer counts where it did."""
        self.departed[(pod.namespace, pod.labels), pod.spec.pod_anti_affinity] = None

    def changed(self, before: pods.Pod, after: pods.Pod) -> None:
        """The pod stays where it counts."""
        if before.labels != after.labels:
            self.relabelled[before.namespace, before.labels, after.labels] = None
        if after.deleting and not before.deleting:
            self.ending[after.namespace, after.labels] = None

    def merge(self, later: Encounters) -> None:
        """Take in what happened after this; one more than the bound is as good as all of it."""
        _extend(self.arrived, later.arrived)
        _extend(self.departed, later.departed)
        _extend(self.ending, later.ending)
        _extend(self.relabelled, later.relabelled)


def _extend(known: dict[_Entry, None], more: Iterable[_Entry]) -> None:
    for each in more:
        if len(known) > KINDS_MAX:
            return
        known[each] = None


def selects(term: pods.PodTerm, kind: Kind) -> bool:
    """Whether the term may be about pods of this kind."""
    namespace, pod_labels = kind
    near = namespace in term.namespaces or term.namespace_selector is not None
    return near and term.selector is not None and term.selector.matches(pod_labels)


def befriends(spec: pods.Spec, kind: Kind) -> bool:
    """Whether pods of this kind are the company that all required terms ask for."""
    return bool(spec.pod_affinity) and all(selects(term, kind) for term in spec.pod_affinity)


def avoids(terms: Iterable[pods.PodTerm], kind: Kind) -> bool:
    """Whether one of these anti-affinity terms is about pods of this kind."""
    return any(selects(term, kind) for term in terms)


def counted(spec: pods.Spec, namespace: str, kind: Kind) -> tuple[bool, ...]:
    """For each hard spread constraint of a pod in this namespace, whether pods of this kind count."""
    return tuple(
        namespace == kind[0] and constraint.selector is not None and constraint.selector.matches(kind[1])
        for constraint in spec.spread
        if constraint.hard
    )
