"""The live loop binds what fits, once, explains what does not, and tries again when something has changed."""

import asyncio

import pytest

from graphsched.app import parking
from graphsched.app.settings import BindingSettings, QueueSettings
from tests import builders
from tests.app import live
from tests.fakes import apiserver, storage, virtual, watching

N1 = builders.make_node("n1").cpu("2")
N2 = builders.make_node("n2").cpu("2")
WEB = builders.make_pod("web").cpu("1")


@virtual.timed
async def test_a_pod_is_bound_and_told_of() -> None:
    """One Binding call with its UID, one event, no condition of ours, and nothing assumed afterwards."""
    async with live.scheduler(N1) as it:
        it.pod(WEB)
        await it.bound("web")
        await it.quiet()

        assert "n1" == it.where("web")
        (request,) = it.server.asked("POST", live.BINDING)
        assert it.server.pod("web")["metadata"]["uid"] == request.body["metadata"]["uid"]
        (event,) = it.server.storage.items(apiserver.EVENTS)
        assert "Successfully assigned default/web to n1" == event["note"]
        assert [] == it.server.asked("PATCH")
        assert (0, 0) == (len(it.parts.promises), len(it.parts.backlog))
        it.require_sound()


@virtual.timed
async def test_pods_of_others_are_counted_and_left_alone() -> None:
    """Another scheduler's pods take their room, and are never bound here."""
    async with live.scheduler(N1) as it:
        it.server.create(storage.PODS, builders.make_pod("theirs").cpu("1").manifest())
        it.server.create(storage.PODS, builders.make_pod("running").cpu("2").node("n1").manifest())
        it.pod(WEB)
        await it.until(lambda: it.message("web") != "")
        await it.quiet()

        assert "0/1 nodes are available: 1 Insufficient cpu." == it.message("web")
        assert "" == it.where("theirs")


@virtual.timed
async def test_nothing_is_decided_before_every_list_is_taken() -> None:
    """A node that is listed late would otherwise be thought not to exist."""
    async with apiserver.FakeApiServer() as server:
        server.faults.delay("GET", "/api/v1/nodes", 30.0)
        async with live.scheduler(N1, pods=(WEB,), server=server, started=False) as it:
            await asyncio.sleep(29.0)
            assert 0 == it.program.loop.decisions

            await it.bound("web")
            assert [] == it.server.asked("PATCH")


@virtual.timed
async def test_two_decisions_never_take_the_same_room() -> None:
    """What was decided counts at once, long before the cluster shows it."""
    async with live.scheduler(N1, N2) as it:
        it.server.faults.delay("POST", live.BINDING, 2.0, times=99)
        for number in range(6):
            it.pod(builders.make_pod(f"p{number}").cpu("1"))
        await it.bound("p0", "p1", "p2", "p3")
        await it.quiet(60.0)

        assert 4 == sum(bool(it.where(f"p{number}")) for number in range(6))
        it.require_sound()


@virtual.timed
async def test_a_pod_that_does_not_fit_says_why_and_is_placed_when_there_is_room() -> None:
    """Condition and event in kube-scheduler's words; the departure of another wakes it."""
    async with live.scheduler(N1) as it:
        it.pod(builders.make_pod("first").cpu("2"))
        await it.bound("first")
        it.pod(WEB)
        await it.until(lambda: it.message("web") != "")
        await it.quiet()
        assert "0/1 nodes are available: 1 Insufficient cpu." == it.message("web")
        warnings = [event for event in it.server.storage.items(apiserver.EVENTS) if event["type"] == "Warning"]
        assert ["0/1 nodes are available: 1 Insufficient cpu."] == [event["note"] for event in warnings]

        it.delete("first")
        await it.bound("web")
        await it.quiet()

        assert "" == it.message("web")
        it.require_sound()


