"""The audit: is everything that is derived what it should be?

`differences` builds a second store from the vertices and edges of the first and compares what was derived in both. It
is the slow, obvious way to the state that `store` keeps in step incrementally; the laws call it after every random
sequence of patches, and the running scheduler calls it on request.
"""

from __future__ import annotations

import typing

from graphsched.graph import attributes, delta

if typing.TYPE_CHECKING:
    from graphsched.graph.store import Store


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
    for name in by_rank:
        have, due = _row(kept, name), _row(fresh, name)
        found.extend(
            f'node "{name}": {field} is {have[field]}, should be {due[field]}'
            for field in due
            if have[field] != due[field]
        )
    if kept.selections.content() != fresh.selections.content():
        found.append("selections differ")
    if kept.nominated != fresh.nominated:
        found.append("nominated pods differ")
    return found


def _row(store: Store, name: str) -> dict[str, object]:
    """Everything derived for one node, without zeros, so that columns nobody uses make no difference."""
    row = store.columns.rows[name]
    columns = store.columns
    node = store.node(name)
    images = sorted({image for held in (node.images if node else ()) for image in held.names})
    return {
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
        "labels": {key: _encoded(store.attributes.label(key), row) for key, _ in (node.labels if node else ())},
        "free on devices": store.devices.free[: store.devices.numbers[row], row].tolist(),
        "ports": store.ports.held(row),
        "images": [
            (image, size)
            for image, (holders, size) in ((image, store.images.holders(image)) for image in images)
            if row in holders.tolist()
        ],
        "ancestors": store.topology.ancestors(name),
    }


def _encoded(column: attributes.Encoded[typing.Any], row: int) -> object:
    number = int(column.ids[row])
    return None if number < 0 else column.values[number]
