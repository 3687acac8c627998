"""Right before a binding the node is looked at again: what moved is seen, another node is tried, and races are told."""

import asyncio
import typing

import msgspec
import pytest

from graphsched.app import parking, races
from graphsched.app.settings import SharedSettings
from graphsched.decision import cycle
from tests import builders
from tests.app import live
from tests.fakes import apiserver, storage, virtual

N1, N2, N3 = (builders.make_node(f"n{number}").cpu(str(5 - number)) for number in (1, 2, 3))
"""The emptiest first, so that a pod of 1 CPU prefers n1, then n2, then n3."""
WEB = builders.make_pod("web").cpu("1")


def rival(it: live.Scheduler, name: str, node: str, cpu: str) -> None:
    """Another scheduler's pod, bound."""
    it.server.create(storage.PODS, builders.make_pod(name).cpu(cpu).node(node).manifest())


def conflicts(it: live.Scheduler) -> dict[str, float]:
    """Kind → number where there are any, of the metric."""
    head = "graphsched_conflicts_total{kind="
    text = it.parts.meters.render().decode()
    lines = [line for line in text.splitlines() if line.startswith(head) and not line.endswith(" 0.0")]
    return {line.removeprefix(head).partition('"}')[0][1:]: float(line.rpartition(" ")[2]) for line in lines}


async def between(it: live.Scheduler, happens: typing.Callable[[], None], pod: builders.PodBuilder = WEB) -> None:
    """Have something happen between the decision on the pod and the call that carries it out."""
    it.server.faults.refuse("POST", live.BINDING, 429, retry_after_s=5)
    it.pod(pod)
    await it.until(lambda: it.bindings() == 1)
    happens()


def taint(it: live.Scheduler, node: str) -> None:
    """Keep pods away from a node."""
    key = storage.Key(apiserver.NODES, "", node)
    taints = [{"key": "x", "effect": "NoSchedule"}]
    it.server.storage.patch(key, {"spec": {"taints": taints}}, strategic=False)


@virtual.timed
async def test_a_node_that_another_scheduler_filled_is_left_for_the_second() -> None:
    """One decision, two nodes; the record says who raced with whom and when it was seen."""
    async with live.scheduler(N1, N2, N3) as it:
        it.server.create(storage.PODS, builders.make_pod("before").node("n1").manifest())
        await it.quiet()
        await between(it, lambda: rival(it, "theirs", "n1", "4"))
        await it.bound("web")
        await it.quiet()

        assert "n2" == it.where("web")
        assert 1 == it.program.loop.decisions
        assert {"moved": 1.0} == conflicts(it)
        (race,) = it.parts.races.newest(10)
        assert (races.Kind.MOVED, "default/web", "n1") == (race.kind, race.pod, race.node)
        assert "Insufficient cpu: it goes to n2" == race.detail
        assert ["default-scheduler bound default/theirs"] == [change.what for change in race.by]
        assert race.decided < race.by[0].generation <= race.found
        it.require_sound()


@virtual.timed
async def test_candidates_are_checked_by_every_filter_not_by_room_alone() -> None:
    """The second is tainted by then, so the third gets it."""
    async with live.scheduler(N1, N2, N3) as it:

        def happens() -> None:
            rival(it, "theirs", "n1", "4")
            taint(it, "n2")

        await between(it, happens)
        await it.bound("web")

        assert ("n3", 1) == (it.where("web"), it.program.loop.decisions)


@virtual.timed
async def test_a_deleted_node_and_a_cordoned_one_are_left_too() -> None:
    """Whatever happened to the node counts."""
    async with live.scheduler(N1, N2, N3) as it:

        def happens() -> None:
            it.server.storage.delete(storage.Key(apiserver.NODES, "", "n1"))
            key = storage.Key(apiserver.NODES, "", "n2")
            it.server.storage.patch(key, {"spec": {"unschedulable": True}}, strategic=False)

        await between(it, happens)
        await it.bound("web")
        (race,) = it.parts.races.newest(10)

        assert "n3" == it.where("web")
        assert ["the node was deleted"] == [change.what for change in race.by]