@virtual.timed
async def test_an_empty_cluster_is_waited_out_without_effort() -> None:
    """One decision, then none until the first node comes."""
    async with live.scheduler() as it:
        it.pod(WEB)
        await it.until(lambda: it.message("web") == "no nodes available to schedule pods")
        await it.quiet(120.0)
        assert 1 == it.program.loop.decisions

        it.node(N1)
        await it.bound("web")


@virtual.timed
async def test_pods_that_can_not_fit_cause_no_storm() -> None:
    """Among hundreds, each departure costs one try, and the API server hears next to nothing."""
    async with live.scheduler(N1) as it:
        it.pod(builders.make_pod("first").cpu("1"))
        it.pod(builders.make_pod("second").cpu("1"))
        await it.bound("first", "second")
        for number in range(300):
            it.pod(builders.make_pod(f"big{number}").cpu("2"))
        await it.until(lambda: all(it.message(f"big{number}") for number in range(300)))
        await it.quiet(30.0)
        decisions, patches = it.program.loop.decisions, len(it.server.asked("PATCH"))

        it.delete("first")
        await it.quiet(60.0)
        assert (decisions, patches) == (it.program.loop.decisions, len(it.server.asked("PATCH")))

        it.delete("second")
        await it.until(lambda: any(it.where(f"big{number}") for number in range(300)))
        await it.quiet(10.0)
        assert decisions + 2 >= it.program.loop.decisions
        it.require_sound()


@virtual.timed
async def test_a_gated_pod_is_bound_once_its_gate_is_gone() -> None:
    """It is not even tried before, and nothing is written about it."""
    async with live.scheduler(N1) as it:
        it.pod(WEB.gate("hold"))
        await it.quiet(10.0)
        assert 0 == it.program.loop.decisions
        assert parking.Pool.GATED is it.pool("web")

        it.server.storage.patch(
            storage.Key(storage.PODS, "default", "web"), {"spec": {"schedulingGates": []}}, strategic=False
        )
        await it.bound("web")


@virtual.timed
async def test_room_that_was_nominated_is_for_others_once_its_pod_went_elsewhere() -> None:
    """Whoever was turned away because of the nomination is tried at once, not after minutes."""
    async with live.scheduler(N1.taint("for", "second"), N2.taint("for", "first")) as it:
        first = builders.make_pod("first").cpu("2").priority(9).tolerate("for", "first", operator="Equal")
        it.pod(first.gate("wait").nominated("n1"))
        it.pod(builders.make_pod("second").cpu("2").tolerate("for", "second", operator="Equal"))
        await it.until(lambda: "Insufficient cpu" in it.message("second"))
        key = storage.Key(storage.PODS, "default", "first")
        it.server.storage.patch(key, {"spec": {"schedulingGates": []}}, strategic=False)
        await it.bound("first")
        begun = virtual.now()
        await it.bound("second")

        assert ("n2", "n1") == (it.where("first"), it.where("second"))
        assert virtual.now() - begun < 2.0
        it.require_sound()


@virtual.timed
async def test_a_rivals_binding_is_taken_over() -> None:
    """A 409: the promise is taken back at once, the other's truth counts, and there is no second call."""
    async with live.scheduler(N1.label("tier", "a"), N2.label("tier", "b")) as it:
        p1 = builders.make_pod("p1").cpu("2").node_selector("tier", "a")
        it.server.faults.delay("POST", ".*/p1/binding", 5.0)
        it.pod(p1)
        await it.until(lambda: it.bindings("p1") == 1)
        it.server.storage.bind(storage.Key(storage.PODS, "default", "p1"), {"target": {"name": "n2"}})
        it.pod(builders.make_pod("p2").cpu("2").node_selector("tier", "a"))
        await it.bound("p2")
        await it.quiet(30.0)

        assert ("n2", "n1", 1) == (it.where("p1"), it.where("p2"), it.bindings("p1"))
        assert 'graphsched_bind_total{outcome="conflict"} 1.0' in it.parts.meters.render().decode()
        it.require_sound()


