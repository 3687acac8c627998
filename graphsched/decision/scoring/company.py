"""Scores that depend on other pods: preferred (anti-)affinity and soft topology spread.

They need to know which nodes passed, since they are normalised between the best and the worst of those, so they are not
part of a class. Semantics: kube-scheduler's InterPodAffinity and PodTopologySpread scores.
"""

from __future__ import annotations

import typing

import numpy as np

from graphsched.base.values import labels, pods
from graphsched.decision import names, trace
from graphsched.decision.constraints import check, domains, spread
from graphsched.decision.scoring import scores
from graphsched.graph import matchers, owners, scopes, tallies, view

HOSTNAME = "kubernetes.io/hostname"


class Company(typing.Protocol):
    """A score plugin that looks at other pods.

    Attributes:
        plugin: Its name.
    """

    plugin: str

    def score(self, graph: view.View, subject: check.Subject, passed: trace.Mask) -> trace.Scores | None:
        """Int64 a row, 0..100 for the rows that passed; None when it skips."""


class InterPodAffinity:
    """Prefers the company that the newcomer likes and that likes the newcomer.

    Attributes:
        hard_weight: What a required affinity term of a running pod that selects the newcomer is worth.
        ignore_existing: Whether preferred terms of running pods count only if the newcomer prefers something itself.
    """

    plugin = names.INTER_POD_AFFINITY

    def __init__(self, *, hard_weight: int, ignore_existing: bool) -> None:
        self.hard_weight = hard_weight
        self.ignore_existing = ignore_existing

    def score(self, graph: view.View, subject: check.Subject, passed: trace.Mask) -> trace.Scores | None:
        """Int64 a row: the weights of all terms that hold in its domains, stretched to 0..100 over the rows passed."""
        spec = subject.spec
        picky = bool(spec.preferred_pod_affinity or spec.preferred_pod_anti_affinity)
        if self.ignore_existing and not picky:
            return None
        raw = np.zeros(graph.columns.capacity, np.int64)
        found = False
        for key, weight, counts in self._pulls(graph, spec, subject.namespace, subject.labels):
            places = domains.of(graph, key)
            held = places.inside & (counts > 0)
            if held.any():
                found = True
                raw += places.spread(places.sums(counts) * weight)
        if not found:
            return None
        least = int(raw.min(where=passed, initial=np.iinfo(np.int64).max))
        most = int(raw.max(where=passed, initial=np.iinfo(np.int64).min))
        if most <= least:
            return np.zeros_like(raw)
        return (float(scores.SCORE_MAX) * ((raw - least) / float(most - least))).astype(np.int64)

    def _pulls(
        self, graph: view.View, spec: pods.Spec, namespace: str, pod_labels: labels.Labels
    ) -> typing.Iterator[tuple[str, int, tallies.Counts]]:
        """Topology key, weight and pods per row of everything that draws or pushes."""
        for wishes, sign in ((spec.preferred_pod_affinity, 1), (spec.preferred_pod_anti_affinity, -1)):
            for wish in wishes:
                counts = graph.crowd.counts(matchers.Matcher((scopes.of_incoming(wish.term),)))
                yield wish.term.topology_key, sign * wish.weight, counts
        for hit in graph.crowd.owned(owners.Kind.PREFERRED_AFFINITY, namespace, pod_labels):
            yield hit.topology_key, hit.weight, hit.counts
        for hit in graph.crowd.owned(owners.Kind.PREFERRED_ANTI_AFFINITY, namespace, pod_labels):
            yield hit.topology_key, -hit.weight, hit.counts
        if self.hard_weight:
            for hit in graph.crowd.owned(owners.Kind.REQUIRED_AFFINITY, namespace, pod_labels):
                yield hit.topology_key, self.hard_weight, hit.counts


class PodTopologySpread:
    """Prefers domains that hold fewer pods like the newcomer, each constraint weighed by ln(domains + 2)."""

    plugin = names.POD_TOPOLOGY_SPREAD

    def score(self, graph: view.View, subject: check.Subject, passed: trace.Mask) -> trace.Scores | None:
        """Int64 a row: 100 for the emptiest; 0 for rows that lack the key of any soft constraint, unless it may."""
        soft = [constraint for constraint in subject.spread if not constraint.hard]
        if not soft:
            return None
        keyed = graph.columns.live if subject.keys_optional else spread.all_keyed(graph, soft)
        ranked = passed & keyed
        total = np.zeros(graph.columns.capacity)
        for constraint in soft:
            places = domains.of(graph, constraint.topology_key)
            labelled = places.inside
            counts = spread.alike(graph, subject, constraint)
            if constraint.topology_key == HOSTNAME:
                size, here = int(np.count_nonzero(ranked)), counts
            else:
                if subject.keys_optional:
                    places = domains.with_unlabelled(graph, constraint.topology_key)
                shown = places.present(ranked)
                size = int(np.count_nonzero(shown))
                counted = keyed & spread.included(graph, subject, constraint)
                here = places.spread(places.sums(counts, counted))
            total = total + (here * np.log(float(size + 2)) + float(constraint.max_skew - 1)) * labelled
        # Go rounds halves away from zero; the sum is never negative.
        raw = np.floor(total + 0.5).astype(np.int64)
        return _turned(raw, ranked)


def _turned(raw: trace.Scores, ranked: trace.Mask) -> trace.Scores:
    """100 · (most + least − raw) / most over the ranked rows, 100 where the most is 0, and 0 for all other rows."""
    if not ranked.any():
        return np.zeros_like(raw)
    most = int(raw.max(where=ranked, initial=0))
    least = int(raw.min(where=ranked, initial=np.iinfo(np.int64).max))
    if most == 0:
        return np.where(ranked, scores.SCORE_MAX, 0).astype(np.int64)
    turned = scores.SCORE_MAX * (most + least - raw) // most
    return np.where(ranked, turned, 0)
