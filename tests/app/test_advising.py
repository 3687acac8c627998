"""In mode advise pods are tied to nodes and never bound, each counts once, and who is stuck is told of."""

from typing import Any

from graphsched.app import parking
from graphsched.app.settings import AdviseSettings
from tests import builders
from tests.app import live
from tests.fakes import apiserver, storage, virtual

GATE = "graphsched.io/advise"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
N1 = builders.make_node("n1").cpu("2")
N2 = builders.make_node("n2").cpu("2")


def gated(name: str, cpu: str = "1", *more: str) -> builders.PodBuilder:
    """A pod of the default scheduler that our gate holds, and perhaps other gates."""
    made = builders.make_pod(name).cpu(cpu)
    for gate in (GATE, *more):
        made = made.gate(gate)
    return made


def create(it: live.Scheduler, *pods: builders.PodBuilder) -> None:
    """Somebody creates pods."""
    for pod in pods:
        it.server.create(storage.PODS, pod.manifest())


def key(name: str) -> storage.Key:
    """Where the server has the pod."""
    return storage.Key(storage.PODS, "default", name)


def tied(it: live.Scheduler, name: str) -> str:
    """The node that the pod is tied to, free to be bound; empty while it is not."""
    spec = it.server.pod(name)["spec"]
    required = (spec.get("affinity") or {}).get("nodeAffinity", {}).get(REQUIRED, {})
    fields = [term.get("matchFields") or [] for term in required.get("nodeSelectorTerms") or []]
    names = {field["values"][0] for each in fields for field in each}
    assert len(names) < 2
    return "" if spec.get("schedulingGates") or not names else names.pop()


def follow(it: live.Scheduler, *names: str) -> None:
    """The other scheduler does as it was told."""
    for name in names:
        it.server.storage.bind(key(name), {"target": {"name": tied(it, name)}})


def series(it: live.Scheduler, name: str) -> float:
    """The value of a metric."""
    for line in it.parts.meters.render().decode().splitlines():
        if line.rpartition(" ")[0] == name:
            return float(line.rpartition(" ")[2])
    return 0.0


async def explained(it: live.Scheduler, name: str) -> Any:
    """What `explain` says of the pod."""
    return await it.program.sights.explain(f"default/{name}")


@virtual.timed
async def test_gated_pods_are_tied_and_never_bound() -> None:
    """Whatever their schedulerName; those without our gate are left alone, and no condition or event is written."""
    async with live.scheduler(N1, mode="advise") as it:
        create(it, gated("web"), gated("own").scheduler("somebody"), builders.make_pod("free").cpu("1"))
        it.pod(builders.make_pod("ours"))
        await it.until(lambda: all(tied(it, name) for name in ("web", "own")))
        await it.quiet(30.0)

        assert ("n1", "n1") == (tied(it, "web"), tied(it, "own"))
        assert [] == it.server.asked("POST")
        assert 2 == len(it.server.asked("PATCH"))
        assert all(not it.where(name) for name in ("web", "own", "free", "ours"))
        assert 2.0 == series(it, "graphsched_advice_outstanding")
        assert 25.0 < series(it, "graphsched_advice_oldest_age_seconds") < 40.0


@virtual.timed
async def test_room_that_was_advised_is_kept_until_the_pod_is_seen_there() -> None:
    """Two decisions never take it both, however long the other scheduler needs; afterwards nothing is outstanding."""
    async with live.scheduler(N1, N2, mode="advise") as it:
        create(it, *(gated(f"p{number}") for number in range(6)))
        await it.until(lambda: sum(bool(tied(it, f"p{number}")) for number in range(6)) == 4)
        await it.quiet(60.0)
        placed = [name for name in (f"p{number}" for number in range(6)) if tied(it, name)]
        assert ["n1", "n1", "n2", "n2"] == sorted(tied(it, name) for name in placed)
        follow(it, *placed)
        await it.quiet(10.0)

        assert 4 == len(placed)
        assert (0.0, 4.0) == (
            series(it, "graphsched_advice_outstanding"),
            series(it, 'graphsched_advice_ended_total{outcome="bound"}'),
        )
        assert 0 == len(it.parts.promises)
        it.require_sound()

        it.delete(placed[0])
        waiting = [name for name in (f"p{number}" for number in range(6)) if name not in placed]
        await it.until(lambda: any(tied(it, name) for name in waiting))