@virtual.timed
async def test_company_counts_as_well() -> None:
    """A pod that it avoids came to the node, which still has all the room."""
    shy = WEB.away_from(builders.HOSTNAME, builders.selecting(app="loud"))
    async with live.scheduler(N1, N2, N3) as it:

        def happens() -> None:
            loud = builders.make_pod("loud").label("app", "loud").node("n1")
            it.server.create(storage.PODS, loud.manifest())

        await between(it, happens, shy)
        await it.bound("web")

        assert "n2" == it.where("web")


@virtual.timed
async def test_company_elsewhere_counts_too() -> None:
    """What it avoids came to another node of the zone: its own node has not changed at all."""
    shy = WEB.away_from(builders.ZONE, builders.selecting(app="loud"))
    async with live.scheduler(N1.zone("a"), N2.zone("b"), builders.make_node("n4").cpu("1").zone("a")) as it:

        def happens() -> None:
            loud = builders.make_pod("loud").label("app", "loud").node("n4")
            it.server.create(storage.PODS, loud.manifest())

        await between(it, happens, shy)
        await it.bound("web")

        assert "n2" == it.where("web")


@virtual.timed
async def test_a_pod_that_somebody_bound_while_its_node_moved_is_not_moved() -> None:
    """It is placed already; a promise made for it anew would never end."""
    async with live.scheduler(N1, N2, N3) as it:

        def happens() -> None:
            it.server.storage.bind(storage.Key(storage.PODS, "default", "web"), {"target": {"name": "n2"}})
            taint(it, "n1")

        await between(it, happens)
        await it.quiet(10.0)

        assert ("n2", 1) == (it.where("web"), it.bindings())
        assert (0, 0) == (len(it.parts.promises), len(it.parts.backlog))
        assert {"bound": 1.0} == conflicts(it)


@virtual.timed
async def test_with_one_candidate_the_pod_is_decided_anew_at_once() -> None:
    """No penalty: it goes before others of its priority, and no time passes but that of the call."""
    async with live.scheduler(N1, N2, shared=SharedSettings(candidates=1)) as it:
        await between(it, lambda: rival(it, "theirs", "n1", "4"))
        begun = asyncio.get_running_loop().time()
        await it.bound("web")

        assert ("n2", 2) == (it.where("web"), it.program.loop.decisions)
        assert asyncio.get_running_loop().time() - begun < 6.0
        assert "decided anew" in it.parts.races.newest(1)[0].detail
        await it.quiet()
        assert (0, 0) == (len(it.parts.promises), len(it.parts.backlog))


@virtual.timed
async def test_where_nothing_is_left_the_pod_waits_and_says_why() -> None:
    """Lost, decided anew, and refused like any other pod; nothing stays promised."""
    async with live.scheduler(N1) as it:
        await between(it, lambda: rival(it, "theirs", "n1", "4"))
        await it.until(lambda: it.message("web") != "")
        await it.quiet()

        assert "0/1 nodes are available: 1 Insufficient cpu." == it.message("web")
        assert parking.Pool.UNSCHEDULABLE is it.pool("web")
        assert 0 == len(it.parts.promises)
        assert 1 == it.bindings()

        it.delete("theirs")
        await it.bound("web")


@virtual.timed
async def test_a_call_whose_answer_was_lost_pins_the_node() -> None:
    """The first call may still arrive; asking for another node could count the pod where it is not."""
    async with live.scheduler(N1, N2) as it:
        it.server.faults.drop("POST", live.BINDING)
        it.server.faults.delay("GET", ".*/pods/web", 3.0)
        it.pod(WEB)
        await it.until(lambda: bool(it.server.asked("GET", ".*/pods/web")))
        rival(it, "theirs", "n1", "4")
        await it.bound("web")

        asked = [request.body["target"]["name"] for request in it.server.asked("POST", live.BINDING)]
        assert ["n1", "n2"] == asked
        assert 2 == it.program.loop.decisions


