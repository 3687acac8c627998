"""What scheduling needs to know of a node, decoded once at the border.

`base/kube` makes these from API objects and manifests, `sources/` puts them into patches, `graph/` spreads them over
columns and keeps the value itself for the questions that are asked rarely (explanations, single rows).
"""

from __future__ import annotations

import msgspec

from graphsched.base.values import keys, labels

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"
IOPS = "graphsched.io/iops"
"""I/O operations a second, of a node whose operator says how many it can do."""

Amounts = tuple[tuple[str, int], ...]
"""Resource name → int64 amount, sorted by name. CPU in milli-cores; others in whole units (bytes, devices, pods)."""

Reservations = tuple[tuple[str, Amounts], ...]
"""Holder → what is kept for it; sorted. A holder is a namespace, or `namespace/workload`."""


class Taint(msgspec.Struct, frozen=True, gc=False):
    """A taint of a node. `effect` is NoSchedule, PreferNoSchedule or NoExecute."""

    key: str
    value: str
    effect: str


class Image(msgspec.Struct, frozen=True, gc=False):
    """An image on a node: every name it goes by, and its size in bytes."""

    names: tuple[str, ...]
    size: int


class Budget(msgspec.Struct, frozen=True, gc=False):
    """What is known of a node's resources beside what its kubelet offers, and how much of them an operator grants.

    Attributes:
        capacity: status.capacity: what there is, before the kubelet keeps its share.
        ceilings: The most that all pods of the node may request together before we place no more there.
        reserved: What is kept for whom.
    """

    capacity: Amounts = ()
    ceilings: Amounts = ()
    reserved: Reservations = ()


NO_BUDGET = Budget()


class Node(msgspec.Struct, frozen=True, gc=False):
    """A node, or rather what decides whether and how well a pod fits on it.

    Attributes:
        name: Name of the Node object.
        uid: Its UID; empty in hand-written manifests.
        labels: Its labels.
        taints: In the order of the object, which decides the first untolerated one.
        unschedulable: spec.unschedulable, the cordon.
        allocatable: status.allocatable.
        images: status.images.
        features: status.declaredFeatures, sorted.
        gpu_model: Model of its shareable GPUs; empty without any.
        gpus: Number of shareable GPUs, each of 1,000 milli. Whole devices offered as an extended resource are in
            `allocatable` instead.
        budget: What is there beside `allocatable`, and what of it may be used.
        addresses: status.addresses of types InternalIP and ExternalIP, in the order of the object, as they stand there:
            whoever reads one as an IP address has to expect that it is none.
    """

    name: str
    uid: str = ""
    labels: labels.Labels = labels.NO_LABELS
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    allocatable: Amounts = ()
    images: tuple[Image, ...] = ()
    features: tuple[str, ...] = ()
    gpu_model: str = ""
    gpus: int = 0
    budget: Budget = NO_BUDGET
    addresses: tuple[str, ...] = ()

    @property
    def key(self) -> keys.VertexKey:
        """Its vertex key."""
        return keys.node_key(self.name)


class Namespace(msgspec.Struct, frozen=True, gc=False):
    """A namespace and the labels that namespace selectors read."""

    name: str
    labels: labels.Labels = labels.NO_LABELS

    @property
    def key(self) -> keys.VertexKey:
        """Its vertex key."""
        return keys.namespace_key(self.name)


class PriorityClass(msgspec.Struct, frozen=True, gc=False):
    """A priority class: what `priorityClassName` of a pod stands for."""

    name: str
    value: int = 0
    global_default: bool = False
    never_preempts: bool = False

    @property
    def key(self) -> keys.VertexKey:
        """Its vertex key."""
        return keys.vertex_key(keys.Kind.PRIORITY_CLASS, self.name)
