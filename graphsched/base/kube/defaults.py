"""What the API server does to an object before a scheduler sees it, for objects that never met one.

Decoded objects come in as somebody wrote them, the same objects go out as the API server would store them: its
defaulting functions, the merging of matchLabelKeys into selectors, and the admission plugins Priority, RuntimeClass and
DefaultTolerationSeconds. `pods` and `nodes` then turn them into values. Only what scheduling reads is filled in.

Invariant: applying it twice is applying it once, so an object that comes from a cluster passes unchanged. One exception
proves it: such a pod (it has a UID) may name a RuntimeClass that is not at hand, as that has left its marks already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from graphsched.base.kube import naming, pods as kube_pods, requests, wire
from graphsched.base.values import errors, nodes, quantities

NAMESPACE_LABEL = "kubernetes.io/metadata.name"
BUILTIN_PRIORITY_CLASSES = {
    name: nodes.PriorityClass(name, value)
    for name, value in (("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000))
}
"""The API server makes these itself."""
EVICTION_SECONDS = 300
"""How long a pod stays on a node that is not ready or unreachable."""
_CONDITION_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_replace = msgspec.structs.replace


def node(body: wire.Node) -> wire.Node:
    """The node with its capacity allocatable where nothing is said."""
    if body.status.allocatable is not None or body.status.capacity is None:
        return body
    return _replace(body, status=_replace(body.status, allocatable=body.status.capacity))


def namespace(body: wire.Namespace) -> wire.Namespace:
    """The namespace with the label that holds its name."""
    labels = {**(body.metadata.labels or {}), NAMESPACE_LABEL: body.metadata.name}
    return _replace(body, metadata=_replace(body.metadata, labels=labels))


def pod(
    body: wire.Pod,
    *,
    priority_classes: Mapping[str, nodes.PriorityClass],
    runtime_classes: Mapping[str, wire.RuntimeClass],
) -> wire.Pod:
    """The pod as admitted, under these classes and the built-in priority classes.

    Raises:
        InputError: A class is not known or contradicts the pod, or a quantity is none.
    """
    try:
        spec = _with_requests(body.spec)
        if spec.host_network:
            spec = _replace(
                spec,
                containers=[_with_host_ports(container) for container in spec.containers or ()],
                init_containers=[_with_host_ports(container) for container in spec.init_containers or ()],
            )
        spec = _with_priority(spec, priority_classes)
        spec = _with_runtime_class(spec, runtime_classes, admitted=bool(body.metadata.uid))
    except errors.InputError as error:
        raise error.within(kube_pods.title(body)) from error
    labels = body.metadata.labels or {}
    spec = _replace(
        spec,
        scheduler_name=spec.scheduler_name or kube_pods.DEFAULT_SCHEDULER,
        tolerations=_with_evictions(spec.tolerations or []),
        affinity=_with_label_keys(spec.affinity, labels),
        topology_spread_constraints=[
            _replace(entry, label_selector=_merged(entry.label_selector, labels, In=entry.match_label_keys))
            for entry in spec.topology_spread_constraints or ()
        ],
    )
    metadata = _replace(body.metadata, namespace=naming.namespace_of(body.metadata))
    return _replace(body, metadata=metadata, spec=spec)


def _with_requests(spec: wire.PodSpec) -> wire.PodSpec:
    """Requests follow from limits; those of the pod as a whole follow from its containers first."""
    spec = _replace(
        spec,
        containers=[_requesting_its_limits(container) for container in spec.containers or ()],
        init_containers=[_requesting_its_limits(container) for container in spec.init_containers or ()],
    )
    if spec.resources is None or not (spec.resources.limits or spec.resources.requests):
        return spec
    wanted = dict(spec.resources.requests or {})
    limits = dict(spec.resources.limits or {})
    for name, amount in requests.sum_containers(spec, limits=True).items():
        if name.startswith("hugepages-") and name not in wanted:
            limits.setdefault(name, quantities.format_milli(amount))
    if limits:
        for name, amount in requests.sum_containers(spec).items():
            if name in {nodes.CPU, nodes.MEMORY}:
                wanted.setdefault(name, quantities.format_milli(amount))
        for name, limit in limits.items():
            if requests.pod_level(name):
                wanted.setdefault(name, limit)
    return _replace(spec, resources=wire.ResourceRequirements(requests=wanted, limits=limits))


def _requesting_its_limits(container: wire.Container) -> wire.Container:
    resources = container.resources
    if resources is None or not resources.limits:
        return container
    wanted = {**resources.limits, **(resources.requests or {})}
    return _replace(container, resources=_replace(resources, requests=wanted))


def _with_host_ports(container: wire.Container) -> wire.Container:
    """On the host's network every port of a container is a port of the host."""
    ports = [_replace(port, host_port=port.host_port or port.container_port) for port in container.ports or ()]
    return _replace(container, ports=ports)


