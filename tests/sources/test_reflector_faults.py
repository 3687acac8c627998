"""
What a reflector makes of everything that goes wrong between it and the API server.

Simulated: the API server and its failures (real HTTP, virtual time). Excluded: a real server's way of failing, which
the contract suite and the tests marked `cluster` have.
"""

import asyncio
import logging

import pytest

from graphsched.base.kube import client as clients, streams
from graphsched.sources import reflector
from tests.controlplane import objects
from tests.fakes import apiserver, mirror, storage, virtual

PODS = apiserver.PODS


@pytest.mark.parametrize("by_event", [True, False])
@virtual.timed
async def test_an_expired_place_is_answered_by_a_list(by_event: bool) -> None:
    """410 comes as an ERROR event within a stream, or as the HTTP status."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        server.expired_by_event = by_event
        server.create(PODS, objects.pod("a"))
        await pods.mirror.until("default/a")
        watch = await server.watching(PODS)
        watch.live = False
        server.storage.delete(storage.Key(PODS, "default", "a"))
        server.create(PODS, objects.pod("b"))
        server.storage.compact()

        watch.cut()
        await pods.mirror.until("default/b")
        await server.watching(PODS, after=watch)

        assert 1 == pods.counts["pods relist expired"]
        assert virtual.now() < 5


@virtual.timed
async def test_what_came_before_an_error_event_counts() -> None:
    """Events and the ERROR may arrive in one chunk."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        watch = await server.watching(PODS)
        watch.live = False
        server.create(PODS, objects.pod("a"))

        await watch.catch_up()
        await watch.error(500, "InternalError")
        await pods.mirror.until("default/a")
        resumed = await server.watching(PODS, after=watch)

        assert str(server.storage.version) == resumed.query["resourceVersion"]
        assert 1 == len(server.asked("GET", PODS, limit="500"))


@virtual.timed
async def test_a_watch_cut_within_a_line_is_resumed_and_the_rest_of_the_line_comes_again() -> None:
    """Half a line is no event."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        watch = await server.watching(PODS)
        since = server.storage.version
        watch.live = False
        server.create(PODS, objects.pod("web"))
        await watch.send(b'{"type":"ADDED","object":{"metadata":{"name":"we')
        await asyncio.sleep(1)

        watch.cut()
        resumed = await server.watching(PODS, after=watch)
        await pods.mirror.until("default/web")

        assert str(since) == resumed.query["resourceVersion"]
        assert 1 == pods.counts["pods ADDED"]


@virtual.timed
async def test_garbage_in_a_watch_breaks_it_and_it_is_resumed() -> None:
    """Something between us and the server speaks; it is not trusted with a single event more."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        watch = await server.watching(PODS)

        await watch.send(b"<html>upstream timed out</html>\n")
        await server.watching(PODS, after=watch)
        server.create(PODS, objects.pod("web"))

        await pods.mirror.until("default/web")
        assert 1 == pods.counts["pods failure"]


