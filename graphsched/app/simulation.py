"""The scheduler without a cluster: every pending pod of a cluster is decided in turn and stays where it is put.

A `ClusterState` comes in, a `Run` goes out: who went where, who found nothing and why, what is used, and how that grew
with each arrival. `simulate` prints it, the demo and the HTML report draw it. The engine is the live scheduler's:
same store, same decisions, an assumed pod is the same patch.

Invariant: equal input gives equal results, bit for bit; only `seconds` is of the clock.
"""

from __future__ import annotations

import dataclasses
import enum
import time
from collections.abc import Callable, Iterable, Sequence

import msgspec

from graphsched.app import offline
from graphsched.base.values import groups, keys, nodes, pods, relations
from graphsched.decision import cycle, trace
from graphsched.explain import refusals
from graphsched.graph import delta, store
from graphsched.sources import state

GPU = "gpu"
"""Name under which shareable GPUs are summed up, in thousandths."""


class Order(enum.StrEnum):
    """In which order pending pods are decided."""

    QUEUE = "queue"
    """As the live queue would: higher priority first, then older, then as written."""
    FILE = "file"
    """As written: the order of arrival in a trace."""


class Placed(msgspec.Struct, frozen=True, gc=False):
    """A pod that found a node. `devices` are the indices of its GPUs there."""

    pod: str
    node: str
    devices: tuple[int, ...] = ()
    score: int = 0
    feasible: int = 0


class Pending(msgspec.Struct, frozen=True, gc=False):
    """A pod that found none, the message its condition would carry, and who refused it."""

    pod: str
    message: str
    plugins: tuple[str, ...] = ()


class Usage(msgspec.Struct, frozen=True, gc=False):
    """One resource over all nodes, in the unit of `nodes.Amounts`; GPUs in thousandths."""

    resource: str
    used: int
    offered: int

    @property
    def percent(self) -> float:
        """Used share, rounded to two decimals; 0 where nothing is offered."""
        return round(100 * self.used / self.offered, 2) if self.offered else 0.0


class Arrival(msgspec.Struct, frozen=True, gc=False):
    """Where things stood after a pod was decided: what had been asked for and what was given, so far."""

    asked_gpu: int
    used_gpu: int
    used_cpu: int
    used_memory: int
    pending: int


@dataclasses.dataclass(frozen=True, slots=True)
class Run:
    """A finished simulation.

    Attributes:
        cluster: What was simulated.
        graph: The graph afterwards.
        decider: What decided, for further questions.
        placed: In the order of decision.
        pending: In the order of decision.
        gated: Names of the pods that scheduling gates held back, in order.
        usage: By resource: cpu, memory, GPUs, then others by name.
        arrivals: One for each decision.
        seconds: How long deciding took, without reading.
    """

    cluster: state.ClusterState
    graph: store.Store
    decider: cycle.Decider
    placed: tuple[Placed, ...]
    pending: tuple[Pending, ...]
    gated: tuple[str, ...]
    usage: tuple[Usage, ...]
    arrivals: tuple[Arrival, ...]
    seconds: float

    @property
    def decisions(self) -> int:
        """Number of pods that were decided."""
        return len(self.placed) + len(self.pending)


def in_order(waiting: Iterable[pods.Pod], order: Order) -> list[pods.Pod]:
    """The pods in the order in which they are decided."""
    if order is Order.FILE:
        return list(waiting)
    return sorted(waiting, key=lambda pod: (-pod.priority, pod.created))


def run(
    cluster: state.ClusterState,
    *,
    order: Order = Order.QUEUE,
    decider: cycle.Decider | None = None,
    scheduler: str = "",
    arrange: Callable[[Sequence[groups.Group], list[pods.Pod]], list[pods.Pod]] = lambda _, waiting: waiting,
    advance: Callable[[], None] = lambda: None,
) -> Run:
    """Decide every pending pod.

    Args:
        cluster: The cluster; its pods that are being deleted, bound or promised keep their room and are not decided.
        order: Of decision.
        decider: The profile's; the default profile unless given.
        scheduler: Decide only pods with this schedulerName; empty for all.
        arrange: Given the groups and the queue, how it is ordered instead; not asked with `Order.FILE`.
        advance: Called after each decision, for a progress bar.
    """
    deciding = decider or cycle.Decider()
    graph = offline.graph_of(cluster, sick_below=deciding.settings.sick_below)
    waiting = [pod for pod in cluster.pending if not pod.deleting and (not scheduler or pod.scheduler == scheduler)]
    queue = in_order((pod for pod in waiting if not pod.gates), order)
    if order is Order.QUEUE:
        found = (graph.vertex(key) for key in sorted(graph.vertex_keys(f"{keys.Kind.GROUP.value}/")))
        queue = arrange([group for group in found if isinstance(group, groups.Group)], queue)
    books = _Books(cluster)
    begun = time.perf_counter()
    for pod in queue:
        books.enter(pod, _decide(graph, deciding, pod))
        advance()
    if any(pod.nominated for pod in queue):
        _try_again(graph, deciding, books, queue)
    return Run(
        cluster=cluster,
        graph=graph,
        decider=deciding,
        placed=tuple(books.placed.values()),
        pending=tuple(books.pending.values()),
        gated=tuple(pod.full_name for pod in waiting if pod.gates),
        usage=books.usage(),
        arrivals=tuple(books.arrivals),
        seconds=time.perf_counter() - begun,
    )


