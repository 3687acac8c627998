"""Topology spread: how many more pods like it a domain may hold than the emptiest one.

Read from the term index. Semantics: kube-scheduler's PodTopologySpread filter. Only nodes that carry the keys of all
hard constraints and pass a constraint's inclusion policies take part in its counting; a domain nobody counted holds
none.
"""

from __future__ import annotations

import msgspec
import numpy as np

from graphsched.base.values import pods
from graphsched.decision import names, trace
from graphsched.decision.constraints import check, domains, identity, sharing
from graphsched.graph import matchers, scopes, view

_AFFINITY = identity.NodeAffinity()
_TAINTS = identity.TaintToleration()
_POOL = sharing.Pool()


class PodTopologySpread:
    """Every hard constraint keeps its skew."""

    plugin = names.POD_TOPOLOGY_SPREAD
    static = False
    after: tuple[str, ...] = ()
    reason_label = "node(s) didn't match pod topology spread constraints (missing required label)"
    reason_skew = "node(s) didn't match pod topology spread constraints"

    def applies(self, subject: check.Subject) -> bool:
        """Where the pod has a hard constraint."""
        return any(constraint.hard for constraint in subject.spread)

    def passes(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> trace.Mask:
        """Bool for each row: no constraint is broken there."""
        unlabelled, skewed = self._broken(graph, subject)
        return ~(unlabelled | skewed)[rows]

    def refusals(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> list[check.Refusal]:
        """The rows that lack a key, and those that would be too far ahead: the first constraint broken decides."""
        unlabelled, skewed = self._broken(graph, subject)
        return [
            check.Refusal(self.reason_label, unlabelled[rows], unresolvable=True),
            check.Refusal(self.reason_skew, skewed[rows], unresolvable=False),
        ]

    def _broken(self, graph: view.View, subject: check.Subject) -> tuple[trace.Mask, trace.Mask]:
        hard = [constraint for constraint in subject.spread if constraint.hard]
        keyed = all_keyed(graph, hard)
        unlabelled = np.zeros(graph.columns.capacity, np.bool_)
        skewed = np.zeros(graph.columns.capacity, np.bool_)
        for constraint in hard:
            places = domains.of(graph, constraint.topology_key)
            unlabelled |= ~places.inside & ~skewed
            counted = keyed & included(graph, subject, constraint)
            sums = places.sums(alike(graph, subject, constraint), counted)
            known = places.present(counted)
            number = int(np.count_nonzero(known))
            least = 0 if number < constraint.min_domains else int(sums[known].min())
            itself = int(constraint.selector is not None and constraint.selector.matches(subject.labels))
            ahead = places.spread(sums) + (itself - least) > constraint.max_skew
            skewed |= ahead & ~unlabelled
        return unlabelled, skewed


def by_default(
    graph: view.View, constraints: tuple[pods.SpreadConstraint, ...], pod: pods.Pod
) -> tuple[pods.SpreadConstraint, ...]:
    """The constraints by which a pod without any of its own is spread: none where no Service or controller selects it.

    Args:
        graph: Says which do.
        constraints: Those of the profile; their selectors are not read.
        pod: The pod.
    """
    if pod.spec.spread or not constraints:
        return ()
    selector = graph.selections.of(pod.namespace, pod.labels, pod.owner)
    if selector is None:
        return ()
    return tuple(msgspec.structs.replace(constraint, selector=selector) for constraint in constraints)


def all_keyed(graph: view.View, constraints: list[pods.SpreadConstraint]) -> trace.Mask:
    """Bool a row: it holds a node with the keys of all the constraints."""
    mask = graph.columns.live.copy()
    for constraint in constraints:
        mask &= domains.of(graph, constraint.topology_key).inside
    return mask


def included(graph: view.View, subject: check.Subject, constraint: pods.SpreadConstraint) -> trace.Mask:
    """Bool a row: it passes the constraint's inclusion policies."""
    mask = np.ones(graph.columns.capacity, np.bool_)
    if constraint.honor_affinity:
        # A pool is to its pods what a node selector would be: a domain without a node of it is none.
        mask &= _AFFINITY.own(graph, subject.spec, slice(None)) & _POOL.passes(graph, subject, slice(None))
    if constraint.honor_taints:
        mask &= _TAINTS.passes(graph, subject, slice(None))
    return mask


def alike(graph: view.View, subject: check.Subject, constraint: pods.SpreadConstraint) -> trace.Scores:
    """Int32 a row: pods of the newcomer's namespace that the constraint counts."""
    scope = scopes.Scope(constraint.selector, (subject.namespace,))
    return graph.crowd.counts(matchers.Matcher((scope,), matchers.Rule.SPREAD)).astype(np.int64)
