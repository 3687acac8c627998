"""Nodes, namespaces and priority classes of the API as values.

Decoded objects come in, the structs of `values.nodes` go out; `sources` puts them into patches.
"""

from __future__ import annotations

from graphsched.base.kube import annotated, budgets, interning, pods as kube_pods, requests, wire
from graphsched.base.values import errors, labels, nodes

_budgets: interning.Table[nodes.Budget] = interning.Table()
IP_TYPES = frozenset({"InternalIP", "ExternalIP"})
"""Of status.addresses; the others are names."""


def node(body: wire.Node) -> nodes.Node:
    """A node.

    Raises:
        InputError: A quantity is none, or negative, or the name is missing, or an annotation of ours is malformed.
    """
    metadata, status = body.metadata, body.status
    if not metadata.name:
        raise errors.InputError("Node", "metadata.name", problem="is missing", remedy="name the node")
    try:
        allocatable = requests.offered(status.allocatable, "status.allocatable")
        noted = metadata.annotations or annotated.NONE
        budget = _budgets(budgets.budget(noted, status.capacity, allocatable))
        operations = budgets.iops(noted)
    except errors.InputError as error:
        raise error.within(f'Node "{metadata.name}"') from error
    if operations is not None and nodes.IOPS not in dict(allocatable):
        allocatable = tuple(sorted((*allocatable, (nodes.IOPS, operations))))
    return nodes.Node(
        name=metadata.name,
        uid=metadata.uid,
        labels=kube_pods.label_sets(labels.from_mapping(metadata.labels or {})),
        taints=tuple(nodes.Taint(entry.key, entry.value, entry.effect) for entry in body.spec.taints or ()),
        unschedulable=body.spec.unschedulable,
        allocatable=allocatable,
        images=tuple(nodes.Image(tuple(entry.names or ()), entry.size_bytes) for entry in status.images or ()),
        features=tuple(sorted(status.declared_features or ())),
        budget=budget,
        addresses=tuple(entry.address for entry in status.addresses or () if entry.type in IP_TYPES and entry.address),
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
