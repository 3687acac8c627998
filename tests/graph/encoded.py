"""Encoded patches to damage: an example with every kind of row, its arrays, and a header that fits any buffer."""

from __future__ import annotations

import struct
import zlib

from graphsched.base.values import groups, keys, labels, nodes, places, pods, policies, relations, selections
from graphsched.graph import codec, delta, packing, records, wire

HEADER = 24


def sealed(buffer: bytes) -> bytes:
    """The buffer with a header that fits it."""
    return struct.pack("<4sHHIIQ", b"GSDG", codec.FORMAT, 0, len(buffer), zlib.crc32(buffer), 0) + buffer


RECORDS: tuple[records.Record, ...] = (
    places.Place("slurm/leaf-1", tier=1, labels=(("rail", "3"),), amounts=(("cpu", 8000),), available=(("cpu", 500),)),
    groups.Group(
        "default",
        "shop",
        (
            groups.Workload(
                "web",
                labels.Selector((labels.Requirement("app", labels.Operator.IN, ("web",)),)),
                (groups.Dependency("db", 2.0, 5.0, 100.0, 3),),
            ),
        ),
        "KahnSort",
    ),
    policies.Rule(
        "edge",
        0,
        "near the data",
        7,
        policies.Match(
            labels.Selector((labels.Requirement("app", labels.Operator.EXISTS),)),
            ("default",),
            labels.Selector((labels.Requirement("gpus", labels.Operator.GT, ("1",)),)),
            ("10.0.0.0/8",),
            "pod.priority > 0",
            "true",
        ),
        policies.Action.REQUIRE,
        0,
        policies.Path(keys.place_key("slurm/leaf-1"), 3, 1.5, 1000.0, "topology.kubernetes.io/zone"),
    ),
)


def example() -> delta.Patch:
    """A patch with at least one row of each kind."""
    node = nodes.Node(
        "n1",
        "u1",
        labels=(("app", "x"), ("topology.kubernetes.io/zone", "a")),
        taints=(nodes.Taint("gpu", "", "NoSchedule"),),
        allocatable=(("cpu", 4000), ("memory", 1 << 35)),
        images=(nodes.Image(("app:1", "app@sha256:0"), 1 << 20),),
        features=("x",),
        gpus=2,
        budget=nodes.Budget((("cpu", 4000),), (("cpu", 3000),), (("default/web", (("cpu", 500),)),)),
        addresses=("10.0.0.1",),
    )
    key = keys.pod_key("default", "web")
    pod = pods.Pod(
        key,
        "u2",
        pods.Spec(demand=pods.Demand((("cpu", 500),), 500, 1)),
        pods.Demand((("cpu", 500),), 500, 1),
        (("app", "web"),),
        gates=("wait",),
        devices=(0, 1),
        started=1.5,
        owner=keys.selection_key("ReplicaSet", "default", "web"),
    )
    patch = delta.Patch(stream=delta.Stream("agent/n1", 7, 3))
    patch.removed.add(keys.node_key("n0"))
    patch.cut.add(keys.EdgeID(key, keys.node_key("n0"), keys.EdgeKind.RUNS))
    chosen = labels.Selector((labels.Requirement("app", labels.Operator.IN, ("web",)),))
    selection = selections.Selection("ReplicaSet", "default", "web", chosen)
    for vertex in (node, pod, nodes.Namespace("default"), nodes.PriorityClass("high", 10), selection, *RECORDS):
        patch.set_vertex(vertex)
    patch.set_edge(keys.EdgeID(key, node.key, keys.EdgeKind.RUNS), relations.Runs("u2", (0, 1)))
    zone = keys.domain_key("topology.kubernetes.io/zone", "a")
    patch.set_edge(keys.EdgeID(zone, node.key, keys.EdgeKind.LINK), relations.Link(0.2, 1e5))
    leaf = RECORDS[0].key
    patch.set_edge(
        keys.EdgeID(leaf, zone, keys.EdgeKind.LINK), relations.Link(0.5, 1e3, 0.5, 7.5, "networklink/a-b", 3)
    )
    patch.set_edge(keys.EdgeID(leaf, node.key, keys.EdgeKind.CONTAINS), relations.Contains("slurm"))
    return patch


def tables_of(patch: delta.Patch) -> wire.Tables:
    """The arrays of a patch, writable."""
    packed = packing.pack(patch)
    return wire.Tables(packed.stream.copy(), {name: rows.copy() for name, rows in packed.rows.items()})


def refusal(data: bytes, **limits: int) -> str:
    """Why the bytes are refused."""
    answer = codec.decode(data, limits=codec.Limits(**limits))
    assert isinstance(answer, delta.Refused), "it was taken"
    assert answer.reason == "invalid"
    return answer.detail
