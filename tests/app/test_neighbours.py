"""With headroom, a nearly full node is left to another scheduler for the moment in which that one is filling it."""

import asyncio

from graphsched.app import neighbours
from graphsched.app.settings import SharedSettings
from tests import builders
from tests.app import live, test_rechecks
from tests.fakes import storage, virtual

N1, N2 = (builders.make_node(f"n{number}").cpu(str(5 - number)) for number in (1, 2))
WEB = builders.make_pod("web").cpu("1")
TENTH = SharedSettings(headroom_percent=10)
"""0.4 CPU of n1; it is nearly full where less than 1.2 CPU would be left."""
CALL_S = 5
"""So long after the decision its binding goes out; the server asks for that."""


async def decided(it: live.Scheduler, *, rival_s: float, cpu: str) -> None:
    """A pod is decided to go to n1, and bound `CALL_S` later; `rival_s` before that n1 gets a pod of others."""
    it.server.faults.refuse("POST", live.BINDING, 429, retry_after_s=CALL_S)
    it.pod(WEB)
    await it.until(lambda: it.bindings() == 1)
    await asyncio.sleep(CALL_S - rival_s)
    it.server.create(storage.PODS, builders.make_pod("theirs").cpu(cpu).node("n1").manifest())
    await it.bound("web")


@virtual.timed
async def test_a_nearly_full_node_where_others_just_bound_a_pod_is_left_to_them() -> None:
    """Its room is enough, headroom included; the race is told like any other."""
    async with live.scheduler(N1, N2, shared=TENTH) as it:
        await decided(it, rival_s=0.1, cpu="2")

        assert "n2" == it.where("web")
        assert {"moved": 1.0} == test_rechecks.conflicts(it)
        assert "other schedulers bound pods there" in it.parts.races.newest(1)[0].detail
        it.require_sound()


@virtual.timed
async def test_after_a_quiet_moment_the_node_is_taken() -> None:
    """What others decided before has been seen by then."""
    async with live.scheduler(N1, N2, shared=TENTH) as it:
        await decided(it, rival_s=neighbours.QUIET_S + 0.1, cpu="2")

        assert ("n1", {}) == (it.where("web"), test_rechecks.conflicts(it))


@virtual.timed
async def test_a_node_with_room_for_a_burst_is_shared() -> None:
    """1.8 CPU are left after both."""
    async with live.scheduler(N1, N2, shared=TENTH) as it:
        await decided(it, rival_s=0.1, cpu="1200m")

        assert ("n1", {}) == (it.where("web"), test_rechecks.conflicts(it))


@virtual.timed
async def test_without_headroom_nothing_is_left_to_others() -> None:
    """Placement is kube-scheduler's then: what fits, fits."""
    async with live.scheduler(N1, N2) as it:
        await decided(it, rival_s=0.1, cpu="3")

        assert ("n1", {}) == (it.where("web"), test_rechecks.conflicts(it))


@virtual.timed
async def test_a_pod_for_which_only_such_a_node_is_left_waits_for_it() -> None:
    """It is decided anew at once, then as after an error, and bound to that node when it is quiet."""
    async with live.scheduler(N1, shared=TENTH) as it:
        await decided(it, rival_s=0.1, cpu="2")

        assert "n1" == it.where("web")
        assert 1 < it.program.loop.decisions
        await it.quiet()
        assert (0, 0) == (len(it.parts.promises), len(it.parts.backlog))
        it.require_sound()
