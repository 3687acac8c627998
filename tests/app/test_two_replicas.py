"""Two whole schedulers on one cluster: one decides, and the other can take its place at any moment."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from graphsched.action import conditions
from graphsched.app.election import LeaderElectionSettings
from tests import builders
from tests.app import live
from tests.fakes import apiserver, storage, virtual

LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/graph-scheduler"
N1 = builders.make_node("n1").cpu("4")
WEB = builders.make_pod("web").cpu("1")


def election(identity: str) -> LeaderElectionSettings:
    """As the acceptance test of the real thing has it."""
    return LeaderElectionSettings(lease_seconds=4, renew_seconds=3.0, retry_seconds=1.0, identity=identity)


class Door(apiserver.FakeApiServer):
    """Another way to the objects of a server, with faults and connections of its own."""

    def __init__(self, first: apiserver.FakeApiServer) -> None:
        super().__init__()
        self.storage = first.storage
        told = first.storage.on_change

        def changed() -> None:
            told()
            self._changed()

        self.storage.on_change = changed


@contextlib.asynccontextmanager
async def pair() -> AsyncIterator[tuple[live.Scheduler, live.Scheduler]]:
    """The leader and its standby, each at a door of its own."""
    async with (
        apiserver.FakeApiServer() as first,
        Door(first) as second,
        live.scheduler(N1, server=first, leader_election=election("one")) as one,
        live.scheduler(server=second, leader_election=election("two")) as two,
    ):
        await asyncio.sleep(2.0)
        yield one, two


def writers(server: apiserver.FakeApiServer) -> set[str]:
    """Who wrote the events."""
    return {event["reportingInstance"] for event in server.storage.items(apiserver.EVENTS)}


@virtual.timed
async def test_one_decides_and_the_other_is_warm() -> None:
    """The standby has the graph and the queue of the leader, is ready, and writes nothing but its attempts."""
    async with pair() as (one, two):
        one.pod(WEB)
        one.pod(builders.make_pod("big").cpu("8"))
        await one.bound("web")
        await one.until(lambda: one.message("big") != "")
        await one.quiet(5.0)

        assert {"one"} == writers(one.server)
        assert 0 == two.program.loop.decisions
        assert [] == [request for request in two.server.requests if request.method in {"POST", "PATCH"}]
        assert one.parts.store.content()[0] == two.parts.store.content()[0]
        assert two.pool("big") is not None
        for it, stance in ((one, "leader, one"), (two, "standby of one")):
            report = it.program.sights.health().report("readyz")
            assert report.ok
            assert f"[+]leader-election ok: {stance}\n" in report.text(verbose=True)
        statuses = [
            it.parts.meters.registry.get_sample_value(
                "leader_election_master_status", {"name": "kube-system/graph-scheduler"}
            )
            for it in (one, two)
        ]
        assert [1.0, 0.0] == statuses
        assert ("", "standby of one") == (one.program.sights.standby(), two.program.sights.standby())


@virtual.timed
async def test_a_leader_that_is_cut_off_gives_up_what_it_began() -> None:
    """At the end of its term nothing is assumed, under way, or waiting to be written; the other goes on."""
    async with pair() as (one, two):
        one.server.faults.hang("*", ".*", times=10_000)
        for number in range(3):
            one.pod(builders.make_pod(f"p{number}").cpu("1"))
        one.pod(builders.make_pod("big").cpu("8"))
        await one.until(lambda: one.bindings() == 3)
        assert 3 == len(one.parts.promises)
        cut_at = virtual.now()
        await two.bound("p0", "p1", "p2")

        assert virtual.now() - cut_at <= 4.0 + 1.2 + 1.0
        assert (0, 0) == (len(one.parts.promises), len(one.parts.dispatcher))
        assert isinstance(one.parts.conditions, conditions.Conditions)
        assert (0, 0) == (len(one.parts.conditions._outlet._waiting), len(one.parts.events))
        await two.quiet(5.0)
        assert {"two"} == writers(two.server)
        assert not [
            request for request in one.server.requests if request.method == "POST" and request.at_s > cut_at + 3
        ]

        one.server.faults.clear()
        await one.server.stop()
        await one.server.start()
        await one.quiet(30.0)
        assert "standby of two" == one.program.sights.standby()
        assert {"big"} == {entry.pod.name for entry in one.parts.backlog._entries.values()}
        assert one.parts.store.content()[0] == two.parts.store.content()[0]
        two.require_sound()


@virtual.timed
async def test_a_new_leader_reads_what_the_old_one_wrote_before_it_decides() -> None:
    """Its watch may be behind without anybody's knowing: the room that it believes free was given away."""
    async with pair() as (one, two):
        one.server.faults.delay("POST", live.BINDING, 1.0)
        one.pod(builders.make_pod("first").cpu("4"))
        await asyncio.sleep(0.5)
        for watch in two.server.watches:
            watch.live = False
        await one.bound("first")
        await one.server.stop()
        one.pod(WEB)
        assert two.pool("first") is not None
        began = virtual.now()
        await two.until(lambda: two.message("web") != "")

        assert "0/1 nodes are available: 1 Insufficient cpu." == two.message("web")
        assert 0 == two.bindings()
        # Long before anybody would have noticed that the watch says nothing.
        assert virtual.now() - began <= 4.0 + 1.2 + 1.0
        two.require_sound()


