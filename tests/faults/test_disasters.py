"""The API server dies, comes back, comes back with an older database: in every phase of a scheduler's life.

Simulated: nothing; processes are killed with SIGKILL, and etcd is given back a copy of its data.
"""

import asyncio
import concurrent.futures
import contextlib
import random
import threading
from collections.abc import Coroutine, Iterator
from typing import Any, TypeVar

import pytest

from graphsched.base.kube import client as clients
from tests.controlplane import cluster as clusters, fixtures
from tests.faults import calls, checkers, fleet, table, witness as witnesses, worlds

pytestmark = pytest.mark.cluster

Answer = TypeVar("Answer")
STEP_S = 100.0


class Aside:
    """An event loop in a thread of its own, as processes are started from the main thread and that takes seconds."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="world", daemon=True)
        self._thread.start()

    def start(self, work: Coroutine[Any, Any, Answer]) -> concurrent.futures.Future[Answer]:
        """Begin, and do not wait."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def do(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Do it and wait."""
        return self.start(work).result(timeout=STEP_S)

    def close(self) -> None:
        """End the loop."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=STEP_S)
        self._loop.close()


@contextlib.contextmanager
def living(cluster: clusters.Cluster, name: str) -> Iterator[tuple[Aside, worlds.World]]:
    """A world that goes on while the main thread kills and starts processes."""
    aside, ways_out = Aside(), contextlib.AsyncExitStack()
    try:
        shared = aside.do(ways_out.enter_async_context(fleet.ground(cluster)))
        world = worlds.World(shared, name, rng=random.Random(name), patience=clients.Patience(request_s=10.0))
        aside.do(ways_out.enter_async_context(world))
        yield aside, world
    finally:
        aside.do(ways_out.aclose())
        aside.close()


def all_bound(world: worlds.World, pods: dict[str, witnesses.Object]) -> bool:
    """Whether every pod that fits has a node."""
    return bool(pods) and all(checkers.node_of(pod) for pod in worlds.fits(pods, world.giants))


async def settled(world: worlds.World) -> None:
    """All is well again, and checked."""
    await world.until("all are bound", lambda pods: all_bound(world, pods), within_s=60.0)
    await checkers.require_true_graph(world, within_s=60.0)
    checkers.require_all_bound(world)
    checkers.require_bound_once(world)
    await checkers.require_room(world)
    checkers.require_bounded(world)
    end = asyncio.get_running_loop().time() + STEP_S
    while not world.program.ready:
        assert asyncio.get_running_loop().time() < end, world.program.wired.sights.health().report("readyz").text()
        await asyncio.sleep(0.1)


async def some_bound(world: worlds.World, more_than: int) -> None:
    """A burst has begun."""
    await world.proxy.until(
        lambda: sum(done.status == 201 for done in world.proxy.made(calls.BIND)) > more_than, what="the burst has begun"
    )


def bound_so_far(world: worlds.World) -> int:
    """Bindings that worked."""
    return sum(done.status == 201 for done in world.proxy.made(calls.BIND))


@pytest.mark.timeout(400)
def test_an_api_server_killed_in_any_phase_costs_nothing_but_time(new_cluster: fixtures.NewCluster) -> None:
    """SIGKILL before the scheduler starts, at rest, in a burst, and while it is replaced; then the server is back."""
    cluster = new_cluster(clusters.Options(authorization="AlwaysAllow"))
    with living(cluster, "killed") as (aside, world):
        aside.do(world.pods(3))
        for phase in table.Phase:
            if phase is table.Phase.RESTART:
                aside.do(world.pods(2))
                aside.do(world.stop(hard=True))
            if phase is table.Phase.BURST:
                before = bound_so_far(world)
                aside.do(world.pods(6))
                aside.do(some_bound(world, before))
            cluster.kill_apiserver()
            if phase in {table.Phase.START, table.Phase.RESTART}:
                aside.do(world.start())
            if phase is table.Phase.START:
                assert not world.program.ready
            cluster.start_apiserver()
            if phase is table.Phase.STEADY:
                aside.do(world.pods(2))
            aside.do(settled(world))


@pytest.mark.timeout(400)
def test_a_database_rolled_back_in_any_phase_is_taken_as_it_is(new_cluster: fixtures.NewCluster) -> None:
    """What was made since is gone, what was deleted is back, versions go backwards: the graph is what there is."""
    cluster = new_cluster(clusters.Options(authorization="AlwaysAllow"))
    with living(cluster, "rolled") as (aside, world):
        aside.do(world.pods(4))
        aside.do(world.start())
        aside.do(settled(world))
        for phase in (table.Phase.STEADY, table.Phase.BURST, table.Phase.RESTART):
            old = min(world.seen)
            saved = cluster.save(phase.name.lower())
            before = bound_so_far(world)
            aside.do(world.pods(3))
            aside.do(world.delete("pods", old))
            if phase is table.Phase.BURST:
                aside.do(some_bound(world, before))
            else:
                aside.do(settled(world))
            if phase is table.Phase.RESTART:
                aside.do(world.stop(hard=True))
            cluster.rollback(saved)
            # Another history: what was bound in the one that is gone may be bound anew.
            world.shared.witness.nodes.clear()
            world.proxy.record.clear()
            if phase is table.Phase.RESTART:
                aside.do(world.start())
            aside.do(world.until("the deleted pod is back", lambda pods, old=old: old in pods, within_s=60.0))
            aside.do(world.pods(1))
            aside.do(settled(world))