@virtual.timed
async def test_a_pod_deleted_while_its_binding_is_out_is_forgotten() -> None:
    """A 404: no retry, no status patch, no event, and its room is free."""
    async with live.scheduler(N1) as it:
        it.server.faults.delay("POST", live.BINDING, 5.0)
        it.pod(builders.make_pod("web").cpu("2"))
        await it.until(lambda: it.bindings("web") == 1)
        it.delete("web")
        await it.quiet(30.0)

        assert 1 == it.bindings("web")
        assert [] == it.server.asked("PATCH")
        assert [] == it.server.storage.items(apiserver.EVENTS)
        it.pod(builders.make_pod("next").cpu("2"))
        await it.bound("next")
        it.require_sound()


@virtual.timed
async def test_a_lost_answer_charges_the_node_once() -> None:
    """The connection broke after the server had taken the binding: it is bound, once, and known to be."""
    async with live.scheduler(N1) as it:
        it.server.faults.lose("POST", live.BINDING)
        it.pod(WEB)
        await it.bound("web")
        await it.quiet(10.0)
        it.pod(builders.make_pod("other").cpu("1"))
        await it.bound("other")
        it.pod(builders.make_pod("third").cpu("1"))
        await it.until(lambda: it.message("third") != "")
        await it.quiet(10.0)

        assert 1 == it.bindings("web")
        it.require_sound()


@virtual.timed
async def test_a_refusal_by_admission_is_retried_ever_more_rarely() -> None:
    """The pod says why, the calls thin out, its room is free meanwhile, and it is bound once the webhook lets it."""
    async with live.scheduler(N1) as it:
        it.server.faults.refuse(
            "POST", ".*/web/binding", 403, message='admission webhook "w" denied the request', times=12
        )
        it.pod(builders.make_pod("web").cpu("2"))
        await it.quiet(600.0)
        assert 7 <= it.bindings("web") <= 11
        assert "denied the request" in it.message("web")

        await it.bound("web")
        it.require_sound()


@virtual.timed
async def test_a_pod_named_anew_while_its_forerunners_binding_is_out_waits_for_it() -> None:
    """Two pods of one name are never in the way of each other."""
    async with live.scheduler(N1) as it:
        it.server.faults.delay("POST", live.BINDING, 5.0)
        it.pod(WEB)
        await it.until(lambda: it.bindings("web") == 1)
        it.delete("web")
        it.pod(WEB)
        await it.bound("web")
        await it.quiet(10.0)

        assert 2 == it.bindings("web")
        it.require_sound()


@pytest.mark.parametrize("at_once", [True, False])
def test_a_node_that_goes_and_comes_again_is_not_given_away_twice(at_once: bool) -> None:
    """What was promised on it is still to come, also when the old and the new node arrive in one batch."""

    @virtual.timed
    async def body() -> None:
        async with live.scheduler(N1) as it:
            watch = await it.server.watching(apiserver.NODES)
            it.server.faults.delay("POST", ".*/first/binding", 5.0)
            it.pod(builders.make_pod("first").cpu("2"))
            await it.until(lambda: it.bindings("first") == 1)
            watch.live = not at_once
            it.server.storage.delete(storage.Key(apiserver.NODES, "", "n1"))
            await it.quiet(0.0 if at_once else 1.0)
            it.node(N1)
            watch.live = True
            watch.wake()
            await it.quiet()
            it.pod(builders.make_pod("second").cpu("2"))
            await it.bound("first")
            await it.until(lambda: it.message("second") != "")

            assert "" == it.where("second")
            it.require_sound()

    body()


@virtual.timed
async def test_decisions_stop_when_no_answer_comes() -> None:
    """A server that hangs has as many orders as there are places, not thousands."""
    async with live.scheduler(N1.cpu("100"), binding=BindingSettings(concurrency=3, grace_seconds=1.0)) as it:
        it.server.faults.delay("POST", live.BINDING, 20.0, times=3)
        for number in range(50):
            it.pod(builders.make_pod(f"p{number}").cpu("1"))
        await it.quiet(10.0)
        assert (3, 3) == (it.program.loop.decisions, it.bindings())

        await it.bound(*(f"p{number}" for number in range(50)))
        it.require_sound()


