"""Tasks that must not end unseen, and waits that can be cut short.

Every long-lived task of a program runs in one `asyncio.TaskGroup`, under a name, guarded: it ends by being cancelled or
by failing, and a failure takes the program down with a traceback that names the task. Returning is a failure as well,
since nobody would notice that, say, no node is watched any more.
"""

from __future__ import annotations

import asyncio
import typing
from collections.abc import Coroutine

from graphsched.base.values import errors


class EndedError(errors.GraphschedError):
    """A task that is to run as long as the program has returned: a bug."""


async def guard(work: Coroutine[typing.Any, typing.Any, object], *, name: str) -> typing.NoReturn:
    """Run `work`, which must never return.

    Raises:
        EndedError: It returned.
    """
    try:
        await work
    except Exception as error:
        error.add_note(f"in the task {name}")
        raise
    raise EndedError(f"the task {name} has ended, although it is to run as long as the program")


def start(
    group: asyncio.TaskGroup,
    work: Coroutine[typing.Any, typing.Any, object],
    *,
    name: str,
) -> asyncio.Task[typing.NoReturn]:
    """Start an eternal task in `group`, guarded and named."""
    return group.create_task(guard(work, name=name), name=name)


async def pause(seconds: float, *, until: asyncio.Event) -> float:
    """Wait for `seconds`, or until the event is set; return the seconds that were left, 0.0 when they all passed."""
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    try:
        async with asyncio.timeout_at(end):
            await until.wait()
    except TimeoutError:
        return 0.0
    return max(0.0, end - loop.time())
