"""Many orders at once, within bounds.

Comes in: orders, no more than there are free places. Goes out: outcomes, in the order in which they became known, for
the loop to fetch in its own time; `ready` tells it to come. Each order is a task of its own: two bindings that wait for
the API server do not wait for each other.

Invariant: every order that was taken ends as exactly one outcome, except when the program ends first or all are
abandoned; `close` and `abandon` return those.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable

from graphsched.action import bind, calls
from graphsched.base.values import keys

CUT_S = 5.0
"""How long a call that was cut short may take to end; its connection is broken by then."""


class Dispatcher:
    """Carries out orders.

    Attributes:
        ready: Set when there are outcomes to fetch.
    """

    def __init__(
        self,
        client: calls.Client,
        *,
        places: int,
        deadline_s: float,
        rng: random.Random,
        ready: asyncio.Event | None = None,
        carrier: bind.Carrier = bind.bind,
    ) -> None:
        """Carry out at most `places` orders at a time by `carrier`, each call within `deadline_s`; `ready` is set and
        never cleared here, so that it may be one that others set as well.
        """
        self._client = client
        self._carrier = carrier
        self._places = places
        self._deadline_s = deadline_s
        self._rng = rng
        self._orders: dict[keys.VertexKey, bind.Order] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._abandoned: set[asyncio.Task[None]] = set()
        self._outcomes: list[bind.Outcome] = []
        self._broken: BaseException | None = None
        self._closing = False
        self.ready = ready or asyncio.Event()

    @property
    def free(self) -> int:
        """How many more orders it takes. Those that linger do not hold up others, as long as they are not too many."""
        lingering = sum(order.lingers for order in self._orders.values())
        return self._places - len(self._orders) + min(lingering, self._places)

    def __len__(self) -> int:
        """Number of orders whose outcome has not been fetched or is not known."""
        return len(self._orders)

    def get(self, key: keys.VertexKey) -> bind.Order | None:
        """The pod's order, while its outcome has not been fetched."""
        return self._orders.get(key)

    def submit(self, order: bind.Order) -> None:
        """Begin with an order.

        Raises:
            RuntimeError: There is no free place, or the pod has an order already: a bug of the caller.
        """
        if self.free <= 0 or order.pod.key in self._orders:
            raise RuntimeError(f"{order.pod.key}: no place for this order")
        self._orders[order.pod.key] = order
        task = asyncio.create_task(self._carry_out(order), name=f"bind {order.pod.full_name}")
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def fetch(self) -> list[bind.Outcome]:
        """The outcomes that have become known since the last call.

        Raises:
            Exception: An order broke on a bug; it is raised here so that it takes the program down.
        """
        if self._broken is not None:
            raise self._broken
        outcomes, self._outcomes = self._outcomes, []
        for outcome in outcomes:
            del self._orders[outcome.order.pod.key]
        return outcomes

    def abandon(self) -> list[bind.Order]:
        """Cut short what is under way and go on; returns the orders whose end is unknown, and forgets them.

        Outcomes that have become known must be fetched first.
        """
        orders, self._orders = list(self._orders.values()), {}
        self._abandoned.update(self._tasks)
        for task in self._tasks:
            task.cancel()
        return orders

    async def close(self, *, grace_s: float) -> Iterable[bind.Order]:
        """Wait for what is under way, `grace_s` at most, then cut it short.

        Returns:
            The orders whose end is unknown; outcomes that became known can still be fetched.
        """
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace_s)
        self._closing = True
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CUT_S)
        known = {outcome.order.pod.key for outcome in self._outcomes}
        return [order for key, order in self._orders.items() if key not in known]

    async def _carry_out(self, order: bind.Order) -> None:
        outcome = await self._carrier(self._client, order, deadline_s=self._deadline_s, rng=self._rng)
        self._outcomes.append(outcome)
        self.ready.set()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        abandoned = task in self._abandoned
        self._abandoned.discard(task)
        if task.cancelled():
            if not self._closing and not abandoned:
                self._broken = RuntimeError(f"{task.get_name()} was cancelled, and nobody but this may do that")
        else:
            self._broken = task.exception() or self._broken
        if self._broken is not None:
            self.ready.set()
