"""What an operator grants of nodes, on a real control plane: annotations hold our pods back, a watermark is told of."""

import pathlib

import pytest

from tests.cluster import scheduling
from tests.controlplane import cluster as clusters, objects

pytestmark = pytest.mark.cluster

CONFIG = "watermarks: {cpu: {highPercent: 75, lowPercent: 50}}"
UP = 'graphsched_watermark_crossings_total{direction="up",resource="cpu"}'
ABOVE = 'graphsched_watermark_nodes{resource="cpu"}'
REFUSED = "0/1 nodes are available: 1 Insufficient cpu under the operator's ceiling."


def told(cluster: clusters.Cluster) -> list[tuple[str, str]]:
    """Reason and note of the events about the node."""
    events = scheduling.listed(cluster, scheduling.EVENTS)
    return [(each["reason"], each["note"]) for each in events if each["regarding"]["kind"] == "Node"]


@pytest.mark.timeout(120)
def test_a_ceiling_holds_pods_back_and_a_watermark_is_told_of(
    cluster: clusters.Cluster, tmp_path: pathlib.Path
) -> None:
    """Two of four CPUs are granted: the third pod waits with the reason, until the operator grants more."""
    node = objects.node("n1", cpu="4")
    node["metadata"].setdefault("annotations", {})["graphsched.io/cpu-quota"] = "2"
    cluster.call("POST", scheduling.NODES, node)
    with scheduling.scheduler(cluster, tmp_path / "log", config=CONFIG) as running:
        for name in ("a", "b", "c"):
            cluster.call("POST", scheduling.PODS, scheduling.pod(name, cpu="1"))
        watched = (running.process,)
        scheduling.wait(
            "one pod is refused for the ceiling",
            lambda: any(REFUSED in scheduling.condition(cluster, name)[1] for name in ("a", "b", "c")),
            watched=watched,
        )
        assert sorted(bool(node) for node in scheduling.places(cluster).values()) == [False, True, True]
        scheduling.wait("the node has an event", lambda: bool(told(cluster)), watched=watched)
        assert running.metric(UP) == running.metric(ABOVE) == 1
        assert told(cluster) == [("AboveWatermark", "cpu: pods request 2 of 2 (100%), the watermark is at 75%")]

        granted = cluster.call("GET", f"{scheduling.NODES}/n1")
        granted["metadata"]["annotations"]["graphsched.io/cpu-quota"] = "3"
        cluster.call("PUT", f"{scheduling.NODES}/n1", granted)
        scheduling.wait("all are placed", lambda: all(scheduling.places(cluster).values()), watched=watched)
        assert len(told(cluster)) == 1
