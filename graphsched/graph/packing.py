"""From a patch to the arrays that go over the wire.

Comes in: a patch. Goes out: `wire.Tables`, written by `codec`. Texts and shared lists are collected once and named by
number; when all are known, the texts are sorted and the numbers follow. A reader can then check order and uniqueness by
comparing numbers, and patches that are equal, in the order of their rows as well, make equal bytes.
"""

from __future__ import annotations

import itertools
import math
import typing
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from graphsched.base.values import groups, keys, nodes, places, pods, policies, relations, selections
from graphsched.graph import delta, records, specs, wire
from graphsched.graph.generated import EdgeKind

EDGE_NUMBERS = {
    keys.EdgeKind.CONTAINS: EdgeKind.EdgeKind.Contains,
    keys.EdgeKind.LINK: EdgeKind.EdgeKind.Link,
    keys.EdgeKind.RUNS: EdgeKind.EdgeKind.Runs,
}
UNKNOWN_COST = -1
UNSCHEDULABLE = 1
NEVER_PREEMPTS, DELETING, STARTED = 1, 2, 4
GLOBAL_DEFAULT, CLASS_NEVER_PREEMPTS = 1, 2

TEXT_COLUMNS: dict[str, tuple[str, ...]] = {
    "labels": ("key", "value"),
    "amounts": ("name",),
    "taints": ("key", "value", "effect"),
    "nodes": ("name", "uid", "gpu_model"),
    "pods": ("key", "uid", "node", "nominated", "scheduler"),
    "namespaces": ("name",),
    "priority_classes": ("name",),
    "links": ("source", "target"),
    "runs": ("source", "target", "uid"),
    "cut": ("source", "target"),
    "selections": ("key", "selector"),
    "owners": ("pod", "owner"),
    "records": ("key", "value"),
    "contains": ("source", "target", "by"),
    "sourced_links": ("source", "target", "by"),
    "addresses": ("node",),
    "budgets": ("node", "value"),
}
"""Columns that number texts, by vector; `names`, `specs` and `removed` are such numbers themselves."""

Item = typing.TypeVar("Item")


