"""
What a reflector makes of watches that go well: events, order, resumption, long lines, back-pressure.

Simulated: the API server (real HTTP, virtual time). Excluded: failures, which are in `test_reflector_faults.py`.
"""

import asyncio
import json

import pytest

from graphsched.sources import reflector, resources
from tests.controlplane import objects
from tests.fakes import apiserver, mirror, storage, virtual

PODS = apiserver.PODS
WEB = storage.Key(PODS, "default", "web")


def line(kind: str, item: storage.Object, **metadata: object) -> bytes:
    """Encode an event with some metadata changed."""
    changed = {**item, "metadata": {**item["metadata"], **metadata}}
    return json.dumps({"type": kind, "object": changed}).encode() + b"\n"


@virtual.timed
async def test_events_become_vertices_that_are_set_and_removed() -> None:
    """Added, changed, gone."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        await server.watching(PODS)
        seen = []

        server.create(PODS, objects.pod("web"))
        await pods.mirror.until("default/web")
        server.storage.bind(WEB, {"target": {"name": "n1"}})
        await pods.inbox.ready.wait()
        pods.mirror.take()
        seen.append(mirror.pod_of(pods.mirror.vertices, "default/web").node)
        server.storage.delete(WEB, {"gracePeriodSeconds": 0})
        await pods.mirror.until()

        assert ["n1"] == seen
        assert {"pods ADDED": 1, "pods MODIFIED": 2, "pods DELETED": 1, "pods relist start": 1} == pods.counts


@virtual.timed
async def test_a_pod_that_ends_is_removed() -> None:
    """The field selector makes the server tell it as a deletion."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        server.create(PODS, objects.pod("web"))
        await pods.mirror.until("default/web")

        server.storage.patch(WEB, {"status": {"phase": "Succeeded"}}, strategic=False)

        await pods.mirror.until()


@virtual.timed
async def test_events_that_arrive_together_are_one_patch() -> None:
    """A burst costs one application, not one each."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        watch = await server.watching(PODS)
        watch.live = False
        for index in range(100):
            server.create(PODS, objects.pod(f"p{index}"))
        watch.live = True
        watch.wake()
        await pods.inbox.ready.wait()

        assert [100] == [len(patch) for patch in pods.mirror.take()]


@virtual.timed
async def test_deleted_and_made_anew_in_one_batch_is_removed_then_set() -> None:
    """The order within a batch survives that a patch removes first."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        server.create(PODS, objects.pod("web"))
        watch = await server.watching(PODS)
        pods.mirror.take()
        watch.live = False
        server.storage.delete(WEB)
        successor = server.create(PODS, objects.pod("web"))
        watch.live = True
        watch.wake()
        await pods.inbox.ready.wait()
        (patch,) = pods.mirror.take()

        assert {"pod/default/web"} == patch.removed
        assert successor["metadata"]["uid"] == mirror.pod_of(patch.vertices, "default/web").uid


@virtual.timed
async def test_made_and_deleted_in_one_batch_is_only_removed() -> None:
    """What came and went between two reads leaves nothing."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        watch = await server.watching(PODS)
        watch.live = False
        server.create(PODS, objects.pod("web"))
        server.storage.delete(WEB)
        server.create(PODS, objects.pod("other"))
        watch.live = True
        watch.wake()

        await pods.mirror.until("default/other")


@virtual.timed
async def test_a_deletion_of_an_earlier_pod_does_not_remove_its_successor() -> None:
    """A deletion is meant for one uid; a late one must not hit another pod of the same name."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        pod = server.create(PODS, objects.pod("web"))
        watch = await server.watching(PODS)

        await watch.send(line("DELETED", pod, uid="another"))
        server.create(PODS, objects.pod("later"))

        await pods.mirror.until("default/web", "default/later")


@virtual.timed
async def test_a_watch_that_ends_as_agreed_is_resumed_after_the_last_event() -> None:
    """Neither a list nor a pause: the server just wants to spread its load."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        watch = await server.watching(PODS)
        pod = server.create(PODS, objects.pod("web"))
        await pods.mirror.until("default/web")
        began = virtual.now()

        watch.end()
        resumed = await server.watching(PODS, after=watch)

        assert pod["metadata"]["resourceVersion"] == resumed.query["resourceVersion"]
        assert began == virtual.now()
        assert 1 == len(server.asked("GET", PODS, limit="500"))


@virtual.timed
async def test_a_bookmark_moves_the_place_to_resume_from() -> None:
    """Busy elsewhere, quiet here: without bookmarks the place would expire."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client):
        watch = await server.watching(PODS)
        for index in range(50):
            server.create(apiserver.NODES, objects.node(f"n{index}"))
        await asyncio.sleep(61)
        server.storage.compact()

        watch.cut()
        resumed = await server.watching(PODS, after=watch)

        assert str(server.storage.version) == resumed.query["resourceVersion"]
        assert 1 == len(server.asked("GET", PODS, limit="500"))


