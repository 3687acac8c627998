"""The term index as a view shows it: what placed pods count to and demand, with the pods of a what-if put on or off.

Comes in: questions of `decision/constraints` and `decision/scoring`. Goes out: counts per row. Without a what-if these
are the index's own vectors; with one they are copies, changed by the few pods in question.

Invariant: the answers of a what-if equal those of a store in which it really happened, but for what `_counts_for` says.
"""

from __future__ import annotations

import msgspec
import numpy as np

from graphsched.base.values import labels, pods
from graphsched.graph import callers, interest, matchers, owners, tallies


class Shift(msgspec.Struct, frozen=True, gc=False):
    """One pod put on a row (`sign` 1) or taken off it (-1)."""

    pod: pods.Pod
    row: int
    sign: int


class Crowd:
    """Counts of placed pods and of the terms they own."""

    def __init__(self, index: matchers.MatcherIndex, wanted: interest.Interest, shifts: tuple[Shift, ...] = ()) -> None:
        self._index = index
        self._wanted = wanted
        self._shifts = shifts

    def with_shifts(self, shifts: tuple[Shift, ...]) -> Crowd:
        """The same with some pods put on or taken off as well."""
        return Crowd(self._index, self._wanted, (*self._shifts, *shifts))

    def counts(self, matcher: matchers.Matcher) -> tallies.Counts:
        """Pods that the matcher counts per row, shape (rows,), int32, read-only."""
        counts = self._wanted.counts(matcher)
        changed = [each for each in self._shifts if self._counts_for(matcher, each.pod)]
        return self._shifted(counts, changed) if changed else counts

    def owned(self, kind: owners.Kind, namespace: str, pod_labels: labels.Labels) -> list[owners.Hit]:
        """Terms of this kind, owned by placed pods, that select a pod with this namespace and these labels."""
        hits = self._index.owned(kind, namespace, pod_labels)
        if not self._shifts:
            return hits
        namespace_labels = self._index.namespace_labels(namespace)
        return hits + [
            owners.Hit(term.topology_key, term.weight, self._shifted(None, [each]))
            for each in self._shifts
            for term in owners.terms_of(each.pod.spec)
            if term.kind is kind
            and term.scope.selects(pod_labels, namespace=namespace, namespace_labels=namespace_labels)
        ]

    def _counts_for(self, matcher: matchers.Matcher, pod: pods.Pod) -> bool:
        """Whether the matcher's scopes select the pod.

        The spread rule, that terminating pods and empty selectors count nothing, is left out on purpose:
        kube-scheduler applies it when it counts the pods that are there, not when it adds or removes one.
        """
        namespace_labels = self._index.namespace_labels(pod.namespace)
        known = callers.labels_of(pod)
        if not matcher.scopes or matcher.excludes(known, namespace=pod.namespace, namespace_labels=namespace_labels):
            return False
        return all(
            scope.selects(known, namespace=pod.namespace, namespace_labels=namespace_labels) for scope in matcher.scopes
        )

    def _shifted(self, counts: tallies.Counts | None, shifts: list[Shift]) -> tallies.Counts:
        changed = np.zeros(self._index.rows, np.int32) if counts is None else counts.copy()
        for each in shifts:
            changed[each.row] += each.sign
        return changed
