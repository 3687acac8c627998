"""
One lease in memory, behind as many wires as there are replicas, each with its own way of failing.

Comes in: the calls of `leases.Registry`, and from the test how each wire behaves. Goes out: what an API server would
answer, after a while or never. Nothing here waits in real time, so thousands of stories can be told.

Invariant: the store itself is right (a write must follow the present version); only wires lose, delay and repeat.
"""

import asyncio
import random
from collections.abc import Callable

from graphsched.base.kube import leases
from graphsched.base.values import errors


class Store:
    """The lease."""

    def __init__(self) -> None:
        self.lease: leases.Lease | None = None
        self._version = 0

    def get(self) -> leases.Lease:
        """Read it."""
        if self.lease is None:
            raise errors.NotFoundError('leases "x" not found', status=404)
        return self.lease

    def create(self, spec: leases.Spec) -> leases.Lease:
        """Make it."""
        if self.lease is not None:
            raise errors.ConflictError('leases "x" already exists', status=409)
        return self._put(spec)

    def update(self, lease: leases.Lease, spec: leases.Spec) -> leases.Lease:
        """Write it, if it is as the writer saw it."""
        if self.lease is None or self.lease.metadata != lease.metadata:
            raise errors.ConflictError("the object has been modified", status=409)
        return self._put(spec)

    def delete(self) -> None:
        """Remove it."""
        self.lease = None

    def _put(self, spec: leases.Spec) -> leases.Lease:
        self._version += 1
        self.lease = leases.Lease({"uid": "1", "resourceVersion": str(self._version)}, spec)
        return self.lease


class Wire:
    """A registry that reaches the store over a network of its own."""

    def __init__(self, store: Store, rng: random.Random, *, delay_s: float = 0.001) -> None:
        self.store = store
        #: Nothing passes in either direction.
        self.cut = False
        #: The greatest delay on each way.
        self.delay_s = delay_s
        #: How likely a request, and likewise an answer, is lost.
        self.loss = 0.0
        #: The next calls fail with these.
        self.failures: list[errors.ClusterError] = []
        self.calls: list[str] = []
        self._rng = rng

    async def get(self, *, deadline_s: float) -> leases.Lease:
        """See `leases.Registry`."""
        return await self._call("get", self.store.get, deadline_s)

    async def create(self, spec: leases.Spec, *, deadline_s: float) -> leases.Lease:
        """See `leases.Registry`."""
        return await self._call("create", lambda: self.store.create(spec), deadline_s)

    async def update(self, lease: leases.Lease, spec: leases.Spec, *, deadline_s: float) -> leases.Lease:
        """See `leases.Registry`."""
        return await self._call("update", lambda: self.store.update(lease, spec), deadline_s)

    async def _call(self, name: str, act: Callable[[], leases.Lease], deadline_s: float) -> leases.Lease:
        self.calls.append(name)
        if self.failures:
            raise self.failures.pop(0)
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[leases.Lease | errors.ClusterError] = loop.create_future()

        def answered(result: leases.Lease | errors.ClusterError) -> None:
            if not answer.done():
                answer.set_result(result)

        def arrive() -> None:
            # It may be long after its sender has given up.
            try:
                result: leases.Lease | errors.ClusterError = act()
            except errors.ClusterError as error:
                result = error
            if not self._lost():
                loop.call_later(self._delay(), answered, result)

        if not self._lost():
            loop.call_later(self._delay(), arrive)
        try:
            async with asyncio.timeout(deadline_s):
                result = await answer
        except TimeoutError as error:
            raise errors.UnreachableError(f"{name}: no answer") from error
        if isinstance(result, errors.ClusterError):
            raise result
        return result

    def _lost(self) -> bool:
        return self.cut or self._rng.random() < self.loss

    def _delay(self) -> float:
        return self._rng.random() * self.delay_s
