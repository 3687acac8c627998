"""A waiting pod's condition says why, once, and never outlives its waiting."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator

from graphsched.action import conditions, outlet
from graphsched.base.kube import pods as kube_pods, wire
from graphsched.base.values import pods
from tests.fakes import apiserver, storage, virtual

STATUS = ".*/status"


@contextlib.asynccontextmanager
async def running(*versions: str) -> AsyncIterator[tuple[apiserver.FakeApiServer, conditions.Conditions, list[str]]]:
    """A server with the pod `web`, and conditions at work, whose watch shows it at the last of these versions."""
    ends: list[str] = []
    async with apiserver.FakeApiServer() as server, server.client() as client:
        server.create(storage.PODS, {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "main"}]}})
        said = conditions.Conditions(
            client,
            rate=outlet.Rate(per_second=100.0, burst=100),
            clock=virtual.LoopClock(),
            rng=random.Random(1),
            version=lambda _key, _uid: versions[-1] if versions else "",
            on_end=ends.append,
        )
        task = asyncio.create_task(said.run())
        yield server, said, ends
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def web(server: apiserver.FakeApiServer) -> pods.Pod:
    """The pod as it is now."""
    return kube_pods.pod(wire.POD.convert(server.pod("web")))


def shown(server: apiserver.FakeApiServer) -> storage.Object:
    """The condition as users see it."""
    found: storage.Object = server.pod("web")["status"]["conditions"][0]
    return found


@virtual.timed
async def test_the_condition_says_why() -> None:
    """Type, status, reason, the full text and since when."""
    async with running() as (server, said, ends):
        said.say(web(server), reason=conditions.UNSCHEDULABLE, message="0/1 nodes are available: " + "x" * 2000)
        await said.flush(deadline_s=9.0)

        assert {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": "0/1 nodes are available: " + "x" * 2000,
            "lastProbeTime": None,
            "lastTransitionTime": "2027-01-15T08:00:00Z",
        } == shown(server)
        assert ["written"] == ends


@virtual.timed
async def test_nothing_is_written_that_has_been_said() -> None:
    """The same words cost nothing; new words keep the time since when the pod waits."""
    async with running() as (server, said, ends):
        for message, after_s in (("a", 0.0), ("a", 60.0), ("b", 60.0)):
            await asyncio.sleep(after_s)
            said.say(web(server), reason=conditions.UNSCHEDULABLE, message=message)
            await said.flush(deadline_s=9.0)

        assert ["written", "unchanged", "written"] == ends
        assert ("b", "2027-01-15T08:00:00Z") == (shown(server)["message"], shown(server)["lastTransitionTime"])
        assert 2 == len(server.asked("PATCH", STATUS))


@virtual.timed
async def test_what_could_not_be_written_is_not_taken_for_said() -> None:
    """The next try writes it."""
    async with running() as (server, said, ends):
        server.faults.refuse("PATCH", STATUS, 422)
        for _ in range(2):
            said.say(web(server), reason=conditions.SCHEDULER_ERROR, message="a")
            await said.flush(deadline_s=9.0)

        assert ["failed", "written"] == ends


@virtual.timed
async def test_another_pod_of_the_same_name_is_left_alone() -> None:
    """The UID is a precondition, and what was said of the old one does not count for the new one."""
    async with running() as (server, said, ends):
        old = web(server)
        server.storage.delete(storage.Key(storage.PODS, "default", "web"))
        server.create(storage.PODS, {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "main"}]}})
        said.say(old, reason=conditions.UNSCHEDULABLE, message="a")
        await said.flush(deadline_s=9.0)
        assert "conditions" not in server.pod("web")["status"]

        said.say(web(server), reason=conditions.UNSCHEDULABLE, message="a")
        await said.flush(deadline_s=9.0)

        assert ["moot", "written"] == ends


@virtual.timed
async def test_a_pod_about_to_be_bound_is_not_called_unschedulable_any_more() -> None:
    """What waits is dropped, and what is under way can be waited for."""
    async with running() as (server, said, _):
        server.faults.delay("PATCH", STATUS, 3.0)
        pod = web(server)
        said.say(pod, reason=conditions.UNSCHEDULABLE, message="a")
        await asyncio.sleep(1.0)
        said.say(pod, reason=conditions.UNSCHEDULABLE, message="b")

        under_way = said.hold(pod.key)
        assert under_way is not None
        await under_way
        server.storage.bind(storage.Key(storage.PODS, "default", "web"), {"target": {"name": "n1"}})
        await said.flush(deadline_s=9.0)

        assert "True" == shown(server)["status"]
        assert said.hold(pod.key) is None


@virtual.timed
async def test_a_condition_that_failed_beside_a_binding_is_not_written_after_it() -> None:
    """The server turned the patch away for now; by the time it would take it, the pod runs."""
    async with running() as (server, said, ends):
        server.faults.hang("PATCH", STATUS)
        pod = web(server)
        said.say(pod, reason=conditions.UNSCHEDULABLE, message="a")
        await asyncio.sleep(1.0)
        under_way = said.hold(pod.key)
        assert under_way is not None
        await under_way
        server.storage.bind(storage.Key(storage.PODS, "default", "web"), {"target": {"name": "n1"}})
        await asyncio.sleep(60.0)

        assert "True" == shown(server)["status"]
        assert ["moot"] == ends


@virtual.timed
async def test_a_patch_that_is_carried_out_after_the_binding_comes_to_nothing() -> None:
    """We gave up waiting, bound the pod, and the server gets round to the patch a minute later."""
    async with running() as (server, said, ends):
        server.faults.delay("PATCH", STATUS, 60.0)
        pod = web(server)
        said.say(pod, reason=conditions.UNSCHEDULABLE, message="a")
        await asyncio.sleep(1.0)
        under_way = said.hold(pod.key)
        assert under_way is not None
        await under_way
        server.storage.bind(storage.Key(storage.PODS, "default", "web"), {"target": {"name": "n1"}})
        await asyncio.sleep(120.0)

        assert "True" == shown(server)["status"]
        assert ["moot"] == ends
        (late,) = server.asked("PATCH", STATUS)
        assert late.body["metadata"]["resourceVersion"]


@virtual.timed
async def test_a_pod_that_changes_meanwhile_is_read_and_told_all_the_same() -> None:
    """The version that the watch showed is an old one: one more read, and the condition is there."""
    async with running("1") as (server, said, ends):
        said.say(web(server), reason=conditions.UNSCHEDULABLE, message="a")
        await said.flush(deadline_s=9.0)

        assert ["written"] == ends
        assert "a" == shown(server)["message"]
        assert (1, 2) == (len(server.asked("GET", ".*/pods/web")), len(server.asked("PATCH", STATUS)))


@virtual.timed
async def test_a_pod_as_the_watch_shows_it_is_not_read_first() -> None:
    """One call a condition, as a rule."""
    async with running("1001") as (server, said, ends):
        assert "1001" == server.pod("web")["metadata"]["resourceVersion"]
        said.say(web(server), reason=conditions.UNSCHEDULABLE, message="a")
        await said.flush(deadline_s=9.0)

        assert ["written"] == ends
        assert [] == server.asked("GET", ".*/pods/web")


@virtual.timed
async def test_a_pod_that_somebody_bound_is_not_called_unschedulable() -> None:
    """The patch is refused, the read shows why."""
    async with running("1001") as (server, said, ends):
        pod = web(server)
        server.storage.bind(storage.Key(storage.PODS, "default", "web"), {"target": {"name": "n1"}})
        said.say(pod, reason=conditions.UNSCHEDULABLE, message="a")
        await said.flush(deadline_s=9.0)

        assert ["moot"] == ends
        assert "True" == shown(server)["status"]


@virtual.timed
async def test_after_a_clearing_everything_is_news() -> None:
    """Somebody else may have said something in between, so the same words are written again; what waited is not."""
    async with running() as (server, said, ends):
        said.say(web(server), reason=conditions.UNSCHEDULABLE, message="full")
        await said.flush(deadline_s=9.0)
        said.clear()
        said.say(web(server), reason=conditions.UNSCHEDULABLE, message="full")
        await said.flush(deadline_s=9.0)
        said.say(web(server), reason=conditions.UNSCHEDULABLE, message="fuller")
        said.clear()
        await asyncio.sleep(5.0)

        assert "full" == shown(server)["message"]
        assert ["written", "written", "moot"] == ends
        assert 2 == len(server.asked("PATCH", STATUS))
