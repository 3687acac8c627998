"""Advice ends the way the cluster shows: the pod is tied to its node once, or it is left as it was."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from graphsched.action import advise, bind
from graphsched.base.kube import client as clients, pods as kube_pods, wire
from tests.fakes import apiserver, storage, virtual

End = bind.End
GATE = "graphsched.io/advise"
POD = ".*/pods/web"
KEY = storage.Key(storage.PODS, "default", "web")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
LINUX = {"key": "os", "operator": "In", "values": ["linux"]}


def pin(node: str) -> dict[str, Any]:
    """The requirement that names a node."""
    return {"key": "metadata.name", "operator": "In", "values": [node]}


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    """Required node affinity."""
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


@contextlib.asynccontextmanager
async def cluster(*gates: str, **spec: Any) -> AsyncIterator[tuple[apiserver.FakeApiServer, clients.Client]]:
    """A server with one gated pod, and a client."""
    async with apiserver.FakeApiServer() as server, server.client() as client:
        held = [{"name": gate} for gate in gates or (GATE,)]
        body = {"containers": [{"name": "main"}], "schedulingGates": held, **spec}
        server.create(storage.PODS, {"metadata": {"name": "web"}, "spec": body})
        yield server, client


def order_for(server: apiserver.FakeApiServer, node: str = "n1") -> bind.Order:
    """An order for the pod as it is now."""
    return bind.Order(kube_pods.pod(wire.POD.convert(server.pod("web"))), node, asked=0.0)


async def carried_out(client: clients.Client, order: bind.Order) -> bind.Outcome:
    """The outcome."""
    return await advise.carrier(GATE)(client, order, deadline_s=10.0, rng=random.Random(1))


def change(server: apiserver.FakeApiServer, spec: dict[str, Any], **metadata: Any) -> None:
    """Somebody changes the pod."""
    server.storage.patch(KEY, {"spec": spec, "metadata": metadata}, strategic=False)


def taken(server: apiserver.FakeApiServer) -> None:
    """Somebody lets the pod go and binds it."""
    change(server, {"schedulingGates": None})
    server.storage.bind(KEY, {"target": {"name": "n2"}})


@virtual.timed
async def test_a_pod_is_tied_and_let_go_by_one_patch() -> None:
    """Read, then patched for exactly what was read; nothing is bound."""
    async with cluster() as (server, client):
        version = server.pod("web")["metadata"]["resourceVersion"]
        outcome = await carried_out(client, order := order_for(server))

        assert bind.Outcome(order, End.ADVISED, "n1") == outcome
        assert ["GET", "PATCH"] == [request.method for request in server.requests]
        assert version == server.requests[-1].body["metadata"]["resourceVersion"]
        spec = server.pod("web")["spec"]
        assert affinity({"matchFields": [pin("n1")]}) == spec["affinity"]
        assert not {"schedulingGates", "nodeName"} & set(spec)


@virtual.timed
async def test_every_term_gains_the_name_and_loses_nothing() -> None:
    """Terms are alternatives, so one without the name would be a way out; one without requirements matches nothing."""
    terms = [{"matchExpressions": [LINUX]}, {}, {"matchFields": [pin("n1")], "matchExpressions": [LINUX]}]
    apart = {"podAntiAffinity": {REQUIRED: [{"topologyKey": "zone", "labelSelector": {}}]}}
    async with cluster(affinity={**affinity(*terms), **apart}) as (server, client):
        outcome = await carried_out(client, order_for(server))

        assert End.ADVISED is outcome.end
        found = server.pod("web")["spec"]["affinity"]
        assert apart["podAntiAffinity"] == found["podAntiAffinity"]
        assert [
            {"matchExpressions": [LINUX], "matchFields": [pin("n1")]},
            {},
            {"matchExpressions": [LINUX], "matchFields": [pin("n1"), pin("n1")]},
        ] == found["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]


@pytest.mark.parametrize(
    ("script", "patches"),
    [
        pytest.param(lambda faults: faults.lose("PATCH", POD), 1, id="the answer is lost"),
        pytest.param(lambda faults: faults.drop("PATCH", POD), 2, id="the call is lost"),
        pytest.param(lambda faults: faults.hang("PATCH", POD), 2, id="no answer comes"),
        pytest.param(lambda faults: faults.refuse("PATCH", POD, 500), 2, id="the server gave up half-way"),
        pytest.param(lambda faults: faults.refuse("PATCH", POD, 409), 2, id="somebody was faster"),
        pytest.param(lambda faults: faults.refuse("PATCH", POD, 429, retry_after_s=3), 2, id="the server is busy"),
        pytest.param(lambda faults: faults.drop("GET", POD, times=5), 1, id="reading is lost"),
        pytest.param(lambda faults: faults.garble("GET", POD, b"<html>"), 1, id="a proxy's page"),
        pytest.param(
            lambda faults: (faults.lose("PATCH", POD), faults.drop("GET", POD)), 1, id="answer and reading are lost"
        ),
    ],
)
def test_a_lost_answer_is_looked_after(script: Callable[[object], object], patches: int) -> None:
    """The pod ends up tied once, and the outcome says so."""

    @virtual.timed
    async def body() -> None:
        async with cluster() as (server, client):
            script(server.faults)
            outcome = await carried_out(client, order_for(server))

            assert (End.ADVISED, "n1") == (outcome.end, outcome.node)
            assert patches == len(server.asked("PATCH", POD))
            assert affinity({"matchFields": [pin("n1")]}) == server.pod("web")["spec"]["affinity"]

    body()


@virtual.timed
async def test_the_last_of_many_lost_answers_is_looked_after_too() -> None:
    """An order that is given up has not happened: the pod is read after the last call as well."""
    async with cluster() as (server, client):
        server.faults.drop("PATCH", POD, times=bind.TRIES_MAX - 1)
        order = order_for(server)
        server.faults.lose("PATCH", POD)
        assert End.ADVISED is (await carried_out(client, order)).end
        assert bind.TRIES_MAX == len(server.asked("PATCH"))
    async with cluster() as (server, client):
        server.faults.drop("PATCH", POD, times=bind.TRIES_MAX)
        outcome = await carried_out(client, order_for(server))
        assert End.FAILED is outcome.end
        assert [{"name": GATE}] == server.pod("web")["spec"]["schedulingGates"]


@pytest.mark.parametrize(
    ("meddle", "end", "told"),
    [
        (lambda server: change(server, {"schedulingGates": None}), End.CONFLICT, "somebody else took the gate away"),
        (
            lambda server: change(
                server, {"schedulingGates": None, "affinity": affinity({"matchFields": [pin("n2")]})}
            ),
            End.CONFLICT,
            "somebody else took the gate away",
        ),
        (
            lambda server: change(server, {"nodeSelector": {"tier": "gold"}}),
            End.CONFLICT,
            "the pod has changed since it was decided on",
        ),
        (lambda server: server.storage.delete(KEY), End.GONE, "the pod was deleted"),
        (lambda server: change(server, {}, deletionTimestamp=storage.CREATED_AT), End.GONE, "is being deleted"),
        (
            taken,
            End.CONFLICT,
            "somebody else bound it to n2",
        ),
    ],
)
def test_a_pod_that_is_not_what_it_was_is_left_alone(
    meddle: Callable[[apiserver.FakeApiServer], object], end: bind.End, told: str
) -> None:
    """Nothing is patched; what was decided on is not there any more."""

    @virtual.timed
    async def body() -> None:
        async with cluster() as (server, client):
            order = order_for(server)
            meddle(server)
            outcome = await carried_out(client, order)

            assert end is outcome.end
            assert told in outcome.detail
            assert [] == server.asked("PATCH")

    body()


@virtual.timed
async def test_a_change_between_reading_and_patching_is_noticed() -> None:
    """The patch is for one version only; the pod is read again, and found to want something else."""
    async with cluster() as (server, client):
        order = order_for(server)
        server.faults.delay("PATCH", POD, 5.0)
        outcome = carried_out(client, order)

        async def meddle() -> None:
            await server.until(lambda: bool(server.asked("PATCH")))
            change(server, {"nodeSelector": {"tier": "gold"}})

        found, _ = await asyncio.gather(outcome, meddle())

        assert (End.CONFLICT, "the pod has changed since it was decided on") == (found.end, found.detail)
        assert [{"name": GATE}] == server.pod("web")["spec"]["schedulingGates"]


@virtual.timed
async def test_the_node_is_looked_at_once_more_before_each_call() -> None:
    """The look may name another node, or call the whole off; after a lost answer it is told to stay."""
    looks: list[bool] = []

    def look(order: bind.Order, *, pinned: bool) -> bool:
        looks.append(pinned)
        order.node = "n2"
        return True

    async with cluster() as (server, client):
        server.faults.refuse("PATCH", POD, 429)
        server.faults.drop("PATCH", POD)
        order = order_for(server)
        order.look = look
        outcome = await carried_out(client, order)
        assert (End.ADVISED, "n2", [False, False, True]) == (outcome.end, outcome.node, looks)
        assert affinity({"matchFields": [pin("n2")]}) == server.pod("web")["spec"]["affinity"]
    async with cluster() as (server, client):
        order = order_for(server)
        order.look = lambda _order, *, pinned: pinned
        assert End.MOVED is (await carried_out(client, order)).end
        assert [] == server.asked("PATCH")


@virtual.timed
async def test_another_pod_of_the_name_is_not_touched() -> None:
    """It has another uid."""
    async with cluster() as (server, client):
        order = order_for(server)
        body = server.pod("web")["spec"]
        server.storage.delete(KEY)
        server.create(storage.PODS, {"metadata": {"name": "web"}, "spec": body})
        outcome = await carried_out(client, order)

        assert (End.GONE, "another pod has its name now") == (outcome.end, outcome.detail)
        assert [] == server.asked("PATCH")


@virtual.timed
async def test_a_pod_that_others_hold_as_well_is_left_to_wait() -> None:
    """Its gates are not ours to take."""
    async with cluster(GATE, "example.com/quota") as (server, client):
        outcome = await carried_out(client, order_for(server))

        assert (End.CONFLICT, "the pod is gated by others, too") == (outcome.end, outcome.detail)
        assert [] == server.asked("PATCH")


@pytest.mark.parametrize(("status", "end"), [(403, End.REFUSED), (422, End.REFUSED), (401, End.FAILED)])
def test_a_no_is_not_asked_again(status: int, end: bind.End) -> None:
    """Admission or a missing right: the pod goes back to the queue."""

    @virtual.timed
    async def body() -> None:
        async with cluster() as (server, client):
            server.faults.refuse("PATCH", POD, status, times=2)
            outcome = await carried_out(client, order_for(server))

            assert end is outcome.end

    body()


@pytest.mark.parametrize(("node", "end"), [("n1", End.ADVISED), ("n2", End.CONFLICT), (None, End.GONE)])
def test_what_the_watch_shows_ends_the_waiting(node: str | None, end: bind.End) -> None:
    """Nobody answers, but the watch goes on."""

    @virtual.timed
    async def body() -> None:
        async with cluster() as (server, client):
            order = order_for(server)
            server.faults.drop("GET", POD, times=99)
            order.saw(node)
            outcome = await carried_out(client, order)

            assert end is outcome.end
            assert [] == server.asked("PATCH")

    body()