@virtual.timed
async def test_a_pod_is_not_tried_while_another_gate_holds_it() -> None:
    """Its turn comes when ours is the last one."""
    async with live.scheduler(N1, mode="advise") as it:
        create(it, gated("web", "1", "example.com/quota"))
        await it.quiet(30.0)
        assert (0, parking.Pool.GATED) == (it.program.loop.decisions, it.pool("web"))

        it.server.storage.patch(key("web"), {"spec": {"schedulingGates": [{"name": GATE}]}}, strategic=False)
        await it.until(lambda: tied(it, "web") == "n1")


@virtual.timed
async def test_a_pod_that_fits_nowhere_keeps_its_gate_and_is_told_of_by_an_event() -> None:
    """Its condition says that it is gated, which is true; it is tied once there is room."""
    async with live.scheduler(N1, mode="advise") as it:
        create(it, gated("big", "4"))
        await it.until(lambda: bool(it.server.storage.items(apiserver.EVENTS)))
        (event,) = it.server.storage.items(apiserver.EVENTS)
        assert "0/1 nodes are available: 1 Insufficient cpu." == event["note"]
        assert [] == it.server.asked("PATCH", ".*/status")
        assert "pending" == (await explained(it, "big")).state

        it.node(builders.make_node("large").cpu("8"))
        await it.until(lambda: tied(it, "big") == "large")


@virtual.timed
async def test_a_pod_that_is_stuck_gives_its_room_back_and_counts_once_when_it_is_bound_after_all() -> None:
    """The room was taken by somebody else: explained, told of by an event after a while, and never counted twice."""
    async with live.scheduler(N1, mode="advise", advise=AdviseSettings(give_up_seconds=60.0)) as it:
        create(it, gated("web", "2"))
        await it.until(lambda: tied(it, "web") == "n1")
        create(it, builders.make_pod("thief").cpu("2"))
        it.server.storage.bind(key("thief"), {"target": {"name": "n1"}})
        await it.quiet(30.0)
        told = await explained(it, "web")
        assert "advised" == told.state
        assert "was advised to n1" in told.headline
        assert "Its room there is kept" in told.headline

        await it.quiet(60.0)
        (event,) = it.server.storage.items(apiserver.EVENTS)
        assert "its room is for others again" in event["note"]
        assert "for others again" in (await explained(it, "web")).headline
        assert (0.0, 1.0, 1.0) == (
            series(it, "graphsched_advice_outstanding"),
            series(it, "graphsched_advice_given_up"),
            series(it, 'graphsched_advice_ended_total{outcome="given_up"}'),
        )
        assert 0 == len(it.parts.promises)
        assert ["thief"] == [each.rpartition("/")[2] for each in it.parts.store.on_node("n1")]

        # A later change of the pod does not bring the promise back.
        it.server.storage.patch(key("web"), {"metadata": {"labels": {"seen": "yes"}}}, strategic=False)
        await it.quiet(10.0)
        assert 0 == len(it.parts.promises)

        it.delete("thief")
        create(it, gated("next", "2"))
        await it.until(lambda: tied(it, "next") == "n1")
        follow(it, "web")
        await it.quiet(10.0)
        on_node = it.parts.store.on_node("n1")
        assert {"web", "next"} == {each.rpartition("/")[2] for each in on_node}
        assert 0.0 == series(it, "graphsched_advice_given_up")


@virtual.timed
async def test_room_given_back_wakes_who_waits_for_it() -> None:
    """At once, not at its next turn."""
    async with live.scheduler(N1, mode="advise", advise=AdviseSettings(give_up_seconds=60.0)) as it:
        create(it, gated("web", "2"))
        await it.until(lambda: tied(it, "web") == "n1")
        create(it, gated("next", "2"))
        await it.until(lambda: bool(it.server.storage.items(apiserver.EVENTS)))
        begun = virtual.now()
        await it.until(lambda: tied(it, "next") == "n1")

        assert virtual.now() - begun < 70.0


