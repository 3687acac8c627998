"""The audit: is everything that is derived what it should be?

`differences` builds a second store from the vertices and edges of the first and compares what was derived in both. It
is the slow, obvious way to the state that `store` keeps in step incrementally; the laws call it after every random
sequence of patches. `of_nodes` and `of_pods` do the same piece by piece, so that a running scheduler can audit itself
between two turns of its loop; `rederive` mends what they find, through the one door. `fields` tells two values of an
object apart.
"""

from __future__ import annotations

import collections
import typing
from collections.abc import Iterable, Iterator

import msgspec
import numpy as np

from graphsched.base.values import keys, nodes
from graphsched.graph import attributes, delta

if typing.TYPE_CHECKING:
    from graphsched.graph.store import Store

TEXT_MAX = 200
"""Characters of one value in a sentence."""


class Derived(msgspec.Struct, frozen=True, gc=False):
    """Something derived that is not what it should be.

    Attributes:
        key: The node's or the pod's.
        detail: What it is and what it should be.
    """

    key: keys.VertexKey
    detail: str


def differences(kept: Store) -> list[str]:
    """One line for everything derived that differs from a store built afresh; empty when all is well."""
    fresh = type(kept)()
    vertices, edges = kept.content()
    fresh.apply(delta.Patch(vertices=vertices, edges=edges))
    found = [f"term index: {line}" for line in kept.matchers.audit()]
    if sorted(kept.columns.rows) != sorted(fresh.columns.rows):
        return [*found, "the nodes with a row differ"]
    by_rank = sorted(kept.columns.rows, key=lambda name: kept.columns.rank[kept.columns.rows[name]])
    if by_rank != sorted(kept.columns.rows):
        found.append("ranks do not follow the names")
    found.extend(f"{found_one.key}: {found_one.detail}" for found_one in _compared(kept, fresh, by_rank))
    found.extend(_nestings(kept, fresh))
    found.extend(
        f'image "{image}": its size is not that of the node that came first'
        for image in {image for node in vertices.values() if isinstance(node, nodes.Node) for image in _names(node)}
        if kept.images.holders(image)[1] != fresh.images.holders(image)[1]
    )
    if kept.selections.content() != fresh.selections.content():
        found.append("selections differ")
    if (kept.links.total, kept.links.unwell) != (fresh.links.total, fresh.links.unwell):
        found.append("the number of links, or those that are not well, differ")
    if kept.callers.content() != fresh.callers.content():
        found.append("calls differ")
    if kept.rules.all() != fresh.rules.all():
        found.append("rules differ")
    if kept.nominated != fresh.nominated:
        found.append("nominated pods differ")
    return found


def of_nodes(kept: Store, names: Iterable[str]) -> list[Derived]:
    """What is derived of these nodes and is not what a store would hold that has but them, their cells, pods and links.

    Nodes that are not there are passed over. It takes some 200 µs a node, and 10 µs a pod on it.
    """
    fresh = type(kept)()
    there = [name for name in names if kept.node(name) is not None]
    patch = delta.Patch()
    for name in there:
        node = kept.node(name)
        assert node is not None  # noqa: S101  looked at a moment ago
        patch.set_vertex(node)
        for cell in kept.cells.of(name):
            patch.set_vertex(cell)
        for link in kept.links_at(node.key):
            attributes_of = kept.edge(link)
            if attributes_of is not None:
                patch.set_edge(link, attributes_of)
        for key in kept.on_node(name):
            pod, promised = kept.pod(key), kept.promised(key)
            if pod is None:
                continue
            patch.set_vertex(pod)
            runs = None if promised is None else kept.edge(promised)
            if promised is not None and runs is not None:
                patch.set_edge(promised, runs)
    fresh.apply(patch)
    rowless = [name for name in there if name not in kept.columns.rows]
    found = [Derived(keys.node_key(name), "it has no row, should have one") for name in rowless]
    return found + list(_compared(kept, fresh, [name for name in there if name in kept.columns.rows]))


def of_pods(kept: Store, pods: Iterable[keys.VertexKey]) -> list[Derived]:
    """What is derived of these pods and is not what it should be: where they count, and where room is kept for them."""
    found = []
    for key in pods:
        have, due = kept.placement(key), kept.due(key)
        pod = kept.pod(key)
        wanted = pod.nominated if pod is not None and due is None else ""
        if have != due:
            where, there = (each.node if each is not None else "nowhere" for each in (have, due))
            differ = (
                f"counts on {where}, should on {there}" if where != there else f"counts on {there} as it was before"
            )
            found.append(Derived(key, differ))
        elif due is not None and kept.on_node(due.node).get(key) != due:
            found.append(Derived(key, f"counts on {due.node}, whose list of pods says otherwise"))
        elif wanted and key not in kept.nominated.get(wanted, {}):
            found.append(Derived(key, f"is nominated to {wanted}, where no room is kept for it"))
    return found


