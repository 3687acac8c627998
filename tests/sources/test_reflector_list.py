"""
What a reflector makes of lists: pages, news only, nothing lost and nothing left over.

Simulated: the API server (real HTTP, virtual time). Substituted: the store, by a plain mapping that keeps its rules for
streams. Excluded: how objects are decoded.
"""

import asyncio
import contextlib
import typing

import pytest

from graphsched.graph import delta
from graphsched.sources import reflector, resources
from tests.controlplane import objects
from tests.fakes import apiserver, mirror, storage, virtual

PODS = apiserver.PODS


@virtual.timed
async def test_a_list_arrives_in_pages_and_in_patches_of_bounded_size() -> None:
    """1,200 pods are three pages; no patch keeps the loop for long."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        for index in range(1200):
            server.create(PODS, objects.pod(f"p{index:04}"))

        await pods.reflector.synced.wait()
        pods.mirror.take()

        assert mirror.pod_names(server.storage.items(PODS)) == pods.mirror.names
        assert ["500", "500", "500"] == [request.query["limit"] for request in server.asked("GET", PODS, limit="500")]
        assert max(map(len, pods.mirror.patches)) <= reflector.ROWS_MAX
        assert delta.Stream("watch/pods", 1, 5) == pods.mirror.patches[-1].stream


@virtual.timed
async def test_the_first_list_asks_for_the_newest_version_and_leaves_out_pods_that_ended() -> None:
    """No resourceVersion means that no stale cache may answer."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        await pods.reflector.synced.wait()

        asked = server.requests[0].query

        assert {"limit": "500", "fieldSelector": "status.phase!=Succeeded,status.phase!=Failed"} == asked


@virtual.timed
async def test_every_resource_is_followed_under_its_own_key() -> None:
    """Nodes, namespaces, priority classes, pods and what selects pods become vertices of their kinds."""
    found = {}
    selecting = (
        resources.SERVICES,
        resources.REPLICATION_CONTROLLERS,
        resources.REPLICA_SETS,
        resources.STATEFUL_SETS,
    )
    async with apiserver.FakeApiServer() as server, server.client() as client:
        server.create(apiserver.NODES, objects.node("n1"))
        server.create(apiserver.NAMESPACES, {"metadata": {"name": "blue", "labels": {"team": "a"}}})
        server.create(apiserver.PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 7})
        server.create(PODS, objects.pod("web"))
        for resource in selecting:
            server.create(resource.path, {"metadata": {"name": "web", "namespace": "default"}})

        async with (
            contextlib.AsyncExitStack() as stack,
            mirror.following(client, resources.NODES) as nodes,
            mirror.following(client, resources.NAMESPACES) as namespaces,
            mirror.following(client, resources.PRIORITY_CLASSES) as classes,
            mirror.following(client, resources.PODS) as pods,
        ):
            others = [await stack.enter_async_context(mirror.following(client, each)) for each in selecting]
            followed: list[mirror.Following[typing.Any]] = [nodes, namespaces, classes, pods, *others]
            for one in followed:
                await one.synced.wait()
                one.mirror.take()
                found[one.name] = list(one.mirror.vertices)

    assert {
        "nodes": ["node/n1"],
        "namespaces": ["namespace/blue"],
        "priorityclasses": ["priorityclass/high"],
        "pods": ["pod/default/web"],
        "services": ["selection/Service/default/web"],
        "replicationcontrollers": ["selection/ReplicationController/default/web"],
        "replicasets": ["selection/ReplicaSet/default/web"],
        "statefulsets": ["selection/StatefulSet/default/web"],
    } == found
    assert {resource.name for resource in resources.ALL} == set(found)


