"""The store: what is. One writer, one door.

Patches come in from `sources/` and, as outcomes, from `action/`; `apply` checks a patch whole, changes the graph whole
and returns what happened as a value. What is stored are the vertices and edges; columns, ports, devices, images,
topology and the term index are derived from them and kept in step here, so that `decision/` can ask in vectors.

Invariants, checked by `audit` and by the laws:
- a pod counts on the node it is bound to, or else on the node a `runs` edge promises to the same UID, or nowhere;
- references may dangle: a pod on an unknown node waits for it and is counted when the node appears;
- a refused patch has changed nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from graphsched.base.values import groups, keys, nodes, places, pods, policies, relations, selections as values
from graphsched.graph import (
    admission,
    attributes,
    audit,
    budgets,
    callers,
    cells,
    columns,
    crowd,
    delta,
    interest,
    links,
    matchers,
    occupancy,
    partners,
    patchlog,
    routes,
    rules,
    selections,
    streams,
    topology,
)
from graphsched.graph.view import View


class Placement(msgspec.Struct, frozen=True, gc=False):
    """What a pod is counted as: the pod as it was, the node's name and the devices it holds there."""

    pod: pods.Pod
    node: str
    devices: tuple[int, ...]


class Store:
    """The layered graph and everything derived from it.

    Attributes:
        generation: Counts up with every patch that was applied.
        columns, attributes, ports, images, devices, topology, routes, links, budgets, cells, matchers, crowd,
            selections, groups, callers, rules: See their modules; read them through a view.
        nominated: Node name → pods that are not placed and were nominated to it.
        log: The last patches, for followers; None until there is one.
    """

    def __init__(self, *, sick_below: float = routes.SICK_BELOW) -> None:
        """Make an empty graph; links less healthy than `sick_below` are avoided, see `routes`."""
        self.generation = 0
        self.log: patchlog.PatchLog | None = None
        self.columns = columns.Columns()
        self.attributes = attributes.Attributes()
        self.ports = occupancy.Ports()
        self.images = occupancy.Images()
        self.devices = occupancy.Devices()
        self.topology = topology.Topology()
        self.routes = routes.Routes(self.topology, self.columns, sick_below=sick_below)
        self.links = links.Links(self.columns.rows)
        self.budgets = budgets.Budgets(self.columns.rows)
        self.cells = cells.Cells(self.columns.rows)
        self.matchers = matchers.MatcherIndex()
        self.streams = streams.StreamTable()
        self.selections = selections.Selections()
        self.groups = partners.Groups()
        self.callers = callers.Callers(self.selections)
        self.rules = rules.Rules()
        self.crowd = crowd.Crowd(self.matchers, interest.Interest(self.matchers))
        self.nominated: dict[str, dict[keys.VertexKey, pods.Pod]] = {}
        self._vertices: dict[keys.VertexKey, delta.Vertex] = {}
        self._edges: dict[keys.EdgeID, relations.Edge] = {}
        self._edges_at: dict[keys.VertexKey, set[keys.EdgeID]] = {}
        self._placed: dict[keys.VertexKey, Placement] = {}
        self._on_node: dict[str, dict[keys.VertexKey, Placement]] = {}
        self._nominated_to: dict[keys.VertexKey, str] = {}

    # ── reading ────────────────────────────────────────────────────────────────────────────────────────────────────

    def view(self) -> View:
        """A view of the present generation; it raises when read after the next patch."""
        return View(self)

    def node(self, name: str) -> nodes.Node | None:
        """The node of this name."""
        found = self._vertices.get(keys.node_key(name))
        return found if isinstance(found, nodes.Node) else None

    def pod(self, key: keys.VertexKey) -> pods.Pod | None:
        """The pod of this key."""
        found = self._vertices.get(key)
        return found if isinstance(found, pods.Pod) else None

    def vertex(self, key: keys.VertexKey) -> delta.Vertex | None:
        """Whatever vertex has this key."""
        return self._vertices.get(key)

    def vertex_keys(self, prefix: str = "") -> list[keys.VertexKey]:
        """The keys of all vertices that begin so, in no particular order."""
        return [key for key in self._vertices if key.startswith(prefix)]

    def all_pods(self) -> Iterable[pods.Pod]:
        """Every pod, placed or not, in no particular order."""
        return (vertex for vertex in self._vertices.values() if isinstance(vertex, pods.Pod))

    def placement(self, key: keys.VertexKey) -> Placement | None:
        """Where the pod counts; None while it counts nowhere."""
        return self._placed.get(key)

    def due(self, key: keys.VertexKey) -> Placement | None:
        """Where the pod should count, by what is stored of it; None while that is nowhere, or there is no such pod."""
        pod = self.pod(key)
        return None if pod is None else self._due(key, pod)

    def on_node(self, name: str) -> dict[keys.VertexKey, Placement]:
        """The pods that count on the node, known or not. Not to be changed."""
        return self._on_node.get(name, {})

    def promised(self, key: keys.VertexKey) -> keys.EdgeID | None:
        """The pod's `runs` edge."""
        for edge in self._edges_at.get(key, ()):
            if edge.kind is keys.EdgeKind.RUNS and edge.source == key:
                return edge
        return None

    def edge(self, edge: keys.EdgeID) -> relations.Edge | None:
        """Attributes of the edge."""
        return self._edges.get(edge)

    def edge_ids(self, kind: keys.EdgeKind) -> list[keys.EdgeID]:
        """Every edge of this kind, in no particular order."""
        return [edge for edge in self._edges if edge.kind is kind]

    def links_at(self, key: keys.VertexKey) -> list[keys.EdgeID]:
        """Every link that begins or ends there, in no particular order."""
        return [edge for edge in self._edges_at.get(key, ()) if edge.kind is keys.EdgeKind.LINK]

    def content(self) -> tuple[dict[keys.VertexKey, delta.Vertex], dict[keys.EdgeID, relations.Edge]]:
        """Copies of the vertices and edges: all that is not derived."""
        return dict(self._vertices), dict(self._edges)

    def audit(self) -> list[str]:
        """One line for everything derived that is not what a store built afresh would hold; empty when all is well."""
        return audit.differences(self)

    # ── the one door ───────────────────────────────────────────────────────────────────────────────────────────────

    def apply(self, patch: delta.Patch, *, undo: bool = False) -> delta.Applied | delta.Refused:
        """Take a patch whole, or not at all.

        Args:
            patch: What to remove and what to set.
            undo: Whether to return the patch that takes it back.
        """
        if patch.stream is not None:
            admitted = self.streams.check(patch.stream)
            if isinstance(admitted, delta.Refused):
                return admitted
            if admitted is streams.Admission.REPEATED:
                self.streams.advance(patch.stream)
                return delta.Applied(self.generation, repeated=True)
        problem = admission.problem(patch, self.promised)
        if problem:
            return delta.Refused("invalid", problem)
        back = delta.invert(patch, (self._vertices, self._edges), self._touching) if undo else None
        self.generation += 1
        touched = self._remove(patch)
        self._set(patch, touched)
        for key in touched:
            self._settle(key)
        if self.log is not None:
            self.log.add(self.generation, patch)
        if self.topology.links:
            self.routes.follow()
        if patch.stream is not None:
            self.streams.advance(patch.stream)
        return delta.Applied(self.generation, back)

    def sift(self, patch: delta.Patch) -> tuple[delta.Patch, list[str]]:
        """What `apply` would take of a patch that it refused as `invalid`, and a sentence for each row it would not.

        For sources that would send the same patch again, however often they were asked.
        """
        return admission.sift(patch, self.promised)

    def _touching(self, key: keys.VertexKey) -> Iterable[keys.EdgeID]:
        return self._edges_at.get(key, ())

    def _remove(self, patch: delta.Patch) -> dict[keys.VertexKey, None]:
        """Carry out the removals; returns the keys of pods whose placement may have changed, in order."""
        touched: dict[keys.VertexKey, None] = {}
        doomed = {edge for key in patch.removed for edge in self._edges_at.get(key, ())} | patch.cut
        for edge in doomed:
            self._cut(edge, touched)
        for key in patch.removed:
            # A vertex that is set again in the same patch was removed only for its edges' sake.
            if key not in patch.vertices:
                self._write_vertex(key, None, touched)
        return touched

    def _set(self, patch: delta.Patch, touched: dict[keys.VertexKey, None]) -> None:
        arriving = sum(
            1 for vertex in patch.vertices.values() if isinstance(vertex, nodes.Node) and self.node(vertex.name) is None
        )
        if arriving and self.columns.reserve(arriving):
            self.attributes.resize(self.columns.capacity)
            self.devices.resize(self.columns.capacity)
            self.links.resize(self.columns.capacity)
            self.budgets.resize(self.columns.capacity)
            self.cells.resize(self.columns.capacity)
            self.matchers.resize(self.columns.capacity)
        for key, vertex in patch.vertices.items():
            self._write_vertex(key, vertex, touched)
        for edge, value in patch.edges.items():
            if edge in self._edges:
                self._cut(edge, touched)
            self._edges[edge] = value
            self._edges_at.setdefault(edge.source, set()).add(edge)
            self._edges_at.setdefault(edge.target, set()).add(edge)
            if isinstance(value, relations.Runs):
                touched[edge.source] = None
            else:
                self.topology.set_tie(edge, value)
                if isinstance(value, relations.Link):
                    self.links.set(edge, value)

    def _cut(self, edge: keys.EdgeID, touched: dict[keys.VertexKey, None]) -> None:
        value = self._edges.pop(edge, None)
        if value is None:
            return
        for end in {edge.source, edge.target}:
            at = self._edges_at[end]
            at.discard(edge)
            if not at:
                del self._edges_at[end]
        if isinstance(value, relations.Runs):
            touched[edge.source] = None
        else:
            self.topology.cut_tie(edge)
            if isinstance(value, relations.Link):
                self.links.cut(edge)

    def _write_vertex(
        self, key: keys.VertexKey, vertex: delta.Vertex | None, touched: dict[keys.VertexKey, None]
    ) -> None:
        before = self._vertices.get(key)
        if vertex is None:
            self._vertices.pop(key, None)
        else:
            self._vertices[key] = vertex
        sample = before if vertex is None else vertex
        if isinstance(sample, pods.Pod):
            touched[key] = None
        elif isinstance(sample, nodes.Node):
            self._write_node(
                before if isinstance(before, nodes.Node) else None, vertex if isinstance(vertex, nodes.Node) else None
            )
        elif isinstance(sample, nodes.Namespace):
            self.matchers.set_namespace(sample.name, None if vertex is None else sample.labels)
        elif isinstance(sample, values.Selection) and before != vertex:
            self.selections.set(key, vertex if isinstance(vertex, values.Selection) else None)
            if sample.kind == values.SERVICE:
                self.callers.reselect(sample.namespace, sample.name)
        elif isinstance(sample, groups.Group) and before != vertex:
            self.groups.set(key, vertex if isinstance(vertex, groups.Group) else None)
        elif isinstance(sample, places.Place):
            was, now = (each if isinstance(each, places.Place) else None for each in (before, vertex))
            self.cells.set(was, now)
            if vertex is None:
                self.topology.remove_place(key)
            else:
                self.topology.set_place(key)
        elif isinstance(sample, policies.Rule):
            self.rules.set(key, vertex if isinstance(vertex, policies.Rule) else None)

    # ── derived state ──────────────────────────────────────────────────────────────────────────────────────────────

    def _write_node(self, before: nodes.Node | None, after: nodes.Node | None) -> None:
        if before == after:
            return
        if after is None:
            if before is not None:
                self._drop_node(before)
            return
        arriving = before is None
        row = self.columns.add(after.name) if before is None else self.columns.rows[after.name]
        if arriving:
            self.images.arrive(row)
            self.links.arrive(after.name)
            self.cells.arrive(after.name)
        self.attributes.set(row, after)
        self.images.set(row, before.images if before else (), after.images)
        if before is None or before.labels != after.labels:
            self.topology.set_node(after.name, after.labels)
        self.columns.set_allocatable(row, after.allocatable)
        if before is None or before.budget != after.budget:
            self.columns.set_installed(row, after.budget.capacity)
            self.budgets.set(row, after.name, after.budget)
        if before is None or before.gpus != after.gpus:
            self.devices.set(row, after.gpus)
            for placement in self.on_node(after.name).values():
                self._count_devices(row, placement, sign=1)
        if arriving:
            for key, placement in self.on_node(after.name).items():
                self._count(row, placement, sign=1)
                self.matchers.place(key, _matched(placement, row))
        self.columns.changed[row] = self.columns.reshaped[row] = self.generation

    def _drop_node(self, node: nodes.Node) -> None:
        row = self.columns.rows[node.name]
        for key, placement in self.on_node(node.name).items():
            self.matchers.place(key, _matched(placement, -1))
        self.ports.clear(row)
        self.images.set(row, node.images, ())
        self.attributes.set(row, None)
        self.devices.set(row, 0)
        self.topology.remove_node(node.name)
        self.columns.remove(node.name)
        self.links.leave(row)
        self.cells.leave(row)
        self.budgets.drop(row, node.name)
        self.columns.changed[row] = self.columns.reshaped[row] = self.generation

    def _settle(self, key: keys.VertexKey) -> None:
        """Count the pod where it belongs now, if that is not where it was counted."""
        pod = self.pod(key)
        before = self._placed.get(key)
        after = self._due(key, pod) if pod is not None else None
        self._nominate(key, pod if after is None else None)
        if before == after:
            return
        if before is not None and after is not None and _counts_alike(before, after):
            self._placed[key] = self._on_node[after.node][key] = after
            return
        if before is not None:
            self._displace(key, before)
        if after is not None:
            self._placed[key] = after
            self._on_node.setdefault(after.node, {})[key] = after
            if after.pod.spec.graph is not None:
                self.callers.hold(after.pod.spec.graph)
            row = self.columns.rows.get(after.node, -1)
            if row >= 0:
                self._count(row, after, sign=1)
                self._count_devices(row, after, sign=1)
            self.matchers.place(key, _matched(after, row))

    def _displace(self, key: keys.VertexKey, before: Placement) -> None:
        del self._placed[key]
        if before.pod.spec.graph is not None:
            self.callers.drop(before.pod.spec.graph)
        there = self._on_node[before.node]
        del there[key]
        if not there:
            del self._on_node[before.node]
        row = self.columns.rows.get(before.node, -1)
        if row >= 0:
            self._count(row, before, sign=-1)
            self._count_devices(row, before, sign=-1)
        self.matchers.unplace(key)

    def _due(self, key: keys.VertexKey, pod: pods.Pod) -> Placement | None:
        if pod.node:
            return Placement(pod, pod.node, pod.devices)
        promised = self.promised(key)
        if promised is None:
            return None
        runs = self._edges[promised]
        if not isinstance(runs, relations.Runs) or runs.uid != pod.uid:
            return None
        return Placement(pod, keys.name_of(promised.target), runs.devices)

    def _nominate(self, key: keys.VertexKey, pod: pods.Pod | None) -> None:
        """Keep `nominated` in step: `pod` is the pod while it is not placed, None otherwise."""
        wanted = pod.nominated if pod is not None else ""
        held = self._nominated_to.get(key, "")
        if held and held != wanted:
            del self._nominated_to[key]
            del self.nominated[held][key]
            if not self.nominated[held]:
                del self.nominated[held]
        if pod is not None and wanted:
            self._nominated_to[key] = wanted
            self.nominated.setdefault(wanted, {})[key] = pod

    def _count(self, row: int, placement: Placement, *, sign: int) -> None:
        self.columns.count(row, placement.pod.held, sign=sign)
        self._count_ports(row, placement, sign=sign)
        if self.budgets.reserving:
            self.budgets.touch(placement.node)
        self.columns.changed[row] = self.generation

    def _count_ports(self, row: int, placement: Placement, *, sign: int) -> None:
        if placement.pod.spec.ports:
            self.ports.count(row, placement.pod.spec.ports, sign=sign)

    def _count_devices(self, row: int, placement: Placement, *, sign: int) -> None:
        gpu = placement.pod.spec.gpu
        if gpu is not None and placement.devices:
            self.devices.count(row, placement.devices, gpu.milli, sign=sign)


def _counts_alike(before: Placement, after: Placement) -> bool:
    """Whether replacing one by the other changes no count: most status updates of a running pod."""
    return (
        before.node == after.node
        and before.devices == after.devices
        and before.pod.held == after.pod.held
        and before.pod.spec == after.pod.spec
        and before.pod.labels == after.pod.labels
        and before.pod.deleting == after.pod.deleting
    )


def _matched(placement: Placement, row: int) -> matchers.Placed:
    pod = placement.pod
    return matchers.Placed(pod.namespace, callers.labels_of(pod), row, pod.deleting, pod.spec)