@virtual.timed
async def test_a_server_that_goes_and_comes_again_costs_nothing_but_time() -> None:
    """Killed twice with bindings out and pods coming: all are bound once, nothing is over-committed."""
    nodes = [builders.make_node(f"n{number}").cpu("4") for number in range(10)]
    async with live.scheduler(*nodes) as it:
        for round_ in range(3):
            it.server.faults.delay("POST", live.BINDING, 0.5, times=9)
            for number in range(13):
                it.pod(builders.make_pod(f"p{round_}-{number}").cpu("1"))
            if round_ == 2:
                break
            await it.until(lambda: len(it.parts.dispatcher) > 0)
            await it.server.stop()
            await asyncio.sleep(40.0)
            await it.server.start()
        names = [f"p{round_}-{number}" for round_ in range(3) for number in range(13)]
        await it.bound(*names)
        await it.quiet(10.0)

        it.require_sound()
        assert 0 == len(it.parts.promises)


@virtual.timed
async def test_a_full_cluster_takes_pods_by_priority() -> None:
    """Whoever matters more is decided first."""
    async with live.scheduler(started=False) as it:
        for name, priority in (("low", 1), ("high", 9), ("mid", 5)):
            it.pod(builders.make_pod(name).cpu("2").priority(priority))
        await it.until(lambda: all(it.message(name) for name in ("low", "high", "mid")))
        await it.quiet(20.0)
        it.node(N1)
        await it.bound("high")
        it.node(N2)
        await it.bound("mid")
        await it.quiet(10.0)

        assert "" == it.where("low")


@virtual.timed
async def test_a_pod_being_deleted_is_passed_over() -> None:
    """It leaves the queue with the usual words, whatever still holds it in the API."""
    async with live.scheduler() as it:
        it.pod(WEB)
        await it.until(lambda: it.message("web") != "")
        it.server.storage.patch(
            storage.Key(storage.PODS, "default", "web"),
            {"metadata": {"deletionTimestamp": storage.CREATED_AT}},
            strategic=False,
        )
        await it.quiet(60.0)
        it.node(N1)
        await it.quiet(10.0)

        assert ("", None) == (it.where("web"), it.pool("web"))
        notes = [event["note"] for event in it.server.storage.items(apiserver.EVENTS)]
        assert "skip schedule deleting pod: default/web" in notes


@virtual.timed
async def test_what_happened_can_be_asked_for() -> None:
    """Metrics, health, past decisions and explanations show the live state."""
    async with live.scheduler(N1, queue=QueueSettings(initial_backoff_seconds=2.0)) as it:
        it.pod(WEB)
        it.pod(builders.make_pod("big").cpu("3"))
        await it.bound("web")
        await it.until(lambda: it.message("big") != "")
        await it.quiet()

        text = it.parts.meters.render().decode()
        for line in (
            'scheduler_schedule_attempts_total{profile="graph-scheduler",result="scheduled"} 1.0',
            'scheduler_schedule_attempts_total{profile="graph-scheduler",result="unschedulable"} 1.0',
            'scheduler_pending_pods{queue="unschedulable"} 1.0',
            'scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="graph-scheduler"} 1.0',
            'scheduler_queue_incoming_pods_total{event="UnschedulablePodAdd",queue="active"} 2.0',
            'scheduler_cache_size{type="nodes"} 1.0',
            'scheduler_cache_size{type="pods"} 2.0',
            'scheduler_cache_size{type="assumed_pods"} 0.0',
            'graphsched_bind_total{outcome="bound"} 1.0',
            'graphsched_events_total{outcome="written"} 2.0',
            'graphsched_conditions_total{outcome="written"} 1.0',
        ):
            assert line in text
        assert it.program.sights.health().report("readyz").ok
        explained = await it.program.sights.explain("default/big")
        assert "pending" == getattr(explained, "state", "")
        assert await it.program.sights.explain("default/nobody") is None


