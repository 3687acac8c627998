"""Places of the physical layer that are no nodes and that no node label names.

Whoever describes a network names things that Kubernetes has no object for: switches, rails, sites, the HyperNodes of
Volcano, the NUMA cells of a node. Each becomes a `Place`, tied to nodes, domains and other places by `contains` and
`link` edges.
"""

from __future__ import annotations

import msgspec

from graphsched.base.values import keys, labels, nodes


class Place(msgspec.Struct, frozen=True, gc=False):
    """One of them.

    Attributes:
        name: Whoever describes it, then its name there: `slurm/leaf-12`, `hypernode/s0`, `numa/n1/node-0`.
        kind: What it is in a word: switch, hypernode, site, numa.
        tier: Its height above the nodes, 1 the nearest; None where nobody says.
        labels: What else is known of it, sorted.
        amounts: What it has of resources, for those that have any.
    """

    name: str
    kind: str = "switch"
    tier: int | None = None
    labels: labels.Labels = labels.NO_LABELS
    amounts: nodes.Amounts = ()

    @property
    def key(self) -> keys.VertexKey:
        """Its vertex key."""
        return keys.place_key(self.name)
