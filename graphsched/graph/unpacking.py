"""From arrays that came over the wire to a patch, nothing of which is trusted.

Comes in: `wire.Tables`, whose arrays lie within their buffer and say anything. Goes out: a patch, or the first problem
as a sentence. Every number is compared with the bounds of what it numbers, in vectors, before the first object is made;
after that nothing can fail but the texts of specs, which `specs` reads.

Invariant: whatever comes in, nothing is raised, and what is built is bounded by the size of the buffer.
"""

from __future__ import annotations

import itertools
import math
import operator
import typing
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from graphsched.base.values import keys, labels as values, nodes, pods, relations, selections
from graphsched.graph import admission, delta, packing, records, specs, wire

Rows = npt.NDArray[typing.Any]

_SETS = {
    "labels": "label_ends",
    "amounts": "amount_ends",
    "taints": "taint_ends",
    "images": "image_ends",
    "names": "name_ends",
    "devices": "device_ends",
}
_SET_COLUMNS = {
    ("nodes", "labels"): "label_ends",
    ("nodes", "taints"): "taint_ends",
    ("nodes", "allocatable"): "amount_ends",
    ("nodes", "images"): "image_ends",
    ("nodes", "features"): "name_ends",
    ("images", "names"): "name_ends",
    ("pods", "labels"): "label_ends",
    ("pods", "held"): "amount_ends",
    ("pods", "gates"): "name_ends",
    ("pods", "devices"): "device_ends",
    ("pods", "spec"): "specs",
    ("namespaces", "labels"): "label_ends",
    ("runs", "devices"): "device_ends",
    ("addresses", "addresses"): "name_ends",
}
"""Columns that number a shared list or a spec → the vector with one row for each."""
_FLAGS = {"nodes": 1, "pods": 7, "priority_classes": 3}
_FLOATS = (
    ("pods", "created"),
    ("pods", "started"),
    ("links", "health"),
    ("sourced_links", "health"),
    ("sourced_links", "at"),
)
_LINKS = ("links", "sourced_links")
_MAYBE_UNKNOWN = ("latency_ms", "bandwidth_mbps")
"""Columns of links in which NaN stands for what nobody knows."""
_RESERVED = ("amounts", "images", "sourced_links")
_IDENTITIES = {
    "nodes": "name",
    "pods": "key",
    "namespaces": "name",
    "priority_classes": "name",
    "selections": "key",
    "owners": "pod",
    "records": "key",
    "addresses": "node",
    "budgets": "node",
}
_KIND_NAMES = {number: kind for kind, number in packing.EDGE_NUMBERS.items()}
_LATER_VECTORS = ("records", "contains", "sourced_links", "addresses", "budgets")
_FORMAT_OF_LATER_VECTORS = 3
_EDGE_VECTORS = ("links", "sourced_links", "contains", "runs")


def unpack(tables: wire.Tables, version: int) -> delta.Patch | str:
    """The patch these arrays hold in that version of the format, or what is wrong with them."""
    problem = _version_problem(tables, version)
    if problem:
        return problem
    texts = _texts(tables.rows["text"], tables.rows["text_ends"])
    if isinstance(texts, str):
        return f"text: {texts}"
    checks = (_number_problem, _order_problem, _name_problem, _edge_problem)
    for check in checks:
        problem = check(tables, texts)
        if problem:
            return problem
    return _checked(tables, texts, version)


def _checked(tables: wire.Tables, texts: list[str], version: int) -> delta.Patch | str:
    """The patch, when nothing but the texts of specs, selectors and records can still be wrong."""
    known = [specs.decode(texts[number], version) for number in tables.rows["specs"].tolist()]
    for spec in known:
        if isinstance(spec, str):
            return f"specs: {spec}"
    rare = [records.decode(texts[key], texts[value], version) for key, value in tables.rows["records"].tolist()]
    for record in rare:
        if isinstance(record, str):
            return f"records: {record}"
    granted = {number: records.decode_budget(texts[number]) for number in tables.rows["budgets"]["value"].tolist()}
    for budget in granted.values():
        if isinstance(budget, str):
            return f"budgets: {budget}"
    chosen = {number: specs.decode_selector(texts[number]) for number in tables.rows["selections"]["selector"].tolist()}
    for selector in chosen.values():
        if isinstance(selector, str):
            return f"selections.selector: {selector}"
    read = {number: selector for number, selector in chosen.items() if not isinstance(selector, str)}
    return _Builder(
        tables,
        texts,
        [spec for spec in known if isinstance(spec, pods.Spec)],
        read,
        [record for record in rare if not isinstance(record, str)],
        {number: budget for number, budget in granted.items() if not isinstance(budget, str)},
    ).patch()


