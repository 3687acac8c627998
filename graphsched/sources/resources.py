"""The kinds of objects that are followed, and how each becomes a vertex.

`reflector` does the following, `base.kube` the decoding. Pods that have ended are left to the server to leave out: one
that ends arrives as a deletion.
"""

from __future__ import annotations

from graphsched.base.kube import nodes as kube_nodes, pods as kube_pods, wire
from graphsched.base.values import keys
from graphsched.sources import reflector

NODES = reflector.Resource(
    name="nodes",
    path="/api/v1/nodes",
    key=lambda metadata: keys.node_key(metadata.name),
    decode=wire.NODE.decode,
    convert=kube_nodes.node,
)

PODS = reflector.Resource(
    name="pods",
    path="/api/v1/pods",
    fields="status.phase!=Succeeded,status.phase!=Failed",
    key=lambda metadata: keys.pod_key(metadata.namespace, metadata.name),
    decode=wire.POD.decode,
    convert=kube_pods.pod,
)

NAMESPACES = reflector.Resource(
    name="namespaces",
    path="/api/v1/namespaces",
    key=lambda metadata: keys.namespace_key(metadata.name),
    decode=wire.NAMESPACE.decode,
    convert=kube_nodes.namespace,
)

PRIORITY_CLASSES = reflector.Resource(
    name="priorityclasses",
    path="/apis/scheduling.k8s.io/v1/priorityclasses",
    key=lambda metadata: keys.vertex_key(keys.Kind.PRIORITY_CLASS, metadata.name),
    decode=wire.PRIORITY_CLASS.decode,
    convert=kube_nodes.priority_class,
)

ALL = (NODES, NAMESPACES, PRIORITY_CLASSES, PODS)
"""Everything that is followed. Nodes first: a pod whose node is unknown costs more to place."""
