"""Constraints between pods: required affinity and anti-affinity, the newcomer's own and those of pods that run already.

Read from the term index, never from the pods. Semantics: kube-scheduler's InterPodAffinity filter, its three parts in
its order. A pod counts for the newcomer's affinity only if every one of its terms selects it.
"""

from __future__ import annotations

import numpy as np

from graphsched.base.values import labels, pods
from graphsched.decision import names, trace
from graphsched.decision.constraints import check, domains
from graphsched.graph import matchers, owners, scopes, view


class InterPodAffinity:
    """The company a newcomer asks for, avoids, and is kept out of."""

    plugin = names.INTER_POD_AFFINITY
    static = False
    after: tuple[str, ...] = ()
    reason_affinity = "node(s) didn't match pod affinity rules"
    reason_anti_affinity = "node(s) didn't match pod anti-affinity rules"
    reason_existing = "node(s) didn't satisfy existing pods anti-affinity rules"

    def applies(self, subject: check.Subject) -> bool:  # noqa: ARG002  who owns such a term is for the index to say
        """Always: whether a term selects the newcomer costs nothing to ask when there is none."""
        return True

    def passes(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> trace.Mask:
        """Bool for each row: the company there is right."""
        spec = subject.spec
        mask = np.ones(graph.columns.capacity, np.bool_)
        if spec.pod_affinity:
            mask &= self._befriended(graph, subject)
        if spec.pod_anti_affinity:
            mask &= ~self._avoided(graph, spec)
        mask &= ~self._closed(graph, subject)
        return mask[rows]

    def refusals(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> list[check.Refusal]:
        """The rows without the company asked for; then those with company avoided; then those closed by others."""
        spec = subject.spec
        lonely = np.zeros(graph.columns.capacity, np.bool_)
        if spec.pod_affinity:
            lonely = ~self._befriended(graph, subject)
        avoided = self._avoided(graph, spec) & ~lonely
        closed = self._closed(graph, subject) & ~lonely & ~avoided
        return [
            check.Refusal(self.reason_affinity, lonely[rows], unresolvable=True),
            check.Refusal(self.reason_anti_affinity, avoided[rows], unresolvable=False),
            check.Refusal(self.reason_existing, closed[rows], unresolvable=False),
        ]

    def _befriended(self, graph: view.View, subject: check.Subject) -> trace.Mask:
        terms = subject.spec.pod_affinity
        friends = graph.crowd.counts(matchers.Matcher(tuple(scopes.of_incoming(term) for term in terms)))
        keyed = np.ones(graph.columns.capacity, np.bool_)
        near = np.ones(graph.columns.capacity, np.bool_)
        anywhere = False
        for term in terms:
            places = domains.of(graph, term.topology_key)
            sums = places.sums(friends)
            anywhere = anywhere or bool(sums.any())
            keyed &= places.inside
            near &= places.spread(sums) > 0
        if not anywhere and selects_itself(graph, subject):
            # The first of a group that wants its own company has to begin somewhere.
            return keyed
        return keyed & near

    def _avoided(self, graph: view.View, spec: pods.Spec) -> trace.Mask:
        mask = np.zeros(graph.columns.capacity, np.bool_)
        for term in spec.pod_anti_affinity:
            foes = graph.crowd.counts(matchers.Matcher((scopes.of_incoming(term),)))
            places = domains.of(graph, term.topology_key)
            mask |= places.spread(places.sums(foes)) > 0
        return mask

    def _closed(self, graph: view.View, subject: check.Subject) -> trace.Mask:
        mask = np.zeros(graph.columns.capacity, np.bool_)
        hits = graph.crowd.owned(owners.Kind.REQUIRED_ANTI_AFFINITY, subject.namespace, subject.labels)
        by_key: dict[str, trace.Scores] = {}
        for hit in hits:
            counts = hit.counts.astype(np.int64)
            if hit.topology_key in by_key:
                counts += by_key[hit.topology_key]
            by_key[hit.topology_key] = counts
        for key, counts in by_key.items():
            places = domains.of(graph, key)
            mask |= places.spread(places.sums(counts)) > 0
        return mask


def selects_itself(graph: view.View, subject: check.Subject) -> bool:
    """Whether every required affinity term of the newcomer selects the newcomer."""
    return all(
        scopes.of_incoming(term).selects(
            subject.labels,
            namespace=subject.namespace,
            namespace_labels=graph.matchers.namespace_labels(subject.namespace),
        )
        for term in subject.spec.pod_affinity
    )


def concerns(graph: view.View, spec: pods.Spec, namespace: str, pod_labels: labels.Labels) -> bool:
    """Whether company plays any part for such a pod.

    kube-scheduler decides this before any nominated pod is counted, and then leaves the whole filter out: what a
    nominated pod demands of others is looked at only where something else made the filter run.
    """
    if spec.pod_affinity or spec.pod_anti_affinity:
        return True
    hits = graph.crowd.owned(owners.Kind.REQUIRED_ANTI_AFFINITY, namespace, pod_labels)
    return any(bool(hit.counts[domains.of(graph, hit.topology_key).inside].any()) for hit in hits)
