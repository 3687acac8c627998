"""Selectors and terms of the API as values: node affinity, pod affinity, spread constraints.

Wire structs come in, the structs of `values.pods` go out with the API's defaults filled in. What the scheduler forgives
(a node selector term it can not parse) is kept and marked; what it does not (a pod selector it can not parse) raises
`InputError`, since dropping it would loosen a rule somebody wrote.
"""

from __future__ import annotations

import functools
import re
import typing
from collections.abc import Iterable

from graphsched.base.kube import wire
from graphsched.base.values import errors, labels, pods

NAME_FIELD = "metadata.name"
"""The only field a node selector term may ask for."""
_OPERATORS = {operator.value: operator for operator in labels.Operator}
_SET_OPERATORS = (labels.Operator.IN, labels.Operator.NOT_IN)
_COMPARISONS = (labels.Operator.GT, labels.Operator.LT)
_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@functools.lru_cache(maxsize=4096)
def is_label_key(key: str) -> bool:
    """Whether the API accepts this as the key of a label."""
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > 253 or _DNS_SUBDOMAIN.fullmatch(prefix) is None):
        return False
    return _NAME.fullmatch(name) is not None


@functools.lru_cache(maxsize=4096)
def is_label_value(value: str) -> bool:
    """Whether the API accepts this as the value of a label."""
    return not value or _NAME.fullmatch(value) is not None


def node_term(term: wire.NodeTerm) -> pods.NodeTerm:
    """A node selector term; one with a parse error is not valid and keeps the names it pins alone, since kube-scheduler
    narrows the nodes to them before it parses anything.
    """
    if not term.match_expressions and not term.match_fields:
        return pods.NodeTerm()
    expressions = [_requirement(entry) for entry in term.match_expressions or ()]
    fields = [_field(entry) for entry in term.match_fields or ()]
    if any(isinstance(entry, str) for entry in (*expressions, *fields)):
        pins = (entry for entry in term.match_fields or () if entry.key == NAME_FIELD and entry.operator == "In")
        kept = {labels.Requirement(NAME_FIELD, labels.Operator.IN, tuple(sorted(pin.values or ()))) for pin in pins}
        return pods.NodeTerm(fields=tuple(sorted(kept)), valid=False)
    return pods.NodeTerm(expressions=_sorted(expressions), fields=_sorted(fields))


def node_term_problem(term: wire.NodeTerm) -> str:
    """What keeps a node selector term from being parsed; empty when nothing does."""
    found = [_requirement(entry) for entry in term.match_expressions or ()]
    found += [_field(entry) for entry in term.match_fields or ()]
    return next((entry for entry in found if isinstance(entry, str)), "")


def node_terms(affinity: wire.NodeAffinity | None) -> tuple[pods.NodeTerm, ...] | None:
    """Required node affinity; None where there is none, empty where it is there without a term and matches nothing."""
    if affinity is None or affinity.required is None:
        return None
    return tuple(node_term(term) for term in affinity.required.node_selector_terms or ())


def preferred_node_terms(affinity: wire.NodeAffinity | None) -> tuple[pods.PreferredNodeTerm, ...]:
    """Preferred node affinity. Terms that never score, of weight 0 or empty, are kept: a pod with preferences gets a
    score for them, be it 0.
    """
    if affinity is None or not affinity.preferred:
        return ()
    return tuple(pods.PreferredNodeTerm(entry.weight, node_term(entry.preference)) for entry in affinity.preferred)


def selector(body: wire.LabelSelector | None, field: str) -> labels.Selector | None:
    """A label selector; none stays none, which matches nothing.

    Raises:
        InputError: It is not a selector the API would accept.
    """
    if body is None:
        return None
    requirements = []
    for key, value in (body.match_labels or {}).items():
        if not is_label_key(key) or not is_label_value(value):
            raise errors.InputError(
                f"{field}.matchLabels.{key}", problem=f'"{key}={value}" is no label', remedy=_LABEL_RULE
            )
        requirements.append(labels.Requirement(key, labels.Operator.IN, (value,)))
    for index, entry in enumerate(body.match_expressions or ()):
        requirement = _requirement(entry)
        if isinstance(requirement, str):
            raise errors.InputError(
                f"{field}.matchExpressions[{index}]", problem=requirement, remedy="correct the selector"
            )
        if requirement.operator in _COMPARISONS:
            raise errors.InputError(
                f"{field}.matchExpressions[{index}].operator",
                problem=f'"{entry.operator}" is for nodes only',
                remedy="use In, NotIn, Exists or DoesNotExist",
            )
        requirements.append(requirement)
    return labels.selector(requirements)