def _decide(graph: store.Store, decider: cycle.Decider, pod: pods.Pod) -> trace.Decision:
    decision = decider.decide(graph.view(), pod)
    if decision.placed:
        edge = keys.EdgeID(pod.key, keys.node_key(decision.node), keys.EdgeKind.RUNS)
        graph.apply(delta.Patch().set_edge(edge, relations.Runs(pod.uid, decision.devices)))
    return decision


def _try_again(graph: store.Store, decider: cycle.Decider, books: _Books, queue: Sequence[pods.Pod]) -> None:
    """Room that was nominated to a pod is free again once that pod has gone elsewhere, so others get another try."""
    progress = True
    while progress:
        progress = False
        for pod in queue:
            if pod.full_name in books.pending:
                decision = _decide(graph, decider, pod)
                if decision.placed:
                    books.enter(pod, decision)
                    progress = True


class _Books:
    """What was given to whom, summed up along the way."""

    def __init__(self, cluster: state.ClusterState) -> None:
        self.placed: dict[str, Placed] = {}
        self.pending: dict[str, Pending] = {}
        self.arrivals: list[Arrival] = []
        self._asked_gpu = 0
        self._offered: dict[str, int] = {}
        self._used: dict[str, int] = {}
        known, promises = {node.name for node in cluster.nodes}, cluster.promises
        for node in cluster.nodes:
            for resource, amount in node.allocatable:
                self._offered[resource] = self._offered.get(resource, 0) + amount
            if node.gpus:
                self._offered[GPU] = self._offered.get(GPU, 0) + 1000 * node.gpus
        for pod in cluster.pods:
            if (pod.node or promises.get(pod.key)) in known:
                self._take(pod)

    def enter(self, pod: pods.Pod, decision: trace.Decision) -> None:
        """Write a decision down."""
        name = pod.full_name
        if name not in self.pending and pod.spec.gpu is not None:
            self._asked_gpu += pod.spec.gpu.count * pod.spec.gpu.milli
        if decision.placed:
            self.pending.pop(name, None)
            self.placed[name] = Placed(name, decision.node, decision.devices, decision.score, decision.feasible)
            self._take(pod)
        elif decision.diagnosis is not None:
            self.pending[name] = Pending(name, refusals.text(decision.diagnosis), decision.diagnosis.plugins)
        self.arrivals.append(
            Arrival(
                asked_gpu=self._asked_gpu,
                used_gpu=self._used.get(GPU, 0),
                used_cpu=self._used.get(nodes.CPU, 0),
                used_memory=self._used.get(nodes.MEMORY, 0),
                pending=len(self.pending),
            )
        )

    def _take(self, pod: pods.Pod) -> None:
        for resource, amount in pod.held.amounts:
            self._used[resource] = self._used.get(resource, 0) + amount
        self._used[nodes.PODS] = self._used.get(nodes.PODS, 0) + 1
        if pod.spec.gpu is not None:
            self._used[GPU] = self._used.get(GPU, 0) + pod.spec.gpu.count * pod.spec.gpu.milli

    def usage(self) -> tuple[Usage, ...]:
        """What is used of what is offered."""
        first = (nodes.CPU, nodes.MEMORY, GPU)
        others = sorted({*self._offered, *self._used} - {*first, nodes.PODS})
        names = [name for name in first if self._offered.get(name)] + [name for name in others if self._used.get(name)]
        return tuple(Usage(name, self._used.get(name, 0), self._offered.get(name, 0)) for name in (*names, nodes.PODS))
