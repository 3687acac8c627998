"""Nodes, namespaces and priority classes of the API as values.

Decoded objects come in, the structs of `values.nodes` go out; `sources` puts them into patches.
"""

from __future__ import annotations

from graphsched.base.kube import pods as kube_pods, requests, wire
from graphsched.base.values import errors, labels, nodes


def node(body: wire.Node) -> nodes.Node:
    """A node.

    Raises:
        InputError: A quantity is none, or negative, or the name is missing.
    """
    metadata, status = body.metadata, body.status
    if not metadata.name:
        raise errors.InputError("Node", "metadata.name", problem="is missing", remedy="name the node")
    try:
        allocatable = _allocatable(status.allocatable)
    except errors.InputError as error:
        raise error.within(f'Node "{metadata.name}"') from error
    return nodes.Node(
        name=metadata.name,
        uid=metadata.uid,
        labels=kube_pods.label_sets(labels.from_mapping(metadata.labels or {})),
        taints=tuple(nodes.Taint(entry.key, entry.value, entry.effect) for entry in body.spec.taints or ()),
        unschedulable=body.spec.unschedulable,
        allocatable=allocatable,
        images=tuple(nodes.Image(tuple(entry.names or ()), entry.size_bytes) for entry in status.images or ()),
        features=tuple(sorted(status.declared_features or ())),
    )


def _allocatable(resources: wire.Resources | None) -> nodes.Amounts:
    return requests.amounts(
        {
            name: requests.milli(text, f"status.allocatable.{name}")
            for name, text in (resources or {}).items()
            if name == nodes.PODS or requests.counted(name)
        },
        keep_zeros=True,
    )


def namespace(body: wire.Namespace) -> nodes.Namespace:
    """A namespace.

    Raises:
        InputError: The name is missing.
    """
    if not body.metadata.name:
        raise errors.InputError("Namespace", "metadata.name", problem="is missing", remedy="name the namespace")
    return nodes.Namespace(body.metadata.name, kube_pods.label_sets(labels.from_mapping(body.metadata.labels or {})))


def priority_class(body: wire.PriorityClass) -> nodes.PriorityClass:
    """A priority class.

    Raises:
        InputError: The name is missing.
    """
    if not body.metadata.name:
        raise errors.InputError("PriorityClass", "metadata.name", problem="is missing", remedy="name the class")
    return nodes.PriorityClass(
        name=body.metadata.name,
        value=body.value,
        global_default=body.global_default,
        never_preempts=body.preemption_policy == "Never",
    )