@virtual.timed
async def test_readiness_waits_for_the_lists_and_ends_with_the_end() -> None:
    """A probe says what is missing."""
    async with apiserver.FakeApiServer() as server:
        server.faults.refuse("GET", "/api/v1/pods", 403, message="pods is forbidden", times=10**6)
        async with live.scheduler(N1, server=server, started=False) as it:
            await it.quiet(10.0)
            report = it.program.sights.health().report("readyz")
            assert not report.ok
            assert "watch/pods failed: not listed yet: " in report.text()
            assert "pods is forbidden" in report.text()
            assert it.program.sights.health().report("livez").ok
            server.faults.clear()
            await it.until(lambda: it.program.loop.started)
            await it.quiet(20.0)
            assert it.program.sights.health().report("readyz").ok
        assert "the program is ending" in it.program.sights.health().report("readyz").text()


@virtual.timed
async def test_at_its_end_bindings_that_are_out_are_finished() -> None:
    """No new decision, the one that is out is waited for, and its event is written."""
    async with apiserver.FakeApiServer() as server:
        async with live.scheduler(N1, server=server, binding=BindingSettings(concurrency=1)) as it:
            server.faults.delay("POST", live.BINDING, 5.0)
            it.pod(WEB)
            it.pod(builders.make_pod("late").cpu("1"))
            await it.until(lambda: it.bindings() == 1)

        assert ("n1", "") == (it.where("web"), it.where("late"))
        assert 5.0 == pytest.approx(virtual.now(), abs=0.5)
        assert ["Successfully assigned default/web to n1"] == [
            event["note"] for event in server.storage.items(apiserver.EVENTS)
        ]


@virtual.timed
async def test_it_ends_with_the_last_binding_and_not_a_pause_later() -> None:
    """The watch has shown the binding before its end is known, so nothing else would wake the loop."""
    async with apiserver.FakeApiServer() as server:
        async with live.scheduler(N1, server=server) as it:
            server.faults.lose("POST", live.BINDING)
            it.pod(WEB)
            await it.bound("web")

        assert virtual.now() < 5.0


@virtual.timed
async def test_at_its_end_a_binding_without_an_answer_is_left_to_the_next_start() -> None:
    """The grace has an end; whoever starts next reads the truth."""
    async with apiserver.FakeApiServer() as server:
        async with live.scheduler(N1, server=server, binding=BindingSettings(grace_seconds=3.0)) as it:
            server.faults.hang("POST", live.BINDING)
            it.pod(WEB)
            await it.until(lambda: it.bindings() == 1)
        assert 3.0 == pytest.approx(virtual.now(), abs=0.5)
        server.faults.clear()

        async with live.scheduler(server=server) as it:
            await it.bound("web")
            it.require_sound()


@virtual.timed
async def test_an_old_word_of_the_watch_does_not_bring_a_bound_pod_back() -> None:
    """The watch lags behind the answer: what it says of the time before changes nothing, and the room stays taken."""
    async with live.scheduler(N1) as it:
        watch = await it.server.watching(storage.PODS)
        it.server.faults.delay("POST", live.BINDING, 1.0)
        it.pod(builders.make_pod("web").cpu("2"))
        await it.until(lambda: it.bindings("web") == 1)
        watch.live = False
        before = it.server.pod("web")
        await it.bound("web")
        await it.quiet()
        assert 0 == len(it.parts.backlog)

        late = {**before, "metadata": {**before["metadata"], "labels": {"late": "word"}, "resourceVersion": "1"}}
        await watch.send(watching._encode("MODIFIED", late))
        await it.quiet(30.0)
        assert (1, 1, 1) == (it.bindings("web"), it.program.loop.decisions, len(it.parts.promises))

        watch.live = True
        watch.wake()
        it.pod(WEB.set("metadata.name", "other"))
        await it.until(lambda: it.message("other") != "")
        assert 0 == len(it.parts.promises)
        it.require_sound()