def pod_term(term: wire.PodTerm, *, namespace: str, field: str) -> pods.PodTerm:
    """A pod affinity or anti-affinity term of a pod in `namespace`.

    Raises:
        InputError: A selector is not one the API would accept, or the topology key is missing.
    """
    if not term.topology_key:
        raise errors.InputError(f"{field}.topologyKey", problem="is missing", remedy="name a node label")
    own = not term.namespaces and term.namespace_selector is None
    return pods.PodTerm(
        topology_key=term.topology_key,
        selector=selector(term.label_selector, f"{field}.labelSelector"),
        namespaces=(namespace,) if own else tuple(sorted(set(term.namespaces or ()))),
        namespace_selector=selector(term.namespace_selector, f"{field}.namespaceSelector"),
    )


class PodTerms(typing.NamedTuple):
    """The required and preferred terms of one of podAffinity and podAntiAffinity."""

    required: tuple[pods.PodTerm, ...] = ()
    preferred: tuple[pods.PreferredPodTerm, ...] = ()


def pod_terms(affinity: wire.PodAffinity | None, *, namespace: str, field: str) -> PodTerms:
    """The terms of podAffinity or podAntiAffinity.

    Raises:
        InputError: See `pod_term`.
    """
    if affinity is None:
        return PodTerms()
    required = f"{field}.requiredDuringSchedulingIgnoredDuringExecution"
    preferred = f"{field}.preferredDuringSchedulingIgnoredDuringExecution"
    return PodTerms(
        tuple(
            pod_term(term, namespace=namespace, field=f"{required}[{index}]")
            for index, term in enumerate(affinity.required or ())
        ),
        tuple(
            pods.PreferredPodTerm(
                entry.weight,
                pod_term(entry.pod_affinity_term, namespace=namespace, field=f"{preferred}[{index}].podAffinityTerm"),
            )
            for index, entry in enumerate(affinity.preferred or ())
        ),
    )


def spread(
    constraints: Iterable[wire.SpreadConstraint],
    pod_labels: dict[str, str] | None,
) -> tuple[pods.SpreadConstraint, ...]:
    """Topology spread constraints with their defaults, matchLabelKeys merged into the selectors.

    Raises:
        InputError: A selector, or the action when it can not be satisfied, is not one the API would accept.
    """
    found = []
    for index, entry in enumerate(constraints):
        field = f"spec.topologySpreadConstraints[{index}]"
        if entry.when_unsatisfiable not in {"DoNotSchedule", "ScheduleAnyway"}:
            raise errors.InputError(
                f"{field}.whenUnsatisfiable",
                problem=f'"{entry.when_unsatisfiable}" is not known',
                remedy="use DoNotSchedule or ScheduleAnyway",
            )
        chosen = selector(entry.label_selector, f"{field}.labelSelector")
        merged = [
            labels.Requirement(key, labels.Operator.IN, ((pod_labels or {})[key],))
            for key in entry.match_label_keys or ()
            if key in (pod_labels or {})
        ]
        if chosen is not None and merged:
            chosen = labels.selector((*chosen.requirements, *merged))
        found.append(
            pods.SpreadConstraint(
                max_skew=entry.max_skew,
                topology_key=entry.topology_key,
                hard=entry.when_unsatisfiable == "DoNotSchedule",
                selector=chosen,
                min_domains=1 if entry.min_domains is None else entry.min_domains,
                honor_affinity=(entry.node_affinity_policy or "Honor") == "Honor",
                honor_taints=(entry.node_taints_policy or "Ignore") == "Honor",
            ),
        )
    return tuple(found)


_LABEL_RULE = "use at most 63 of A-Z a-z 0-9 - _ . and begin and end with a letter or digit"


def _requirement(entry: wire.Requirement) -> labels.Requirement | str:
    """The requirement on a label, or what is wrong with it."""
    operator = _OPERATORS.get(entry.operator)
    values = entry.values or []
    if operator is None:
        return f'operator "{entry.operator}" is not known'
    if not is_label_key(entry.key):
        return f'"{entry.key}" is no label key'
    if operator in _SET_OPERATORS and not values:
        return f"{operator.value} needs at least one value"
    if operator in _COMPARISONS and (len(values) != 1 or labels.parse_int64(values[0]) is None):
        return f"{operator.value} needs exactly one value, an integer"
    if operator in {labels.Operator.EXISTS, labels.Operator.DOES_NOT_EXIST} and values:
        return f"{operator.value} takes no values"
    for value in values:
        if not is_label_value(value):
            return f'"{value}" is no label value'
    return labels.Requirement(entry.key, operator, tuple(sorted(values)))


def _field(entry: wire.Requirement) -> labels.Requirement | str:
    """The requirement on a field, or what is wrong with it."""
    operator = _OPERATORS.get(entry.operator)
    known = entry.key == NAME_FIELD and len(entry.values or ()) == 1
    if operator is None or operator not in _SET_OPERATORS or not known:
        return f"fields know only {NAME_FIELD} with In or NotIn and exactly one value"
    return labels.Requirement(entry.key, operator, tuple(entry.values or ()))


def _sorted(requirements: list[labels.Requirement | str]) -> tuple[labels.Requirement, ...]:
    return tuple(sorted({entry for entry in requirements if not isinstance(entry, str)}))
