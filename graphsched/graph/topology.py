"""The physical topology as a graph: domains that contain domains and nodes, and links between any two of them.

Decisions ask it what is near what; explanations and exports draw it. Domains come from node labels alone (`levels`) and
live as long as a node is in them. Links are patched in by whoever measured them, and may name a place that is not there
yet: such a link is kept, and appears in the graph when both its ends do.

Comes in: nodes and links, from `store`. Goes out: domains, members, distances, and a copy of the graph for exports.
Invariant: vertices are known by key; the indices of rustworkx are recycled, never leave this module, and decide no
order.
"""

from __future__ import annotations

import rustworkx

from graphsched.base.values import keys, labels, relations
from graphsched.graph import levels

Pair = tuple[keys.VertexKey, keys.VertexKey]
Payload = keys.EdgeKind | relations.Link
"""What an edge of the graph carries: `EdgeKind.CONTAINS`, or the link."""
Graph = rustworkx.PyDiGraph[keys.VertexKey, Payload]


class Topology:
    """Nodes, domains and links."""

    def __init__(self) -> None:
        self._graph: Graph = rustworkx.PyDiGraph()
        self._index: dict[keys.VertexKey, int] = {}
        self._places: dict[str, levels.Place] = {}
        self._members: dict[keys.VertexKey, set[str]] = {}
        self._links: dict[Pair, relations.Link] = {}
        self._link_edges: dict[Pair, int] = {}
        self._links_at: dict[keys.VertexKey, set[Pair]] = {}

    def set_node(self, name: str, node_labels: labels.Labels) -> bool:
        """Add a node, or move it to where its labels say now; returns whether anything changed."""
        place = levels.place(node_labels)
        before = self._places.get(name)
        if place == before:
            return False
        key = keys.node_key(name)
        if before is None:
            self._add(key)
        self._places[name] = place
        for domain in place.domains:
            members = self._members.get(domain.key)
            if members is None:
                members = self._members[domain.key] = set()
                self._add(domain.key)
                if domain.parent is not None:
                    self._contain(domain.parent, domain.key)
            members.add(name)
        old_parents = before.parents if before else ()
        for parent in place.parents:
            if parent not in old_parents:
                self._contain(parent, key)
        if before is not None:
            self._leave(name, before, place)
        return True

    def remove_node(self, name: str) -> bool:
        """Remove a node and the domains that held it alone; its links stay, unattached, until they are cut.

        Returns whether there was such a node.
        """
        before = self._places.pop(name, None)
        if before is None:
            return False
        self._drop(keys.node_key(name))
        self._leave(name, before, levels.NOWHERE)
        return True

    def set_link(self, source: keys.VertexKey, target: keys.VertexKey, link: relations.Link) -> None:
        """Add or replace the link from one place to another; either may be unknown so far."""
        pair = source, target
        self._links[pair] = link
        for end in pair:
            self._links_at.setdefault(end, set()).add(pair)
        edge = self._link_edges.get(pair)
        if edge is None:
            self._attach(pair)
        else:
            self._graph.update_edge_by_index(edge, link)

    def cut_link(self, source: keys.VertexKey, target: keys.VertexKey) -> bool:
        """Remove the link; returns whether there was one."""
        pair = source, target
        if self._links.pop(pair, None) is None:
            return False
        for end in {source, target}:
            self._links_at[end].discard(pair)
            if not self._links_at[end]:
                del self._links_at[end]
        edge = self._link_edges.pop(pair, None)
        if edge is not None:
            self._graph.remove_edge_from_index(edge)
        return True

    def domain_of(self, name: str, label: str) -> keys.VertexKey | None:
        """The domain of this label that holds the node; None when the node or its label is not known."""
        for domain in self._places.get(name, levels.NOWHERE).domains:
            if domain.label == label:
                return domain.key
        return None

    def ancestors(self, name: str) -> tuple[keys.VertexKey, ...]:
        """All domains that hold the node: region and zone first, then family by family, each outer to inner."""
        return tuple(domain.key for domain in self._places.get(name, levels.NOWHERE).domains)

    def members(self, domain: keys.VertexKey) -> list[str]:
        """Names of the nodes in the domain, sorted; none for one that is not known."""
        return sorted(self._members.get(domain, ()))

    def domains(self) -> list[keys.VertexKey]:
        """Every domain that holds a node, sorted."""
        return sorted(self._members)

    def hops(self, start: keys.VertexKey, goal: keys.VertexKey) -> int | None:
        """Edges on the shortest way between two vertices, over containment and links, both taken in any direction.

        None when either is not known or no way leads from one to the other: a distance that is not known is not far.
        """
        if start not in self._index or goal not in self._index:
            return None
        if start == goal:
            return 0
        near, far = {self._index[start]}, {self._index[goal]}
        seen_near, seen_far = set(near), set(far)
        steps = 0
        while near and far:
            if len(near) > len(far):
                near, far, seen_near, seen_far = far, near, seen_far, seen_near
            steps += 1
            near = {other for one in near for other in self._graph.neighbors_undirected(one)} - seen_near
            if not near.isdisjoint(seen_far):
                return steps
            seen_near |= near
        return None

    @property
    def graph(self) -> Graph:
        """A copy of the graph, for exports: vertices carry their key, edges their `Payload`."""
        return self._graph.copy()

    @property
    def links(self) -> dict[Pair, relations.Link]:
        """A copy of all links, also of those that miss an end."""
        return dict(self._links)

    def _add(self, key: keys.VertexKey) -> None:
        self._index[key] = self._graph.add_node(key)
        for pair in sorted(self._links_at.get(key, ())):
            self._attach(pair)

    def _drop(self, key: keys.VertexKey) -> None:
        # rustworkx removes the edges with the vertex, so their indices are forgotten first.
        for pair in self._links_at.get(key, ()):
            self._link_edges.pop(pair, None)
        self._graph.remove_node(self._index.pop(key))

    def _attach(self, pair: Pair) -> None:
        source, target = (self._index.get(end) for end in pair)
        if source is not None and target is not None and pair not in self._link_edges:
            self._link_edges[pair] = self._graph.add_edge(source, target, self._links[pair])

    def _contain(self, outer: keys.VertexKey, inner: keys.VertexKey) -> None:
        self._graph.add_edge(self._index[outer], self._index[inner], keys.EdgeKind.CONTAINS)

    def _uncontain(self, outer: keys.VertexKey, inner: keys.VertexKey) -> None:
        source, target = self._index[outer], self._index[inner]
        for edge in self._graph.edge_indices_from_endpoints(source, target):
            if self._graph.get_edge_data_by_index(edge) is keys.EdgeKind.CONTAINS:
                self._graph.remove_edge_from_index(edge)

    def _leave(self, name: str, before: levels.Place, after: levels.Place) -> None:
        """Take the node out of the domains it is no longer in, inner ones first, and drop those left empty."""
        key = keys.node_key(name)
        if key in self._index:
            for parent in before.parents:
                if parent not in after.parents:
                    self._uncontain(parent, key)
        staying = {domain.key for domain in after.domains}
        for domain in reversed(before.domains):
            if domain.key in staying:
                continue
            members = self._members[domain.key]
            members.discard(name)
            if not members:
                del self._members[domain.key]
                self._drop(domain.key)
