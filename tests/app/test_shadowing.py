"""In mode shadow nothing is written, and what another scheduler did is compared fairly and counted once."""

from typing import Any

import pytest

from graphsched.app import shadow
from graphsched.app.settings import BindingSettings, ShadowSettings
from tests import builders
from tests.app import live
from tests.fakes import apiserver, storage, virtual

Result = shadow.Result
SMALL = builders.make_node("small").cpu("2")
LARGE = builders.make_node("large").cpu("8")


def create(it: live.Scheduler, *pods: builders.PodBuilder) -> None:
    """Somebody creates pods of the default scheduler."""
    for pod in pods:
        it.server.create(storage.PODS, pod.manifest())


def pod(name: str, cpu: str = "1") -> builders.PodBuilder:
    """A pod of the default scheduler."""
    return builders.make_pod(name).cpu(cpu).memory("1Gi")


def bind(it: live.Scheduler, name: str, node: str) -> None:
    """The other scheduler binds the pod."""
    it.server.storage.bind(storage.Key(storage.PODS, "default", name), {"target": {"name": node}})


def report(it: live.Scheduler, limit: int = 20) -> shadow.Report:
    """What is told."""
    asked = it.program.server._sights.shadow
    assert asked is not None
    found = asked(limit)
    assert isinstance(found, shadow.Report)
    return found


def results(it: live.Scheduler) -> dict[Result, int]:
    """Result → pods, without zeros."""
    return {result: count for result, count in report(it).results.items() if count}


def require_silence(it: live.Scheduler) -> None:
    """Nothing but reading has left the process."""
    assert {"GET"} == {request.method for request in it.server.requests}


@virtual.timed
async def test_nothing_is_ever_written_whatever_happens() -> None:
    """Placed, refused, deleted, gated, its own name: every request reads."""
    async with live.scheduler(SMALL, LARGE, mode="shadow") as it:
        create(it, pod("web"), pod("huge", "99"), pod("gone"), pod("held").gate("wait"))
        it.pod(pod("ours"))
        await it.quiet(30.0)
        it.delete("gone")
        bind(it, "web", "small")
        it.node(builders.make_node("more").cpu("4"))
        await it.quiet(600.0)

        require_silence(it)
        assert "" == it.where("huge")
        assert [] == it.server.storage.items(apiserver.EVENTS)
        assert 0 == len(it.parts.promises)
        it.require_sound()
    require_silence(it)


@virtual.timed
async def test_the_same_node_is_the_same() -> None:
    """It counted there before the other scheduler had bound it, and nothing is assumed afterwards."""
    async with live.scheduler(SMALL, LARGE, mode="shadow") as it:
        create(it, pod("web"))
        await it.quiet()
        assert ["pod/default/web"] == list(it.parts.store.on_node("large"))
        assert 0 == len(it.parts.backlog), "the decision is done with, there is no call to wait for"
        bind(it, "web", "large")
        await it.quiet()

        assert {Result.SAME: 1} == results(it)
        assert 0 == len(it.parts.promises)


@virtual.timed
async def test_another_node_of_equal_score_is_agreement() -> None:
    """Ours goes by name, the other draws lots."""
    async with live.scheduler(LARGE, builders.make_node("larger").cpu("8"), mode="shadow") as it:
        create(it, pod("web"))
        await it.quiet()
        bind(it, "web", "larger")
        await it.quiet()

        assert {Result.EQUAL: 1} == results(it)
        assert () == report(it).worst


@virtual.timed
async def test_a_lower_score_is_told_with_both_scores() -> None:
    """By how much, on the graph before that binding."""
    async with live.scheduler(SMALL, LARGE, mode="shadow") as it:
        create(it, pod("web"))
        await it.quiet()
        bind(it, "web", "small")
        await it.quiet()

        (found,) = report(it).worst
        assert (Result.LOWER, "large", "small") == (found.result, found.ours, found.theirs)
        assert found.our_score > found.their_score > 0
        assert (found.gap, found.gap) == (report(it).gap_sum, report(it).gap_most)
        text = it.parts.meters.render().decode()
        assert 'graphsched_shadow_comparisons_total{result="lower"} 1.0' in text
        assert 'graphsched_shadow_comparisons_total{result="refused"} 0.0' in text, "an alert needs it from the start"


@virtual.timed
async def test_a_node_that_would_be_refused_is_told_with_plugin_and_reasons() -> None:
    """The finding that matters most before a cut-over."""
    tainted = builders.make_node("tainted").cpu("8").taint("dedicated", "gpu")
    async with live.scheduler(SMALL, tainted, mode="shadow") as it:
        create(it, pod("web"))
        await it.quiet()
        bind(it, "web", "tainted")
        await it.quiet()

        (found,) = report(it).worst
        assert (Result.REFUSED, "small", "tainted") == (found.result, found.ours, found.theirs)
        assert ("TaintToleration", ("node(s) had untolerated taint(s)",)) == (found.plugin, found.reasons)


@virtual.timed
async def test_a_pod_that_only_the_other_places_is_told_with_the_reason() -> None:
    """What we would leave pending."""
    async with live.scheduler(SMALL, mode="shadow") as it:
        create(it, pod("huge", "3"))
        await it.quiet()
        bind(it, "huge", "small")
        await it.quiet()

        (found,) = report(it).worst
        assert (Result.NONE, "", "small", "NodeResourcesFit") == (found.result, found.ours, found.theirs, found.plugin)
        assert ("0/1 nodes are available: 1 Insufficient cpu.",) == found.reasons


