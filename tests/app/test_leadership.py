"""One replica at most may write at any moment, and somebody does as soon as that is safe."""

import asyncio
import contextlib
import functools
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator
from typing import Any

import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from graphsched.app import leadership
from graphsched.app.election import LeaderElectionSettings
from graphsched.base.kit import clock as clocks
from graphsched.base.kube import leases
from graphsched.base.values import errors
from tests.fakes import lease_store, virtual

TIMES = LeaderElectionSettings(lease_seconds=4, renew_seconds=3.0, retry_seconds=1.0)
SOON_S = 0.1


def timed(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run the test in virtual time; nothing is on its way in any kernel here, so that no jump has to wait for it."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(virtual, "_GRACE_S", 0.0)
            virtual.timed(test)(*args, **kwargs)

    return run


class Skewed(virtual.LoopClock):
    """A clock whose wall is wrong by hours, as on machines that nobody looks after."""

    def __init__(self, wrong_s: float) -> None:
        self._wrong_s = wrong_s

    def wall(self) -> float:
        """Seconds since some epoch."""
        return super().wall() + self._wrong_s


class Ledger:
    """Counts what an observer hears."""

    def __init__(self) -> None:
        self.changes: list[bool] = []
        self.failures = 0

    def stands(self, name: str) -> None:
        """The election begins."""
        assert "kube-system/x" == name

    def leads(self, name: str, *, now: bool) -> None:
        """A term began or ended."""
        assert "kube-system/x" == name
        self.changes.append(now)

    def failed(self) -> None:
        """An attempt failed."""
        self.failures += 1


class Process:
    """An elector and the process it is in, which can be stopped and continued as by signals."""

    def __init__(self, identity: str, wire: lease_store.Wire, *, seed: int = 1, wrong_s: float = 0.0) -> None:
        self.wire = wire
        self.ledger = Ledger()
        self.stopped_until = 0.0
        self.began: list[float] = []
        self.elector = leadership.Elector(
            wire,
            TIMES,
            name="kube-system/x",
            identity=identity,
            clock=Skewed(wrong_s),
            rng=random.Random(seed),
            observer=self.ledger,
            on_change=lambda: self.began.append(virtual.now()),
        )

    @property
    def leads(self) -> bool:
        """Whether it may write now."""
        return self.elector.leading

    def stop(self, seconds: float) -> None:
        """Run nothing for so long; time goes on."""
        self.stopped_until = virtual.now() + seconds


class _Stoppable:
    """Runs a coroutine, but not while its process is stopped."""

    def __init__(self, work: Coroutine[Any, Any, Any], process: Process) -> None:
        self._work = work
        self._process = process

    def __await__(self) -> Generator[Any, Any, Any]:
        thrown: BaseException | None = None
        while True:
            while (left_s := self._process.stopped_until - virtual.now()) > 0:
                try:
                    yield from asyncio.sleep(left_s).__await__()
                except BaseException as error:  # noqa: BLE001  a timer that went off: it is noticed afterwards
                    thrown = error
            try:
                waited_for = self._work.send(None) if thrown is None else self._work.throw(thrown)
            except StopIteration as ended:
                return ended.value
            thrown = None
            try:
                yield waited_for
            except BaseException as error:  # noqa: BLE001  it is for the coroutine
                thrown = error


async def _run(process: Process) -> None:
    await _Stoppable(process.elector.run(), process)


@contextlib.asynccontextmanager
async def running(*processes: Process) -> AsyncIterator[None]:
    """The electors at work."""
    tasks = [asyncio.create_task(_run(process)) for process in processes]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        # Nobody broke.
        assert all(task.cancelled() for task in tasks), tasks


def two(store: lease_store.Store | None = None) -> tuple[Process, Process, lease_store.Store]:
    """Two replicas and their lease, over wires that work."""
    store = store or lease_store.Store()
    one, other = (lease_store.Wire(store, random.Random(seed)) for seed in (1, 2))
    return Process("one", one, seed=1), Process("two", other, seed=2), store


async def until(happened: Any, *, within_s: float = 60.0) -> float:
    """Wait until something is true; returns when it was."""
    async with asyncio.timeout(within_s):
        while not happened():  # noqa: ASYNC110  nobody tells of the end of a term
            await asyncio.sleep(0.01)
    return virtual.now()


@timed
async def test_the_first_leads_and_the_second_stands_by() -> None:
    """At once, without waiting for anything to run out; the lease names the leader and its promise."""
    one, two_, store = two()
    async with running(one):
        await until(lambda: one.leads, within_s=SOON_S)
        async with running(two_):
            await asyncio.sleep(60.0)

            assert (True, False) == (one.leads, two_.leads)
            assert store.lease is not None
            spec = store.lease.spec
            assert ("one", 4, 0) == (spec.holder_identity, spec.lease_duration_seconds, spec.lease_transitions)
            assert spec.acquire_time < spec.renew_time
            assert ("leader, one", "standby of one") == (one.elector.stance, two_.elector.stance)
            assert ([True], []) == (one.ledger.changes, two_.ledger.changes)


@timed
async def test_a_standby_takes_over_when_the_lease_has_run_out() -> None:
    """Four seconds after the last renewal it saw, by its own clock, and not before; the change is counted."""
    one, two_, store = two()
    async with running(two_):
        async with running(one):
            two_.stop(SOON_S)
            await until(lambda: one.leads, within_s=SOON_S)
            await asyncio.sleep(10.0)
        renewed_at = one.elector._renewed_at
        taken_at = await until(lambda: two_.leads)

        assert not one.leads
        assert TIMES.lease_seconds <= taken_at - renewed_at <= TIMES.lease_seconds + 1.2 * TIMES.retry_seconds + SOON_S
        assert store.lease is not None
        assert ("two", 1) == (store.lease.spec.holder_identity, store.lease.spec.lease_transitions)


@timed
async def test_a_lease_that_is_released_is_taken_within_one_retry() -> None:
    """Who ends in good order makes nobody wait."""
    one, two_, _store = two()
    async with running(two_):
        async with running(one):
            two_.stop(SOON_S)
            await until(lambda: one.leads, within_s=SOON_S)
            await asyncio.sleep(10.0)
        await one.elector.release(deadline_s=1.0)
        released_at = virtual.now()
        assert not one.leads
        taken_at = await until(lambda: two_.leads)

        assert taken_at - released_at <= 1.2 * TIMES.retry_seconds + SOON_S


@timed
async def test_a_leader_that_can_not_renew_stops_in_time(caplog: pytest.LogCaptureFixture) -> None:
    """Three seconds after it last could, whatever its calls are doing; the log says why."""
    caplog.set_level(logging.INFO)
    one, two_, _ = two()
    async with running(one, two_):
        await until(lambda: one.leads or two_.leads)
        leader, standby = (one, two_) if one.leads else (two_, one)
        await asyncio.sleep(5.0)
        leader.wire.cut = True
        renewed_at = leader.elector._renewed_at
        ended_at = await until(lambda: not leader.leads)
        assert TIMES.renew_seconds == pytest.approx(ended_at - renewed_at, abs=0.05)
        taken_at = await until(lambda: standby.leads)
        assert taken_at - renewed_at >= TIMES.lease_seconds

        leader.wire.cut = False
        await asyncio.sleep(10.0)
        assert (False, True) == (leader.leads, standby.leads)
    assert "not leading any more, kube-system/x: it was not renewed in time: update: no answer" in caplog.messages
    assert f"standby of {standby.elector.identity}, which holds the lease kube-system/x" in caplog.messages


@timed
async def test_a_process_that_was_stopped_past_its_term_may_not_write_when_it_goes_on() -> None:
    """Not for a moment: the term ends by the clock, without any code having to run."""
    one, two_, _ = two()
    async with running(one):
        await until(lambda: one.leads)
        async with running(two_):
            await asyncio.sleep(2.0)
            one.stop(10.0)
            await until(lambda: two_.leads)
            held = [one.leads]
            for _ in range(200):
                await asyncio.sleep(0.1)
                held.append(one.leads)

            assert ([True, False], {False}, True) == (one.ledger.changes, set(held), two_.leads)


@timed
async def test_an_answer_that_comes_after_the_term_begins_another_one() -> None:
    """What was given up at the end of the old one is not taken up again unseen."""
    one, _, store = two()
    clock = one.elector._clock = clocks.VirtualClock()
    await one.elector.step()
    assert (1, True) == (one.elector.term, one.leads)
    clock.advance(1.0)
    update = store.update

    def late(lease: leases.Lease, spec: leases.Spec) -> leases.Lease:
        clock.advance(TIMES.renew_seconds - 0.5)
        assert not one.leads
        return update(lease, spec)

    store.update = late  # type: ignore[method-assign]
    await one.elector.step()

    assert (2, [True, False, True], 0.5) == (one.elector.term, one.ledger.changes, one.elector.left_s())


@timed
async def test_a_lost_answer_is_no_term_and_no_stranger() -> None:
    """Who took the lease without hearing of it asks again and goes on as if it had heard."""
    one, _, store = two()
    one.wire.loss = 0.0
    create = store.create

    def deaf(spec: leases.Spec) -> leases.Lease:
        create(spec)
        raise errors.UnreachableError("the answer is lost")

    store.create = deaf  # type: ignore[method-assign]
    async with running(one):
        await until(lambda: store.lease is not None)
        assert not one.leads
        taken_at = await until(lambda: one.leads)

    assert taken_at <= 1.2 * TIMES.retry_seconds + SOON_S
    assert store.lease is not None
    assert 0 == store.lease.spec.lease_transitions


@timed
async def test_two_replicas_of_one_name_do_not_both_lead(caplog: pytest.LogCaptureFixture) -> None:
    """The name is the operator's, the lease goes by who wrote it; the mistake is told."""
    store = lease_store.Store()
    twins = [Process("same", lease_store.Wire(store, random.Random(seed)), seed=seed) for seed in (1, 2)]
    async with running(*twins):
        for _ in range(200):
            await asyncio.sleep(0.1)
            assert 1 >= sum(twin.leads for twin in twins)
        assert 1 == sum(twin.leads for twin in twins)
    assert any("leaderElection.identity must differ between replicas" in text for text in caplog.messages)


@timed
async def test_a_lease_deleted_under_its_holder_is_made_again_by_it() -> None:
    """The standby that saw it held waits all the same."""
    one, two_, store = two()
    async with running(one):
        await until(lambda: one.leads)
        async with running(two_):
            await asyncio.sleep(5.0)
            store.delete()
            await asyncio.sleep(5.0)

            assert store.lease is not None
            assert (True, False, [True]) == (one.leads, two_.leads, one.ledger.changes)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            errors.ForbiddenError("GET …: 403 no", status=403),
            (
                "GET …: 403 no (needed: get, create and update on leases of coordination.k8s.io in namespace "
                "kube-system; grant them with a Role, or run one replica with --no-leader-elect)"
            ),
        ),
        (
            errors.NotFoundError('namespaces "kube-system" not found', status=404),
            (
                'namespaces "kube-system" not found (create the namespace kube-system, or set '
                "leaderElection.namespace to one that exists)"
            ),
        ),
    ],
)
@timed
async def test_what_hinders_the_election_is_told_once_with_its_remedy(
    error: errors.ClusterError, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    """In the log and to the readiness probe, while the attempts go on; it is over as soon as it works."""
    one, _, store = two()

    def refuse(_spec: leases.Spec) -> leases.Lease:
        raise error

    store.create = refuse  # type: ignore[method-assign, assignment]
    async with running(one):
        await asyncio.sleep(10.0)
        assert (told, "") == (one.elector.hindrance(), one.elector.overdue())
        assert [f"the lease kube-system/x can not be taken: {told}"] == [
            record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING
        ]
        assert one.ledger.failures >= 5
        del store.create
        await until(lambda: one.leads)

        assert "" == one.elector.hindrance()


@timed
async def test_a_server_that_is_away_is_waited_for() -> None:
    """At the start as later; this is no reason to be restarted."""
    one, _, _ = two()
    one.wire.failures = [errors.UnreachableError("no answer")] * 30
    async with running(one):
        taken_at = await until(lambda: one.leads)

    assert 30 * TIMES.retry_seconds <= taken_at <= 31 * 1.2 * TIMES.retry_seconds
    assert 30 == one.ledger.failures


@timed
async def test_a_leader_that_does_not_notice_its_end_is_not_alive() -> None:
    """Only a restart helps a loop that does not run; a standby has nothing to notice."""
    one, two_, _ = two()
    async with running(one):
        await until(lambda: one.leads)
        one.stop(60.0)
        await asyncio.sleep(TIMES.lease_seconds + leadership.LATE_S - 1.0)
        assert "" == one.elector.overdue()
        await asyncio.sleep(2.0)
        assert one.elector.overdue().startswith("the lease ran out 2")
        assert "" == two_.elector.overdue()


WIRES = st.tuples(
    st.floats(0.0, 0.6),  # loss
    st.sampled_from((0.001, 0.5, 2.0, 9.0)),  # delay
    st.booleans(),  # cut
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from((0, 1)),
        st.floats(0.1, 7.0),  # seconds until the next step
        st.one_of(st.tuples(st.just("stop"), st.floats(0.1, 12.0)), st.tuples(st.just("wire"), WIRES)),
    ),
    max_size=25,
)


