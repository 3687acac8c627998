"""What is good to say goes out at a bounded rate, the newest of each key, and holds up nobody."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable

import pytest

from graphsched.action import outlet
from graphsched.base.values import errors
from tests.fakes import virtual

Log = list[tuple[str, str]]


class Receiver:
    """Notes what was sent, when, and fails as told."""

    def __init__(self) -> None:
        self.sent: list[tuple[float, str, str]] = []
        self.ends: list[tuple[str, str]] = []
        self.failures: list[errors.ClusterError] = []
        self.takes_s = 0.0
        self.refused: dict[str, errors.ClusterError] = {}

    async def send(self, key: str, value: str) -> None:
        """Take a value."""
        self.sent.append((round(virtual.now(), 3), key, value))
        if self.takes_s:
            await asyncio.sleep(self.takes_s)
        if key in self.refused:
            raise self.refused[key]
        if self.failures:
            raise self.failures.pop(0)

    def ended(self, key: str, _value: str, end: str) -> None:
        """Note an end."""
        self.ends.append((key, end))


@contextlib.asynccontextmanager
async def running(
    receiver: Receiver,
    *,
    per_second: float = 1000.0,
    burst: int = 1000,
    length_max: int = 100,
    workers: int = 1,
    tries_max: int | None = outlet.TRIES_MAX,
) -> AsyncIterator[outlet.Outlet[str, str]]:
    """An outlet at work."""
    made = outlet.Outlet[str, str](
        "test",
        receiver.send,
        rate=outlet.Rate(per_second=per_second, burst=burst),
        length_max=length_max,
        workers=workers,
        rng=random.Random(1),
        on_end=receiver.ended,
        tries_max=tries_max,
    )
    task = asyncio.create_task(made.run())
    try:
        yield made
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@virtual.timed
async def test_values_go_out_in_order() -> None:
    """First come, first served."""
    receiver = Receiver()
    async with running(receiver) as out:
        for key in "abc":
            out.put(key, key.upper())
        assert 0 == await out.flush(deadline_s=10.0)

    assert ["A", "B", "C"] == [value for _, _, value in receiver.sent]
    assert [("a", "written"), ("b", "written"), ("c", "written")] == receiver.ends


@virtual.timed
async def test_a_newer_value_takes_the_place_of_one_that_waits() -> None:
    """Nobody is told what is no longer true."""
    receiver = Receiver()
    receiver.takes_s = 1.0
    async with running(receiver) as out:
        out.put("a", "1")
        out.put("b", "1")
        await asyncio.sleep(0.5)
        out.put("b", "2")
        out.put("a", "2")
        await out.flush(deadline_s=10.0)

    assert ["a1", "b2", "a2"] == [key + value for _, key, value in receiver.sent]


@virtual.timed
async def test_a_key_has_one_call_under_way() -> None:
    """However many workers there are, its newer value waits for the older call."""
    receiver = Receiver()
    receiver.takes_s = 1.0
    async with running(receiver, workers=4) as out:
        out.put("a", "1")
        await asyncio.sleep(0.1)
        under_way = out.sending("a")
        out.put("a", "2")
        await asyncio.sleep(0.1)
        assert 1 == len(receiver.sent)
        assert under_way is not None
        await under_way
        await out.flush(deadline_s=10.0)

    assert [(0.0, "a", "1"), (1.0, "a", "2")] == receiver.sent


@virtual.timed
async def test_the_rate_is_kept_after_a_burst() -> None:
    """A storm goes out at the agreed pace."""
    receiver = Receiver()
    async with running(receiver, per_second=2.0, burst=3, workers=3) as out:
        for key in "abcdefg":
            out.put(key, "")
        await asyncio.sleep(10.0)

    assert [0.0, 0.0, 0.0, 0.5, 1.0, 1.5, 2.0] == pytest.approx([moment for moment, _, _ in receiver.sent], abs=0.01)


@virtual.timed
async def test_what_was_taken_back_is_not_sent() -> None:
    """Also when the rate has held it up."""
    receiver = Receiver()
    async with running(receiver, per_second=1.0, burst=1) as out:
        out.put("a", "")
        out.put("b", "")
        await asyncio.sleep(0.5)
        out.discard("b")
        await asyncio.sleep(9.0)

    assert ["a"] == [key for _, key, _ in receiver.sent]


@virtual.timed
async def test_what_was_taken_back_while_it_was_sent_is_not_sent_again() -> None:
    """The call under way may fail in a way that asks for another try: nobody wants that one any more."""
    receiver = Receiver()
    receiver.takes_s = 1.0
    receiver.failures = [errors.UnreachableError("gone"), errors.UnreachableError("gone")]
    async with running(receiver) as out:
        out.put("a", "1")
        await asyncio.sleep(0.5)
        out.discard("a")
        assert 0 == await out.flush(deadline_s=60.0)
        assert ["a1"] == [key + value for _, key, value in receiver.sent]

        out.put("a", "2")
        assert 0 == await out.flush(deadline_s=60.0)

    assert ["a1", "a2", "a2"] == [key + value for _, key, value in receiver.sent]
    assert [("a", "moot"), ("a", "written")] == receiver.ends


@virtual.timed
async def test_what_does_not_fit_is_dropped_and_counted() -> None:
    """The queue has a bound; replacing what waits needs no place."""
    receiver = Receiver()
    async with running(receiver, per_second=0.001, burst=0, length_max=2) as out:
        for key in "abca":
            out.put(key, "")
        assert 2 == len(out)

    assert [("c", "dropped")] == receiver.ends


@virtual.timed
async def test_what_the_server_can_not_take_now_is_tried_again() -> None:
    """In its old place, after a pause, and not for ever."""
    receiver = Receiver()
    receiver.failures = [errors.UnreachableError("gone"), errors.ClusterError("busy", status=429, retry_after_s=3.0)]
    async with running(receiver) as out:
        out.put("a", "1")
        out.put("b", "1")
        await out.flush(deadline_s=60.0)
        assert ["a", "a", "a", "b"] == [key for _, key, _ in receiver.sent]
        assert receiver.sent[2][0] >= 3.0

        receiver.failures = [errors.UnreachableError("gone") for _ in range(outlet.TRIES_MAX)]
        out.put("c", "1")
        await out.flush(deadline_s=600.0)

    assert [("a", "written"), ("b", "written"), ("c", "failed")] == receiver.ends


@pytest.mark.parametrize(
    ("error", "end"),
    [
        (lambda: errors.NotFoundError("gone", status=404), "moot"),
        (lambda: errors.ConflictError("another one", status=409), "moot"),
        (lambda: errors.ClusterError("no", status=422), "failed"),
    ],
)
def test_what_will_not_work_is_not_repeated(error: Callable[[], errors.ClusterError], end: str) -> None:
    """One call each."""

    @virtual.timed
    async def body() -> None:
        receiver = Receiver()
        receiver.failures = [error()]
        async with running(receiver) as out:
            out.put("a", "1")
            await out.flush(deadline_s=60.0)

        assert [("a", end)] == receiver.ends
        assert 1 == len(receiver.sent)

    body()


@virtual.timed
async def test_flushing_sets_the_rate_aside_and_has_an_end() -> None:
    """A program that ends says what it can within its grace."""
    receiver = Receiver()
    async with running(receiver, per_second=0.01, burst=1) as out:
        for key in "abc":
            out.put(key, "")
        await asyncio.sleep(1.0)
        assert 0 == await out.flush(deadline_s=5.0)
        assert 1.0 == pytest.approx(virtual.now(), abs=0.1)

        receiver.takes_s = 100.0
        out.put("d", "")
        assert 1 == await out.flush(deadline_s=5.0)


@virtual.timed
async def test_what_is_cleared_is_not_sent() -> None:
    """Neither what waits nor, once it has failed, what was under way; what comes afterwards is."""
    receiver = Receiver()
    receiver.takes_s = 1.0
    receiver.failures = [errors.UnreachableError("no answer")]
    async with running(receiver) as out:
        for key in "abc":
            out.put(key, "old")
        await asyncio.sleep(0.5)
        out.clear()
        assert 1 == len(out)
        await asyncio.sleep(5.0)
        assert 0 == len(out)
        out.put("b", "new")
        await asyncio.sleep(5.0)

    assert [("a", "old"), ("b", "new")] == [(key, value) for _, key, value in receiver.sent]
    assert [("c", "moot"), ("b", "moot"), ("a", "moot"), ("b", "written")] == receiver.ends


@virtual.timed
async def test_what_may_not_be_written_is_moot() -> None:
    """A replica that does not lead is refused by its own fence: no failure, and nothing to repeat."""
    receiver = Receiver()
    receiver.failures = [errors.FencedError("not sent")]
    async with running(receiver) as out:
        out.put("a", "1")
        await asyncio.sleep(5.0)

    assert ([("a", "moot")], 1) == (receiver.ends, len(receiver.sent))


def _forbidden() -> errors.ForbiddenError:
    return errors.ForbiddenError("403", status=403)


@virtual.timed
async def test_a_right_that_is_missing_for_seconds_costs_no_value() -> None:
    """A server that has just started refuses what it will allow in a moment."""
    receiver = Receiver()
    receiver.failures = [_forbidden(), _forbidden()]
    async with running(receiver) as sending:
        sending.put("a", "1")
        await asyncio.sleep(60.0)

    assert [("a", "written")] == receiver.ends


@virtual.timed
async def test_a_right_that_is_missing_for_good_is_given_up_and_holds_up_nobody() -> None:
    """Five tries, others in between; also where everything else is tried without end."""
    receiver = Receiver()
    receiver.refused["a"] = _forbidden()
    async with running(receiver, tries_max=None) as sending:
        sending.put("a", "1")
        sending.put("b", "1")
        await asyncio.sleep(600.0)

    sent = [key for _, key, _ in receiver.sent]
    assert ["a", "b"] == sent[:2]
    assert outlet.TRIES_MAX == sent.count("a")
    assert [("b", "written"), ("a", "failed")] == receiver.ends


@virtual.timed
async def test_credentials_that_ran_out_are_waited_for() -> None:
    """Any number of times 401 costs no value that is sent without end."""
    receiver = Receiver()
    receiver.failures = [errors.ForbiddenError("401", status=401) for _ in range(20)]
    async with running(receiver, tries_max=None) as sending:
        sending.put("a", "1")
        await asyncio.sleep(600.0)

    assert [("a", "written")] == receiver.ends


@virtual.timed
async def test_a_value_that_alone_is_not_taken_does_not_hold_up_the_others() -> None:
    """After some tries it stands at the end of the line."""
    receiver = Receiver()
    receiver.refused["bad"] = errors.UnreachableError("500", status=500)
    async with running(receiver, tries_max=None) as sending:
        sending.put("bad", "1")
        for number in range(20):
            sending.put(f"good{number}", "1")
        await asyncio.sleep(60.0)

    assert 20 == sum(end == "written" for _, end in receiver.ends)
