"""What the API server would refuse, for objects that never met one.

Decoded and defaulted objects come in, nothing goes out: a mistake raises `InputError`. Only fields that scheduling
reads are looked at; a typo in one would otherwise loosen a rule in silence.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping

from graphsched.base.kube import naming, pods as kube_pods, requests, selectors, wire
from graphsched.base.values import errors

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_LENGTH_MAX = 253
_LABEL = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_LABEL_LENGTH_MAX = 63
_INT32_MAX = 2**31 - 1
_TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_TOLERATION_OPERATORS = ("", "Equal", "Exists")
_SPREAD_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_SPREAD_POLICIES = (None, "Honor", "Ignore")
_PREEMPTION_POLICIES = (None, "Never", "PreemptLowerPriority")


def name(kind: str, metadata: wire.Metadata) -> None:
    """Check an object's name and namespace.

    Raises:
        InputError: One is missing or is not a name in lower case.
    """
    if not metadata.name:
        raise errors.InputError(kind, "metadata.name", problem="is missing", remedy=f"name the {kind}")
    for field, text in (("metadata.name", metadata.name), ("metadata.namespace", naming.namespace_of(metadata))):
        if len(text) > _NAME_LENGTH_MAX or _SUBDOMAIN.fullmatch(text) is None:
            raise errors.InputError(
                kind,
                field,
                problem=f'"{text[:64]}" is not a name',
                remedy="use a-z, 0-9, - and . and begin and end with a letter or digit",
            )


def node(body: wire.Node) -> None:
    """Check a node.

    Raises:
        InputError: See the module.
    """
    name("Node", body.metadata)
    try:
        _labels("metadata.labels", body.metadata.labels)
        for index, taint in enumerate(body.spec.taints or ()):
            field = f"spec.taints[{index}]"
            _known(f"{field}.effect", taint.effect, _TAINT_EFFECTS)
            if not taint.key:
                raise errors.InputError(f"{field}.key", problem="is missing", remedy="name the taint")
        for resource, text in (body.status.allocatable or {}).items():
            requests.milli(text, f"status.allocatable.{resource}")
    except errors.InputError as error:
        raise error.within(f'Node "{body.metadata.name}"') from error


def pod(body: wire.Pod) -> None:
    """Check a pod.

    Raises:
        InputError: See the module.
    """
    name("Pod", body.metadata)
    try:
        _labels("metadata.labels", body.metadata.labels)
        _labels("spec.nodeSelector", body.spec.node_selector)
        _within("spec.priority", body.spec.priority or 0, -_INT32_MAX - 1, _INT32_MAX)
        _containers(body.spec)
        _tolerations(body.spec)
        _terms(body.spec)
        _known("spec.preemptionPolicy", body.spec.preemption_policy, _PREEMPTION_POLICIES)
    except errors.InputError as error:
        raise error.within(kube_pods.title(body)) from error


def _known(field: str, value: str | None, allowed: tuple[str | None, ...]) -> None:
    if value not in allowed:
        choice = ", ".join(entry for entry in allowed if entry)
        raise errors.InputError(field, problem=f'"{value}" is not known', remedy=f"use one of: {choice}")


def _within(field: str, value: int, least: int, most: int) -> None:
    if not least <= value <= most:
        raise errors.InputError(field, problem=f"{value} is out of range", remedy=f"use {least} to {most}")


def _labels(field: str, mapping: Mapping[str, str] | None) -> None:
    for key, value in (mapping or {}).items():
        if not _is_label_key(key):
            raise errors.InputError(field, problem=f'"{key[:64]}" is not a label', remedy="write e.g. example.com/name")
        if value and not _is_label_name(value):
            problem = f'"{value[:64]}" is not a value of a label'
            remedy = "use up to 63 of A-Z, a-z, 0-9, -, _ and . and begin and end with a letter or digit"
            raise errors.InputError(f"{field}.{key}", problem=problem, remedy=remedy)


@functools.lru_cache(maxsize=4096)
def _is_label_key(key: str) -> bool:
    prefix, slash, rest = key.rpartition("/")
    if slash and (len(prefix) > _NAME_LENGTH_MAX or _SUBDOMAIN.fullmatch(prefix) is None):
        return False
    return _is_label_name(rest)


@functools.lru_cache(maxsize=4096)
def _is_label_name(text: str) -> bool:
    return len(text) <= _LABEL_LENGTH_MAX and _LABEL.fullmatch(text) is not None


def _containers(spec: wire.PodSpec) -> None:
    if not spec.containers:
        raise errors.InputError("spec.containers", problem="is missing or empty", remedy="add a container")
    seen: set[str] = set()
    for kind, containers in (("containers", spec.containers), ("initContainers", spec.init_containers or [])):
        for index, container in enumerate(containers):
            field = f"spec.{kind}[{index}]"
            if container.name in seen:
                problem = f'there is a container "{container.name[:64]}" already'
                raise errors.InputError(f"{field}.name", problem=problem, remedy="rename one")
            if container.name:
                seen.add(container.name)
            _resources(f"{field}.resources", container.resources)
            for at, port in enumerate(container.ports or ()):
                _within(f"{field}.ports[{at}].hostPort", port.host_port, 0, 65_535)
                _known(f"{field}.ports[{at}].protocol", port.protocol, ("", "TCP", "UDP", "SCTP"))
    _resources("spec.resources", spec.resources)
    for resource, text in (spec.overhead or {}).items():
        requests.milli(text, f"spec.overhead.{resource}")


def _resources(field: str, resources: wire.ResourceRequirements | None) -> None:
    """Every quantity is one, and no request is above its limit."""
    if resources is None:
        return
    limits = {name: requests.milli(text, f"{field}.limits.{name}") for name, text in (resources.limits or {}).items()}
    for resource, text in (resources.requests or {}).items():
        amount = requests.milli(text, f"{field}.requests.{resource}")
        if amount % 1000 and requests.is_extended(resource):
            problem = f'"{text}" is not a whole number'
            raise errors.InputError(f"{field}.requests.{resource}", problem=problem, remedy="ask for whole ones")
        if amount > limits.get(resource, amount):
            limit = (resources.limits or {})[resource]
            raise errors.InputError(
                f"{field}.requests.{resource}",
                problem=f'"{text}" is above the limit "{limit}"',
                remedy="raise the limit or lower the request",
            )


def _tolerations(spec: wire.PodSpec) -> None:
    for index, entry in enumerate(spec.tolerations or ()):
        field = f"spec.tolerations[{index}]"
        _known(f"{field}.operator", entry.operator, _TOLERATION_OPERATORS)
        _known(f"{field}.effect", entry.effect, ("", *_TAINT_EFFECTS))
        if not entry.key and entry.operator != "Exists":
            raise errors.InputError(
                f"{field}.key", problem="is missing", remedy="name the taint, or use operator Exists"
            )


def _terms(spec: wire.PodSpec) -> None:
    affinity = spec.affinity or wire.Affinity()
    nodes = affinity.node_affinity or wire.NodeAffinity()
    base = "spec.affinity.nodeAffinity"
    required = nodes.required.node_selector_terms if nodes.required is not None else None
    if nodes.required is not None and not required:
        field = f"{base}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        raise errors.InputError(field, problem="is missing or empty", remedy="add a term, or leave the rule out")
    for index, term in enumerate(required or ()):
        field = f"{base}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[{index}]"
        _node_term(field, term)
    for index, entry in enumerate(nodes.preferred or ()):
        field = f"{base}.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
        _within(f"{field}.weight", entry.weight, 1, 100)
        _node_term(f"{field}.preference", entry.preference)
    for kind, terms in (("podAffinity", affinity.pod_affinity), ("podAntiAffinity", affinity.pod_anti_affinity)):
        for index, weighted in enumerate((terms.preferred if terms is not None else None) or ()):
            field = f"spec.affinity.{kind}.preferredDuringSchedulingIgnoredDuringExecution[{index}].weight"
            _within(field, weighted.weight, 1, 100)
    for index, constraint in enumerate(spec.topology_spread_constraints or ()):
        _constraint(f"spec.topologySpreadConstraints[{index}]", constraint)


def _node_term(field: str, term: wire.NodeTerm) -> None:
    problem = selectors.node_term_problem(term)
    if problem:
        raise errors.InputError(field, problem=problem, remedy="correct the term")


def _constraint(field: str, constraint: wire.SpreadConstraint) -> None:
    _within(f"{field}.maxSkew", constraint.max_skew, 1, 2**31 - 1)
    _within(f"{field}.minDomains", 1 if constraint.min_domains is None else constraint.min_domains, 1, 2**31 - 1)
    _known(f"{field}.whenUnsatisfiable", constraint.when_unsatisfiable, _SPREAD_ACTIONS)
    _known(f"{field}.nodeAffinityPolicy", constraint.node_affinity_policy, _SPREAD_POLICIES)
    _known(f"{field}.nodeTaintsPolicy", constraint.node_taints_policy, _SPREAD_POLICIES)
    if not constraint.topology_key:
        raise errors.InputError(f"{field}.topologyKey", problem="is missing", remedy="name a node label")