def _version_problem(tables: wire.Tables, version: int) -> str | None:
    """A buffer has nothing that its own format does not know."""
    if version >= _FORMAT_OF_LATER_VECTORS:
        return None
    for name in _LATER_VECTORS:
        if len(tables.rows[name]):
            return f"{name}: format {version} has no such rows"
    contains = packing.EDGE_NUMBERS[keys.EdgeKind.CONTAINS]
    if (tables.rows["cut"]["kind"] == contains).any():
        return f"cut.kind: a contains edge is never sent in format {version}"
    return None


def _texts(blob: Rows, ends: Rows) -> list[str] | str:
    """All texts, sorted and each once."""
    if _ends_problem(ends, len(blob)):
        return "the ends do not divide it"
    data = blob.tobytes()
    bounds = [0, *ends.tolist()]
    try:
        whole = data.decode()
        parts = whole if whole.isascii() else None
        texts = (
            [parts[start:end] for start, end in itertools.pairwise(bounds)]
            if parts is not None
            else [data[start:end].decode() for start, end in itertools.pairwise(bounds)]
        )
    except UnicodeDecodeError:
        return "it is not UTF-8"
    if not all(map(operator.lt, texts, texts[1:])):
        return "the texts are not sorted, or not distinct"
    return texts


def _ends_problem(ends: Rows, items: int) -> bool:
    if not len(ends):
        return items != 0
    return bool((ends[1:] < ends[:-1]).any()) or int(ends[-1]) != items


def _number_problem(tables: wire.Tables, texts: list[str]) -> str | None:
    """Every number must number something, every flag be known, every float be finite."""
    rows = tables.rows
    for name, ends in _SETS.items():
        if _ends_problem(rows[ends], len(rows[name])):
            return f"{ends}: the ends do not divide {name}"
    for name in ("names", "specs", "removed"):
        if (rows[name] >= len(texts)).any():
            return f"{name}: a number is that of no text"
    for name, columns in packing.TEXT_COLUMNS.items():
        for column in columns:
            if (rows[name][column] >= len(texts)).any():
                return f"{name}.{column}: a number is that of no text"
    if (tables.stream["source"] >= len(texts)).any():
        return "stream.source: the number is that of no text"
    for (name, column), target in _SET_COLUMNS.items():
        if (rows[name][column] >= len(rows[target])).any():
            return f"{name}.{column}: a number is beyond {target}"
    for name, mask in _FLAGS.items():
        if (rows[name]["flags"] & ~np.uint32(mask)).any():
            return f"{name}.flags: a flag is not known"
    if any(rows[name]["reserved"].any() for name in _RESERVED) or tables.stream["reserved"].any():
        return "a reserved column is used"
    for name, column in _FLOATS:
        if not np.isfinite(rows[name][column]).all():
            return f"{name}.{column}: a value is no finite number"
    for name in _LINKS:
        for column in _MAYBE_UNKNOWN:
            if np.isinf(rows[name][column]).any():
                return f"{name}.{column}: a value is infinite"
    if (rows["sourced_links"]["cost"] < packing.UNKNOWN_COST).any():
        return "sourced_links.cost: a value is negative"
    return None


def _order_problem(tables: wire.Tables, texts: list[str]) -> str | None:  # noqa: ARG001  all checks have one shape
    """What is sorted in a patch is sorted here, and nothing is said twice."""
    rows = tables.rows
    for name, column, ends in (("labels", "key", "label_ends"), ("amounts", "name", "amount_ends")):
        # A key may be below the one before it only where a new set starts.
        falls = np.flatnonzero(rows[name][column][1:] <= rows[name][column][:-1]) + 1
        if not np.isin(falls, rows[ends]).all():
            return f"{name}: a set is not sorted, or names something twice"
    if (rows["removed"][1:] <= rows["removed"][:-1]).any():
        return "removed: the keys are not sorted, or one is there twice"
    for name, column in _IDENTITIES.items():
        if len(np.unique(rows[name][column])) != len(rows[name]):
            return f"{name}: one is there twice"
    for names in (_LINKS, ("contains",), ("runs",)):
        pairs = np.concatenate(
            [rows[name]["source"].astype(np.uint64) << np.uint64(32) | rows[name]["target"] for name in names]
        )
        if len(np.unique(pairs)) != len(pairs):
            return f"{names[0]}: an edge is there twice"
    if len(np.unique(rows["cut"])) != len(rows["cut"]):
        return "cut: an edge is there twice"
    return None


