"""10,000 pods that fit nowhere: what they cost once is paid, and after that they cost nothing."""

import asyncio
import json
import random

import pytest

from tests.controlplane import cluster as clusters, fixtures, objects
from tests.faults import checkers, fleet, witness as witnesses, worlds

pytestmark = pytest.mark.cluster

CROWD = 10_000
TOUCHES = 20
SPARE = 50
"""Decisions beside the counted ones: the pods of the test itself, and one for each group and piece of news."""


async def _decided(world: worlds.World, what: str, count: int) -> None:
    loop, end = world.program.wired.loop, asyncio.get_running_loop().time() + 200.0
    while loop.decisions < count:
        assert asyncio.get_running_loop().time() < end, f"{what}: {loop.decisions} of {count} decisions"
        await asyncio.sleep(0.05)


async def _fence(world: worlds.World) -> None:
    """A pod that fits is bound: whatever was to be decided before it has been."""
    name = await world.pod()
    await world.until(f"{name} is bound", lambda pods: name in pods and bool(checkers.node_of(pods[name])))


async def _at_rest(world: worlds.World) -> None:
    """The crowd waits, and nothing else is kept."""
    parts, end = world.program.wired.parts, asyncio.get_running_loop().time() + 60.0
    while len(parts.backlog) != CROWD or len(parts.promises) or len(parts.dispatcher):
        assert asyncio.get_running_loop().time() < end, f"{len(parts.backlog)} wait, {len(parts.promises)} are promised"
        await asyncio.sleep(0.05)


@pytest.mark.timeout(400)
def test_ten_thousand_pods_that_fit_nowhere_are_no_storm(new_cluster: fixtures.NewCluster) -> None:
    """Each is decided on once, at start-up and after a restart; heartbeats and bound pods wake none of them."""
    cluster = new_cluster(clusters.Options(authorization="AlwaysAllow"))

    async def body(shared: worlds.Shared) -> None:
        async with worlds.World(shared, "crowd", rng=random.Random(1)) as world:
            body = objects.pod("", labels={witnesses.LABEL: world.name}, scheduler=world.scheduler, cpu="400")
            del body["metadata"]["name"]
            raw = json.dumps({**body, "metadata": {**body["metadata"], "generateName": "big-"}}).encode()
            await shared.client.create_many(world.path("pods"), (raw for _ in range(CROWD)))
            for hard in (None, True):
                if hard is not None:
                    await world.stop(hard=hard)
                await world.start()
                await _decided(world, "each once", CROWD)
                await _fence(world)
                loop = world.program.wired.loop
                assert loop.decisions <= CROWD + SPARE

                before = loop.decisions
                for _ in range(TOUCHES):
                    await world.touch("nodes")
                await world.pods(5)
                await _fence(world)
                assert loop.decisions - before <= SPARE
                await _at_rest(world)
                assert loop.decisions - before <= SPARE

    fleet.on(cluster, body)
