"""
The law of every source: whatever happened on the way, in the end the graph holds what the cluster holds.

Simulated: random changes to pods and random failures, in virtual time. Checked: every patch by the store's rules for
streams, and at the end every vertex against the server's objects.
"""

import asyncio
import random
from collections.abc import Callable

import hypothesis
from hypothesis import strategies

from tests.controlplane import objects
from tests.fakes import apiserver, mirror, storage, virtual

PODS = apiserver.PODS
NAMES = [f"p{index}" for index in range(6)]


def change(server: apiserver.FakeApiServer, rng: random.Random) -> None:
    """Make, mark, bind, end or delete one pod."""
    key = storage.Key(PODS, "default", rng.choice(NAMES))
    stored = server.storage
    if not any(item["metadata"]["name"] == key.name for item in stored.items(PODS)):
        server.create(PODS, objects.pod(key.name))
        return
    steps: list[Callable[[], object]] = [
        lambda: stored.delete(key, {"gracePeriodSeconds": 0}),
        lambda: stored.patch(key, {"metadata": {"labels": {"n": str(stored.version)}}}, strategic=False),
        lambda: stored.patch(key, {"spec": {"nodeName": f"n{stored.version}"}}, strategic=False),
        lambda: stored.patch(key, {"status": {"phase": "Failed"}}, strategic=False),
    ]
    rng.choice(steps)()


async def disturb(server: apiserver.FakeApiServer, rng: random.Random) -> None:
    """Let something go wrong."""
    open_watches = list(server.watches)
    match rng.randrange(8):
        case 0:
            server.storage.compact()
        case 1:
            await server.stop()
            await asyncio.sleep(rng.uniform(0, 30))
            change(server, rng)
            await server.start()
        case 2:
            server.faults.refuse("GET", PODS, rng.choice([410, 429, 500, 503, 504]), times=rng.randrange(1, 5))
        case 3:
            server.faults.drop("GET", PODS)
        case 4:
            server.faults.hang("GET", PODS)
        case _:
            for watch in open_watches:
                watch.live = rng.random() < 0.5
                rng.choice([watch.cut, watch.end])()


def summary(items: list[storage.Object]) -> dict[str, tuple[str, str, object]]:
    """Tell what matters of the pods that have not ended."""
    return {
        item["metadata"]["name"]: (
            item["metadata"]["uid"],
            item["spec"].get("nodeName", ""),
            tuple(item["metadata"].get("labels", {}).items()),
        )
        for item in items
        if item["status"]["phase"] != "Failed"
    }


@hypothesis.given(seed=strategies.integers(0, 2**32), rows_max=strategies.sampled_from([1, 3, 20_000]))
@hypothesis.settings(max_examples=25)
def test_in_the_end_the_graph_holds_what_the_cluster_holds(seed: int, rows_max: int) -> None:
    """Changes and failures in any order; then calm, and one more change that proves the watch is alive."""

    @virtual.timed
    async def run() -> None:
        rng = random.Random(seed)
        async with (
            apiserver.FakeApiServer() as server,
            server.client() as client,
            mirror.following_pods(client, seed=seed, rows_max=rows_max) as pods,
        ):
            for _ in range(rng.randrange(5, 40)):
                change(server, rng)
                if rng.random() < 0.3:
                    await disturb(server, rng)
                if rng.random() < 0.5:
                    await asyncio.sleep(rng.uniform(0, 2))
                if rng.random() < 0.5:
                    pods.mirror.take()
            server.faults.clear()
            server.create(PODS, objects.pod("last"))
            async with asyncio.timeout(1000):
                while "default/last" not in pods.mirror.names:
                    await pods.inbox.ready.wait()
                    pods.mirror.take()
            await asyncio.sleep(400)
            pods.mirror.take()

            found = {
                vertex.name: (vertex.uid, vertex.node, tuple(vertex.labels))
                for vertex in map(pods.mirror.pod, sorted(pods.mirror.names))
            }
            assert summary(server.storage.items(PODS)) == found

    run()