def _name_problem(tables: wire.Tables, texts: list[str]) -> str | None:
    """Names are there, and keys are `kind/name`."""
    rows = tables.rows
    for name in ("nodes", "namespaces", "priority_classes"):
        # The empty text sorts first.
        if texts and not texts[0] and not rows[name]["name"].all():
            return f"{name}: a name is empty"
    used = np.concatenate(
        [
            rows["removed"],
            rows["pods"]["key"],
            rows["selections"]["key"],
            rows["owners"]["pod"],
            rows["owners"]["owner"],
            rows["records"]["key"],
        ]
        + [rows[name][end] for name in (*_EDGE_VECTORS, "cut") for end in ("source", "target")]
    )
    for number in np.unique(used).tolist():
        if not admission.is_key(texts[number]):
            return f'"{texts[number][:80]}" is no key of a vertex'
    for name, column, kind in (
        ("pods", "key", "pod/"),
        ("runs", "source", "pod/"),
        ("runs", "target", "node/"),
        ("selections", "key", "selection/"),
        ("owners", "owner", "selection/"),
    ):
        if not all(texts[number].startswith(kind) for number in rows[name][column].tolist()):
            return f"{name}.{column}: a key is not that of a {kind[:-1]}"
    if not np.isin(rows["owners"]["pod"], rows["pods"]["key"]).all():
        return "owners.pod: a pod has no row"
    for name in ("addresses", "budgets"):
        if not np.isin(rows[name]["node"], rows["nodes"]["name"]).all():
            return f"{name}.node: a node has no row"
    return None


def _edge_problem(tables: wire.Tables, texts: list[str]) -> str | None:  # noqa: ARG001  all checks have one shape
    """Edges that are cut are of a kind that is known."""
    if not np.isin(tables.rows["cut"]["kind"], list(_KIND_NAMES)).all():
        return "cut.kind: a kind is not known"
    return None


