"""The API server is killed and comes back while hundreds of pods are on their way: nothing is lost, nothing twice.

Simulated: nothing; a real API server dies by SIGKILL, twice. Looked at: the API server's own record, and a watch that
saw every version of every pod.
"""

import asyncio
import contextlib
import pathlib
import threading
from collections import defaultdict
from concurrent import futures

import aiohttp
import pytest

from tests.cluster import scheduling
from tests.controlplane import api, cluster as clusters, fixtures, objects, processes

pytestmark = pytest.mark.cluster

NODES, PODS, CRASHES = 500, 3000, 2
DEAD_S = 4.0
NODE_MILLI = 1000
POD_MILLI = 100


class Witness:
    """Sees every binding that happens, across restarts."""

    def __init__(self) -> None:
        self.seen: dict[str, set[str]] = defaultdict(set)

    async def follow(self, client: api.Api) -> None:
        """Watch until cancelled; a watch that breaks is begun again from a fresh list."""
        while True:
            with contextlib.suppress(aiohttp.ClientError, OSError, RuntimeError):
                items, since = await client.list(scheduling.PODS)
                for item in items:
                    self.note(item)
                async for event in client.watch(scheduling.PODS, since=since):
                    self.note(event["object"])
            await asyncio.sleep(0.2)

    def note(self, item: objects.Object) -> None:
        """Remember where a pod was seen."""
        node = item.get("spec", {}).get("nodeName")
        if node:
            self.seen[item["metadata"]["uid"]].add(node)


async def _create(client: api.Api, first: int, count: int) -> None:
    """Create pods; a call whose answer was lost is repeated, and one that had worked says 409."""
    waiting = iter(range(first, first + count))

    async def work() -> None:
        for number in waiting:
            while True:
                try:
                    await client.create(scheduling.PODS, scheduling.pod(f"p{number}", cpu=f"{POD_MILLI}m"))
                except clusters.RequestError as error:
                    if error.status != 409:
                        await asyncio.sleep(0.2)
                        continue
                except (aiohttp.ClientError, OSError):
                    await asyncio.sleep(0.2)
                    continue
                break

    async with asyncio.TaskGroup() as group:
        for _ in range(24):
            group.create_task(work())


async def _load(cluster: clusters.Cluster, witness: Witness, over: threading.Event) -> None:
    """Create all pods, and watch what becomes of them until it is over."""
    async with api.Api(cluster) as client:
        watching = asyncio.create_task(witness.follow(client))
        await _create(client, 0, PODS)
        while not over.is_set():  # noqa: ASYNC110  it is set in another thread
            await asyncio.sleep(0.1)
        watching.cancel()


def _crash_once(cluster: clusters.Cluster, running: scheduling.Scheduler, bound: int) -> None:
    """Kill the API server as soon as so many are bound, leave it dead for some seconds, and start it again."""
    scheduling.wait(
        f"{bound} are bound",
        lambda: running.metric('graphsched_bind_total{outcome="bound"}') >= bound,
        timeout_s=180.0,
        watched=(running.process,),
    )
    cluster.kill_apiserver()
    with contextlib.suppress(processes.DeadlineError):
        scheduling.wait("the dead time is over", lambda: False, timeout_s=DEAD_S, watched=(running.process,))
    cluster.start_apiserver()


@pytest.mark.timeout(600)
def test_two_crashes_of_the_api_server_cost_nothing_but_time(
    new_cluster: fixtures.NewCluster, tmp_path: pathlib.Path
) -> None:
    """500 nodes, 3,000 pods, killed with -9 and restarted twice: all bound once, none over-committed, one process."""
    cluster, witness, over = new_cluster(clusters.Options()), Witness(), threading.Event()
    for number in range(NODES):
        cluster.call("POST", scheduling.NODES, objects.node(f"n{number}", cpu=f"{NODE_MILLI}m", pods="10"))
    with (
        scheduling.scheduler(cluster, tmp_path / "log") as running,
        futures.ThreadPoolExecutor(max_workers=1) as threads,
    ):
        # Processes are started from the main thread, so that the load has another.
        load = threads.submit(asyncio.run, _load(cluster, witness, over))
        try:
            for crash in range(1, CRASHES + 1):
                _crash_once(cluster, running, crash * PODS // (CRASHES + 1))
            scheduling.wait(
                "all are bound",
                lambda: len(placed := scheduling.places(cluster)) == PODS and all(placed.values()),
                timeout_s=180.0,
                watched=(running.process,),
            )
        finally:
            over.set()
        load.result(timeout=60.0)
        placed = scheduling.places(cluster)
        held = scheduling.held_milli(cluster)

        assert PODS == len(placed)
        assert max(held.values()) <= NODE_MILLI
        assert all(len(nodes) == 1 for nodes in witness.seen.values())
        scheduling.wait(
            "nothing is assumed any more", lambda: running.metric('scheduler_cache_size{type="assumed_pods"}') == 0
        )
        scheduling.wait(
            "nothing waits any more",
            lambda: all(
                running.metric(f'scheduler_pending_pods{{queue="{queue}"}}') == 0
                for queue in ("active", "backoff", "unschedulable")
            ),
        )
        running.process.require_alive()
        assert "Traceback" not in running.process.tail(10_000)
        assert 0 == running.process.stop(timeout_s=30.0)
