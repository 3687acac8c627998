"""Beside a real kube-scheduler that fills the same nodes: what collides is recorded, and a pool of our own never does.

Simulated: the kubelets, which run whatever is bound to them, so that nobody mends an over-commit. Looked at: what the
API server has, and what `/debug/conflicts` tells of it.
"""

import asyncio
import collections
import contextlib
import itertools
import json
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster import scheduling
from tests.controlplane import api, cluster as clusters, objects

pytestmark = pytest.mark.cluster

NODES, NODE_MILLI, POD_MILLI = 12, 4000, 500
ROOM = NODES * NODE_MILLI // POD_MILLI
POOL = ("graphsched.io/pool", "graph-scheduler")


@contextlib.contextmanager
def kube_scheduler(cluster: clusters.Cluster) -> Iterator[None]:
    """A real kube-scheduler beside."""
    cluster.start_scheduler()
    try:
        yield
    finally:
        cluster.stop_scheduler()


async def fill(cluster: clusters.Cluster, *, ours: int, theirs: int, **spec: Any) -> None:
    """Create pods for both schedulers, taking turns."""
    mine = (scheduling.pod(f"ours-{number}", cpu=f"{POD_MILLI}m", **spec) for number in range(ours))
    others = (objects.pod(f"theirs-{number}", cpu=f"{POD_MILLI}m") for number in range(theirs))
    both = (pod for pair in itertools.zip_longest(mine, others) for pod in pair if pod is not None)
    async with api.Api(cluster) as client:
        await client.create_many(scheduling.PODS, both)


def placed(cluster: clusters.Cluster) -> int:
    """How many pods have a node."""
    return sum(bool(node) for node in scheduling.places(cluster).values())


def settled(cluster: clusters.Cluster, running: scheduling.Scheduler) -> bool:
    """Whether both schedulers have done what they can: every pod is placed, or was told that there is no room."""
    waiting = [name for name, node in scheduling.places(cluster).items() if not node]
    inflight = running.metric("graphsched_bind_inflight") + running.metric('scheduler_cache_size{type="assumed_pods"}')
    return not inflight and all(scheduling.condition(cluster, name)[0] == "Unschedulable" for name in waiting)


def told(running: scheduling.Scheduler) -> list[Any]:
    """The records of all conflicts."""
    records: list[Any] = json.loads(running.read("/debug/conflicts?limit=1000"))
    return records


def overcommitted(cluster: clusters.Cluster) -> set[str]:
    """Nodes that hold more than they have."""
    return {node for node, held in scheduling.held_milli(cluster).items() if node and held > NODE_MILLI}


@pytest.mark.timeout(180)
def test_in_shared_mode_every_conflict_is_a_recorded_race(cluster: clusters.Cluster, tmp_path: pathlib.Path) -> None:
    """Both want more than there is; whatever was over-committed or moved in the rush names both sides."""
    for number in range(NODES):
        cluster.call("POST", scheduling.NODES, objects.node(f"n{number}", cpu=f"{NODE_MILLI}m"))
    with kube_scheduler(cluster), scheduling.scheduler(cluster, tmp_path / "log") as running:
        asyncio.run(fill(cluster, ours=ROOM * 2 // 3, theirs=ROOM * 2 // 3))
        scheduling.wait("both are done", lambda: settled(cluster, running), timeout_s=60.0, watched=(running.process,))
        records = told(running)
        kinds = collections.Counter(record["kind"] for record in records)

        assert placed(cluster) >= 0.9 * ROOM
        assert any(node for name, node in scheduling.places(cluster).items() if name.startswith("ours"))
        assert overcommitted(cluster) <= {record["node"] for record in records if record["kind"] == "overcommitted"}
        for kind in ("moved", "bound", "changed", "overcommitted", "rejected"):
            assert kinds[kind] == running.metric(f'graphsched_conflicts_total{{kind="{kind}"}}')
        assert {"moved", "overcommitted"} >= kinds.keys()
        for record in records:
            assert record["by"], record
            assert all(record["decided"] < change["generation"] <= record["found"] for change in record["by"]), record
            assert all(change["node"] == record["node"] for change in record["by"]), record


@pytest.mark.timeout(180)
def test_in_exclusive_mode_nothing_is_over_committed(cluster: clusters.Cluster, tmp_path: pathlib.Path) -> None:
    """Half of the nodes are ours, closed by a taint: nobody races, and no pod of ours runs anywhere else."""
    key, value = POOL
    taint = {"key": key, "value": value, "effect": "NoSchedule"}
    for number in range(NODES):
        node = objects.node(f"n{number}", cpu=f"{NODE_MILLI}m", labels={key: value} if number % 2 else {})
        cluster.call("POST", scheduling.NODES, {**node, "spec": {"taints": [taint]}} if number % 2 else node)
    config = json.dumps({"mode": "exclusive"})
    with kube_scheduler(cluster), scheduling.scheduler(cluster, tmp_path / "log", config=config) as running:
        asyncio.run(fill(cluster, ours=ROOM * 2 // 3, theirs=ROOM * 2 // 3, tolerations=[taint]))
        scheduling.wait("both are done", lambda: settled(cluster, running), timeout_s=60.0, watched=(running.process,))
        places = scheduling.places(cluster)

        assert ROOM == placed(cluster)
        assert set() == overcommitted(cluster)
        assert {f"n{number}" for number in range(1, NODES, 2)} == {
            node for name, node in places.items() if node and name.startswith("ours")
        }
        assert [] == told(running)
        assert 0 == running.metric('graphsched_pool_leaks{kind="guests"}')
        assert 0 == running.metric('graphsched_pool_leaks{kind="open_nodes"}')


def test_a_kubelet_that_turns_a_pod_away_is_learned_from(cluster: clusters.Cluster, tmp_path: pathlib.Path) -> None:
    """The watch only says that the pod is gone; its reason is read, and the next pod goes elsewhere."""
    cluster.stop_kwok()
    try:
        for name, cpu in (("n1", "8"), ("n2", "4")):
            cluster.call("POST", scheduling.NODES, objects.node(name, cpu=cpu))
        with scheduling.scheduler(cluster, tmp_path / "log") as running:
            cluster.call("POST", scheduling.PODS, scheduling.pod("first"))
            scheduling.wait("it is bound", lambda: scheduling.places(cluster)["first"] == "n1")
            scheduling.wait("that is seen", lambda: running.metric('scheduler_cache_size{type="assumed_pods"}') == 0)
            first = cluster.call("GET", f"{scheduling.PODS}/first")
            first["status"].update(phase="Failed", reason="OutOfcpu", message="Node didn't have enough resource: cpu")
            cluster.call("PUT", f"{scheduling.PODS}/first/status", first)
            scheduling.wait("it is counted", lambda: running.metric('graphsched_rejections_total{reason="cpu"}') == 1)
            cluster.call("POST", scheduling.PODS, scheduling.pod("second"))
            scheduling.wait("the next is bound", lambda: bool(scheduling.places(cluster)["second"]))

            assert "n2" == scheduling.places(cluster)["second"]
            (avoided,) = json.loads(running.read("/debug/explain?pod=default/second"))["avoided"]
            assert ("n1", "OutOfcpu") == (avoided["node"], avoided["reason"])
            (race,) = told(running)
            assert ("rejected", "default/first", "n1") == (race["kind"], race["pod"], race["node"])
    finally:
        cluster.start_kwok()