def _with_priority(spec: wire.PodSpec, classes: Mapping[str, nodes.PriorityClass]) -> wire.PodSpec:
    """Priority and preemption policy of the named class, else of the global default; a given priority is kept."""
    name = spec.priority_class_name
    found = classes.get(name) or BUILTIN_PRIORITY_CLASSES.get(name) if name else _global_default(classes.values())
    if found is None:
        if name and spec.priority is None:
            known = ", ".join(sorted({*classes, *BUILTIN_PRIORITY_CLASSES}))
            raise errors.InputError(
                "spec.priorityClassName",
                problem=f'no PriorityClass "{name}"',
                remedy=f"add its manifest, or use one of: {known}",
            )
        return _replace(spec, priority=spec.priority or 0)
    policy = "Never" if found.never_preempts else "PreemptLowerPriority"
    return _replace(
        spec,
        priority=found.value if spec.priority is None else spec.priority,
        preemption_policy=spec.preemption_policy or policy,
    )


def _global_default(classes: Iterable[nodes.PriorityClass]) -> nodes.PriorityClass | None:
    """The global default; the one of least value should there be several."""
    defaults = [entry for entry in classes if entry.global_default]
    return min(defaults, key=lambda entry: (entry.value, entry.name), default=None)


def _with_runtime_class(
    spec: wire.PodSpec,
    classes: Mapping[str, wire.RuntimeClass],
    *,
    admitted: bool,
) -> wire.PodSpec:
    """Overhead, node selector and tolerations of the runtime class."""
    if not spec.runtime_class_name:
        return spec
    found = classes.get(spec.runtime_class_name)
    if found is None:
        if admitted:
            return spec
        raise errors.InputError(
            "spec.runtimeClassName",
            problem=f'no RuntimeClass "{spec.runtime_class_name}"',
            remedy="add its manifest, or leave the field out",
        )
    if found.overhead is not None:
        fixed = found.overhead.pod_fixed or {}
        given = requests.parse(spec.overhead, "spec.overhead")
        if given and given != requests.parse(fixed, f"RuntimeClass {found.metadata.name}.overhead.podFixed"):
            raise errors.InputError(
                "spec.overhead",
                problem=f'differs from that of RuntimeClass "{found.metadata.name}"',
                remedy="leave it out, the class sets it",
            )
        spec = _replace(spec, overhead=fixed)
    if found.scheduling is None:
        return spec
    selector = dict(spec.node_selector or {})
    for key, value in (found.scheduling.node_selector or {}).items():
        if selector.setdefault(key, value) != value:
            raise errors.InputError(
                f"spec.nodeSelector.{key}",
                problem=f'is "{selector[key]}", but RuntimeClass "{found.metadata.name}" needs "{value}"',
                remedy="remove it or use another RuntimeClass",
            )
    tolerations = list(spec.tolerations or ())
    tolerations += [entry for entry in found.scheduling.tolerations or () if entry not in tolerations]
    return _replace(spec, node_selector=selector, tolerations=tolerations)


def _with_evictions(tolerations: list[wire.Toleration]) -> list[wire.Toleration]:
    """Tolerate a node that is not ready or unreachable for a while, unless the pod says something about that."""
    added = [
        wire.Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=EVICTION_SECONDS)
        for key in _CONDITION_TAINTS
        if not any(entry.key in {key, ""} and entry.effect in {"NoExecute", ""} for entry in tolerations)
    ]
    return [*tolerations, *added]


def _with_label_keys(affinity: wire.Affinity | None, labels: dict[str, str]) -> wire.Affinity | None:
    if affinity is None:
        return None
    return _replace(
        affinity,
        pod_affinity=_merged_terms(affinity.pod_affinity, labels),
        pod_anti_affinity=_merged_terms(affinity.pod_anti_affinity, labels),
    )


def _merged_terms(terms: wire.PodAffinity | None, labels: dict[str, str]) -> wire.PodAffinity | None:
    if terms is None:
        return None
    return wire.PodAffinity(
        required=[_merged_term(term, labels) for term in terms.required or ()],
        preferred=[
            _replace(entry, pod_affinity_term=_merged_term(entry.pod_affinity_term, labels))
            for entry in terms.preferred or ()
        ],
    )


def _merged_term(term: wire.PodTerm, labels: dict[str, str]) -> wire.PodTerm:
    merged = _merged(term.label_selector, labels, In=term.match_label_keys, NotIn=term.mismatch_label_keys)
    return _replace(term, label_selector=merged)


def _merged(
    selector: wire.LabelSelector | None,
    labels: dict[str, str],
    **keys: list[str] | None,
) -> wire.LabelSelector | None:
    """The selector with the pod's own values of these keys required (In) or excluded (NotIn)."""
    if selector is None:
        return None
    expressions = list(selector.match_expressions or ())
    for operator, names in keys.items():
        more = (wire.Requirement(key, operator, [labels[key]]) for key in names or () if key in labels)
        expressions += [entry for entry in more if entry not in expressions]
    return _replace(selector, match_expressions=expressions)