class _Sets(typing.Generic[Item]):
    """Shared lists: each distinct one is laid out once and has a number."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[Item, ...], int] = {}
        self.items: list[Item] = []
        self.ends: list[int] = []

    def of(self, items: tuple[Item, ...]) -> int:
        """The number of the list."""
        number = self._numbers.get(items)
        if number is None:
            number = self._numbers[items] = len(self.ends)
            self.items += items
            self.ends.append(len(self.items))
        return number


class _Packer:
    def __init__(self) -> None:
        self._texts: dict[str, int] = {}
        self._labels: _Sets[tuple[str, str]] = _Sets()
        self._amounts: _Sets[tuple[str, int]] = _Sets()
        self._taints: _Sets[nodes.Taint] = _Sets()
        self._images: _Sets[nodes.Image] = _Sets()
        self._names: _Sets[str] = _Sets()
        self._devices: _Sets[int] = _Sets()
        # Replicas share their spec object, which the patch keeps alive while it is packed.
        self._specs: dict[int, int] = {}
        self._spec_texts: dict[str, int] = {}
        self.rows: dict[str, list[tuple[float, ...]]] = {name: [] for name in wire.VECTORS}

    def text(self, text: str) -> int:
        """The number of a text, before sorting."""
        return self._texts.setdefault(text, len(self._texts))

    def spec(self, spec: pods.Spec) -> int:
        """The number of a spec."""
        number = self._specs.get(id(spec))
        if number is None:
            text = specs.encode(spec)
            number = self._specs[id(spec)] = self._spec_texts.setdefault(text, len(self._spec_texts))
        return number

    def vertex(self, key: keys.VertexKey, vertex: delta.Vertex) -> None:
        """Add the row of a vertex."""
        if vertex.key != key:
            message = f"{key}: the key is not that of the vertex, {vertex.key}"
            raise ValueError(message)
        match vertex:
            case pods.Pod():
                self._pod(vertex)
            case nodes.Node():
                self._node(vertex)
            case nodes.Namespace():
                self.rows["namespaces"].append((self.text(vertex.name), self._labels.of(vertex.labels)))
            case nodes.PriorityClass():
                flags = vertex.global_default * GLOBAL_DEFAULT | vertex.never_preempts * CLASS_NEVER_PREEMPTS
                self.rows["priority_classes"].append((self.text(vertex.name), vertex.value, flags))
            case selections.Selection():
                self.rows["selections"].append((self.text(key), self.text(specs.encode_selector(vertex.selector))))
            case places.Place() | groups.Group() | policies.Rule():
                self.rows["records"].append((self.text(key), self.text(records.encode(vertex))))

    def _node(self, node: nodes.Node) -> None:
        self.rows["nodes"].append(
            (
                self.text(node.name),
                self.text(node.uid),
                self._labels.of(node.labels),
                self._taints.of(node.taints),
                self._amounts.of(node.allocatable),
                self._images.of(node.images),
                self._names.of(node.features),
                self.text(node.gpu_model),
                node.gpus,
                UNSCHEDULABLE * node.unschedulable,
            )
        )
        if node.addresses:
            self.rows["addresses"].append((self.text(node.name), self._names.of(node.addresses)))
        if node.budget != nodes.NO_BUDGET:
            self.rows["budgets"].append((self.text(node.name), self.text(records.encode_budget(node.budget))))

    def _pod(self, pod: pods.Pod) -> None:
        flags = NEVER_PREEMPTS * pod.never_preempts | DELETING * pod.deleting | STARTED * (pod.started is not None)
        text, held = self.text, pod.held
        self.rows["pods"].append(
            (
                held.scored_cpu,
                held.scored_memory,
                pod.created,
                pod.started or 0.0,
                text(pod.key),
                text(pod.uid),
                self.spec(pod.spec),
                self._labels.of(pod.labels),
                self._amounts.of(held.amounts),
                text(pod.node),
                text(pod.nominated),
                text(pod.scheduler),
                self._names.of(pod.gates),
                self._devices.of(pod.devices),
                pod.priority,
                flags,
            )
        )
        if pod.owner:
            self.rows["owners"].append((text(pod.key), text(pod.owner)))

    def edge(self, edge: keys.EdgeID, value: relations.Edge) -> None:
        """Add the row of an edge."""
        source, target = self.text(edge.source), self.text(edge.target)
        match value, edge.kind:
            case relations.Link(), keys.EdgeKind.LINK:
                known = (math.nan if each is None else each for each in (value.latency_ms, value.bandwidth_mbps))
                if not value.by and not value.at and value.cost is None:
                    self.rows["links"].append((*known, value.health, source, target))
                    return
                if value.cost is not None and value.cost < 0:
                    message = f"edge {edge.source} → {edge.target}: cost {value.cost} is negative"
                    raise ValueError(message)
                cost = UNKNOWN_COST if value.cost is None else value.cost
                row = (*known, value.health, value.at, cost, source, target, self.text(value.by), 0)
                self.rows["sourced_links"].append(row)
            case relations.Contains(), keys.EdgeKind.CONTAINS:
                self.rows["contains"].append((source, target, self.text(value.by)))
            case relations.Runs(), keys.EdgeKind.RUNS:
                self.rows["runs"].append((source, target, self.text(value.uid), self._devices.of(value.devices)))
            case _:
                message = f"edge {edge.source} → {edge.target}: the attributes are not those of a {edge.kind} edge"
                raise ValueError(message)

    def tables(self, stream: delta.Stream | None) -> wire.Tables:
        """Everything added so far, with texts sorted and numbers following them."""
        rows, text = self.rows, self.text
        rows["labels"] = [(text(key), text(value)) for key, value in self._labels.items]
        rows["amounts"] = [(amount, text(name), 0) for name, amount in self._amounts.items]
        rows["taints"] = [(text(part.key), text(part.value), text(part.effect)) for part in self._taints.items]
        rows["images"] = [(image.size, self._names.of(image.names), 0) for image in self._images.items]
        numbers = {
            "names": [text(name) for name in self._names.items],
            "specs": [text(spec) for spec in self._spec_texts],
            "removed": [row for (row,) in rows["removed"]],
            "devices": self._devices.items,
            "label_ends": self._labels.ends,
            "amount_ends": self._amounts.ends,
            "taint_ends": self._taints.ends,
            "image_ends": self._images.ends,
            "name_ends": self._names.ends,
            "device_ends": self._devices.ends,
        }
        source = [] if stream is None else [(stream.epoch, stream.sequence, text(stream.source), 0)]
        packed: dict[str, npt.NDArray[typing.Any]] = {}
        packed["text"], packed["text_ends"], rank = self._sorted_texts()
        for name, (_, dtype) in wire.VECTORS.items():
            if name in numbers:
                packed[name] = np.array(numbers[name], dtype)
            elif name not in packed:
                packed[name] = _columns(rows[name], dtype, rank, TEXT_COLUMNS.get(name, ()))
        for name in ("names", "specs", "removed"):
            packed[name] = rank[packed[name]]
        # These are sets in the patch.
        packed["removed"] = np.sort(packed["removed"])
        packed["cut"] = np.sort(packed["cut"])
        return wire.Tables(_columns(source, wire.STREAM, rank, ("source",)), packed)

    def _sorted_texts(self) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
        """The texts one after another in order, where each ends, and the place in that order by number."""
        # Python compares code points, which sorts as comparing the UTF-8 bytes does.
        ordered = sorted(self._texts)
        encoded = [text.encode() for text in ordered]
        rank = np.zeros(len(ordered), np.uint32)
        rank[[self._texts[text] for text in ordered]] = np.arange(len(ordered))
        ends = np.array(list(itertools.accumulate(map(len, encoded))), np.uint32)
        return np.frombuffer(b"".join(encoded), np.uint8), ends, rank


def _columns(
    rows: Sequence[tuple[float, ...]],
    dtype: np.dtype[typing.Any],
    rank: npt.NDArray[np.uint32],
    texts: Iterable[str],
) -> npt.NDArray[np.void]:
    packed = np.zeros(len(rows), dtype)
    for name, column in zip(dtype.names or (), zip(*rows, strict=True), strict=bool(rows)):
        # Through an array of the column's own type, which refuses what does not fit.
        packed[name] = np.array(column, dtype[name])
    for name in texts:
        packed[name] = rank[packed[name]]
    return packed


def pack(patch: delta.Patch) -> wire.Tables:
    """The arrays of this patch.

    Raises:
        ValueError: A row is none that `delta` allows: the key of another vertex, attributes of another kind of edge.
        OverflowError: A number does not fit its column.
    """
    packer = _Packer()
    for key in patch.removed:
        packer.rows["removed"].append((packer.text(key),))
    for edge in patch.cut:
        packer.rows["cut"].append((packer.text(edge.source), packer.text(edge.target), EDGE_NUMBERS[edge.kind]))
    for key, vertex in patch.vertices.items():
        packer.vertex(key, vertex)
    for edge, value in patch.edges.items():
        packer.edge(edge, value)
    return packer.tables(patch.stream)
