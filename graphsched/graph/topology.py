"""The physical topology as a graph: domains and places that contain others and nodes, and links between any of them.

Decisions ask it what is near what; explanations and exports draw it. Domains come from node labels alone (`levels`) and
live as long as a node is in them; places are patched in. So are ties, the edges that no label makes: links, and what a
place contains. A tie may name an end that is not there yet: it is kept, and appears in the graph when both its ends do.

Comes in: nodes, places and ties, from `store`. Goes out: domains, members, distances, a copy of the graph for exports.
Invariant: vertices are known by key; the indices of rustworkx are recycled, never leave this module, and decide no
order.
"""

from __future__ import annotations

import collections
import itertools

import rustworkx

from graphsched.base.values import keys, labels, relations
from graphsched.graph import levels

Tie = relations.Contains | relations.Link
"""An edge that is patched in."""
Payload = keys.EdgeKind | Tie
"""What an edge of the graph carries: `EdgeKind.CONTAINS` where a label makes it, or the tie."""
Graph = rustworkx.PyDiGraph[keys.VertexKey, Payload]

TOUCHED_MAX = 1 << 16
"""Names of changed vertices and edges that are remembered for followers; who is further behind starts afresh."""


class Topology:
    """Nodes, domains, places and ties.

    Attributes:
        version: Counts up with every change.
        links: How many links are patched in, whether their ends are there or not.
        moment: Counts up with every vertex and every edge that comes, goes or changes; see `touched`.
    """

    def __init__(self) -> None:
        self._graph: Graph = rustworkx.PyDiGraph()
        self._index: dict[keys.VertexKey, int] = {}
        self._places: dict[str, levels.Place] = {}
        self._members: dict[keys.VertexKey, set[str]] = {}
        # (outer, inner) → how many nodes say so: one level may go by two labels, and then nodes of one domain name
        # different domains outside it.
        self._nestings: dict[tuple[keys.VertexKey, keys.VertexKey], int] = {}
        self._ties: dict[keys.EdgeID, Tie] = {}
        self._tie_edges: dict[keys.EdgeID, int] = {}
        self._ties_at: dict[keys.VertexKey, set[keys.EdgeID]] = {}
        self._touched: collections.deque[keys.VertexKey | keys.EdgeID] = collections.deque(maxlen=TOUCHED_MAX)
        self.version = 0
        self.links = 0
        self.moment = 0

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
            members.add(name)
            if before is None or domain not in before.domains:
                self._nest(domain)
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
        self.links += tie not in self._ties and tie.kind is keys.EdgeKind.LINK
        self._ties[tie] = value
        for end in tie[:2]:
            self._ties_at.setdefault(end, set()).add(tie)
        edge = self._tie_edges.get(tie)
        if edge is None:
            self._attach(tie)
        else:
            self._graph.update_edge_by_index(edge, value)
            self._touch(tie)

    def cut_tie(self, tie: keys.EdgeID) -> bool:
        """Remove the tie; returns whether there was one."""
        if self._ties.pop(tie, None) is None:
            return False
        self.version += 1
        self.links -= tie.kind is keys.EdgeKind.LINK
        for end in {tie.source, tie.target}:
            self._ties_at[end].discard(tie)
            if not self._ties_at[end]:
                del self._ties_at[end]
        edge = self._tie_edges.pop(tie, None)
        if edge is not None:
            self._graph.remove_edge_from_index(edge)
            self._touch(tie)
        return True

    def touched(self, since: int) -> list[keys.VertexKey | keys.EdgeID] | None:
        """Vertices and edges that came, went or changed after the moment `since`, oldest first, perhaps repeatedly.

        What became of each is to be asked; an edge of a vertex that went is named, too. None when that is too long ago.
        """
        missed = self.moment - since
        if missed > len(self._touched):
            return None
        return list(itertools.islice(reversed(self._touched), missed))[::-1]

    def vertices(self) -> list[keys.VertexKey]:
        """Every vertex, in no particular order."""
        return list(self._index)

    def edges(self) -> list[keys.EdgeID]:
        """Every edge whose ends are both there, each once, in no particular order."""
        graph, link, contains = self._graph, keys.EdgeKind.LINK, keys.EdgeKind.CONTAINS
        found = {
            keys.EdgeID(graph[source], graph[target], link if isinstance(payload, relations.Link) else contains)
            for source, target, payload in graph.weighted_edge_list()
        }
        return list(found)

    def nestings(self) -> list[tuple[keys.VertexKey, keys.VertexKey]]:
        """The edges that labels make, as (outer, inner), sorted; one that is drawn twice is there twice."""
        graph = self._graph
        drawn = graph.weighted_edge_list()
        return sorted((graph[outer], graph[inner]) for outer, inner, of in drawn if of is keys.EdgeKind.CONTAINS)

    @property
    def containments(self) -> int:
        """Number of edges that contain: those that labels make, and those patched in, whether their ends are there."""
        return self._graph.num_edges() - len(self._tie_edges) + len(self._ties) - self.links

    def holds(self, vertex: keys.VertexKey) -> bool:
        """Whether the vertex is there."""
        return vertex in self._index

    def attached(self, edge: keys.EdgeID) -> bool:
        """Whether the edge and both its ends are there; one that a label makes counts like one patched in."""
        if edge in self._tie_edges:
            return True
        source, target = self._index.get(edge.source), self._index.get(edge.target)
        if edge.kind is not keys.EdgeKind.CONTAINS or source is None or target is None:
            return False
        if not self._graph.has_edge(source, target):
            return False
        return keys.EdgeKind.CONTAINS in self._graph.get_all_edge_data(source, target)

    def tie(self, edge: keys.EdgeID) -> Tie | None:
        """What was patched in for this edge, whether its ends are there or not."""
        return self._ties.get(edge)

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
        self._touch(key)
        for tie in sorted(self._ties_at.get(key, ())):
            self._attach(tie)

    def _drop(self, key: keys.VertexKey) -> None:
        # rustworkx removes the edges with the vertex, so their indices are forgotten first.
        for tie in self._ties_at.get(key, ()):
            if self._tie_edges.pop(tie, None) is not None:
                self._touch(tie)
        index, graph = self._index.pop(key), self._graph
        for source, target, payload in (*graph.in_edges(index), *graph.out_edges(index)):
            if payload is keys.EdgeKind.CONTAINS:
                self._touch(keys.EdgeID(graph[source], graph[target], keys.EdgeKind.CONTAINS))
        graph.remove_node(index)
        self._touch(key)

    def _attach(self, tie: keys.EdgeID) -> None:
        source, target = self._index.get(tie.source), self._index.get(tie.target)
        if source is not None and target is not None and tie not in self._tie_edges:
            self._tie_edges[tie] = self._graph.add_edge(source, target, self._ties[tie])
            self._touch(tie)

    def _contain(self, outer: keys.VertexKey, inner: keys.VertexKey) -> None:
        self._graph.add_edge(self._index[outer], self._index[inner], keys.EdgeKind.CONTAINS)
        self._touch(keys.EdgeID(outer, inner, keys.EdgeKind.CONTAINS))

    def _uncontain(self, outer: keys.VertexKey, inner: keys.VertexKey) -> None:
        source, target = self._index[outer], self._index[inner]
        for edge in self._graph.edge_indices_from_endpoints(source, target):
            if self._graph.get_edge_data_by_index(edge) is keys.EdgeKind.CONTAINS:
                self._graph.remove_edge_from_index(edge)
        self._touch(keys.EdgeID(outer, inner, keys.EdgeKind.CONTAINS))

    def _nest(self, domain: levels.Domain) -> None:
        """Count one more node that says what holds the domain."""
        if domain.parent is None:
            return
        pair = domain.parent, domain.key
        told = self._nestings.get(pair, 0)
        if not told:
            self._contain(*pair)
        self._nestings[pair] = told + 1

    def _unnest(self, domain: levels.Domain) -> None:
        """Count one node less that says what holds the domain; both are still there."""
        if domain.parent is None:
            return
        pair = domain.parent, domain.key
        told = self._nestings[pair] - 1
        if told:
            self._nestings[pair] = told
        else:
            del self._nestings[pair]
            self._uncontain(*pair)

    def _touch(self, name: keys.VertexKey | keys.EdgeID) -> None:
        self._touched.append(name)
        self.moment += 1

    def _leave(self, name: str, before: levels.Place, after: levels.Place) -> None:
        """Take the node out of the domains it is no longer in, inner ones first, and drop those left empty."""
        key = keys.node_key(name)
        if key in self._index:
            for parent in before.parents:
                if parent not in after.parents:
                    self._uncontain(parent, key)
        staying = {domain.key for domain in after.domains}
        for domain in reversed(before.domains):
            if domain not in after.domains:
                self._unnest(domain)
            if domain.key in staying:
                continue
            members = self._members[domain.key]
            members.discard(name)
            if not members:
                del self._members[domain.key]
                self._drop(domain.key)