@virtual.timed
async def test_a_silent_watch_is_given_up_and_answered_by_a_list() -> None:
    """No event and no bookmark for two and a half minutes: what the watch is worth is not known."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        watch = await server.watching(PODS)
        watch.live = False
        server.create(PODS, objects.pod("web"))

        await pods.mirror.until("default/web")

        await server.watching(PODS, after=watch)
        assert clients.STALL_S <= virtual.now() <= clients.STALL_S + 2
        assert 1 == pods.counts["pods relist silent"]


@pytest.mark.parametrize("status", [429, 500, 503])
@virtual.timed
async def test_a_refused_list_is_tried_again_until_it_works(status: int) -> None:
    """The waits grow, and the program lives on."""
    async with apiserver.FakeApiServer() as server, server.client() as client:
        server.create(PODS, objects.pod("web"))
        server.faults.refuse("GET", PODS, status, times=4)
        async with mirror.following_pods(client) as pods:
            await pods.mirror.until("default/web")

            assert 5 == len(server.asked("GET", PODS, limit="500"))
            # Half of 0.5 + 1 + 2 + 4 seconds at least, all of it at most.
            assert 3.75 <= virtual.now() <= 7.5


@virtual.timed
async def test_a_server_that_names_a_time_is_left_alone_for_as_long() -> None:
    """Retry-After is a request to be kept."""
    async with apiserver.FakeApiServer() as server, server.client() as client:
        server.faults.refuse("GET", PODS, 429, retry_after_s=20)
        async with mirror.following_pods(client) as pods:
            await pods.reflector.synced.wait()

            assert 20 <= virtual.now() < 21


@virtual.timed
async def test_a_slow_first_page_is_waited_for() -> None:
    """An API server that starts fills its caches first."""
    async with apiserver.FakeApiServer() as server, server.client() as client:
        server.create(PODS, objects.pod("web"))
        server.faults.delay("GET", PODS, 50)
        async with mirror.following_pods(client) as pods:
            await pods.mirror.until("default/web")

            assert 50 == virtual.now()
            assert 1 == len(server.asked("GET", PODS, limit="500"))


@virtual.timed
async def test_a_list_without_an_answer_is_given_up_and_tried_again() -> None:
    """A hanging request must not hang the scheduler."""
    async with apiserver.FakeApiServer() as server, server.client() as client:
        server.create(PODS, objects.pod("web"))
        server.faults.hang("GET", PODS)
        async with mirror.following_pods(client) as pods:
            await pods.mirror.until("default/web")

            assert 60 <= virtual.now() <= 61


@virtual.timed
async def test_a_server_that_is_gone_for_a_while_is_followed_again_where_it_was() -> None:
    """Killed and started again with the same data: no list, nothing lost, nothing twice."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        server.create(PODS, objects.pod("a"))
        await pods.mirror.until("default/a")
        before = await server.watching(PODS)

        await server.stop()
        await asyncio.sleep(120)
        failing = pods.reflector.progress.state.failing
        server.create(PODS, objects.pod("b"))
        await server.start()
        began = virtual.now()
        await server.watching(PODS, after=before)
        await pods.mirror.until("default/a", "default/b")

        assert "no answer" in failing
        assert virtual.now() - began <= reflector.BACKOFF_S[1]
        assert {"pods relist start": 1} == {name: count for name, count in pods.counts.items() if "relist" in name}
        assert not pods.reflector.progress.state.failing


@virtual.timed
async def test_a_place_the_server_keeps_refusing_is_given_up() -> None:
    """It may not even know what a version is any more."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        watch = await server.watching(PODS)
        server.faults.refuse("GET", PODS, 400, reason="BadRequest", times=3, query={"watch": "true"})

        watch.cut()
        await server.watching(PODS, after=watch)

        assert 1 == pods.counts["pods relist refused"]
        assert virtual.now() < 8


@virtual.timed
async def test_a_place_in_the_future_is_given_up_at_once() -> None:
    """A database restored from a backup counts from a lower version; a watch from ours would begin and be silent."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        for name in ("a", "b", "c"):
            server.create(PODS, objects.pod(name))
        await pods.mirror.until("default/a", "default/b", "default/c")
        watch = await server.watching(PODS)
        server.lose_data()
        server.create(PODS, objects.pod("restored"))

        watch.cut()
        await pods.mirror.until("default/restored")
        await server.watching(PODS, after=watch)

        assert {"pods relist start": 1, "pods relist went back": 1} == {
            name: count for name, count in pods.counts.items() if "relist" in name
        }
        assert virtual.now() < 2.0


@virtual.timed
async def test_what_the_older_history_says_is_taken_whatever_version_it_has() -> None:
    """The same UID, the same version, and another object all the same: versions of two histories mean nothing."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        for name in ("a", "b", "c"):
            server.create(PODS, objects.pod(name))
        await pods.mirror.until("default/a", "default/b", "default/c")
        before = server.pod("a")["metadata"]
        watch = await server.watching(PODS)
        server.lose_data()
        server.create(PODS, {**objects.pod("a"), "metadata": {"name": "a", "labels": {"restored": "yes"}}})
        after = server.pod("a")["metadata"]
        assert [before[field] for field in ("uid", "resourceVersion")] == [
            after[field] for field in ("uid", "resourceVersion")
        ]

        watch.cut()
        await pods.mirror.until("default/a")

        assert (("restored", "yes"),) == pods.mirror.pod("default/a").labels


@virtual.timed
async def test_a_place_that_is_silent_between_cuts_is_given_up_as_well() -> None:
    """A proxy that cuts idle connections every half minute would hide the silence."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        server.mute = True
        await server.watching(PODS)
        for watch in server.watches:
            watch.live = False
        server.create(PODS, objects.pod("unheard-of"))
        while "default/unheard-of" not in pods.mirror.names:
            for watch in list(server.watches):
                watch.cut()
            await asyncio.sleep(30)
            pods.mirror.take()

        assert 1 == pods.counts["pods relist silent"]
        assert clients.STALL_S < virtual.now() < 2 * clients.STALL_S