@virtual.timed
async def test_two_pods_never_move_to_the_same_room() -> None:
    """A promise moves with its pod, so the next one sees it: the second room is for one of them only."""
    small = builders.make_node("n2").cpu("1")
    async with live.scheduler(builders.make_node("n1").cpu("2"), small) as it:
        it.server.faults.refuse("POST", live.BINDING, 429, retry_after_s=5, times=2)
        it.pod(WEB)
        it.pod(builders.make_pod("twin").cpu("1"))
        await it.until(lambda: it.bindings() == 2)
        rival(it, "theirs", "n1", "2")
        await it.until(lambda: bool(it.where("web") or it.where("twin")))
        await it.quiet(10.0)

        assert sorted(["", "n2"]) == sorted([it.where("web"), it.where("twin")])
        it.require_sound()


@virtual.timed
async def test_what_is_undisturbed_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing moved, so no filter is evaluated a second time."""
    looked = []
    monkeypatch.setattr(cycle.Decider, "admits", lambda *given: looked.append(given))
    async with live.scheduler(N1, N2, N3) as it:
        for number in range(2):
            it.pod(builders.make_pod(f"p{number}").cpu("1"))
        await it.bound("p0", "p1")

        assert ["n1", "n2"] == sorted(it.where(name) for name in ("p0", "p1"))
        assert [] == looked


@virtual.timed
async def test_an_over_commit_is_recorded_with_both_sides() -> None:
    """What fell into the window of the call is found when the watch shows it; the record names the other pod."""
    async with live.scheduler(N1) as it:
        it.server.faults.delay("POST", live.BINDING, 3.0)
        it.pod(WEB)
        await it.until(lambda: it.bindings() == 1)
        rival(it, "theirs", "n1", "4")
        await it.bound("web")
        await it.quiet()

        assert {"overcommitted": 1.0} == conflicts(it)
        (race,) = it.parts.races.newest(10)
        assert (races.Kind.OVERCOMMITTED, "default/web", "n1") == (race.kind, race.pod, race.node)
        assert ["default-scheduler bound default/theirs"] == [change.what for change in race.by]
        assert "cpu is not enough for all" in race.detail


@virtual.timed
async def test_a_promise_that_moves_on_has_over_committed_nothing() -> None:
    """What is bound fits, ours included; that the promise did not fit beside it is told once, as a move."""
    async with live.scheduler(builders.make_node("n1").cpu("8"), N2) as it:
        it.pod(builders.make_pod("first").cpu("1"))
        await it.bound("first")
        it.server.faults.refuse("POST", live.BINDING, 429, retry_after_s=5)
        it.pod(WEB)
        await it.until(lambda: it.bindings("web") == 1)
        rival(it, "theirs", "n1", "7")
        await it.bound("web")
        await it.quiet()

        assert "n2" == it.where("web")
        assert {"moved": 1.0} == conflicts(it)


@virtual.timed
async def test_what_others_over_commit_among_themselves_is_no_conflict_of_ours() -> None:
    """A pod of ours that asks for nothing of what is short has no part in it."""
    async with live.scheduler(N1) as it:
        it.pod(builders.make_pod("web"))
        await it.bound("web")
        for number in range(3):
            rival(it, f"theirs{number}", "n1", "3")
        await it.quiet()

        assert {} == conflicts(it)


@virtual.timed
async def test_what_an_earlier_run_left_behind_is_no_conflict_of_this_one() -> None:
    """A scheduler that starts beside an over-committed node has raced with nobody."""
    async with apiserver.FakeApiServer() as server:
        server.create(apiserver.NODES, N1.manifest())
        server.create(storage.PODS, WEB.scheduler(live.NAME).cpu("3").node("n1").manifest())
        server.create(storage.PODS, builders.make_pod("theirs").cpu("3").node("n1").manifest())
        async with live.scheduler(server=server) as it:
            rival(it, "more", "n1", "1")
            await it.quiet()

            assert {} == conflicts(it)


@virtual.timed
async def test_a_pod_that_somebody_else_bound_is_a_recorded_conflict() -> None:
    """With the node where it went instead."""
    async with live.scheduler(N1, N2) as it:
        key = storage.Key(storage.PODS, "default", "web")
        await between(it, lambda: it.server.storage.bind(key, {"target": {"name": "n2"}}))
        await it.quiet(10.0)

        assert {"bound": 1.0} == conflicts(it)
        assert "somebody else bound it to n2" == it.parts.races.newest(1)[0].detail
        assert msgspec.json.encode(it.parts.races.newest(1))
