"""Names that stay: how a vertex and an edge are identified.

A vertex is its key, `kind/name`, and an edge is `(source key, destination key, kind)`. Row numbers and rustworkx
indices are recycled when something is deleted, so neither ever leaves the module that hands it out.
"""

from __future__ import annotations

import enum
import typing

VertexKey = typing.NewType("VertexKey", str)
"""`kind/name`, e.g. `node/gpu-0412`, `pod/default/web-7d9f`, `domain/topology.kubernetes.io/zone=a`."""

DEFAULT_NAMESPACE = "default"
"""Where an object is that names none. Events about what has no namespace are kept there as well."""


class Kind(enum.StrEnum):
    """What a vertex is. The value is the first part of its key."""

    NODE = "node"
    POD = "pod"
    NAMESPACE = "namespace"
    PRIORITY_CLASS = "priorityclass"
    SELECTION = "selection"
    DOMAIN = "domain"
    """What a node label names; made by the store from the labels of nodes, never patched in."""
    PLACE = "place"
    """Of the physical layer, and neither a node nor named by a label: a switch, a rail, a site, a NUMA cell."""
    GROUP = "group"
    """Workloads that exchange data, as one hyperedge over their pods."""
    RULE = "rule"
    """Of the policy layer."""


class EdgeKind(enum.StrEnum):
    """What an edge says. Each kind has attributes of its own, see `relations`."""

    CONTAINS = "contains"
    """A place or domain holds another or a node; what node labels say is made by the store and never patched in."""
    LINK = "link"
    """Two places can exchange data: latency, bandwidth, health."""
    RUNS = "runs"
    """A pod was promised a node by a decision that the cluster has not confirmed yet."""


class EdgeID(typing.NamedTuple):
    """Identity of an edge."""

    source: VertexKey
    target: VertexKey
    kind: EdgeKind


def vertex_key(kind: Kind, name: str) -> VertexKey:
    """The key of the vertex of this kind and name."""
    return VertexKey(f"{kind.value}/{name}")


def node_key(name: str) -> VertexKey:
    """The key of the node called `name`."""
    return VertexKey("node/" + name)


def pod_key(namespace: str, name: str) -> VertexKey:
    """The key of the pod `name` in `namespace`."""
    return VertexKey(f"pod/{namespace}/{name}")


def namespace_key(name: str) -> VertexKey:
    """The key of the namespace called `name`."""
    return VertexKey("namespace/" + name)


def selection_key(kind: str, namespace: str, name: str) -> VertexKey:
    """The key of the object `name` in `namespace` that selects pods; `kind` is that of the API, e.g. ReplicaSet."""
    return VertexKey(f"selection/{kind}/{namespace}/{name}")


def domain_key(label: str, value: str) -> VertexKey:
    """The key of the topology domain of nodes whose label `label` is `value`."""
    return VertexKey(f"domain/{label}={value}")


def place_key(name: str) -> VertexKey:
    """The key of the place called `name`; whoever describes it goes first in the name: `slurm/leaf-12`."""
    return VertexKey(f"place/{name}")


def group_key(namespace: str, name: str) -> VertexKey:
    """The key of the group of workloads `name` in `namespace`."""
    return VertexKey(f"group/{namespace}/{name}")


def rule_key(policy: str, number: int) -> VertexKey:
    """The key of a rule of a policy; rules are numbered from 0 in the order in which the policy lists them."""
    return VertexKey(f"rule/{policy}/{number}")


def kind_of(key: VertexKey) -> str:
    """First part of the key, the value of a `Kind` when the key is well formed."""
    return key.partition("/")[0]


def name_of(key: VertexKey) -> str:
    """The key without its kind: `default/web` for a pod, `n1` for a node."""
    return key.partition("/")[2]
