"""A bounded way out for what is good to say but must not hold up a binding: conditions and events.

Comes in: values under a key; a newer one replaces an older one that still waits. Goes out: calls, a few at a time, at a
bounded rate, so that ten thousand pods without a node do not keep the API server from serving those that have one. What
a server can not take now is tried again; what does not fit is dropped and counted.

Invariant: one key has at most one call under way; no older value is sent after a newer one, and none after it was taken
back.
"""

from __future__ import annotations

import asyncio
import collections
import logging
import random
import typing
from collections.abc import Awaitable, Callable, Hashable

from graphsched.action import calls
from graphsched.base.kit import backoff, tasks
from graphsched.base.values import errors

_log = logging.getLogger(__name__)

Key = typing.TypeVar("Key", bound=Hashable)
Value = typing.TypeVar("Value")

TRIES_MAX = 5
PAUSE_FIRST_S = 0.2
PAUSE_MOST_S = 10.0
FORBIDDEN = 403
"""A right is missing. A server that has just started, or rights that are being replaced, say so for seconds; a right
that was never given is not asked for without end.
"""
UNAUTHORIZED = 401
"""The credentials ran out, and new ones come: as good as a server that is away."""


class Rate:
    """A token bucket on the loop's clock: `per_second` on average, `burst` at once."""

    def __init__(self, *, per_second: float, burst: int) -> None:
        self._per_second = per_second
        self._burst = float(burst)
        self._tokens = float(burst)
        self._at: float | None = None

    def delay_s(self, now: float) -> float:
        """Take a token; returns how long to wait before acting on it, 0.0 mostly."""
        if self._at is not None:
            self._tokens = min(self._burst, self._tokens + (now - self._at) * self._per_second)
        self._at = now
        self._tokens -= 1.0
        return 0.0 if self._tokens >= 0.0 else -self._tokens / self._per_second

    def give_back(self) -> None:
        """The token was not used."""
        self._tokens += 1.0


class Outlet(typing.Generic[Key, Value]):
    """Sends values in the order of their keys' arrival."""

    def __init__(
        self,
        name: str,
        send: Callable[[Key, Value], Awaitable[None]],
        *,
        rate: Rate,
        length_max: int,
        workers: int,
        rng: random.Random,
        on_end: Callable[[Key, Value, str], None],
        tries_max: int | None = TRIES_MAX,
    ) -> None:
        """Prepare; `run` does the work.

        Args:
            name: For the log.
            send: Makes the call; raises `ClusterError` when it fails.
            rate: How fast.
            length_max: How many values may wait; one more is dropped.
            workers: How many calls at a time.
            rng: For the jitter of pauses.
            on_end: Told of every value: `written`, `failed` (not to be had), `moot` (its object is gone, it was taken
                back, or this replica may not write) or `dropped`.
            tries_max: How often a value is sent that the server can not take now; None for as often as it takes.
        """
        self._name = name
        self._send = send
        self._rate = rate
        self._length_max = length_max
        self._workers = workers
        self._backoff = backoff.Backoff(first_s=PAUSE_FIRST_S, most_s=PAUSE_MOST_S, rng=rng)
        self._on_end = on_end
        self._tries_max = tries_max
        self._waiting: collections.OrderedDict[Key, tuple[Value, int]] = collections.OrderedDict()
        self._sending: dict[Key, asyncio.Future[None]] = {}
        self._unwanted: set[Key] = set()
        self._work = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._hurry = asyncio.Event()

    def __len__(self) -> int:
        """Number of values that wait or are being sent."""
        return len(self._waiting) + len(self._sending)

    def put(self, key: Key, value: Value) -> None:
        """Send the value some time, in place of the one of this key that waits."""
        if key not in self._waiting and len(self._waiting) >= self._length_max:
            self._on_end(key, value, "dropped")
            return
        self._waiting[key] = (value, 0)
        self._idle.clear()
        self._work.set()

    def discard(self, key: Key) -> None:
        """Do not send what waits under the key; a call under way goes on, and is not repeated if it fails."""
        self._waiting.pop(key, None)
        if key in self._sending:
            self._unwanted.add(key)
        self._rest()

    def clear(self) -> None:
        """Do not send anything of what waits; calls under way go on, and are not repeated if they fail."""
        self._unwanted.update(self._sending)
        while self._waiting:
            key, (value, _) = self._waiting.popitem()
            self._on_end(key, value, "moot")
        self._rest()

    def sending(self, key: Key) -> asyncio.Future[None] | None:
        """Done when the call under way for this key is over; None without one."""
        return self._sending.get(key)

    async def run(self) -> None:
        """Send until cancelled."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._workers):
                group.create_task(self._worker(), name=f"{self._name} {number}")

    async def flush(self, *, deadline_s: float) -> int:
        """Send what waits without regard to the rate, for so long at most; returns how many values are left."""
        self._hurry.set()
        try:
            async with asyncio.timeout(deadline_s):
                await self._idle.wait()
        except TimeoutError:
            _log.warning("%s: %d were left unsent", self._name, len(self))
        return len(self)

    async def _worker(self) -> None:
        while True:
            await self._work.wait()
            delay_s = self._rate.delay_s(asyncio.get_running_loop().time())
            if delay_s > 0.0:
                await tasks.pause(delay_s, until=self._hurry)
            # Chosen only now: what was discarded or replaced during the wait is not sent.
            key = next((key for key in self._waiting if key not in self._sending), None)
            if key is None:
                self._rate.give_back()
                self._work.clear()
                continue
            pause_s = await self._next(key)
            if pause_s > 0.0:
                await asyncio.sleep(pause_s)

    async def _next(self, key: Key) -> float:
        value, tries = self._waiting.pop(key)
        done = self._sending[key] = asyncio.get_running_loop().create_future()
        try:
            return await self._attempt(key, value, tries)
        finally:
            del self._sending[key]
            self._unwanted.discard(key)
            done.set_result(None)
            self._work.set()
            self._rest()

    async def _attempt(self, key: Key, value: Value, tries: int) -> float:
        """Make one call; returns how long to leave the server alone."""
        try:
            await self._send(key, value)
        except (errors.NotFoundError, errors.ConflictError, errors.FencedError):
            self._on_end(key, value, "moot")
        except errors.ClusterError as error:
            if tries + 1 < self._tries_most(error):
                if key in self._unwanted:
                    self._on_end(key, value, "moot")
                elif key not in self._waiting:
                    if error.status == FORBIDDEN and not tries:
                        # It is given up much later, and whoever can give the right should know which.
                        _log.warning("%s: not allowed, which is tried again some times: %s", self._name, error)
                    self._waiting[key] = (value, tries + 1)
                    # Its turn is still on, unless it may be this value alone that the server can not take.
                    self._waiting.move_to_end(key, last=error.status == FORBIDDEN or tries + 1 >= TRIES_MAX)
                return self._backoff.next(at_least_s=error.retry_after_s)
            _log.warning("%s: not written: %s", self._name, error)
            self._on_end(key, value, "failed")
        else:
            self._backoff.reset()
            self._on_end(key, value, "written")
        return 0.0

    def _tries_most(self, error: errors.ClusterError) -> float:
        """How often a value is sent that meets this error."""
        if error.status == FORBIDDEN:
            return TRIES_MAX
        if not (calls.passing(error) or error.status == UNAUTHORIZED):
            return 1
        return float("inf") if self._tries_max is None else self._tries_max

    def _rest(self) -> None:
        if not len(self):
            self._idle.set()
