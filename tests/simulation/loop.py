"""
A deterministic event loop: virtual time, no threads, no sockets, and processes that can be frozen.

Comes in: coroutines. Goes out: the same run every time. When nothing is ready time jumps to the next timer; timers of
one moment fire in the order in which they were set (asyncio's own heap does not promise that).

Invariants: nothing but timers and other tasks wakes anybody: whatever would touch the world outside (a socket, a
thread, a subprocess) raises; time moves only by waiting and by `spend`, so no real clock is ever looked at.
"""

import asyncio
import collections
import contextvars
import heapq
import itertools
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")

#: Whose code runs: one of the simulated programs, or empty for the world itself. Tasks and timers inherit it.
PROCESS: contextvars.ContextVar[str] = contextvars.ContextVar("PROCESS", default="")


class OutsideError(RuntimeError):
    """Somebody reached for what is outside of the simulation."""


class Loop(asyncio.BaseEventLoop):
    """The loop; it starts at 0."""

    # The base's own, which its type stubs leave out.
    _ready: collections.deque[asyncio.Handle]
    _stopping: bool

    def __init__(self) -> None:
        super().__init__()
        #: Steps taken so far: how much work a run was, and how much it may be.
        self.steps = 0
        self.steps_max = 1_000_000
        self._elapsed = 0.0
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._serials = itertools.count()
        self._frozen: dict[str, list[asyncio.Handle]] = {}
        self._tasks: dict[str, dict[asyncio.Task[Any], None]] = {}

    def time(self) -> float:
        """Seconds that were waited for or spent so far."""
        return self._elapsed

    def spend(self, seconds: float) -> None:
        """Let the running code take so long: timers that are due meanwhile fire late."""
        self._elapsed += seconds

    # ── processes ──────────────────────────────────────────────────────────────────────────────────────────────────

    def freeze(self, process: str) -> None:
        """Stop a process where it is, as SIGSTOP does; what would run there is kept."""
        self._frozen.setdefault(process, [])

    def thaw(self, process: str) -> None:
        """Let it go on."""
        self._ready.extend(self._frozen.pop(process, ()))

    def tasks_of(self, process: str) -> list[asyncio.Task[Any]]:
        """Its tasks that have not ended, oldest first."""
        return list(self._tasks.get(process, ()))

    # ── the base's own hooks ───────────────────────────────────────────────────────────────────────────────────────

    def call_at(  # type: ignore[override]  # the base's is typed with a pack of arguments
        self,
        when: float,
        callback: Callable[..., object],
        *args: Any,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """As the base does; timers of one moment keep their order."""
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._serials), timer))
        return timer

    def create_task(
        self,
        coro: Coroutine[Any, Any, Result],  # type: ignore[override]  # the base takes generators, too
        *,
        name: object = None,
        context: contextvars.Context | None = None,
    ) -> asyncio.Task[Result]:
        """As the base does, and remember whose it is."""
        task: asyncio.Task[Result] = super().create_task(coro, name=name, context=context)
        mine = self._tasks.setdefault(PROCESS.get() if context is None else context.get(PROCESS, ""), {})
        mine[task] = None
        task.add_done_callback(mine.pop)
        return task

    def _run_once(self) -> None:
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
        if not self._ready and not self._stopping:
            if not self._timers:
                raise RuntimeError("the simulation waits for something that never happens")
            self._elapsed = max(self._elapsed, self._timers[0][0])
        while self._timers and self._timers[0][0] <= self._elapsed:
            self._ready.append(heapq.heappop(self._timers)[2])
        if self.steps > self.steps_max:
            self.steps_max *= 2
            raise RuntimeError(f"the simulation goes on for ever, at {self._elapsed} s")
        for _ in range(len(self._ready)):
            handle = self._ready.popleft()
            if handle.cancelled():
                continue
            if self._frozen and (kept := self._frozen.get(_process(handle))) is not None:
                kept.append(handle)
                continue
            self.steps += 1
            handle._run()

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Its turn comes, and it is passed over then."""

    def _process_events(self, event_list: object) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nobody sleeps in a selector."""

    def run_in_executor(self, *_: object) -> Any:
        """No threads.

        Raises:
            OutsideError: Always.
        """
        raise OutsideError("threads live in real time")

    async def create_connection(self, *_: object, **__: object) -> Any:
        """No sockets.

        Raises:
            OutsideError: Always.
        """
        raise OutsideError("the simulation has no sockets")

    async def create_server(self, *_: object, **__: object) -> Any:
        """No sockets.

        Raises:
            OutsideError: Always.
        """
        raise OutsideError("the simulation has no sockets")

    async def getaddrinfo(self, *_: object, **__: object) -> Any:
        """No names of hosts.

        Raises:
            OutsideError: Always.
        """
        raise OutsideError("the simulation has no network")


def _process(handle: Any) -> str:
    """Whose it is. Python 3.12 would have a method for it."""
    context: contextvars.Context = handle._context
    return context.get(PROCESS, "")


class Clock:
    """What a simulated program takes for the time.

    Attributes:
        cost_s: How long it takes to look: stands for the time that computing takes.
        shift_s: How far the wall clock is off.
    """

    #: What the wall shows when the loop starts.
    EPOCH_S = 1_800_000_000.0

    def __init__(self, loop: Loop, *, cost_s: float = 0.0) -> None:
        self._loop = loop
        self.cost_s = cost_s
        self.shift_s = 0.0

    def monotonic(self) -> float:
        """Seconds since the loop started."""
        self._loop.spend(self.cost_s)
        return self._loop.time()

    def wall(self) -> float:
        """Seconds since the epoch, as the world counts them."""
        return self.EPOCH_S + self.shift_s + self._loop.time()


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Run it on a loop of its own."""
    with asyncio.Runner(loop_factory=Loop) as runner:
        return runner.run(main)