@virtual.timed
async def test_an_ending_leader_hands_over_within_a_retry() -> None:
    """The lease is released after the last write; nobody waits for it to run out."""
    async with apiserver.FakeApiServer() as first, Door(first) as second:
        async with live.scheduler(N1, server=first, leader_election=election("one")) as one:
            standby = contextlib.AsyncExitStack()
            two = await standby.enter_async_context(live.scheduler(server=second, leader_election=election("two")))
            await asyncio.sleep(5.0)
            one.pod(WEB)
            await one.bound("web")
        ended_at = virtual.now()
        (*_, last) = [request for request in first.requests if request.method in {"POST", "PUT", "PATCH"}]
        two.pod(builders.make_pod("next").cpu("1"))
        await two.bound("next")
        taken_s = virtual.now() - ended_at
        await two.quiet()
        instances = writers(second)
        await standby.aclose()

        assert (LEASE, None) == (last.path, last.body["spec"].get("holderIdentity"))
        assert taken_s <= 1.2 + 0.5
        assert {"one", "two"} == instances


@virtual.timed
async def test_one_that_leads_again_takes_its_pods_up_again() -> None:
    """What was abandoned is decided anew, what took effect unseen is found bound, and nothing is bound twice."""
    async with (
        apiserver.FakeApiServer() as server,
        live.scheduler(N1, server=server, leader_election=election("one")) as it,
    ):
        server.faults.hang("PUT", LEASE, times=3)
        server.faults.hang("POST", live.BINDING, times=9)
        for number in (1, 2):
            it.pod(builders.make_pod(f"p{number}").cpu("1"))
        await it.until(lambda: it.bindings() == 2)
        await asyncio.sleep(3.5)
        assert not it.program.loop._leads
        assert 2 == it.parts.meters.registry.get_sample_value("graphsched_bind_total", {"outcome": "abandoned"})
        for watch in server.watches:
            watch.live = False
        # One of the calls was on its way all the time.
        (late,) = server.asked("POST", ".*/p2/binding")
        server.storage.bind(storage.Key(storage.PODS, "default", "p2"), late.body)
        server.faults.clear()
        await it.bound("p1", "p2")
        await it.quiet(5.0)

        assert it.program.elector is not None
        assert (2, 0, 0) == (it.program.elector.term, len(it.parts.promises), len(it.parts.backlog))
        assert (2, 1) == (it.bindings("p1"), it.bindings("p2"))
        it.require_sound()


@virtual.timed
async def test_a_right_that_is_missing_holds_back_readiness_and_nothing_else() -> None:
    """The probe says which; the program waits for it and goes on."""
    async with apiserver.FakeApiServer() as server:
        server.faults.refuse("GET", LEASE, 403, reason="Forbidden", times=8)
        async with live.scheduler(N1, server=server, leader_election=election("one")) as it:
            it.pod(WEB)
            report = it.program.sights.health().report("readyz")
            assert ["lease"] == [name for name, problem in report.results if problem]
            assert "needed: get, create and update on leases" in report.text()
            assert it.program.sights.health().report("livez").ok
            await it.bound("web")

            assert it.program.sights.health().report("readyz").ok