@virtual.timed
async def test_pods_that_wait_are_told_by_whether_we_would_place_them() -> None:
    """Neither places the one, only we the other; each counts once, and anew when it is bound or gone."""
    async with live.scheduler(SMALL, mode="shadow") as it:
        create(it, pod("huge", "99"), pod("left"))
        await it.quiet(5.0)
        assert ({}, 2) == (results(it), report(it).undecided)

        await it.quiet(30.0)
        assert ({Result.UNSCHEDULABLE: 1, Result.PENDING: 1}, 0) == (results(it), report(it).undecided)
        assert 1 == report(it).agreed
        assert 'graphsched_shadow_waiting_pods{result="pending"} 1.0' in it.parts.meters.render().decode()
        # It is not decided again and again, and its room is for others.
        assert 0 == len(it.parts.promises)
        decisions = it.program.loop.decisions
        key = storage.Key(storage.PODS, "default", "left")
        it.server.storage.patch(key, {"metadata": {"labels": {"seen": "yes"}}}, strategic=False)
        await it.quiet(30.0)
        assert decisions == it.program.loop.decisions

        bind(it, "left", "small")
        it.delete("huge")
        await it.quiet()
        assert {Result.UNSCHEDULABLE: 1, Result.SAME: 1} == results(it)
        create(it, pod("brief"))
        await it.quiet()
        it.delete("brief")
        await it.quiet()
        assert {"unseen": 0, "gone": 1} == report(it).not_compared


@virtual.timed
async def test_pods_decided_later_do_not_count_against_an_earlier_one() -> None:
    """Both wait and are decided; the other scheduler draws the other lot for the first: no difference is invented."""
    async with live.scheduler(LARGE, builders.make_node("larger").cpu("8"), mode="shadow") as it:
        create(it, pod("first"), pod("second"))
        await it.quiet()
        assert ["pod/default/first"] == list(it.parts.store.on_node("large"))
        assert ["pod/default/second"] == list(it.parts.store.on_node("larger"))
        bind(it, "first", "larger")
        await it.quiet()
        assert {Result.EQUAL: 1} == results(it)
        assert ["pod/default/second"] == sorted(set(it.parts.store.on_node("larger")) - {"pod/default/first"})
        bind(it, "second", "large")
        await it.quiet()

        assert {Result.EQUAL: 1, Result.SAME: 1} == results(it)
        it.require_sound()


@virtual.timed
async def test_pods_in_the_others_hands_are_given_the_benefit_of_the_doubt() -> None:
    """The second is seen bound first: where the first went is not known yet, and no difference is made of that."""
    async with live.scheduler(LARGE, builders.make_node("larger").cpu("8"), mode="shadow") as it:
        create(it, pod("first"), pod("second"))
        await it.quiet()
        bind(it, "second", "large")
        bind(it, "first", "larger")
        await it.quiet()

        assert 2 == report(it).agreed
        assert {Result.EQUAL, Result.SAME} >= set(results(it))


@virtual.timed
async def test_decisions_do_not_run_far_ahead_of_the_other_scheduler() -> None:
    """What is not decided yet when it is bound is compared all the same."""
    async with live.scheduler(LARGE, mode="shadow", binding=BindingSettings(concurrency=2)) as it:
        create(it, *(pod(f"p{number}") for number in range(6)))
        await it.quiet()
        assert (2, 2) == (len(it.parts.promises), it.program.loop.decisions)
        bind(it, "p5", "large")
        await it.quiet()
        assert {Result.SAME: 1} == results(it)
        for number in range(5):
            bind(it, f"p{number}", "large")
            await it.quiet()

        assert {Result.SAME: 6} == results(it)
        assert 0 == len(it.parts.promises)


@virtual.timed
async def test_bindings_before_the_first_list_and_unseen_ones_are_not_compared() -> None:
    """What was there is taken as it is; a pod that comes bound was never seen waiting."""
    async with live.scheduler(SMALL, pods=(builders.make_pod("old"),), mode="shadow", started=False) as it:
        await it.start()
        it.server.create(storage.PODS, builders.make_pod("static").node("small").manifest())
        await it.quiet()

        assert ({}, {"unseen": 1, "gone": 0}) == (results(it), report(it).not_compared)


@virtual.timed
async def test_every_state_of_a_pod_is_seen_although_it_is_created_and_bound_at_once() -> None:
    """Both events come in one piece, and are taken one by one."""
    async with live.scheduler(SMALL, LARGE, mode="shadow") as it:
        for number in range(4):
            create(it, pod(f"p{number}"))
            bind(it, f"p{number}", "large")
        await it.quiet()

        assert {"unseen": 0, "gone": 0} == report(it).not_compared
        assert 4 == report(it).compared


@virtual.timed
async def test_the_pods_of_the_named_scheduler_are_compared() -> None:
    """Others only count."""
    options = ShadowSettings(scheduler_name="theirs")
    async with live.scheduler(SMALL, LARGE, mode="shadow", shadow=options) as it:
        create(it, pod("web").scheduler("theirs"), pod("other"))
        await it.quiet()
        bind(it, "web", "large")
        bind(it, "other", "large")
        await it.quiet()

        assert ({Result.SAME: 1}, "theirs") == (results(it), report(it).scheduler)


@pytest.mark.parametrize("kept", [1, 3])
def test_the_memory_of_disagreements_is_bounded(kept: int) -> None:
    """The last ones stay, and the counts go on."""

    @virtual.timed
    async def body() -> None:
        async with live.scheduler(SMALL, LARGE, mode="shadow", shadow=ShadowSettings(kept=kept)) as it:
            for number in range(5):
                create(it, pod(f"p{number}", "100m"))
                await it.quiet()
                bind(it, f"p{number}", "small")
                await it.quiet()

            told: Any = report(it)
            assert (5, kept) == (told.results[Result.LOWER], told.disagreements)
            assert "default/p4" in {found.pod for found in told.worst}
            assert 1 == len(report(it, limit=1).worst)

    body()
