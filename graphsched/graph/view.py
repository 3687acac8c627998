"""What a decision may read: the store at one generation.

On the writer's own loop a view costs nothing: it is the live store behind a guard that raises once the store has moved
on. `with_changes` gives the same view with some pods taken off and others put on, for the what-if of nominated pods, of
preemption and of gangs; only what those pods touch is copied.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable

from graphsched.base.values import errors, keys, nodes, pods
from graphsched.graph import (
    attributes,
    budgets,
    callers,
    cells,
    columns,
    crowd,
    links,
    matchers,
    occupancy,
    partners,
    routes,
    rules,
    selections,
    topology,
)

if typing.TYPE_CHECKING:
    from graphsched.graph.store import Placement, Store


class View:
    """The graph at one generation. Every reading raises `StaleViewError` once the store has applied another patch.

    Attributes:
        generation: The generation it shows.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.generation = store.generation
        self._columns = store.columns
        self._ports = store.ports
        self._devices = store.devices
        self._crowd = store.crowd
        self._budgets: budgets.Budgets | None = None
        self._left: frozenset[keys.VertexKey] = frozenset()
        self._came: tuple[tuple[pods.Pod, str], ...] = ()

    def check(self) -> None:
        """Raise if the store has moved on.

        Raises:
            StaleViewError: Another patch was applied.
        """
        if self._store.generation != self.generation:
            message = f"view of generation {self.generation} read at generation {self._store.generation}"
            raise errors.StaleViewError(message)

    @property
    def columns(self) -> columns.Columns:
        """Numbers of every node."""
        self.check()
        return self._columns

    @property
    def attributes(self) -> attributes.Attributes:
        """Labels, taints, features and models of every node."""
        self.check()
        return self._store.attributes

    @property
    def ports(self) -> occupancy.Ports:
        """Host ports in use."""
        self.check()
        return self._ports

    @property
    def images(self) -> occupancy.Images:
        """Images on the nodes."""
        self.check()
        return self._store.images

    @property
    def devices(self) -> occupancy.Devices:
        """Shareable GPUs."""
        self.check()
        return self._devices

    @property
    def topology(self) -> topology.Topology:
        """The physical layer."""
        self.check()
        return self._store.topology

    @property
    def routes(self) -> routes.Routes:
        """Distances and ways over the physical layer."""
        self.check()
        return self._store.routes

    @property
    def budgets(self) -> budgets.Budgets:
        """What may be used of the nodes."""
        self.check()
        if self._budgets is None:
            self._budgets = self._store.budgets.settle(self._pods_on)
        return self._budgets

    @property
    def cells(self) -> cells.Cells:
        """What is free in the NUMA cells of the nodes."""
        self.check()
        return self._store.cells

    @property
    def links(self) -> links.Links:
        """How well the nodes are linked."""
        self.check()
        return self._store.links

    @property
    def matchers(self) -> matchers.MatcherIndex:
        """The term index."""
        self.check()
        return self._store.matchers

    @property
    def crowd(self) -> crowd.Crowd:
        """What placed pods count to and demand of others."""
        self.check()
        return self._crowd

    @property
    def selections(self) -> selections.Selections:
        """Selectors of Services and controllers."""
        self.check()
        return self._store.selections

    @property
    def groups(self) -> partners.Groups:
        """Groups of workloads that exchange data."""
        self.check()
        return self._store.groups

    @property
    def callers(self) -> callers.Callers:
        """Who names whom as a peer."""
        self.check()
        return self._store.callers

    @property
    def rules(self) -> rules.Rules:
        """The policy layer."""
        self.check()
        return self._store.rules

    @property
    def nominated(self) -> dict[str, dict[keys.VertexKey, pods.Pod]]:
        """Node name → pods waiting for room nominated to them there."""
        self.check()
        return self._store.nominated

    def node(self, name: str) -> nodes.Node | None:
        """The node of this name."""
        self.check()
        return self._store.node(name)

    def pod(self, key: keys.VertexKey) -> pods.Pod | None:
        """The pod of this key."""
        self.check()
        return self._store.pod(key)

    def placement(self, key: keys.VertexKey) -> Placement | None:
        """Where the pod counts; None while it counts nowhere."""
        self.check()
        return self._store.placement(key)

    def on_node(self, name: str) -> dict[keys.VertexKey, Placement]:
        """The pods that count on the node."""
        self.check()
        return self._store.on_node(name)

    def with_changes(
        self, *, removed: Iterable[keys.VertexKey] = (), added: Iterable[tuple[pods.Pod, str]] = ()
    ) -> View:
        """The same view with the pods `removed` off their nodes and each pod of `added` counted on the named node.

        Amounts, ports, devices and the crowd follow. A pod of `added` that wants shareable GPUs takes the
        ones it would be given. Pods without a placement and nodes without a row are passed over, since neither counts
        anywhere.
        """
        self.check()
        twin = View(self._store)
        twin.generation = self.generation
        twin._columns = self._columns.overlay()
        twin._ports, twin._devices = self._ports, self._devices
        gone = [placement for key in removed if (placement := self._store.placement(key)) is not None]
        newcomers = list(added)
        twin._left = self._left | {placement.pod.key for placement in gone}
        twin._came = (*self._came, *newcomers)
        if any(placement.pod.spec.ports for placement in gone) or any(pod.spec.ports for pod, _ in newcomers):
            twin._ports = self._ports.overlay()
        if any(placement.devices for placement in gone) or any(pod.spec.gpu is not None for pod, _ in newcomers):
            twin._devices = self._devices.overlay()
        twin._crowd = self._crowd.with_shifts(
            tuple(
                crowd.Shift(pod, self._columns.rows[node], sign)
                for pod, node, sign in (
                    *((placement.pod, placement.node, -1) for placement in gone),
                    *((pod, node, 1) for pod, node in newcomers),
                )
                if node in self._columns.rows
            )
        )
        if self._store.budgets.reserving:
            concerned = {placement.node for placement in gone} | {node for _, node in newcomers}
            reserving = [name for name in concerned & self._columns.rows.keys() if self.budgets.reserves(name)]
            twin._budgets = self.budgets.with_pods({name: twin._pods_on(name) for name in reserving})
        for placement in gone:
            twin._shift(placement.pod, placement.node, placement.devices, sign=-1)
        for pod, node in newcomers:
            row = self._columns.rows.get(node)
            wanted = pod.spec.gpu
            devices = twin._devices.choose(row, wanted) if row is not None and wanted is not None else ()
            twin._shift(pod, node, devices, sign=1)
        return twin

    def _pods_on(self, name: str) -> list[pods.Pod]:
        there = [placement.pod for key, placement in self._store.on_node(name).items() if key not in self._left]
        return there + [pod for pod, node in self._came if node == name]

    def _shift(self, pod: pods.Pod, node: str, devices: tuple[int, ...], *, sign: int) -> None:
        row = self._columns.rows.get(node)
        if row is None:
            return
        self._columns.count(row, pod.held, sign=sign)
        if pod.spec.ports:
            self._ports.count(row, pod.spec.ports, sign=sign)
        if pod.spec.gpu is not None and devices:
            self._devices.count(row, devices, pod.spec.gpu.milli, sign=sign)