def rederive(kept: Store, key: keys.VertexKey) -> None:
    """Take the vertex away with all that follows from it, and bring it and its edges back: what is derived of it is
    made anew, in two patches between which nobody looks.
    """
    applied = kept.apply(delta.Patch(removed={key}), undo=True)
    if isinstance(applied, delta.Applied) and applied.undo is not None:
        kept.apply(applied.undo)


def fields(have: msgspec.Struct | None, due: msgspec.Struct | None) -> str:
    """In which fields the graph's value is not the cluster's, in words."""
    if have is None or due is None:
        return "is not in the graph" if have is None else "is in the graph, and not in the cluster"
    if type(have) is not type(due):
        return f"is a {type(have).__name__}, should be a {type(due).__name__}"
    return ", ".join(
        f"{name} is {_text(getattr(have, name))}, should be {_text(getattr(due, name))}"
        for name in type(have).__struct_fields__
        if getattr(have, name) != getattr(due, name)
    )


def _text(value: object) -> str:
    text = repr(value)
    return text if len(text) <= TEXT_MAX else f"{text[:TEXT_MAX]}…"


def _compared(kept: Store, fresh: Store, names: Iterable[str]) -> Iterator[Derived]:
    for name in names:
        have, due = _row(kept, name), _row(fresh, name)
        due["labels"] = _labels_due(kept, name)
        for field in due:
            if have[field] != due[field]:
                yield Derived(keys.node_key(name), f"{field} is {_text(have[field])}, should be {_text(due[field])}")


def _nestings(kept: Store, fresh: Store) -> Iterator[str]:
    """Which domains and nodes are not held, by their labels, by what should hold them."""
    have, due = (collections.Counter(store.topology.nestings()) for store in (kept, fresh))
    for pair in sorted(have | due):
        if have[pair] != due[pair]:
            outer, inner = pair
            yield f"{inner}: is held {have[pair]} times by {outer}, should be {due[pair]} times"


def _row(store: Store, name: str) -> dict[str, object]:
    """Everything derived for one node, without zeros, so that columns nobody uses make no difference."""
    row = store.columns.rows[name]
    columns = store.columns
    node = store.node(name)
    images = sorted(_names(node))
    return {
        "installed": {key: int(column[row]) for key, column in columns.installed.items() if column[row]},
        "allocatable": {key: int(column[row]) for key, column in columns.allocatable.items() if column[row]},
        "requested": {key: int(column[row]) for key, column in columns.requested.items() if column[row]},
        "scored cpu": int(columns.scored_cpu[row]),
        "scored memory": int(columns.scored_memory[row]),
        "pods": int(columns.pods[row]),
        "pods there": sorted(store.on_node(name)),
        "live": bool(columns.live[row]),
        "cordon": bool(store.attributes.unschedulable[row]),
        "taints": _encoded(store.attributes.taints, row),
        "features": _encoded(store.attributes.features, row),
        "gpu model": _encoded(store.attributes.gpu_models, row),
        "labels": store.attributes.labels_in_columns(row),
        "free on devices": store.devices.free[: store.devices.numbers[row], row].tolist(),
        "ports": store.ports.held(row),
        "images": [(image, store.images.size(image, row)) for image in images],
        "ancestors": store.topology.ancestors(name),
        **store.view().budgets.row(name),
        **store.cells.row(name),
        "best link": None if np.isnan(health := store.links.column[row]) else float(health),
    }


def _labels_due(store: Store, name: str) -> dict[str, str]:
    """The node's labels as far as there are columns of them: decisions build those, an audit must not."""
    node = store.node(name)
    return {key: value for key, value in (node.labels if node else ()) if key in store.attributes.label_keys}


def _encoded(column: attributes.Encoded[typing.Any], row: int) -> object:
    number = int(column.ids[row])
    return None if number < 0 else column.values[number]


def _names(node: nodes.Node | None) -> set[str]:
    """Every name of every image on the node."""
    return {image for held in (node.images if node else ()) for image in held.names}