@virtual.timed
async def test_a_quiet_watch_lives_on_bookmarks_for_its_whole_time() -> None:
    """An hour without any event: watches of 5 to 10 minutes, one list, no failure."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        await asyncio.sleep(3600)

        times = [int(request.query["timeoutSeconds"]) for request in server.asked("GET", PODS, watch="true")]
        assert 6 <= len(times) <= 12
        assert all(300 <= seconds <= 600 for seconds in times)
        assert len(set(times)) > 1
        assert 1 == len(server.asked("GET", PODS, limit="500"))
        assert 0 == pods.counts["pods failure"]
        assert pods.reflector.progress.state.silent_s <= 60


@virtual.timed
async def test_a_line_of_five_megabytes_is_one_event() -> None:
    """A pod with huge annotations arrives in hundreds of chunks."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        await server.watching(PODS)
        huge = objects.pod("huge")
        huge["metadata"]["annotations"] = {"blob": "x" * (5 << 20)}

        server.create(PODS, huge)
        server.create(PODS, objects.pod("small"))

        await pods.mirror.until("default/huge", "default/small")
        assert 0 == pods.counts["pods failure"]


@virtual.timed
async def test_lines_in_pieces_of_any_size_are_put_together() -> None:
    """Chunks know nothing of lines: a piece may end within a character."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        pod = server.create(PODS, objects.pod("web", labels={"name": "größe"}))
        watch = await server.watching(PODS)
        data = b"".join(line("ADDED", {**pod, "metadata": {**pod["metadata"], "name": f"p{n}"}}) for n in range(3))

        for start in range(0, len(data), 97):
            await watch.send(data[start : start + 97])
            await asyncio.sleep(0.001)

        await pods.mirror.until("default/web", "default/p0", "default/p1", "default/p2")


@virtual.timed
async def test_an_object_that_can_not_be_read_ends_no_watch(caplog: pytest.LogCaptureFixture) -> None:
    """It is counted every time, named once, and the next event counts as if nothing had been."""
    async with apiserver.FakeApiServer() as server, server.client() as client:
        server.create(apiserver.NODES, objects.node("n1"))
        async with mirror.following(client, resources.NODES) as nodes:
            watch = await server.watching(apiserver.NODES)
            key = storage.Key(apiserver.NODES, "", "n1")
            for cpu in ("12Gx", "13Gx"):
                server.storage.patch(key, {"status": {"allocatable": {"cpu": cpu}}}, strategic=False)
            server.create(apiserver.NODES, objects.node("n2"))
            await nodes.mirror.until("n1", "n2")

            assert watch in server.watches
            assert 2 == nodes.counts["nodes invalid"]
            assert 1 == sum("Gx" in record.message for record in caplog.records)
            assert ("cpu", 4000) in mirror.node_of(nodes.mirror.vertices, "n1").allocatable

            watch.cut()
            resumed = await server.watching(apiserver.NODES, after=watch)
            assert str(server.storage.version) == resumed.query["resourceVersion"]


@pytest.mark.parametrize("unseen", [False, True])
def test_the_successor_of_an_object_that_could_not_be_read_is_named_again(
    caplog: pytest.LogCaptureFixture, unseen: bool
) -> None:
    """What is gone is forgotten, also when nobody watched it go: names that come and go leave nothing behind."""

    @virtual.timed
    async def body() -> None:
        async with apiserver.FakeApiServer() as server, server.client() as client:
            bad = {**objects.node("n1"), "status": {"allocatable": {"cpu": "12Gx"}}}
            server.create(apiserver.NODES, bad)
            async with mirror.following(client, resources.NODES) as nodes:
                watch = await server.watching(apiserver.NODES)
                watch.live = not unseen
                server.storage.delete(storage.Key(apiserver.NODES, "", "n1"))
                await asyncio.sleep(1)
                if unseen:
                    server.storage.compact()
                    watch.cut()
                    await server.watching(apiserver.NODES, after=watch)
                server.create(apiserver.NODES, bad)
                await asyncio.sleep(1)

                assert 2 == nodes.counts["nodes invalid"]

    body()
    assert 2 == sum("Gx" in record.message for record in caplog.records)


@virtual.timed
async def test_a_full_inbox_holds_the_watch_back_and_loses_nothing() -> None:
    """Memory is bounded by the inbox, a patch and the buffers; all events arrive once there is room."""
    async with (
        apiserver.FakeApiServer() as server,
        server.client() as client,
        mirror.following_pods(client, rows_max=500) as pods,
    ):
        await server.watching(PODS)
        blob = {"metadata": {"annotations": {"blob": "x" * 2000}}}
        for index in range(3000):
            pod = objects.pod(f"p{index:04}")
            server.create(PODS, {**pod, "metadata": {**pod["metadata"], **blob["metadata"]}})
        await asyncio.sleep(5)
        waiting = pods.inbox.rows

        await pods.mirror.until(*mirror.pod_names(server.storage.items(PODS)))

        assert 250 < waiting <= 500
        assert pods.inbox.waits > 0
        assert max(map(len, pods.mirror.patches)) <= reflector.ROWS_MAX
