"""A whole cluster as values: what every offline source makes, and what becomes one patch.

Readers of manifests and traces put in nodes, pods and classes in the order of their documents, in which pods of equal
priority are decided later on; `to_patch` turns it into the change from nothing to that cluster.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from graphsched.base.values import (
    descriptions,
    groups,
    keys,
    nodes as node_values,
    places,
    pods as pod_values,
    policies,
    relations,
    selections as selection_values,
)
from graphsched.graph import delta, healths
from graphsched.sources import surveys


@dataclasses.dataclass(frozen=True, slots=True)
class ClusterState:
    """Everything that was read, in document order.

    Attributes:
        nodes: Each name once.
        pods: Each name once, none of them terminal; bound and pending alike.
        namespaces: Those given, then those that pods use without a manifest of their own.
        priority_classes: Those given, without the built-in ones.
        selections: Services and controllers, which select pods.
        rules: Of GraphPolicies.
        described: What objects and files say of the network and of groups of workloads; `to_patch` makes rows of it.
        layers: Places and groups of a captured graph.
        ignored: Kind → number of objects that were recognised but do not bear on scheduling, e.g. `ConfigMap`, or that
            hold nothing, e.g. `Pod (Succeeded)`. Sorted by kind.
        edges: What a captured graph knows beyond objects: links, and nodes that were promised to pods.
    """

    nodes: tuple[node_values.Node, ...] = ()
    pods: tuple[pod_values.Pod, ...] = ()
    namespaces: tuple[node_values.Namespace, ...] = ()
    priority_classes: tuple[node_values.PriorityClass, ...] = ()
    selections: tuple[selection_values.Selection, ...] = ()
    rules: tuple[policies.Rule, ...] = ()
    described: tuple[descriptions.Description, ...] = ()
    layers: tuple[places.Place | groups.Group, ...] = ()
    ignored: Mapping[str, int] = dataclasses.field(default_factory=dict)
    edges: Mapping[keys.EdgeID, relations.Edge] = dataclasses.field(default_factory=dict)

    @property
    def pending(self) -> tuple[pod_values.Pod, ...]:
        """The pods that are bound to no node, nor promised one."""
        promised = self.promises
        return tuple(pod for pod in self.pods if not pod.node and pod.key not in promised)

    @property
    def promises(self) -> dict[keys.VertexKey, str]:
        """Key of a pod → the node that a decision promised it and that the cluster had not confirmed."""
        if not self.edges:
            return {}
        waiting = {pod.key: pod.uid for pod in self.pods if not pod.node}
        return {
            edge.source: keys.name_of(edge.target)
            for edge, value in self.edges.items()
            # A promise to another pod of the same name is none.
            if isinstance(value, relations.Runs) and waiting.get(edge.source) == value.uid
        }


def to_patch(state: ClusterState) -> delta.Patch:
    """The patch that makes this cluster out of an empty graph; pending pods are vertices as well.

    Links have the health that they had at the newest observation of any.
    """
    vertices: tuple[delta.Vertex, ...] = (
        *state.namespaces,
        *state.priority_classes,
        *state.selections,
        *state.rules,
        *state.layers,
        *state.nodes,
        *state.pods,
    )
    patch = delta.Patch(vertices={vertex.key: vertex for vertex in vertices}, edges=dict(state.edges))
    if state.described:
        labelled = ((node.name, node.labels) for node in state.nodes)
        for row, value in surveys.whole(state.described, labelled, unattached=True).items():
            surveys.put(patch, row, value)
    return healths.pictured(patch)
