"""Places of the physical layer that are no nodes and that no node label names.

Whoever describes a network names things that Kubernetes has no object for: switches, rails, sites, the HyperNodes of
Volcano, the NUMA cells of a node. Each becomes a `Place`, tied to nodes, domains and other places by `contains` and
`link` edges.
"""

from __future__ import annotations

import msgspec

from graphsched.base.values import keys, labels, nodes

NUMA = "numa"
"""Kind of a NUMA cell of a node, and what its name begins with."""
POLICY = "policy"
"""Label of a cell: how the kubelet aligns containers with cells."""


class Place(msgspec.Struct, frozen=True, gc=False):
    """One of them.

    Attributes:
        name: Whoever describes it, then its name there: `slurm/leaf-12`, `hypernode/s0`, `numa/n1/node-0`.
        kind: What it is in a word: switch, hypernode, site, numa.
        tier: Its height above the nodes, 1 the nearest; None where nobody says.
        labels: What else is known of it, sorted.
        amounts: What it has of resources for pods, for those that have any.
        available: How much of that is free, as whoever describes it last saw it; empty where nobody says.
    """

    name: str
    kind: str = "switch"
    tier: int | None = None
    labels: labels.Labels = labels.NO_LABELS
    amounts: nodes.Amounts = ()
    available: nodes.Amounts = ()

    @property
    def key(self) -> keys.VertexKey:
        """Its vertex key."""
        return keys.place_key(self.name)

    @property
    def cell(self) -> tuple[str, str] | None:
        """Of a NUMA cell the node's name and its own; None of any other place."""
        whose, _, rest = self.name.partition("/")
        node, _, cell = rest.partition("/")
        return (node, cell) if self.kind == NUMA == whose and node and cell else None


def cell_name(node: str, cell: str) -> str:
    """The name of the place that is this cell of the node."""
    return f"{NUMA}/{node}/{cell}"