class _Builder:
    """Makes the objects of a patch out of arrays that have been checked."""

    def __init__(
        self,
        tables: wire.Tables,
        texts: list[str],
        known: list[pods.Spec],
        chosen: dict[int, values.Selector | None],
        rare: list[records.Record],
        granted: dict[int, nodes.Budget],
    ) -> None:
        self._stream = tables.stream
        self._rows = tables.rows
        self._texts = texts
        self._specs = known
        self._chosen = chosen
        self._rare = rare
        self._granted = granted
        self._labels = self._sets("labels", self._pairs("labels", "key", "value"))
        amounts = self._rows["amounts"]
        named = zip(self._column("amounts", "name"), amounts["amount"].tolist(), strict=True)
        self._amounts = self._sets("amounts", list(named))
        self._names = self._sets("names", [texts[number] for number in self._rows["names"].tolist()])
        self._devices = self._sets("devices", self._rows["devices"].tolist())

    def patch(self) -> delta.Patch:
        """The patch."""
        vertices: list[delta.Vertex] = [
            *self._nodes(),
            *self._pods(),
            *self._namespaces(),
            *self._priority_classes(),
            *self._selections(),
            *self._rare,
        ]
        return delta.Patch(
            removed={self._key(number) for number in self._rows["removed"].tolist()},
            cut=set(self._cut()),
            vertices={vertex.key: vertex for vertex in vertices},
            edges=dict(itertools.chain(self._links(), self._sourced_links(), self._contains(), self._runs())),
            stream=next(
                (
                    delta.Stream(self._texts[source], epoch, sequence)
                    for epoch, sequence, source, _ in self._stream.tolist()
                ),
                None,
            ),
        )

    def _nodes(self) -> typing.Iterator[nodes.Node]:
        text = self._texts
        if not len(self._rows["nodes"]):
            return
        addresses = dict(self._rows["addresses"].tolist())
        budgets = {node: self._granted[value] for node, value in self._rows["budgets"].tolist()}
        taints = self._sets(
            "taints",
            [nodes.Taint(text[key], text[value], text[effect]) for key, value, effect in self._rows["taints"].tolist()],
        )
        images = self._sets(
            "images",
            [nodes.Image(self._names[names], size) for size, names, _ in self._rows["images"].tolist()],
        )
        for name, uid, labels, taint, allocatable, image, features, model, gpus, flags in self._rows["nodes"].tolist():
            yield nodes.Node(
                text[name],
                text[uid],
                self._labels[labels],
                taints[taint],
                bool(flags & packing.UNSCHEDULABLE),
                self._amounts[allocatable],
                images[image],
                self._names[features],
                text[model],
                gpus,
                budgets.get(name, nodes.NO_BUDGET),
                self._names[addresses[name]] if name in addresses else (),
            )

    def _pods(self) -> typing.Iterator[pods.Pod]:
        text = self._texts
        owners = dict(self._rows["owners"].tolist())
        held_once: dict[tuple[int, int, int], pods.Demand] = {}
        for row in self._rows["pods"].tolist():
            cpu, memory, created, started, key, uid, spec, labels, held, node, nominated, scheduler = row[:12]
            gates, devices, priority, flags = row[12:]
            demand = held_once.get((held, cpu, memory))
            if demand is None:
                demand = held_once[held, cpu, memory] = pods.Demand(self._amounts[held], cpu, memory)
            yield pods.Pod(
                keys.VertexKey(text[key]),
                text[uid],
                self._specs[spec],
                demand,
                self._labels[labels],
                text[node],
                text[nominated],
                text[scheduler],
                priority,
                bool(flags & packing.NEVER_PREEMPTS),
                self._names[gates],
                bool(flags & packing.DELETING),
                self._devices[devices],
                created,
                started if flags & packing.STARTED else None,
                text[owners[key]] if key in owners else "",
            )

    def _namespaces(self) -> typing.Iterator[nodes.Namespace]:
        for name, labels in self._rows["namespaces"].tolist():
            yield nodes.Namespace(self._texts[name], self._labels[labels])

    def _priority_classes(self) -> typing.Iterator[nodes.PriorityClass]:
        for name, value, flags in self._rows["priority_classes"].tolist():
            yield nodes.PriorityClass(
                self._texts[name],
                value,
                bool(flags & packing.GLOBAL_DEFAULT),
                bool(flags & packing.CLASS_NEVER_PREEMPTS),
            )

    def _selections(self) -> typing.Iterator[selections.Selection]:
        for key, selector in self._rows["selections"].tolist():
            _, kind, namespace, name = self._texts[key].split("/")
            yield selections.Selection(kind, namespace, name, self._chosen[selector])

    def _links(self) -> typing.Iterator[tuple[keys.EdgeID, relations.Edge]]:
        values = map(relations.Link, *self._measures("links"), self._rows["links"]["health"].tolist())
        return zip(self._edge_ids("links", keys.EdgeKind.LINK), values, strict=True)

    def _sourced_links(self) -> typing.Iterator[tuple[keys.EdgeID, relations.Edge]]:
        rows = self._rows["sourced_links"]
        values = map(
            relations.Link,
            *self._measures("sourced_links"),
            rows["health"].tolist(),
            rows["at"].tolist(),
            self._column("sourced_links", "by"),
            [None if cost == packing.UNKNOWN_COST else cost for cost in rows["cost"].tolist()],
        )
        return zip(self._edge_ids("sourced_links", keys.EdgeKind.LINK), values, strict=True)

    def _measures(self, name: str) -> list[list[float | None]]:
        """The columns in which NaN stands for what nobody knows."""
        return [
            [None if math.isnan(each) else each for each in self._rows[name][column].tolist()]
            for column in _MAYBE_UNKNOWN
        ]

    def _contains(self) -> typing.Iterator[tuple[keys.EdgeID, relations.Edge]]:
        values = map(relations.Contains, self._column("contains", "by"))
        return zip(self._edge_ids("contains", keys.EdgeKind.CONTAINS), values, strict=True)

    def _runs(self) -> typing.Iterator[tuple[keys.EdgeID, relations.Edge]]:
        devices = [self._devices[number] for number in self._rows["runs"]["devices"].tolist()]
        values = map(relations.Runs, self._column("runs", "uid"), devices)
        return zip(self._edge_ids("runs", keys.EdgeKind.RUNS), values, strict=True)

    def _edge_ids(self, name: str, kind: keys.EdgeKind) -> typing.Iterator[keys.EdgeID]:
        source, target = (map(keys.VertexKey, self._column(name, end)) for end in ("source", "target"))
        return map(keys.EdgeID, source, target, itertools.repeat(kind))

    def _cut(self) -> typing.Iterator[keys.EdgeID]:
        for source, target, kind in self._rows["cut"].tolist():
            yield keys.EdgeID(self._key(source), self._key(target), _KIND_NAMES[kind])

    def _key(self, number: int) -> keys.VertexKey:
        return keys.VertexKey(self._texts[number])

    def _column(self, name: str, column: str) -> list[str]:
        return [self._texts[number] for number in self._rows[name][column].tolist()]

    def _pairs(self, name: str, first: str, second: str) -> list[tuple[str, str]]:
        return list(zip(self._column(name, first), self._column(name, second), strict=True))

    def _sets(self, name: str, items: Sequence[typing.Any]) -> list[tuple[typing.Any, ...]]:
        bounds = [0, *self._rows[_SETS[name]].tolist()]
        return [tuple(items[start:end]) for start, end in itertools.pairwise(bounds)]
