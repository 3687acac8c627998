"""Constraints on the node object alone: cordon, name, taints, affinity, declared features.

Their answers change only when the node object does, so a class computes them once and again for rows that were
reshaped. Semantics: kube-scheduler's plugins of the same names.
"""

from __future__ import annotations

import numpy as np

from graphsched.base.values import labels, nodes, pods
from graphsched.decision import names, trace
from graphsched.decision.constraints import check
from graphsched.graph import view

_CORDON = nodes.Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")


class NodeUnschedulable:
    """A cordoned node takes only pods that tolerate the cordon's taint."""

    plugin = names.NODE_UNSCHEDULABLE
    static = True
    after: tuple[str, ...] = ()
    reason = "node(s) were unschedulable"

    def applies(self, subject: check.Subject) -> bool:
        """Unless the pod tolerates the cordon."""
        return not any(toleration.tolerates(_CORDON) for toleration in subject.spec.tolerations)

    def passes(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> trace.Mask:  # noqa: ARG002
        """Bool for each row: not cordoned."""
        return ~graph.attributes.unschedulable[rows]

    def refusals(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> list[check.Refusal]:
        """The cordoned rows."""
        return [check.Refusal(self.reason, ~self.passes(graph, subject, rows), unresolvable=True)]


class NodeName:
    """spec.nodeName of a pod that is not bound names the only node it may go to."""

    plugin = names.NODE_NAME
    static = True
    after: tuple[str, ...] = ()
    reason = "node(s) didn't match the requested node name"

    def applies(self, subject: check.Subject) -> bool:
        """Where the pod asks for a node by name."""
        return bool(subject.spec.node_name)

    def passes(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> trace.Mask:
        """Bool for each row: it is the node asked for."""
        mask = np.zeros(graph.columns.capacity, np.bool_)
        row = graph.columns.rows.get(subject.spec.node_name)
        if row is not None:
            mask[row] = True
        return mask[rows]

    def refusals(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> list[check.Refusal]:
        """All the other rows."""
        return [check.Refusal(self.reason, ~self.passes(graph, subject, rows), unresolvable=True)]


class TaintToleration:
    """Every NoSchedule and NoExecute taint must be tolerated."""

    plugin = names.TAINT_TOLERATION
    static = True
    after: tuple[str, ...] = ()
    reason = "node(s) had untolerated taint(s)"

    def applies(self, subject: check.Subject) -> bool:  # noqa: ARG002  any node may be tainted
        """Always."""
        return True

    def passes(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> trace.Mask:
        """Bool for each row: no taint is in the way."""
        tolerations = subject.spec.tolerations
        column = graph.attributes.taints
        if not column.values:
            return np.ones(check.count(graph, rows), np.bool_)

        def tolerated(taints: tuple[nodes.Taint, ...] | None) -> bool:
            return all(
                taint.effect not in ("NoSchedule", "NoExecute") or any(each.tolerates(taint) for each in tolerations)
                for taint in taints or ()
            )

        return column.ask(("tolerated", tolerations), tolerated, np.bool_)[column.ids[rows]].astype(np.bool_)

    def refusals(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> list[check.Refusal]:
        """The rows with an untolerated taint."""
        return [check.Refusal(self.reason, ~self.passes(graph, subject, rows), unresolvable=True)]


class NodeAffinity:
    """nodeSelector, required node affinity, and the affinity the profile adds."""

    plugin = names.NODE_AFFINITY
    static = True
    after: tuple[str, ...] = (names.NODE_UNSCHEDULABLE, names.TAINT_TOLERATION)
    reason = "node(s) didn't match Pod's node affinity/selector"
    reason_enforced = "node(s) didn't match scheduler-enforced node affinity"

    def applies(self, subject: check.Subject) -> bool:
        """Where the pod or the profile constrains the node."""
        spec = subject.spec
        return bool(spec.selector) or spec.affinity is not None or subject.added_affinity is not None

    def passes(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> trace.Mask:
        """Bool for each row: selector and affinity hold."""
        mask = self.own(graph, subject.spec, rows)
        if subject.added_affinity is not None:
            mask &= any_term_holds(graph, subject.added_affinity, rows)
        return mask

    def refusals(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> list[check.Refusal]:
        """The rows the profile's affinity refuses, then those the pod's own does."""
        enforced = np.zeros(check.count(graph, rows), np.bool_)
        if subject.added_affinity is not None:
            enforced = ~any_term_holds(graph, subject.added_affinity, rows)
        own = ~self.own(graph, subject.spec, rows) & ~enforced
        return [
            check.Refusal(self.reason_enforced, enforced, unresolvable=True),
            check.Refusal(self.reason, own, unresolvable=True),
        ]

    def own(self, graph: view.View, spec: pods.Spec, rows: check.Rows) -> trace.Mask:
        """Bool for each row: the pod's own selector and affinity hold, whatever the profile adds."""
        mask = np.ones(check.count(graph, rows), np.bool_)
        for key, value in spec.selector:
            mask &= graph.attributes.holds(labels.Requirement(key, labels.Operator.IN, (value,)), rows)
        if spec.affinity is not None:
            mask &= any_term_holds(graph, spec.affinity, rows)
        return mask


class NodeDeclaredFeatures:
    """The node must declare every feature the pod needs."""

    plugin = names.NODE_DECLARED_FEATURES
    static = True
    after: tuple[str, ...] = ()
    reason = "node(s) didn't match Pod's required features"

    def applies(self, subject: check.Subject) -> bool:
        """Where the pod needs a feature."""
        return bool(subject.spec.features)

    def passes(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> trace.Mask:
        """Bool for each row: all features are declared."""
        needed = subject.spec.features
        column = graph.attributes.features
        table = column.ask(needed, lambda declared: set(needed) <= set(declared or ()), np.bool_)
        return table[column.ids[rows]].astype(np.bool_)

    def refusals(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> list[check.Refusal]:
        """The rows that lack a feature."""
        return [check.Refusal(self.reason, ~self.passes(graph, subject, rows), unresolvable=True)]


def any_term_holds(graph: view.View, terms: tuple[pods.NodeTerm, ...], rows: check.Rows) -> trace.Mask:
    """Bool for each row: whether at least one of the ORed terms holds. Empty and invalid terms hold nowhere."""
    mask = np.zeros(check.count(graph, rows), np.bool_)
    for term in terms:
        mask |= term_holds(graph, term, rows)
    return mask


def term_holds(graph: view.View, term: pods.NodeTerm, rows: check.Rows) -> trace.Mask:
    """Bool for each row: whether every requirement of the term holds; nowhere for an empty or invalid term."""
    if term.empty or not term.valid:
        return np.zeros(check.count(graph, rows), np.bool_)
    mask = graph.attributes.all_hold(term.expressions, rows)
    for field in term.fields:
        # The only field is metadata.name, with exactly one value: the border has made every other term invalid.
        named = np.zeros(graph.columns.capacity, np.bool_)
        row = graph.columns.rows.get(field.values[0])
        if row is not None:
            named[row] = True
        mask &= named[rows] if field.operator is labels.Operator.IN else ~named[rows]
    return mask


def pinned_names(terms: tuple[pods.NodeTerm, ...] | None) -> frozenset[str] | None:
    """The node names that required affinity allows, when every term pins metadata.name with In; None otherwise.

    kube-scheduler's PreFilter looks at no other node then, which shows in the reasons.
    """
    if not terms:
        return None
    union: set[str] = set()
    for term in terms:
        pins = [set(field.values) for field in term.fields if field.operator is labels.Operator.IN]
        if not pins:
            return None
        union |= set.intersection(*pins)
    return frozenset(union)