@hypothesis_settings(max_examples=60)
@given(steps=STEPS, seed=st.integers(0, 1 << 30), wrong_s=st.floats(-1e6, 1e6), same=st.booleans())
def test_two_terms_never_overlap(steps: list[Any], seed: int, wrong_s: float, same: bool) -> None:
    """Whatever is lost, late, repeated, cut or stopped, and whatever their walls show; in the end somebody leads."""

    @timed
    async def body() -> None:
        store = lease_store.Store()
        rng = random.Random(seed)
        processes = [
            Process("a", lease_store.Wire(store, rng), seed=seed),
            Process("a" if same else "b", lease_store.Wire(store, rng), seed=seed + 1, wrong_s=wrong_s),
        ]
        for process in processes:
            # An overlap begins with the beginning of one of its terms.
            process.elector._on_change = lambda: _require_one(processes)
        async with running(*processes):
            for which, pause_s, (what, how) in steps:
                process = processes[which]
                if what == "stop":
                    process.stop(how)
                else:
                    process.wire.loss, process.wire.delay_s, process.wire.cut = how
                await asyncio.sleep(pause_s)
            for process in processes:
                process.wire.loss, process.wire.delay_s, process.wire.cut = 0.0, 0.001, False
            await asyncio.sleep(30.0)
            assert 1 == sum(process.leads for process in processes)

    body()


def _require_one(processes: list[Process]) -> None:
    assert 1 >= sum(process.leads for process in processes), [process.elector.stance for process in processes]