@virtual.timed
async def test_a_list_that_expires_between_pages_is_taken_whole_at_once() -> None:
    """Pages of a version that is gone are no use; one page can not expire."""
    async with apiserver.FakeApiServer() as server, server.client() as client:
        for index in range(600):
            server.create(PODS, objects.pod(f"p{index:03}"))
        server.faults.refuse("GET", PODS, 410, reason="Expired", query={"continue": "*"})
        async with mirror.following_pods(client) as pods:
            await pods.reflector.synced.wait()
            pods.mirror.take()

            assert 600 == len(pods.mirror.vertices)
            assert ["500", "500", None] == [
                request.query.get("limit") for request in server.requests if "watch" not in request.query
            ]


@virtual.timed
async def test_what_vanished_while_nobody_watched_is_removed_by_the_next_list() -> None:
    """No delete is lost: the history is gone, and with it the events of three deletions."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        for name in ("a", "b", "c", "d"):
            server.create(PODS, objects.pod(name))
        await pods.mirror.until("default/a", "default/b", "default/c", "default/d")
        watch = await server.watching(PODS)

        watch.live = False
        for name in ("a", "b", "c"):
            server.storage.delete(storage.Key(PODS, "default", name))
        server.create(PODS, objects.pod("e"))
        server.storage.compact()
        watch.cut()
        await pods.mirror.until("default/d", "default/e")
        await server.watching(PODS, after=watch)

        assert 1 == pods.counts["pods relist expired"]


@virtual.timed
async def test_a_relist_sends_only_what_is_news() -> None:
    """One of a thousand pods has changed: one row, in a new epoch."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        for index in range(1000):
            server.create(PODS, objects.pod(f"p{index:03}"))
        watch = await server.watching(PODS)
        pods.mirror.take()

        watch.live = False
        key = storage.Key(PODS, "default", "p500")
        server.storage.patch(key, {"metadata": {"labels": {"new": "1"}}}, strategic=False)
        server.storage.compact()
        watch.cut()
        await pods.inbox.ready.wait()
        news = pods.mirror.take()

        assert [["pod/default/p500"]] == [list(patch.vertices) for patch in news]
        assert delta.Stream("watch/pods", 2, 1) == news[0].stream


@virtual.timed
async def test_a_resync_sends_everything_again_and_removes_what_is_gone() -> None:
    """Who lost track gets the whole truth, without any trust in what was sent before."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        for name in ("a", "b"):
            server.create(PODS, objects.pod(name))
        watch = await server.watching(PODS)
        await pods.mirror.until("default/a", "default/b")
        watch.live = False
        server.storage.delete(storage.Key(PODS, "default", "a"))

        pods.reflector.resync("a patch was refused", epoch=1)
        await server.watching(PODS, after=watch)
        sent = pods.mirror.take()

        assert [(set(), ["pod/default/b"]), ({"pod/default/a"}, [])] == [
            (patch.removed, list(patch.vertices)) for patch in sent
        ]
        assert {"pods relist start": 1, "pods relist resync": 1} == pods.counts
        assert virtual.now() < 1


@virtual.timed
async def test_asking_again_for_a_resync_of_an_epoch_that_is_over_changes_nothing() -> None:
    """A dozen refused patches ask a dozen times; one list answers them."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        watch = await server.watching(PODS)
        for _ in range(12):
            pods.reflector.resync("a patch was refused", epoch=1)
        again = await server.watching(PODS, after=watch)

        pods.reflector.resync("a patch was refused", epoch=1)
        await asyncio.sleep(30)

        assert again in server.watches
        assert 1 == pods.counts["pods relist resync"]


