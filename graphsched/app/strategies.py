"""How decisions become placements: what one mode does otherwise than another, behind one small interface.

`modes` makes the one strategy that the settings name; `loop` and `intake` work through it and never ask which it is.
Most of what differs lies in the parts that it brings along: who carries out orders (`orders`), and what is written
about pods that wait (`conditions`). Here is the strategy of the modes that bind, `Binding`; `advising` and `shadow`
hold the others.
"""

from __future__ import annotations

import asyncio
import dataclasses
import typing
from collections.abc import Callable, Iterable

from graphsched.action import bind
from graphsched.base.values import keys, nodes, pods
from graphsched.explain import why
from graphsched.graph import delta

Change = tuple[keys.VertexKey, delta.Vertex | None, delta.Vertex | None]
"""A vertex's key, what it is, and what it will be."""


class Orders(typing.Protocol):
    """Has orders carried out, each to exactly one outcome; `dispatch.Dispatcher` does it by calls."""

    ready: asyncio.Event

    @property
    def free(self) -> int:
        """How many more orders it takes."""
        ...

    def __len__(self) -> int:
        """Number of orders whose outcome has not been fetched or is not known."""
        ...

    def get(self, key: keys.VertexKey) -> bind.Order | None:
        """The pod's order, while its outcome has not been fetched."""
        ...

    def submit(self, order: bind.Order) -> None:
        """Begin with an order."""
        ...

    def fetch(self) -> list[bind.Outcome]:
        """The outcomes that have become known since the last call."""
        ...

    def abandon(self) -> list[bind.Order]:
        """Cut short what is under way and go on; returns the orders whose end is unknown, and forgets them."""
        ...

    async def close(self, *, grace_s: float) -> Iterable[bind.Order]:
        """Wait for what is under way, `grace_s` at most, and return the orders whose end is unknown."""
        ...


class Conditions(typing.Protocol):
    """Says why pods wait; `conditions.Conditions` writes it where users and autoscalers look."""

    def say(self, pod: pods.Pod, *, reason: str, message: str) -> None:
        """The pod waits, for this reason."""
        ...

    def forget(self, key: keys.VertexKey) -> None:
        """The pod is gone or placed: say nothing more about it."""
        ...

    def hold(self, key: keys.VertexKey) -> asyncio.Future[None] | None:
        """The pod is about to be placed: say nothing more, and tell when what is under way is over."""
        ...

    def clear(self) -> None:
        """Say nothing of what waits, and take nothing for said: from now on somebody else speaks."""
        ...

    async def run(self) -> None:
        """Write until cancelled."""
        ...

    async def flush(self, *, deadline_s: float) -> int:
        """Write what waits, for so long at most; returns how many are left."""
        ...


class Events(typing.Protocol):
    """Tells of what happened to pods; `events.Events` writes it."""

    def __len__(self) -> int:
        """Number of events that wait."""
        ...

    def scheduled(self, pod: pods.Pod, node: str) -> None:
        """The pod was bound."""
        ...

    def failed(self, pod: pods.Pod, note: str, *, last: bool = False) -> None:
        """The pod found no node, or something went wrong with it; the `last` word is said in any case."""
        ...

    def about(self, node: nodes.Node, *, reason: str, note: str) -> None:
        """Something about a node that its operator should know."""
        ...

    def clear(self) -> None:
        """Write nothing of what waits."""
        ...

    async def run(self) -> None:
        """Write until cancelled."""
        ...

    async def flush(self, *, deadline_s: float) -> int:
        """Write what waits, for so long at most; returns how many are left."""
        ...


class Strategy(typing.Protocol):
    """One mode. Everything is called on the loop, and nothing here waits but `run`."""

    @property
    def writes(self) -> bool:
        """Whether an order that ended well has changed the pod in the cluster, so that it is none of ours any more."""
        ...

    def ours(self, pod: pods.Pod) -> bool:
        """Whether this pod, bound nowhere, is one to decide on, or will be once its gates are gone."""
        ...

    def subject(self, pod: pods.Pod) -> pods.Pod:
        """The pod as the decision is to see it."""
        ...

    def foresee(self, changes: Iterable[Change]) -> None:
        """The graph is about to take these changes, and still is as it was before them."""
        ...

    def passed_over(self, pod: pods.Pod) -> None:
        """This pod, bound nowhere, is none of ours as the graph now has it."""
        ...

    def placed(self, outcome: bind.Outcome, now: float) -> None:
        """An order ended well."""
        ...

    def told(self, pod: pods.Pod) -> why.Advised | None:
        """What is to be said of this pod beyond what the graph shows."""
        ...

    async def run(self) -> None:
        """What is to be done from time to time, until cancelled."""
        ...


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a mode brings along.

    Attributes:
        strategy: The mode.
        orders: Has orders carried out.
        conditions, events: Tell of pods.
        begin: To be called when the first lists are in the graph.
        shadow: Reports at most so many disagreements with another scheduler; None where none are looked for.
    """

    strategy: Strategy
    orders: Orders
    conditions: Conditions
    events: Events
    begin: Callable[[], None] = lambda: None
    shadow: Callable[[int], object] | None = None


class Binding:
    """The pods that name our scheduler are bound by us."""

    def __init__(self, scheduler: str, events: Events) -> None:
        self._scheduler = scheduler
        self._events = events
        self.writes = True

    def ours(self, pod: pods.Pod) -> bool:
        """Those that name our scheduler."""
        return pod.scheduler == self._scheduler and not pod.deleting

    def subject(self, pod: pods.Pod) -> pods.Pod:
        """As it is."""
        return pod

    def foresee(self, changes: Iterable[Change]) -> None:
        """Nothing is made of what is yet to be."""

    def passed_over(self, pod: pods.Pod) -> None:
        """Others see to it."""

    def placed(self, outcome: bind.Outcome, now: float) -> None:  # noqa: ARG002
        """Told as kube-scheduler tells it."""
        self._events.scheduled(outcome.order.pod, outcome.node)

    def told(self, pod: pods.Pod) -> why.Advised | None:  # noqa: ARG002
        """The graph shows it all."""
        return None

    async def run(self) -> None:
        """Nothing is to be done."""
        await asyncio.Event().wait()


class NoConditions:
    """Writes no conditions: another scheduler answers for the pods."""

    def say(self, pod: pods.Pod, *, reason: str, message: str) -> None:
        """Nothing is written."""

    def forget(self, key: keys.VertexKey) -> None:
        """There is nothing to forget."""

    def hold(self, key: keys.VertexKey) -> asyncio.Future[None] | None:  # noqa: ARG002
        """Nothing is ever under way."""
        return None

    def clear(self) -> None:
        """Nothing waits."""

    async def run(self) -> None:
        """There is nothing to write."""
        await asyncio.Event().wait()

    async def flush(self, *, deadline_s: float) -> int:  # noqa: ARG002
        """Nothing waits."""
        return 0


class NoEvents:
    """Writes no events."""

    def __len__(self) -> int:
        """None ever waits."""
        return 0

    def scheduled(self, pod: pods.Pod, node: str) -> None:
        """Nothing is written."""

    def failed(self, pod: pods.Pod, note: str, *, last: bool = False) -> None:
        """Nothing is written."""

    def about(self, node: nodes.Node, *, reason: str, note: str) -> None:
        """Nothing is written."""

    def clear(self) -> None:
        """Nothing waits."""

    async def run(self) -> None:
        """There is nothing to write."""
        await asyncio.Event().wait()

    async def flush(self, *, deadline_s: float) -> int:  # noqa: ARG002
        """Nothing waits."""
        return 0
