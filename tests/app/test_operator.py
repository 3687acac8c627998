"""kopf in its thread: whatever ends it, the thread ends as well, so that it can be begun anew."""

import asyncio
import logging
import threading
import typing

import kopf
import pytest

from graphsched.app import operator
from graphsched.base.kube import client as clients

TURNS = 2
DEADLINE_S = 30.0


def test_a_watch_that_fails_for_good_ends_the_thread_and_is_begun_anew(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Kopf has a thread of the loop wait for the flag that is to end it, and does not take it back when it fails."""
    turns = 0

    async def failing(*, stop_flag: threading.Event, **_: object) -> None:
        nonlocal turns
        turns += 1
        waits = threading.Event()

        def wait() -> None:
            waits.set()
            stop_flag.wait()

        asyncio.get_running_loop().run_in_executor(None, wait)
        waits.wait()
        message = "410 as an HTTP status"
        raise RuntimeError(message)

    monkeypatch.setattr(kopf, "operator", failing)
    unused = typing.cast("typing.Any", None)
    follower = operator.Operator(unused, unused, patience=clients.Patience())

    async def body() -> None:
        for _ in range(TURNS):
            follower.start()
            assert follower._thread is not None
            await asyncio.to_thread(follower._thread.join, DEADLINE_S)
            assert not follower.alive

    try:
        with caplog.at_level(logging.WARNING):
            asyncio.run(body())
    finally:
        follower._ending.set()
    assert TURNS == turns
    assert TURNS == caplog.text.count("the operator ended, and is begun anew: RuntimeError: 410 as an HTTP status")
