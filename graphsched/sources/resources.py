"""The kinds of objects that are followed, and how each becomes a vertex.

`reflector` does the following, `base.kube` the decoding. Pods that have ended are left to the server to leave out: one
that ends arrives as a deletion.
"""

from __future__ import annotations

import typing

from graphsched.base.kube import nodes as kube_nodes, pods as kube_pods, selections as kube_selections, wire
from graphsched.base.values import keys, selections
from graphsched.sources import collection

NODES = collection.Resource(
    name="nodes",
    path="/api/v1/nodes",
    key=lambda metadata: keys.node_key(metadata.name),
    decode=wire.NODE.decode,
    convert=kube_nodes.node,
)

PODS = collection.Resource(
    name="pods",
    path="/api/v1/pods",
    fields="status.phase!=Succeeded,status.phase!=Failed",
    key=lambda metadata: keys.pod_key(metadata.namespace, metadata.name),
    decode=wire.POD.decode,
    convert=kube_pods.pod,
)

NAMESPACES = collection.Resource(
    name="namespaces",
    path="/api/v1/namespaces",
    key=lambda metadata: keys.namespace_key(metadata.name),
    decode=wire.NAMESPACE.decode,
    convert=kube_nodes.namespace,
)

PRIORITY_CLASSES = collection.Resource(
    name="priorityclasses",
    path="/apis/scheduling.k8s.io/v1/priorityclasses",
    key=lambda metadata: keys.vertex_key(keys.Kind.PRIORITY_CLASS, metadata.name),
    decode=wire.PRIORITY_CLASS.decode,
    convert=kube_nodes.priority_class,
)


def _selecting(kind: str, name: str, path: str) -> collection.Resource[typing.Any]:
    return collection.Resource(
        name=name,
        path=path,
        key=lambda metadata: keys.selection_key(kind, metadata.namespace, metadata.name),
        decode=kube_selections.CODECS[kind].decode,
        convert=kube_selections.CONVERTERS[kind],
        # They only say how pods that ask for no spread are spread by default, which is a preference.
        optional=True,
    )


SERVICES = _selecting(selections.SERVICE, "services", "/api/v1/services")
REPLICATION_CONTROLLERS = _selecting(
    selections.REPLICATION_CONTROLLER, "replicationcontrollers", "/api/v1/replicationcontrollers"
)
REPLICA_SETS = _selecting(selections.REPLICA_SET, "replicasets", "/apis/apps/v1/replicasets")
STATEFUL_SETS = _selecting(selections.STATEFUL_SET, "statefulsets", "/apis/apps/v1/statefulsets")

ALL = (
    NODES,
    NAMESPACES,
    PRIORITY_CLASSES,
    SERVICES,
    REPLICATION_CONTROLLERS,
    REPLICA_SETS,
    STATEFUL_SETS,
    PODS,
)
"""Everything that is followed. Nodes first: a pod whose node is unknown costs more to place."""
