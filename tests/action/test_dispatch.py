"""Orders run side by side within bounds, and each ends as one outcome."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator

import pytest

from graphsched.action import bind, calls, dispatch
from graphsched.base.kube import pods as kube_pods, wire
from tests.fakes import apiserver, storage, virtual


@contextlib.asynccontextmanager
async def cluster(*, places: int = 2) -> AsyncIterator[tuple[apiserver.FakeApiServer, dispatch.Dispatcher]]:
    """A server with pods p0 to p4, and a dispatcher."""
    async with apiserver.FakeApiServer() as server, server.client() as client:
        for number in range(5):
            body = {"metadata": {"name": f"p{number}"}, "spec": {"containers": [{"name": "main"}]}}
            server.create(storage.PODS, body)
        yield server, dispatch.Dispatcher(client, places=places, deadline_s=10.0, rng=random.Random(1))


def order_for(server: apiserver.FakeApiServer, name: str) -> bind.Order:
    """An order for the pod as it is now."""
    return bind.Order(kube_pods.pod(wire.POD.convert(server.pod(name))), "n1", asked=0.0)


@virtual.timed
async def test_a_place_is_free_again_once_the_outcome_was_fetched() -> None:
    """The bound counts orders whose end the loop has not seen."""
    async with cluster() as (server, dispatcher):
        for name in ("p0", "p1"):
            dispatcher.submit(order_for(server, name))
        assert 0 == dispatcher.free
        with pytest.raises(RuntimeError, match="no place"):
            dispatcher.submit(order_for(server, "p2"))

        ends = []
        while len(dispatcher):
            await dispatcher.ready.wait()
            dispatcher.ready.clear()
            ends += [(outcome.order.pod.name, outcome.end) for outcome in dispatcher.fetch()]

        assert [("p0", bind.End.BOUND), ("p1", bind.End.BOUND)] == sorted(ends)
        assert 2 == dispatcher.free


@virtual.timed
async def test_orders_that_linger_hold_up_others_only_when_they_are_as_many_as_there_are_places() -> None:
    """Two that wait for calls which may still arrive leave both places to others; with two more it is full."""
    async with cluster() as (server, dispatcher):
        server.faults.drop("POST", ".*/p[01]/binding", times=99)
        for name in ("p0", "p1"):
            dispatcher.submit(order_for(server, name))
        await server.until(lambda: 2 * bind.TRIES_MAX == len(server.asked("POST", ".*/binding")))
        await asyncio.sleep(10.0)
        assert (2, 2) == (dispatcher.free, len(dispatcher))

        server.faults.hang("POST", ".*/p[23]/binding", times=99)
        for name in ("p2", "p3"):
            dispatcher.submit(order_for(server, name))
        assert (0, 4) == (dispatcher.free, len(dispatcher))
        await dispatcher.close(grace_s=0.0)


@virtual.timed
async def test_one_that_waits_holds_up_no_other() -> None:
    """Answers come in any order."""
    async with cluster() as (server, dispatcher):
        server.faults.delay("POST", ".*/p0/binding", 5.0)
        for name in ("p0", "p1"):
            dispatcher.submit(order_for(server, name))
        await dispatcher.ready.wait()

        assert ["p1"] == [outcome.order.pod.name for outcome in dispatcher.fetch()]
        assert dispatcher.get(order_for(server, "p0").pod.key) is not None


@virtual.timed
async def test_a_second_order_for_the_same_pod_is_a_bug() -> None:
    """None is ever bound twice."""
    async with cluster(places=9) as (server, dispatcher):
        dispatcher.submit(order_for(server, "p0"))

        with pytest.raises(RuntimeError, match="no place"):
            dispatcher.submit(order_for(server, "p0"))
        await dispatcher.close(grace_s=1.0)


@virtual.timed
async def test_closing_waits_a_while_and_names_what_is_unknown() -> None:
    """What ends within the grace can be fetched, the rest is returned."""
    async with cluster(places=3) as (server, dispatcher):
        server.faults.delay("POST", ".*/p0/binding", 1.0)
        server.faults.hang("POST", ".*/p1/binding", times=99)
        for name in ("p0", "p1"):
            dispatcher.submit(order_for(server, name))

        unknown = await dispatcher.close(grace_s=3.0)

        assert ["p1"] == [order.pod.name for order in unknown]
        assert ["p0"] == [outcome.order.pod.name for outcome in dispatcher.fetch()]
        assert 3.0 == pytest.approx(virtual.now(), abs=0.01)


@virtual.timed
async def test_a_bug_in_an_order_reaches_the_loop() -> None:
    """It is raised where outcomes are fetched, so that it can not pass unseen."""

    class Broken:
        get = post = patch = None

    client: calls.Client = Broken()  # type: ignore[assignment]
    async with cluster() as (server, _):
        dispatcher = dispatch.Dispatcher(client, places=1, deadline_s=1.0, rng=random.Random(1))
        dispatcher.submit(order_for(server, "p0"))
        async with asyncio.timeout(1.0):
            await dispatcher.ready.wait()

        with pytest.raises(TypeError):
            dispatcher.fetch()


@virtual.timed
async def test_what_is_abandoned_is_forgotten_and_named() -> None:
    """Its places are free at once, no outcome comes of it any more, and the same pod may be ordered again."""
    async with cluster() as (server, dispatcher):
        server.faults.hang("POST", ".*/binding", times=2)
        for name in ("p0", "p1"):
            dispatcher.submit(order_for(server, name))
        await server.until(lambda: len(server.asked("POST", ".*/binding")) == 2)

        assert ["p0", "p1"] == [order.pod.name for order in dispatcher.abandon()]
        assert (2, 0) == (dispatcher.free, len(dispatcher))
        dispatcher.submit(order_for(server, "p0"))
        await dispatcher.ready.wait()

        assert [("p0", bind.End.BOUND)] == [(each.order.pod.name, each.end) for each in dispatcher.fetch()]
