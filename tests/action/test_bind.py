"""A binding ends the way the cluster shows, whatever answers get lost on the way."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable

import pytest

from graphsched.action import bind
from graphsched.base.kube import client as clients, pods as kube_pods, wire
from graphsched.base.values import keys, pods
from tests import builders
from tests.fakes import apiserver, storage, virtual

End = bind.End
BINDING = ".*/binding"
POD = ".*/pods/web"
KEY = storage.Key(storage.PODS, "default", "web")


@contextlib.asynccontextmanager
async def cluster() -> AsyncIterator[tuple[apiserver.FakeApiServer, clients.Client]]:
    """A server with one pending pod, and a client."""
    async with apiserver.FakeApiServer() as server, server.client() as client:
        server.create(storage.PODS, {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "main"}]}})
        yield server, client


def order_for(server: apiserver.FakeApiServer, node: str = "n1") -> bind.Order:
    """An order for the pod as it is now."""
    return bind.Order(kube_pods.pod(wire.POD.convert(server.pod("web"))), node, asked=0.0)


async def carried_out(client: clients.Client, order: bind.Order) -> bind.Outcome:
    """The outcome."""
    return await bind.bind(client, order, deadline_s=10.0, rng=random.Random(1))


def rival(server: apiserver.FakeApiServer, node: str) -> None:
    """Another scheduler binds the pod."""
    server.storage.bind(KEY, {"target": {"name": node}})


def test_the_body_names_pod_uid_and_node() -> None:
    """What goes over the wire, to the letter; no resourceVersion."""
    pod = pods.Pod(keys.pod_key("shop", "web-0"), "u1")

    assert (
        b'{"metadata":{"name":"web-0","namespace":"shop","uid":"u1"},'
        b'"target":{"name":"n1","kind":"Node","apiVersion":"v1"},"kind":"Binding","apiVersion":"v1"}'
    ) == bind.body(pod, "n1")


@virtual.timed
async def test_a_webhook_that_is_away_holds_no_place_for_a_minute() -> None:
    """It is asked before anything is written, so no late binding can come of it, and nothing has to be waited for."""
    message = 'Internal error occurred: failed calling webhook "quota.example": connection refused'
    async with cluster() as (server, client):
        server.faults.refuse("POST", BINDING, 500, reason="InternalError", message=message, times=99)
        outcome = await carried_out(client, order_for(server))

        assert (End.FAILED, True) == (outcome.end, message in outcome.detail)
        assert virtual.now() < 5.0
        assert (1, 0) == (len(server.asked("POST", BINDING)), len(server.asked("GET", POD)))


@virtual.timed
async def test_a_pod_that_a_webhook_calls_not_found_is_not_gone() -> None:
    """Taken for deleted it would be forgotten, and wait for ever."""
    message = 'admission webhook "quota.example" denied the request: no such team'
    async with cluster() as (server, client):
        server.faults.refuse("POST", BINDING, 404, reason="NotFound", message=message)

        assert End.REFUSED is (await carried_out(client, order_for(server))).end


@virtual.timed
async def test_a_pod_is_bound_by_one_call() -> None:
    """The plain case costs one request."""
    async with cluster() as (server, client):
        order = order_for(server)
        outcome = await carried_out(client, order)

        assert bind.Outcome(order, End.BOUND, "n1") == outcome
        assert ["POST"] == [request.method for request in server.requests]
        assert "n1" == server.pod("web")["spec"]["nodeName"]


@pytest.mark.parametrize(
    ("script", "reads", "posts"),
    [
        pytest.param(lambda faults: faults.lose("POST", BINDING), 1, 1, id="the answer is lost"),
        pytest.param(lambda faults: faults.drop("POST", BINDING), 1, 2, id="the call is lost"),
        pytest.param(lambda faults: faults.hang("POST", BINDING), 1, 2, id="no answer comes"),
        pytest.param(lambda faults: faults.refuse("POST", BINDING, 500), 1, 2, id="the server gave up half-way"),
        pytest.param(lambda faults: faults.refuse("POST", BINDING, 504), 1, 2, id="the server took too long"),
        pytest.param(lambda faults: faults.refuse("POST", BINDING, 409), 1, 2, id="a conflict of the moment"),
        pytest.param(lambda faults: faults.refuse("POST", BINDING, 503), 0, 2, id="the server is not ready"),
        pytest.param(
            lambda faults: (faults.lose("POST", BINDING), faults.drop("GET", POD, times=5)),
            6,
            1,
            id="reading is lost too",
        ),
        pytest.param(
            lambda faults: (faults.lose("POST", BINDING), faults.garble("GET", POD, b"<html>")),
            2,
            1,
            id="a proxy's page",
        ),
        pytest.param(
            lambda faults: faults.garble("POST", BINDING, b"<html>log in</html>"), 1, 2, id="a proxy's page as success"
        ),
    ],
)
def test_what_the_cluster_shows_counts(script: Callable[[object], object], reads: int, posts: int) -> None:
    """The pod ends up bound once, and the outcome says so; a lost answer is followed by a look, never by a guess."""

    @virtual.timed
    async def body() -> None:
        async with cluster() as (server, client):
            script(server.faults)
            outcome = await carried_out(client, order_for(server))

            assert (End.BOUND, "n1") == (outcome.end, outcome.node)
            assert reads == len(server.asked("GET", POD))
            assert posts == len(server.asked("POST", BINDING))

    body()


@virtual.timed
async def test_patience_is_granted_when_the_server_asks_for_it() -> None:
    """Retry-After of a 429 is waited for."""
    async with cluster() as (server, client):
        server.faults.refuse("POST", BINDING, 429, retry_after_s=7)
        outcome = await carried_out(client, order_for(server))

        assert End.BOUND is outcome.end
        assert virtual.now() >= 7.0


@virtual.timed
async def test_a_pod_bound_elsewhere_is_a_conflict() -> None:
    """A rival was faster: the outcome tells the node, and the call is not repeated."""
    async with cluster() as (server, client):
        order = order_for(server)
        rival(server, "n2")
        outcome = await carried_out(client, order)

        assert (End.CONFLICT, "n2") == (outcome.end, outcome.node)
        assert 1 == len(server.asked("POST", BINDING))


@virtual.timed
async def test_a_conflict_over_the_same_node_is_success() -> None:
    """An earlier call of ours had been taken."""
    async with cluster() as (server, client):
        order = order_for(server)
        rival(server, "n1")

        assert End.BOUND is (await carried_out(client, order)).end


@virtual.timed
async def test_a_deleted_pod_is_gone() -> None:
    """404 ends it at once."""
    async with cluster() as (server, client):
        order = order_for(server)
        server.storage.delete(KEY)

        assert End.GONE is (await carried_out(client, order)).end
        assert 1 == len(server.requests)


@virtual.timed
async def test_another_pod_of_the_same_name_is_not_bound() -> None:
    """The UID is the precondition."""
    async with cluster() as (server, client):
        order = order_for(server)
        server.storage.delete(KEY)
        server.create(storage.PODS, {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "main"}]}})

        assert End.GONE is (await carried_out(client, order)).end
        assert "nodeName" not in server.pod("web")["spec"]


@virtual.timed
async def test_a_pod_that_is_being_deleted_is_let_go() -> None:
    """It answers 409; a look tells why."""
    async with cluster() as (server, client):
        order = order_for(server)
        server.storage.patch(KEY, {"metadata": {"deletionTimestamp": storage.CREATED_AT}}, strategic=False)
        outcome = await carried_out(client, order)

        assert (End.GONE, "") == (outcome.end, outcome.node)


@virtual.timed
async def test_a_gated_pod_is_let_go() -> None:
    """It answers 409; a look tells why. No pod is gated later on, but an order may come of what was read too early."""
    async with cluster() as (server, client):
        server.storage.delete(KEY, {"gracePeriodSeconds": 0})
        server.create(storage.PODS, builders.make_pod("web").gate("hold").manifest())
        outcome = await carried_out(client, order_for(server))

        assert (End.CONFLICT, "") == (outcome.end, outcome.node)


@pytest.mark.parametrize(
    ("status", "end"),
    [(400, End.REFUSED), (403, End.REFUSED), (422, End.REFUSED), (401, End.FAILED)],
)
def test_a_no_is_taken_for_an_answer(status: int, end: bind.End) -> None:
    """Admission and rights are not argued with; bad credentials may be good later."""

    @virtual.timed
    async def body() -> None:
        async with cluster() as (server, client):
            server.faults.refuse("POST", BINDING, status, message="denied the request", times=9)
            outcome = await carried_out(client, order_for(server))

            assert end is outcome.end
            assert "denied the request" in outcome.detail
            assert 1 == len(server.requests)

    body()


@virtual.timed
async def test_an_order_that_keeps_failing_goes_back() -> None:
    """After a few calls the decision is made anew, with what is known by then."""
    async with cluster() as (server, client):
        server.faults.drop("POST", BINDING, times=99)
        outcome = await carried_out(client, order_for(server))

        assert End.FAILED is outcome.end
        assert bind.TRIES_MAX == len(server.asked("POST", BINDING))


@pytest.mark.parametrize(
    ("node", "end"),
    [pytest.param("n1", End.BOUND, id="here"), pytest.param("n2", End.CONFLICT, id="there"), (None, End.GONE)],
)
def test_what_the_watch_shows_ends_the_waiting(node: str | None, end: bind.End) -> None:
    """While nobody answers a call, the watch may already know."""

    @virtual.timed
    async def body() -> None:
        async with cluster() as (server, client):
            server.faults.lose("POST", BINDING)
            server.faults.drop("GET", POD, times=10**6)
            order = order_for(server)
            task = asyncio.create_task(carried_out(client, order))
            await asyncio.sleep(60.0)
            assert not task.done()

            order.saw(node)

            assert end is (await task).end
            assert 60.0 == pytest.approx(virtual.now(), abs=0.1)

    body()


@virtual.timed
async def test_a_binding_waits_for_what_must_be_over_before_it() -> None:
    """A status patch under way would otherwise overtake it."""
    async with cluster() as (server, client):
        patching = asyncio.get_running_loop().create_future()
        order = bind.Order(order_for(server).pod, "n1", asked=0.0, after=patching)
        task = asyncio.create_task(carried_out(client, order))
        await asyncio.sleep(5.0)
        assert [] == server.requests

        patching.set_result(None)

        assert End.BOUND is (await task).end


@virtual.timed
async def test_nothing_is_sent_for_a_pod_that_went_while_it_waited() -> None:
    """What the watch showed meanwhile counts before the first call too."""
    async with cluster() as (server, client):
        order = order_for(server)
        order.saw(None)

        assert End.GONE is (await carried_out(client, order)).end
        assert [] == server.requests
