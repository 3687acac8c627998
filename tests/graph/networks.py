"""Random networks that are dense enough for ways to compete, with what becomes of them."""

from __future__ import annotations

import random

from graphsched.base.values import keys, nodes, places, relations
from graphsched.graph import delta, levels, store

RACK = "topology.kubernetes.io/rack"


class Network:
    """A store with nodes in racks and zones, switches, and links between any of them."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.store = store.Store()
        self.store.apply(delta.Patch(vertices={place.key: place for place in map(places.Place, "pqr")}))
        for _ in range(9):
            self.node()
        for _ in range(24):
            self.link()
        for _ in range(3):
            self.contain()

    def change(self) -> None:
        """Something happens."""
        self.draw.choice([self.link, self.link, self.cut, self.contain, self.node])()

    def vertex(self) -> keys.VertexKey:
        """One that is there."""
        return self.draw.choice(sorted(self.store.topology.vertices()))

    def node(self) -> None:
        """A node comes, or moves."""
        name = f"n{self.draw.randrange(10)}"
        labels = ((RACK, self.draw.choice("12")), (levels.ZONE, self.draw.choice("ab")))
        some = tuple(label for label in labels if self.draw.random() < 0.8)
        self.store.apply(delta.Patch(vertices={keys.node_key(name): nodes.Node(name, labels=some)}))

    def link(self) -> None:
        """A link comes, or is measured anew."""
        draw = self.draw
        edge = keys.EdgeID(self.vertex(), self.vertex(), keys.EdgeKind.LINK)
        if draw.random() < 0.5:
            edge = draw.choice(sorted(self.store.edge_ids(keys.EdgeKind.LINK)) or [edge])
        latency, bandwidth = (draw.choice([None, 0.0, 0.5, 1.0, 1.25, 3.0]) for _ in range(2))
        cost = draw.choice([None, 1, 2])
        self.store.apply(
            delta.Patch(
                edges={
                    edge: relations.Link(latency, bandwidth, draw.choice([relations.DOWN, 0.1, 0.5, 1.0]), cost=cost)
                }
            )
        )

    def contain(self) -> None:
        """A place holds something."""
        outer, inner = keys.place_key(self.draw.choice("pqr")), self.vertex()
        if outer != inner:
            edge = keys.EdgeID(outer, inner, keys.EdgeKind.CONTAINS)
            self.store.apply(delta.Patch(edges={edge: relations.Contains()}))

    def cut(self) -> None:
        """An edge goes, or a node with all of its own."""
        edges = sorted((*self.store.edge_ids(keys.EdgeKind.LINK), *self.store.edge_ids(keys.EdgeKind.CONTAINS)))
        if self.draw.random() < 0.3:
            self.store.apply(delta.Patch(removed={keys.node_key(f"n{self.draw.randrange(10)}")}))
        elif edges:
            self.store.apply(delta.Patch(cut={self.draw.choice(edges)}))