@virtual.timed
async def test_too_many_requests_never_lead_to_a_list() -> None:
    """Listing is the last thing that a busy server needs."""
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        watch = await server.watching(PODS)
        server.faults.refuse("GET", PODS, 429, times=8, query={"watch": "true"})
        watch.cut()

        await server.watching(PODS, after=watch)

        assert {"pods relist start": 1, "pods failure": 9} == pods.counts


@virtual.timed
async def test_a_missing_right_is_said_once_and_asked_for_again(caplog: pytest.LogCaptureFixture) -> None:
    """Somebody may grant it later; until then one line tells what is missing."""
    async with apiserver.FakeApiServer() as server, server.client() as client:
        message = 'pods is forbidden: User "x" cannot list resource "pods" in API group "" at the cluster scope'
        server.faults.refuse("GET", PODS, 403, reason="Forbidden", message=message, times=10)
        async with mirror.following_pods(client) as pods:
            await pods.reflector.synced.wait()

            said = [record for record in caplog.records if "cannot list" in record.message]
            assert [logging.WARNING] == [record.levelno for record in said]
            assert 10 == pods.counts["pods failure"]


@virtual.timed
async def test_a_server_that_ends_every_watch_at_once_is_not_asked_in_a_tight_loop() -> None:
    """A broken proxy gets some dozen requests an hour and a half, not millions."""
    async with apiserver.FakeApiServer() as server, server.client() as client:
        server.faults.garble("GET", PODS, b"", times=100_000, query={"watch": "true"})
        async with mirror.following_pods(client):
            await asyncio.sleep(600)

            assert 50 <= len(server.asked("GET", PODS, watch="true")) <= 150


@virtual.timed
async def test_a_place_that_expires_at_once_after_every_list_is_not_listed_in_a_tight_loop() -> None:
    """Each list is work for the server as well."""
    async with apiserver.FakeApiServer() as server, server.client() as client:
        server.faults.refuse("GET", PODS, 410, reason="Expired", times=100_000, query={"watch": "true"})
        async with mirror.following_pods(client):
            await asyncio.sleep(600)

            assert 50 <= len(server.asked("GET", PODS, limit="500")) <= 150


@virtual.timed
async def test_a_line_without_an_end_is_cut_off_and_answered_by_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory has a bound whatever comes."""
    monkeypatch.setattr(streams, "LINE_BYTES_MAX", 1 << 20)
    async with apiserver.FakeApiServer() as server, server.client() as client, mirror.following_pods(client) as pods:
        watch = await server.watching(PODS)
        for _ in range(20):
            await watch.send(b"x" * (1 << 16))

        await server.watching(PODS, after=watch)

        assert 1 == pods.counts["pods relist refused"]


@virtual.timed
async def test_html_instead_of_a_list_is_a_failure_like_any_other() -> None:
    """A page to log in at comes with status 200."""
    async with apiserver.FakeApiServer() as server, server.client() as client:
        server.faults.garble("GET", PODS, b"<html>log in</html>", times=2)
        async with mirror.following_pods(client) as pods:
            await pods.reflector.synced.wait()

            assert 2 == pods.counts["pods failure"]


@virtual.timed
async def test_two_reflectors_with_other_seeds_do_not_come_back_together() -> None:
    """Jitter spreads a thundering herd."""
    async with apiserver.FakeApiServer() as server, server.client() as client:
        server.faults.refuse("GET", PODS, 503, times=2)
        async with mirror.following_pods(client, seed=1) as one, mirror.following_pods(client, seed=2) as two:
            await one.reflector.synced.wait()
            await two.reflector.synced.wait()

            first, second, third, fourth = (request.at_s for request in server.asked("GET", PODS, limit="500"))
            assert first == second
            assert third < fourth
