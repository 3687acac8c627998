"""The rules that several plugins share: tolerations, terms, selectors, each as one plain question about one object."""

from __future__ import annotations

from collections.abc import Iterable

from graphsched.base.values import labels, nodes, pods, status
from tests.decision.plain_cluster import Machine

U, UAU = status.Code.UNSCHEDULABLE, status.Code.UNRESOLVABLE
Refusal = tuple[status.Code, tuple[str, ...]]


def tolerated(tolerations: Iterable[pods.Toleration], taint: nodes.Taint) -> bool:
    """Whether one of the tolerations covers the taint."""
    for each in tolerations:
        if each.effect and each.effect != taint.effect:
            continue
        if each.key and each.key != taint.key:
            continue
        if each.operator == "Exists" or (each.operator == "Equal" and each.value == taint.value):
            return True
    return False


def untolerated(tolerations: Iterable[pods.Toleration], machine: Machine) -> bool:
    """Whether a taint that keeps pods away is on the node and not tolerated."""
    return any(
        taint.effect in {"NoSchedule", "NoExecute"} and not tolerated(tolerations, taint)
        for taint in machine.node.taints
    )


def wanted(spec: pods.Spec, machine: Machine) -> bool:
    """Whether the node meets the pod's own selector and required affinity."""
    if any(machine.label(key) != value for key, value in spec.selector):
        return False
    return spec.affinity is None or any(term_holds(term, machine) for term in spec.affinity)


def term_holds(term: pods.NodeTerm, machine: Machine) -> bool:
    """Whether all requirements of the term hold; an empty or invalid term never does."""
    if not term.valid or not (term.expressions or term.fields):
        return False
    return all(requirement_holds(each, machine.label(each.key)) for each in term.expressions) and all(
        requirement_holds(each, machine.node.name) for each in term.fields
    )


def requirement_holds(requirement: labels.Requirement, value: str | None) -> bool:
    """Whether a label of this value, None for none, meets the requirement."""
    operator = requirement.operator.value
    if value is None:
        return operator in {"NotIn", "DoesNotExist"}
    if operator == "In":
        return value in requirement.values
    if operator == "NotIn":
        return value not in requirement.values
    if operator in {"Exists", "DoesNotExist"}:
        return operator == "Exists"
    try:
        have, bound = int(value), int(requirement.values[0])
    except ValueError:
        return False
    return have > bound if operator == "Gt" else have < bound


def selector_holds(selector: labels.Selector | None, have: labels.Labels) -> bool:
    """Whether a label selector selects these labels; none at all selects nothing."""
    if selector is None:
        return False
    own = dict(have)
    return all(requirement_holds(each, own.get(each.key)) for each in selector.requirements)
