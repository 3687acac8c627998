"""
Virtual time for code that waits, also while it speaks to a server in the same process over loopback.

Comes in: an `async def` test under `@timed`. Goes out: the same test on a loop whose clock jumps to the next timer as
soon as nothing else can happen: hours pass in milliseconds, and `now()` tells exactly how many seconds the code has
waited.

Invariant: time never moves while bytes are on their way. They are in the kernel for microseconds, yet on a busy
machine it may be later, so a jump waits a moment of real time for them first.
"""

import asyncio
import functools
import selectors
import time
from collections.abc import Awaitable, Callable
from typing import Any, ParamSpec

Arguments = ParamSpec("Arguments")

#: Real seconds that the kernel is given to deliver before time jumps.
_GRACE_S = 0.004
#: Real seconds without anything at all to do, after which the test hangs: nothing is left that could wake it.
_IDLE_S_MAX = 30.0


class _Selector(selectors.DefaultSelector):
    """Polls the sockets, and moves the time when they are silent."""

    def __init__(self) -> None:
        super().__init__()
        self.elapsed = 0.0
        self.threads = 0
        self._idle_since: float | None = None

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """As the base does, but waiting costs no time."""
        ready = super().select(0)
        if ready or timeout == 0:
            self._idle_since = None
            return ready
        ready = super().select(_GRACE_S)
        if ready:
            self._idle_since = None
        elif timeout is None or self.threads:
            # Only a thread or another process can go on from here, and they live in real time.
            self._require_hope()
        else:
            self.elapsed += timeout
        return ready

    def _require_hope(self) -> None:
        now = time.monotonic()
        self._idle_since = self._idle_since or now
        if now - self._idle_since > _IDLE_S_MAX:
            raise RuntimeError("the test waits for something that never happens")


class Loop(asyncio.SelectorEventLoop):
    """An event loop in virtual time; it starts at 0."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        """Seconds that were waited for so far."""
        return self._virtual.elapsed

    def run_in_executor(  # type: ignore[override]  # the base's is typed with a pack of arguments
        self,
        executor: Any,
        func: Callable[..., Any],
        *args: Any,
    ) -> asyncio.Future[Any]:
        """As the base does; time stands still until the thread is done."""
        self._virtual.threads += 1
        future: asyncio.Future[Any] = super().run_in_executor(executor, func, *args)
        future.add_done_callback(self._thread_done)
        return future

    def _thread_done(self, _: asyncio.Future[Any]) -> None:
        self._virtual.threads -= 1


class LoopClock:
    """The running loop's time, for code that asks for a clock."""

    #: What the wall shows when the loop starts.
    EPOCH_S = 1_800_000_000.0

    def monotonic(self) -> float:
        """Seconds since the loop started."""
        return asyncio.get_running_loop().time()

    def wall(self) -> float:
        """Seconds since the epoch."""
        return self.EPOCH_S + self.monotonic()


def now() -> float:
    """Seconds that the running test has waited for."""
    return asyncio.get_running_loop().time()


def timed(test: Callable[Arguments, Awaitable[None]]) -> Callable[Arguments, None]:
    """Make a coroutine function a plain test that runs in virtual time."""

    @functools.wraps(test)
    def run(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        async def body() -> None:
            await test(*args, **kwargs)

        with asyncio.Runner(loop_factory=Loop) as runner:
            runner.run(body())

    return run
