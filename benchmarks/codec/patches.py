"""The patches that are measured: links as a network prober sends them, pods as a watch of another process would."""

from __future__ import annotations

from graphsched.base.values import keys, labels, pods, relations
from graphsched.graph import delta

WORKLOADS = 20


def links(rows: int) -> delta.Patch:
    """Links between nodes, each with numbers of its own."""
    patch = delta.Patch()
    for number in range(rows):
        edge = keys.EdgeID(
            keys.node_key(f"n{number // 20}"), keys.node_key(f"n{number % 20 + 500}"), keys.EdgeKind.LINK
        )
        patch.edges[edge] = relations.Link(0.1 + number / 1000, 100_000.0 - number, 1 - number / (2 * rows))
    return patch


def pods_of_workloads(rows: int) -> delta.Patch:
    """Pods of a few workloads, which share spec and labels."""
    specs = [
        pods.Spec(demand=pods.Demand((("cpu", 100 + number),), 100 + number, 1 << 20)) for number in range(WORKLOADS)
    ]
    label_sets = [labels.from_mapping({"app": f"app-{number}", "tier": "web"}) for number in range(WORKLOADS)]
    patch = delta.Patch()
    for number in range(rows):
        spec = specs[number % WORKLOADS]
        patch.set_vertex(
            pods.Pod(
                keys.pod_key("default", f"app-{number % WORKLOADS}-{number:06d}"),
                f"00000000-0000-4000-8000-{number:012d}",
                spec,
                spec.demand,
                label_sets[number % WORKLOADS],
                node=f"n{number % 500}",
                created=1.7e9 + number,
            )
        )
    return patch
