"""A real admission webhook that refuses the binding of one pod for ever."""

import asyncio
import base64
import contextlib
import random
import ssl
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from tests.controlplane import cluster as clusters
from tests.faults import calls, checkers, fleet, witness as witnesses, worlds

pytestmark = pytest.mark.cluster

HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
CURSED = "cursed"


@contextlib.asynccontextmanager
async def refusing(cluster: clusters.Cluster, world: worlds.World) -> AsyncIterator[list[str]]:
    """A webhook that refuses bindings of the cursed pod; the names of all pods it was asked about."""
    asked: list[str] = []

    async def review(request: web.Request) -> web.Response:
        body = await request.json()
        name = body["request"]["name"]
        asked.append(name)
        answer = {"uid": body["request"]["uid"], "allowed": name != CURSED}
        if name == CURSED:
            answer["status"] = {"message": "cursed"}
        return web.json_response({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer})

    folder = cluster.folder / "certificates"
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    # The API server's own certificate: it is for loopback, which is all that matters here.
    tls.load_cert_chain(folder / "apiserver.crt", folder / "apiserver.key")
    application = web.Application()
    application.router.add_post("/", review)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
    hook = {
        "name": "bindings.tests.graphsched.io",
        "clientConfig": {
            "url": f"https://127.0.0.1:{runner.addresses[0][1]}/",
            "caBundle": base64.b64encode(cluster.authority.read_bytes()).decode(),
        },
        "rules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods/binding"]},
        ],
        "namespaceSelector": {"matchLabels": {witnesses.LABEL: world.name}},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
    }
    body = {"metadata": {"name": f"tests-{world.name}"}, "webhooks": [hook]}
    await world.shared.client.create(HOOKS, body)
    try:
        yield asked
    finally:
        await world.shared.client.delete(f"{HOOKS}/tests-{world.name}")
        await runner.cleanup()


def test_a_pod_whose_binding_is_refused_for_ever_starves_nobody(arena: clusters.Cluster) -> None:
    """Through start-up, a burst and a restart others are bound, and the cursed pod is tried ever more rarely."""

    async def body(shared: worlds.Shared) -> None:
        async with worlds.World(shared, "cursing", rng=random.Random(1)) as world, refusing(arena, world) as asked:
            world.giants.add(CURSED)
            await world.pod(CURSED)
            # A webhook is heeded by the API server within a second or so of its making.
            await world.start()
            await world.until(
                "it is refused or bound",
                lambda pods: CURSED in pods and (_told(pods[CURSED]) or bool(checkers.node_of(pods[CURSED]))),
            )
            if checkers.node_of(world.seen[CURSED]):
                await world.delete("pods", CURSED)
                await world.pod(CURSED)
            for hard in (None, True):
                if hard is not None:
                    await world.stop(hard=hard)
                    await world.start()
                await world.pods(7)
                await world.until("the others are bound", lambda pods: _others_bound(world, pods))
                await world.until("the cursed one says why", lambda pods: _told(pods[CURSED]))
            began, tried = asyncio.get_running_loop().time(), asked.count(CURSED)
            await world.proxy.until(lambda: asked.count(CURSED) >= tried + 2, what="it is tried again")
            seconds = asyncio.get_running_loop().time() - began
            # Its penalty has grown to 2 s by now, or is on the way there from 0.2 s: five tries, then one every 2 s.
            assert asked.count(CURSED) - tried <= 6 + seconds / 2
            assert len(world.proxy.made(calls.BIND)) <= len(asked) + 4
            checkers.require_bound_once(world)
            await checkers.require_room(world)

    fleet.on(arena, body)


def _told(pod: witnesses.Object) -> bool:
    return any("cursed" in each.get("message", "") for each in pod.get("status", {}).get("conditions", []))


def _others_bound(world: worlds.World, pods: dict[str, witnesses.Object]) -> bool:
    others = list(worlds.fits(pods, world.giants))
    return bool(others) and all(map(checkers.node_of, others)) and not checkers.node_of(pods[CURSED])
