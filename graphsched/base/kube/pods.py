"""Pods of the API as values.

A decoded pod comes in, a `values.pods.Pod` goes out, its spec and labels interned; `sources` puts it into a patch. The
expensive part, the spec, is keyed by the fields it is made from, so that a replica costs the encoding of its spec and
one lookup. Measured on one core of a small cloud machine, Python 3.11: a plain pod of 2.4 kB takes 4 µs
to decode and 4 µs to convert when its spec is known, 18 µs when it is not.

Invariant: equal specs are one object as long as anybody holds one of them.
"""

from __future__ import annotations

import hashlib
import typing

import msgspec

from graphsched.base.kube import (
    budgets,
    complaints,
    demands,
    interning,
    naming,
    qos,
    requests,
    selections,
    selectors,
    wire,
)
from graphsched.base.values import errors, keys, labels, pods

DEFAULT_SCHEDULER = "default-scheduler"
HOST_NETWORK_WITH_USERS = "UserNamespacesHostNetworkSupport"
"""Node feature that a pod on the host's network in a user namespace of its own needs."""
RESTART_ALL = "RestartAllContainersOnContainerExits"
"""Node feature that a restart rule for all containers needs."""

_ANY_IP = "0.0.0.0"  # noqa: S104  a host port's address, nothing is bound
_SOURCES = {
    "ephemeral": "ephemeral volume",
    "gce_persistent_disk": "gcePersistentDisk volume",
    "aws_elastic_block_store": "awsElasticBlockStore volume",
    "iscsi": "iscsi volume",
    "rbd": "rbd volume",
    "cinder": "cinder volume",
    "azure_disk": "azureDisk volume",
    "azure_file": "azureFile volume",
    "vsphere_volume": "vsphereVolume volume",
    "portworx_volume": "portworxVolume volume",
}
"""Volume sources that a placement plugin looks at. Inline CSI volumes are not among them: no plugin counts them."""


class _Measured(typing.NamedTuple):
    spec: pods.Spec
    held: pods.Demand


_encode = msgspec.msgpack.Encoder().encode
_measured: interning.Memo[bytes, _Measured] = interning.Memo(interning.SPECS_MAX)
_specs: interning.WeakTable[pods.Spec] = interning.WeakTable()
_demands: interning.Table[pods.Demand] = interning.Table(interning.SPECS_MAX)
_texts: interning.Table[str] = interning.Table()
label_sets: interning.Table[labels.Labels] = interning.Table()
"""Shared with nodes and namespaces."""


def pod(body: wire.Pod) -> pods.Pod:
    """The pod as the cluster has it: `spec.nodeName` is where it is bound.

    Raises:
        InputError: A field holds what the API would not accept; the place names pod and field.
    """
    metadata, spec, status = body.metadata, body.spec, body.status
    if not metadata.name:
        raise errors.InputError("Pod", "metadata.name", problem="is missing", remedy="name the pod")
    measured = _measure(body)
    return pods.Pod(
        key=keys.pod_key(naming.namespace_of(metadata), metadata.name),
        uid=metadata.uid,
        spec=measured.spec,
        held=measured.held,
        labels=_labels(metadata.labels),
        node=_texts(spec.node_name),
        nominated=_texts(status.nominated_node_name),
        scheduler=_texts(spec.scheduler_name or DEFAULT_SCHEDULER),
        priority=spec.priority or 0,
        never_preempts=spec.preemption_policy == "Never",
        gates=tuple([gate.name for gate in spec.scheduling_gates]) if spec.scheduling_gates else (),
        deleting=metadata.deletion_timestamp is not None,
        created=metadata.creation_timestamp.timestamp() if metadata.creation_timestamp is not None else 0.0,
        started=status.start_time.timestamp() if status.start_time is not None else None,
        owner=_texts(selections.owner_of(metadata)) if metadata.owner_references else "",
    )


def incoming(body: wire.Pod) -> pods.Pod:
    """The pod as somebody asks for it to be placed: `spec.nodeName` is a wish, and it is bound nowhere.

    Raises:
        InputError: As `pod` does.
    """
    found = pod(body)
    if not found.node:
        return found
    spec = msgspec.structs.replace(found.spec, node_name=found.node)
    return msgspec.structs.replace(found, spec=spec, node="")


def title(body: wire.Pod) -> str:
    """How users write the pod: `Pod "default/web"`."""
    return f'Pod "{naming.namespace_of(body.metadata)}/{body.metadata.name}"'


def image_name(image: str) -> str:
    """The image with the tag that its absence stands for."""
    return image if image.rfind(":") > image.rfind("/") else image + ":latest"


def _labels(mapping: dict[str, str] | None) -> labels.Labels:
    return label_sets(labels.from_mapping(mapping)) if mapping else labels.NO_LABELS


