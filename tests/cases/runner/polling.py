"""
Asking the API server again and again until it shows something.

Comes in: a question and when its answer is enough. Goes out: the last answer, enough or not. Watches would be quicker
by milliseconds, but each one that is left early leaves a connection to take down, and there are hundreds of waits here.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

from tests.controlplane import api

PAUSE_S = 0.02


async def until(
    ask: Callable[[], Awaitable[api.Object]], enough: Callable[[api.Object], bool], *, timeout_s: float
) -> api.Object:
    """The first answer that is enough; after `timeout_s` the last one, whatever it is."""
    deadline = time.monotonic() + timeout_s
    while True:
        answer = await ask()
        if enough(answer) or time.monotonic() > deadline:
            return answer
        await asyncio.sleep(PAUSE_S)
