"""The same cluster twice: for the engine, and for the plain ways.

A few choices come in (which application, which terms), pods and nodes of both kinds go out, equal in all that decides.
"""

from __future__ import annotations

import typing
from collections.abc import Sequence

from benchmarks.plain import clusters
from graphsched.base.values import keys, labels, nodes, pods, relations
from graphsched.graph import delta, store

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
RACK = "topology.kubernetes.io/rack"
NAMESPACE = "default"


class Wish(typing.NamedTuple):
    """Company that a pod asks for or avoids: pods of this application in the domains of this label."""

    app: str
    key: str
    weight: int = 0


class Shape(typing.NamedTuple):
    """All that replicas of an application have in common; amounts in milli-CPU and bytes.

    Attributes:
        near: Required affinity.
        apart: Required anti-affinity.
        liked: Preferred affinity.
        spread: (label, largest skew) of hard spread among its own replicas.
    """

    app: str
    cpu: int
    memory: int
    near: tuple[Wish, ...] = ()
    apart: tuple[Wish, ...] = ()
    liked: tuple[Wish, ...] = ()
    spread: tuple[tuple[str, int], ...] = ()


class Twin(typing.NamedTuple):
    """A pod, twice."""

    ours: pods.Pod
    plain: clusters.Pod


class Twins:
    """A cluster of equal nodes, twice.

    Attributes:
        graph: For the engine.
        plain: For the plain ways.
    """

    def __init__(self, number: int, *, zones: int, racks: int, cpu: int, memory: int, pods_max: int = 110) -> None:
        patch = delta.Patch()
        plain = []
        values: dict[str, set[str]] = {}
        for index in range(number):
            name = f"node-{index:05d}"
            known = {HOSTNAME: name, ZONE: f"zone-{index % zones}", RACK: f"rack-{index % racks:04d}"}
            offered = ((nodes.CPU, cpu), (nodes.MEMORY, memory), (nodes.PODS, pods_max))
            patch.set_vertex(nodes.Node(name, labels=labels.from_mapping(known), allocatable=offered))
            plain.append(clusters.Node(name, known, cpu, memory, pods_max))
            for key, value in known.items():
                values.setdefault(key, set()).add(value)
        patch.set_vertex(nodes.Namespace(NAMESPACE, (("kubernetes.io/metadata.name", NAMESPACE),)))
        self.graph = store.Store()
        self.graph.apply(patch)
        self.plain = clusters.Cluster(plain, values)
        self._nodes = {node.name: node for node in plain}

    def place(self, twin: Twin, name: str) -> None:
        """Let a pod run on the node of this name, in both."""
        self.place_ours(twin.ours, name)
        self.place_plain(twin.plain, name)

    def place_ours(self, pod: pods.Pod, name: str) -> None:
        """Promise the node to the pod, as a decision does."""
        edge = keys.EdgeID(pod.key, keys.node_key(name), keys.EdgeKind.RUNS)
        self.graph.apply(delta.Patch(vertices={pod.key: pod}, edges={edge: relations.Runs(pod.uid)}))

    def place_plain(self, pod: clusters.Pod, name: str) -> None:
        """Let the plain pod run there."""
        self.plain.place(pod, self._nodes[name])

    def load(self, placed: Sequence[tuple[Twin, str]]) -> None:
        """Many pods that run from the beginning."""
        patch = delta.Patch()
        for twin, name in placed:
            edge = keys.EdgeID(twin.ours.key, keys.node_key(name), keys.EdgeKind.RUNS)
            patch.set_vertex(twin.ours).set_edge(edge, relations.Runs(twin.ours.uid))
            self.place_plain(twin.plain, name)
        self.graph.apply(patch)


class Replicas:
    """Pods of one shape: they share their spec, as those of a workload do."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        demand = pods.Demand(((nodes.CPU, shape.cpu), (nodes.MEMORY, shape.memory)), shape.cpu, shape.memory)
        self._spec = pods.Spec(
            demand=demand,
            pod_affinity=tuple(map(_term, shape.near)),
            pod_anti_affinity=tuple(map(_term, shape.apart)),
            preferred_pod_affinity=tuple(pods.PreferredPodTerm(wish.weight, _term(wish)) for wish in shape.liked),
            spread=tuple(
                pods.SpreadConstraint(skew, key, hard=True, selector=_selector(shape.app)) for key, skew in shape.spread
            ),
        )
        self._labels = labels.from_mapping({"app": shape.app})
        self._number = 0

    def next(self) -> Twin:
        """One more of them."""
        shape = self.shape
        name = f"{shape.app}-{self._number}"
        self._number += 1
        ours = pods.Pod(
            keys.pod_key(NAMESPACE, name), uid=name, spec=self._spec, held=self._spec.demand, labels=self._labels
        )
        plain = clusters.Pod(
            name,
            {"app": shape.app},
            shape.cpu,
            shape.memory,
            affinity=tuple(map(_plain_term, shape.near)),
            anti_affinity=tuple(map(_plain_term, shape.apart)),
            preferred=tuple(map(_plain_term, shape.liked)),
            spread=tuple(clusters.Spread(key, {"app": shape.app}, skew) for key, skew in shape.spread),
        )
        return Twin(ours, plain)


def _selector(app: str) -> labels.Selector:
    return labels.selector([labels.Requirement("app", labels.Operator.IN, (app,))])


def _term(wish: Wish) -> pods.PodTerm:
    return pods.PodTerm(wish.key, _selector(wish.app), (NAMESPACE,))


def _plain_term(wish: Wish) -> clusters.Term:
    return clusters.Term(wish.key, {"app": wish.app}, wish.weight)
