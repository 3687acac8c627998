"""Objects that select pods: Services, and the controllers that keep replicas.

They place nothing themselves. A pod without topology spread constraints of its own spreads by default among the pods
that the Services selecting it and its controller select, so only their selectors are kept. API objects become these
values in `base/kube`; `graph/selections` joins the selectors that concern a pod.
"""

from __future__ import annotations

import msgspec

from graphsched.base.values import keys, labels

SERVICE = "Service"
REPLICATION_CONTROLLER = "ReplicationController"
REPLICA_SET = "ReplicaSet"
STATEFUL_SET = "StatefulSet"

API_VERSIONS = {
    REPLICATION_CONTROLLER: "v1",
    REPLICA_SET: "apps/v1",
    STATEFUL_SET: "apps/v1",
}
"""Kinds of controllers whose selector counts, with the only apiVersion under which kube-scheduler knows them."""

KINDS = frozenset({SERVICE, *API_VERSIONS})


def is_key(key: str) -> bool:
    """Whether this is the key of a selection: `selection/KIND/namespace/name` with one of `KINDS`."""
    parts = key.split("/")
    return len(parts) == 4 and all(parts) and parts[0] == keys.Kind.SELECTION and parts[1] in KINDS


class Selection(msgspec.Struct, frozen=True, gc=False):
    """An object that selects pods of its namespace.

    Attributes:
        kind: One of `KINDS`.
        namespace: Its namespace.
        name: Its name.
        selector: Which pods; None for an object whose selector says nothing (a Service without one, an unreadable one).
    """

    kind: str
    namespace: str
    name: str
    selector: labels.Selector | None = None

    @property
    def key(self) -> keys.VertexKey:
        """Its vertex key."""
        return keys.selection_key(self.kind, self.namespace, self.name)
