"""What the engine is timed on. Each work builds its own graph and pods; nothing is random."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import NamedTuple

from graphsched.app import offline
from graphsched.base.values import keys, nodes, pods, relations
from graphsched.decision import trace
from graphsched.graph import delta, store

OPENB = pathlib.Path(__file__).resolve().parents[2] / "examples" / "openb"


class Work(NamedTuple):
    """A name, and what makes the graph and the pods to place on it."""

    name: str
    build: Callable[[], tuple[store.Store, list[pods.Pod]]]


def place(graph: store.Store, pod: pods.Pod, decision: trace.Decision) -> None:
    """Assume the pod where the decision puts it."""
    if decision.placed:
        edge = keys.EdgeID(pod.key, keys.node_key(decision.node), keys.EdgeKind.RUNS)
        graph.apply(delta.Patch(edges={edge: relations.Runs(pod.uid, decision.devices)}))


def _openb() -> tuple[store.Store, list[pods.Pod]]:
    cluster = offline.load([str(path) for path in sorted(OPENB.glob("*.csv"))])
    return offline.graph_of(cluster), list(cluster.pending)


def _equal_pods(node_count: int, pod_count: int) -> tuple[store.Store, list[pods.Pod]]:
    patch = delta.Patch()
    for number in range(node_count):
        name = f"node-{number:05d}"
        patch.set_vertex(
            nodes.Node(
                name,
                labels=(("kubernetes.io/hostname", name), ("topology.kubernetes.io/zone", f"zone-{number % 3}")),
                allocatable=((nodes.CPU, 4000), (nodes.MEMORY, 32 << 30), (nodes.PODS, 110)),
            )
        )
    demand = pods.Demand(((nodes.CPU, 100), (nodes.MEMORY, 500 << 20)), 100, 500 << 20)
    spec = pods.Spec(demand=demand, images=("pause:latest",), image_containers=1)
    waiting = [
        pods.Pod(keys.pod_key("default", f"pod-{number}"), uid=str(number), spec=spec, held=demand)
        for number in range(pod_count)
    ]
    for pod in waiting:
        patch.set_vertex(pod)
    graph = store.Store()
    graph.apply(patch)
    return graph, waiting


ALL = (
    Work("openb: 1,213 GPU nodes, 8,152 pods", _openb),
    Work("1,000 nodes, 5,000 equal pods", lambda: _equal_pods(1000, 5000)),
    Work("5,000 nodes, 5,000 equal pods", lambda: _equal_pods(5000, 5000)),
    Work("20,000 nodes, 5,000 equal pods", lambda: _equal_pods(20000, 5000)),
)
