"""What lasts: rights that are missing for good, a token that is replaced, an API server that can not be had.

The rest is served, it is said what is missing, and nobody is asked without end. Simulated: the refusals, by the proxy.
"""

import asyncio
import logging
import pathlib
import random

import pytest

from graphsched.base.kube import client as clients
from tests.controlplane import cluster as clusters
from tests.fakes import faults
from tests.faults import calls, checkers, fleet, proxy as proxies, witness as witnesses, worlds

pytestmark = pytest.mark.cluster

STALL_S = 4.0
WITHIN_S = 40.0


async def come_to(world: worlds.World, what: str, happened: object) -> None:
    """Wait until something about the scheduler is true."""
    assert callable(happened)
    end = asyncio.get_running_loop().time() + WITHIN_S
    while not happened():
        assert asyncio.get_running_loop().time() < end, f"{world.name}: never: {what}"
        await asyncio.sleep(0.05)


def readiness(world: worlds.World) -> str:
    """What /readyz says."""
    return world.program.wired.sights.health().report("readyz").text()


def metric(world: worlds.World, name: str) -> float:
    """The value of a series, spelled as it is scraped."""
    for line in world.program.wired.parts.meters.render().decode().splitlines():
        if line.rpartition(" ")[0] == name:
            return float(line.rpartition(" ")[2])
    return 0.0


async def _truthful(shared: worlds.Shared, resource: str) -> None:
    name = f"ready-{resource}"
    patience = clients.Patience(request_s=10.0, stall_s=STALL_S)
    async with worlds.World(shared, name, rng=random.Random(name), patience=patience) as world:
        failing = f"[-]watch/{resource} failed"
        await world.pods(1)
        world.proxy.strike(f"list {resource}", faults.Kind.REFUSE, status=503)
        await world.start()
        rest = {*calls.MAIN, *calls.OTHERS} - {resource}
        await come_to(world, "all but one is listed", lambda: rest <= world.proxy.listed)
        assert failing in readiness(world)
        assert not world.proxy.made(calls.BIND)

        world.proxy.lift()
        await come_to(world, "ready", lambda: readiness(world) == "ok")
        await world.until("it is bound", lambda pods: all(map(checkers.node_of, pods.values())))

        world.proxy.strike(f"list {resource}", faults.Kind.REFUSE, status=503)
        world.proxy.strike(f"watch {resource}", faults.Kind.REFUSE, status=503)
        world.proxy.afflict(resource, proxies.Ailment.BREAK)
        await come_to(world, "not ready any more", lambda: failing in readiness(world))
        assert world.program.wired.sights.health().report("livez").ok

        world.proxy.lift()
        await come_to(world, "ready again", lambda: readiness(world) == "ok")
        await world.pods(1)
        await world.until("both are bound", lambda pods: len(pods) == 2 and all(map(checkers.node_of, pods.values())))


def test_readiness_names_the_watch_that_can_not_be_had(arena: clusters.Cluster) -> None:
    """For each resource: not before its first list; not while it can not be followed; again once it can."""

    async def body(shared: worlds.Shared) -> None:
        async with asyncio.TaskGroup() as group:
            for resource in (*calls.MAIN, *calls.OTHERS):
                group.create_task(_truthful(shared, resource))

    fleet.on(arena, body)


def test_without_the_right_to_tell_pods_are_bound_all_the_same(
    arena: clusters.Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """Events and conditions are refused for good: it is logged, and a condition given up after five calls."""
    caplog.set_level(logging.WARNING)

    async def body(shared: worlds.Shared) -> None:
        async with worlds.World(shared, "mute", rng=random.Random(1)) as world:
            for call in (calls.EVENT, calls.STATUS):
                world.proxy.strike(call, faults.Kind.REFUSE, status=403)
            await world.giant()
            await world.pods(6)
            await world.start()
            await world.until("all are bound", lambda pods: all(map(checkers.node_of, worlds.fits(pods, world.giants))))
            await come_to(
                world, "given up", lambda: metric(world, 'graphsched_conditions_total{outcome="failed"}') == 1
            )
            assert 5 == len(world.proxy.made(calls.STATUS))
            # Seven at once, and after that the pauses grow.
            assert 5 * 7 > len(world.proxy.made(calls.EVENT))
            await checkers.require_true_graph(world)
            assert "ok" == readiness(world)

    fleet.on(arena, body)
    told = {record.getMessage() for record in caplog.records}
    assert any("conditions: not written: PATCH" in text and "made to fail by the test: status" in text for text in told)
    assert any("events: not allowed" in text and "made to fail by the test: event" in text for text in told)


def test_without_the_right_to_bind_calls_do_not_pile_up(arena: clusters.Cluster) -> None:
    """Each pod backs off on its own; the condition names the right; once it is given all are bound."""

    async def body(shared: worlds.Shared) -> None:
        async with worlds.World(shared, "unbound", rng=random.Random(1)) as world:
            world.proxy.strike(calls.BIND, faults.Kind.REFUSE, status=403)
            await world.pods(6)
            await world.start()
            began = asyncio.get_running_loop().time()
            await world.until("all say so", lambda pods: all(map(_blames_the_right, pods.values())))
            await come_to(world, "several rounds", lambda: len(world.proxy.made(calls.BIND)) >= 4 * 6)
            # 0.2 s, 0.4 s, 0.8 s, 1.6 s, then every 2 s, and a call for each pod at once.
            seconds = asyncio.get_running_loop().time() - began
            assert len(world.proxy.made(calls.BIND)) <= 6 * (5 + seconds / 2)

            world.proxy.lift()
            await world.until("all are bound", lambda pods: all(map(checkers.node_of, pods.values())))
            await checkers.require_true_graph(world)
            checkers.require_bound_once(world)

    fleet.on(arena, body)


def _blames_the_right(pod: witnesses.Object) -> bool:
    return any(
        "binding rejected" in each.get("message", "") and "made to fail by the test: bind" in each["message"]
        for each in pod.get("status", {}).get("conditions", [])
    )


def test_a_rotated_token_is_read_again_at_once(arena: clusters.Cluster, tmp_path: pathlib.Path) -> None:
    """The old one is turned away with 401 in a burst and after a restart; no pod is lost, nobody waits for a period."""
    path = tmp_path / "token"

    async def body(shared: worlds.Shared) -> None:
        async with worlds.World(shared, "rotated", rng=random.Random(1)) as world:
            world.token_file, world.proxy.token = path, "first"
            path.write_text("first")
            await world.pods(4)
            await world.start()
            await world.until("all are bound", lambda pods: all(map(checkers.node_of, pods.values())))
            path.write_text("second")
            world.proxy.token = "second"
            for resource in calls.MAIN:
                world.proxy.afflict(resource, proxies.Ailment.BREAK)
            await world.pods(6)
            await world.until(
                "the new ones too", lambda pods: len(pods) == 10 and all(map(checkers.node_of, pods.values()))
            )
            await world.stop(hard=True)
            path.write_text("third")
            world.proxy.token = "third"
            await world.pods(2)
            await world.start()
            await world.until(
                "those of the next start", lambda pods: len(pods) == 12 and all(map(checkers.node_of, pods.values()))
            )
            await checkers.require_true_graph(world)
            assert "ok" == readiness(world)

    fleet.on(arena, body)