@virtual.timed
async def test_advice_of_an_earlier_life_counts() -> None:
    """It is written in the pods: a scheduler that starts anew keeps its room, and forgets it when the pod is gone."""
    async with apiserver.FakeApiServer() as server:
        async with live.scheduler(N1, server=server, mode="advise") as it:
            create(it, gated("web", "2"))
            await it.until(lambda: tied(it, "web") == "n1")
        async with live.scheduler(server=server, mode="advise") as it:
            create(it, gated("next", "2"))
            await it.quiet(30.0)
            assert "" == tied(it, "next")
            assert 1 == len(it.parts.promises)

            it.delete("web")
            await it.until(lambda: tied(it, "next") == "n1")
            assert 1 == len(it.parts.promises)
            it.require_sound()


@virtual.timed
async def test_a_pod_that_others_tied_to_a_node_counts_there_and_is_not_told_of() -> None:
    """As pods of DaemonSets are: the other scheduler puts it there or nowhere. One that others gate does not count."""
    at_n1 = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    agent = builders.make_pod("agent").cpu("1").require_nodes(fields=(at_n1,))
    async with live.scheduler(N1, mode="advise", advise=AdviseSettings(give_up_seconds=60.0)) as it:
        create(it, agent, builders.make_pod("later").cpu("1").require_nodes(fields=(at_n1,)).gate("wait"))
        await it.quiet()
        assert ["pod/default/agent"] == list(it.parts.store.on_node("n1"))
        create(it, gated("big", "2"))
        await it.quiet(30.0)
        assert "" == tied(it, "big")

        await it.until(lambda: tied(it, "big") == "n1")
        assert 0.0 == series(it, 'graphsched_advice_ended_total{outcome="given_up"}')
        assert {"big"} == {event["regarding"]["name"] for event in it.server.storage.items(apiserver.EVENTS)}


@virtual.timed
async def test_a_pod_that_somebody_else_let_go_is_theirs() -> None:
    """No patch, no event, and nothing counts."""
    async with live.scheduler(N1, mode="advise") as it:
        it.server.faults.delay("PATCH", ".*", 5.0)
        create(it, gated("web", "2"), gated("big", "4"))
        await it.until(lambda: bool(it.server.asked("PATCH")))
        for name in ("web", "big"):
            it.server.storage.patch(key(name), {"spec": {"schedulingGates": None}}, strategic=False)
        await it.quiet(60.0)

        assert 1 == len(it.server.asked("PATCH"))
        assert (0, 0) == (len(it.parts.promises), len(it.parts.backlog))
        it.require_sound()


@virtual.timed
async def test_a_pod_deleted_and_made_anew_while_its_patch_is_out_is_tied_once() -> None:
    """The patch was for the one that is gone."""
    async with live.scheduler(N1, mode="advise") as it:
        it.server.faults.delay("PATCH", ".*", 5.0)
        create(it, gated("web", "2"))
        await it.until(lambda: bool(it.server.asked("PATCH")))
        it.delete("web")
        create(it, gated("web", "2"))
        await it.until(lambda: tied(it, "web") == "n1")
        await it.quiet(10.0)

        assert 1 == len(it.parts.promises)
        it.require_sound()


@virtual.timed
async def test_a_lost_answer_costs_no_room() -> None:
    """The patch had worked; it is read, not repeated, and counts once."""
    async with live.scheduler(N1, mode="advise") as it:
        it.server.faults.lose("PATCH", ".*")
        create(it, gated("web"))
        await it.until(lambda: tied(it, "web") == "n1")
        create(it, gated("other"), gated("third"))
        await it.quiet(30.0)

        assert sorted(["n1", "n1", ""]) == sorted(tied(it, name) for name in ("web", "other", "third"))
        assert 2 == len(it.server.asked("PATCH"))
        it.require_sound()


@virtual.timed
async def test_a_tied_pod_that_is_being_deleted_gives_its_room_back() -> None:
    """Nobody binds it any more, however long its finalizers hold it."""
    async with live.scheduler(N1, mode="advise") as it:
        create(it, gated("web", "2"))
        await it.until(lambda: tied(it, "web") == "n1")
        await it.quiet()
        it.server.storage.patch(key("web"), {"metadata": {"deletionTimestamp": storage.CREATED_AT}}, strategic=False)
        create(it, gated("next", "2"))
        await it.until(lambda: tied(it, "next") == "n1")

        assert 1 == len(it.parts.promises)