@virtual.timed
async def test_who_asks_for_one_resync_after_another_gets_them_ever_more_slowly() -> None:
    """A patch that is refused for what it says is refused again after every list."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        for _ in range(600):
            await asyncio.sleep(1)
            pods.reflector.resync("a patch was refused")

        assert 10 <= pods.counts["pods relist resync"] <= 30


@virtual.timed
async def test_a_pod_made_anew_under_its_name_while_nobody_watched_is_removed_first() -> None:
    """Another uid is another pod, and edges of the old one must not stay: removed and set in one patch."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        server.create(PODS, objects.pod("web"))
        watch = await server.watching(PODS)
        pods.mirror.take()

        watch.live = False
        server.storage.delete(storage.Key(PODS, "default", "web"))
        successor = server.create(PODS, objects.pod("web"))
        server.storage.compact()
        watch.cut()
        await pods.inbox.ready.wait()
        (patch,) = pods.mirror.take()

        assert {"pod/default/web"} == patch.removed
        assert successor["metadata"]["uid"] == mirror.pod_of(patch.vertices, "default/web").uid


@virtual.timed
async def test_an_object_that_can_not_be_read_is_skipped_and_what_was_known_of_it_stays(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One bad object costs only itself, and is named once."""
    async with apiserver.FakeApiServer() as server, server.client() as client:
        for name in ("n1", "n2", "n3"):
            server.create(apiserver.NODES, objects.node(name))
        async with mirror.following(client, resources.NODES) as nodes:
            watch = await server.watching(apiserver.NODES)
            await nodes.mirror.until("n1", "n2", "n3")

            watch.live = False
            key = storage.Key(apiserver.NODES, "", "n2")
            server.storage.patch(key, {"status": {"allocatable": {"cpu": "12Gx"}}}, strategic=False)
            server.storage.delete(storage.Key(apiserver.NODES, "", "n3"))
            server.storage.compact()
            watch.cut()
            await nodes.mirror.until("n1", "n2")
            await server.watching(apiserver.NODES, after=watch)

            assert 1 == nodes.counts["nodes invalid"]
            assert [record.message for record in caplog.records if "12Gx" in record.message] == [
                (
                    'nodes: skipped, and what was known of it stays: Node "n2": status.allocatable.cpu: '
                    '"12Gx" is not a quantity (use e.g. 12, 500m, 1.5Gi)'
                ),
            ]


@virtual.timed
async def test_an_empty_cluster_is_synced_without_a_patch() -> None:
    """Nothing to say is an answer as well."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        await pods.reflector.synced.wait()

        assert [] == pods.mirror.take()
        assert 0 == pods.reflector.progress.state.objects


@virtual.timed
async def test_a_refresh_lists_at_once_and_sends_only_news() -> None:
    """Whoever must know all that was written before a moment waits for the list that begins after it."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        for name in ("kept", "gone"):
            server.create(PODS, objects.pod(name))
        await pods.mirror.until("default/gone", "default/kept")
        watch = await server.watching(PODS)
        watch.live = False
        server.storage.delete(storage.Key(PODS, "default", "gone"))
        server.create(PODS, objects.pod("new"))
        began = virtual.now()

        number = pods.reflector.refresh()
        assert (2, 1) == (number, pods.reflector.whole)
        while pods.reflector.whole < number:
            await pods.inbox.ready.wait()
            pods.mirror.take()
        await pods.mirror.until("default/kept", "default/new")

        assert [1, 1] == [len(patch) for patch in pods.mirror.patches[-2:]]
        assert (1, began) == (pods.counts["pods relist refresh"], virtual.now())
        await server.watching(PODS, after=watch)


@virtual.timed
async def test_a_refresh_during_a_list_is_another_list() -> None:
    """What is being listed may be older than the moment that counts; a failed one is repeated."""
    async with apiserver.FakeApiServer() as server, server.client() as client:
        server.faults.delay("GET", PODS, 5.0)
        async with mirror.following_pods(client) as pods:
            await server.until(lambda: bool(server.asked("GET", PODS)))
            server.faults.refuse("GET", PODS, 503)
            number = pods.reflector.refresh()
            server.create(PODS, objects.pod("web"))
            while pods.reflector.whole < number:
                pods.inbox.ready.clear()
                await pods.inbox.ready.wait()

            assert (2, 1) == (number, pods.counts["pods relist refresh"])
            assert 3 == len(server.asked("GET", PODS, limit="*"))
