"""What is kept for somebody on nodes that have some labels, beside what the nodes' own annotations keep.

Settings give such reservations, `app` makes `Kept` of them, and every node passes through here on its way in: from the
API server, from manifests, from a capture. Invariant: what comes out keeps for each holder what the node's annotation
keeps for it, or else what the first reservation keeps whose labels the node has. So twice is once.
"""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Sequence

import msgspec

from graphsched.base.kube import nodes as kube_nodes, wire
from graphsched.base.values import labels, nodes
from graphsched.sources import collection, resources


class Kept(typing.NamedTuple):
    """On nodes with all these labels so much is kept for the holder."""

    node_labels: labels.Labels
    holder: str
    amounts: nodes.Amounts


def on(node: nodes.Node, kept: Sequence[Kept]) -> nodes.Node:
    """The node with all that is kept there."""
    mine = tuple(each for each in kept if set(each.node_labels) <= set(node.labels))
    return msgspec.structs.replace(node, budget=_joined(node.budget, mine)) if mine else node


def followed(kept: Sequence[Kept]) -> tuple[collection.Resource[typing.Any], ...]:
    """All that is followed of the API server, nodes with what is kept there."""
    if not kept:
        return resources.ALL

    def convert(body: wire.Node) -> nodes.Node:
        return on(kube_nodes.node(body), kept)

    return tuple(
        dataclasses.replace(each, convert=convert) if each is resources.NODES else each for each in resources.ALL
    )


@functools.lru_cache(maxsize=4096)
def _joined(budget: nodes.Budget, mine: tuple[Kept, ...]) -> nodes.Budget:
    """The budget with what more is kept; nodes that are alike share it."""
    holders = dict(budget.reserved)
    for each in mine:
        holders.setdefault(each.holder, each.amounts)
    return msgspec.structs.replace(budget, reserved=tuple(sorted(holders.items())))
