"""The physical topology as a graph: domains and places that contain others and nodes, and links between any of them.

Decisions ask it what is near what; explanations and exports draw it. Domains come from node labels alone (`levels`) and
live as long as a node is in them; places are patched in. So are ties, the edges that no label makes: links, and what a
place contains. A tie may name an end that is not there yet: it is kept, and appears in the graph when both its ends do.

Comes in: nodes, places and ties, from `store`. Goes out: domains, members, distances, a copy of the graph for exports.
Invariant: vertices are known by key; the indices of rustworkx are recycled, never leave this module, and decide no
order.
"""

from __future__ import annotations

import rustworkx

from graphsched.base.values import keys, labels, relations
from graphsched.graph import levels

Tie = relations.Contains | relations.Link
"""An edge that is patched in."""
Payload = keys.EdgeKind | Tie
"""What an edge of the graph carries: `EdgeKind.CONTAINS` where a label makes it, or the tie."""
Graph = rustworkx.PyDiGraph[keys.VertexKey, Payload]


class Topology:
    """Nodes, domains, places and ties.

    Attributes:
        version: Counts up with every change.
    """

    def __init__(self) -> None:
        self._graph: Graph = rustworkx.PyDiGraph()
        self._index: dict[keys.VertexKey, int] = {}
        self._places: dict[str, levels.Place] = {}
        self._members: dict[keys.VertexKey, set[str]] = {}
        self._ties: dict[keys.EdgeID, Tie] = {}
        self._tie_edges: dict[keys.EdgeID, int] = {}
        self._ties_at: dict[keys.VertexKey, set[keys.EdgeID]] = {}
        self.version = 0

    def set_node(self, name: str, node_labels: labels.Labels) -> bool:
        """Add a node, or move it to where its labels say now; returns whether anything changed."""
        place = levels.place(node_labels)
        before = self._places.get(name)
        if place == before:
            return False
        self.version += 1
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
        """Remove a node and the domains that held it alone; its ties stay, unattached, until they are cut.

        Returns whether there was such a node.
        """
        before = self._places.pop(name, None)
        if before is None:
            return False
        self.version += 1
        self._drop(keys.node_key(name))
        self._leave(name, before, levels.NOWHERE)
        return True

    def set_place(self, key: keys.VertexKey) -> None:
        """Add a place; nothing changes where it is there."""
        if key not in self._index:
            self.version += 1
            self._add(key)

    def remove_place(self, key: keys.VertexKey) -> None:
        """Remove a place; its ties stay, unattached, until they are cut."""
        if key in self._index:
            self.version += 1
            self._drop(key)

    def set_tie(self, tie: keys.EdgeID, value: Tie) -> None:
        """Add or replace a tie; either end may be unknown so far."""
        self.version += 1
        self._ties[tie] = value
        for end in tie[:2]:
            self._ties_at.setdefault(end, set()).add(tie)
        edge = self._tie_edges.get(tie)
        if edge is None:
            self._attach(tie)
        else:
            self._graph.update_edge_by_index(edge, value)

    def cut_tie(self, tie: keys.EdgeID) -> bool:
        """Remove the tie; returns whether there was one."""
        if self._ties.pop(tie, None) is None:
            return False
        self.version += 1
        for end in {tie.source, tie.target}:
            self._ties_at[end].discard(tie)
            if not self._ties_at[end]:
                del self._ties_at[end]
        edge = self._tie_edges.pop(tie, None)
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
    def ties(self) -> dict[keys.EdgeID, Tie]:
        """A copy of all ties, also of those that miss an end."""
        return dict(self._ties)

    def _add(self, key: keys.VertexKey) -> None:
        self._index[key] = self._graph.add_node(key)
        for tie in sorted(self._ties_at.get(key, ())):
            self._attach(tie)

    def _drop(self, key: keys.VertexKey) -> None:
        # rustworkx removes the edges with the vertex, so their indices are forgotten first.
        for tie in self._ties_at.get(key, ()):
            self._tie_edges.pop(tie, None)
        self._graph.remove_node(self._index.pop(key))

    def _attach(self, tie: keys.EdgeID) -> None:
        source, target = self._index.get(tie.source), self._index.get(tie.target)
        if source is not None and target is not None and tie not in self._tie_edges:
            self._tie_edges[tie] = self._graph.add_edge(source, target, self._ties[tie])

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