def _measure(body: wire.Pod) -> _Measured:
    """Spec and holdings, made once for all pods with equal spec, equal resources in the status and equal context.

    The context is the namespace where pod terms refer to it, and the labels where constraints copy them.
    """
    spec, status, metadata = body.spec, body.status, body.metadata
    noted = metadata.annotations
    claims, image_volumes = _claims(spec) if spec.volumes or spec.resource_claims or spec.scheduling_group else ((), ())
    affinity = spec.affinity
    with_pod_terms = affinity is not None and (
        affinity.pod_affinity is not None or affinity.pod_anti_affinity is not None
    )
    try:
        key = _encode(
            (
                spec.containers,
                spec.init_containers,
                spec.resources,
                spec.overhead,
                spec.node_selector,
                affinity,
                spec.tolerations,
                spec.topology_spread_constraints,
                spec.host_network,
                spec.host_users,
                claims,
                image_volumes,
                metadata.namespace if with_pod_terms or (noted is not None and noted.peers is not None) else None,
                metadata.labels if spec.topology_spread_constraints else None,
                _status_key(status),
                noted,
            ),
        )
    except OverflowError as error:
        raise complaints.too_wide(title(body), body) from error
    # Keys of a whole spec are long, and nobody reads them again.
    key = hashlib.blake2b(key, digest_size=16).digest()
    known = _measured.get(key)
    if known is not None:
        return known
    try:
        demand, held = requests.measure(spec, status)
        if noted is not None:
            demand, held = budgets.with_iops(noted, demand, held)
        found = _specs(_spec(body, demand, claims, image_volumes))
    except errors.InputError as error:
        raise error.within(title(body)) from error
    measured = _Measured(found, found.demand if held == found.demand else _demands(held))
    _measured.keep(key, measured)
    return measured


def _status_key(status: wire.PodStatus) -> object:
    """What of the status decides how much the pod holds; None for all pods that no node has reported on."""
    reported = status.resources is not None
    for statuses in (status.container_statuses, status.init_container_statuses):
        for entry in statuses or ():
            reported = reported or entry.resources is not None
    if not reported:
        return None
    return (
        status.container_statuses,
        status.init_container_statuses,
        status.resources,
        status.allocated_resources,
        requests.resize_infeasible(status),
    )


def _spec(
    body: wire.Pod,
    demand: pods.Demand,
    claims: tuple[str, ...],
    image_volumes: tuple[str, ...],
) -> pods.Spec:
    spec = body.spec
    namespace = naming.namespace_of(body.metadata)
    affinity = spec.affinity or wire.Affinity()
    attracted = selectors.pod_terms(affinity.pod_affinity, namespace=namespace, field="spec.affinity.podAffinity")
    repelled = selectors.pod_terms(
        affinity.pod_anti_affinity, namespace=namespace, field="spec.affinity.podAntiAffinity"
    )
    containers = [*(spec.init_containers or ()), *(spec.containers or ())]
    return pods.Spec(
        demand=demand,
        selector=labels.from_mapping(spec.node_selector or {}),
        affinity=selectors.node_terms(affinity.node_affinity),
        preferred=selectors.preferred_node_terms(affinity.node_affinity),
        tolerations=tuple(toleration(entry) for entry in spec.tolerations or ()),
        ports=_ports(spec),
        images=tuple(image_name(container.image) for container in containers),
        image_volumes=image_volumes,
        image_containers=len(containers),
        pod_affinity=attracted.required,
        pod_anti_affinity=repelled.required,
        preferred_pod_affinity=attracted.preferred,
        preferred_pod_anti_affinity=repelled.preferred,
        spread=selectors.spread(spec.topology_spread_constraints or (), body.metadata.labels),
        features=_features(spec, containers),
        claims=claims,
        graph=None if body.metadata.annotations is None else demands.demand(body.metadata.annotations, namespace),
        guaranteed=qos.guaranteed(spec),
    )


def toleration(entry: wire.Toleration) -> pods.Toleration:
    """A toleration; a missing operator means Equal."""
    return pods.Toleration(
        key=entry.key,
        operator=entry.operator or "Equal",
        value=entry.value,
        effect=entry.effect,
        seconds=entry.toleration_seconds,
    )


def _ports(spec: wire.PodSpec) -> tuple[pods.HostPort, ...]:
    running = [*(spec.containers or ()), *(entry for entry in spec.init_containers or () if entry.sidecar)]
    wanted = {
        (port.protocol or "TCP", port.host_ip or _ANY_IP, port.host_port)
        for container in running
        for port in container.ports or ()
        if port.host_port > 0
    }
    return tuple(pods.HostPort(*port) for port in sorted(wanted))


def _features(spec: wire.PodSpec, containers: list[wire.Container]) -> tuple[str, ...]:
    needed = []
    if any(rule.action == "RestartAllContainers" for entry in containers for rule in entry.restart_policy_rules or ()):
        needed.append(RESTART_ALL)
    if spec.host_network and spec.host_users is False:
        needed.append(HOST_NETWORK_WITH_USERS)
    return tuple(needed)


def _claims(spec: wire.PodSpec) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The claims in words, and the image volumes' references."""
    claims, images = [], []
    for volume in spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            claims.append(f"persistentVolumeClaim {volume.persistent_volume_claim.claim_name}")
        elif volume.image is not None:
            images.append(image_name(volume.image.reference))
        else:
            claims.extend(
                f"{words} {volume.name}" for field, words in _SOURCES.items() if getattr(volume, field) is not None
            )
    claims.extend(f"resourceClaim {entry.name}" for entry in spec.resource_claims or ())
    if spec.scheduling_group is not None:
        claims.append(f"schedulingGroup {spec.scheduling_group.pod_group_name}")
    return tuple(claims), tuple(images)
