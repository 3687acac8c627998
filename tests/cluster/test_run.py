"""`graphsched run` places real pods on a real API server, explains itself, and ends in good order."""

import pathlib
import signal
import sys

import pytest

from tests.cluster import scheduling
from tests.controlplane import cluster as clusters, objects, processes

pytestmark = pytest.mark.cluster


def test_pods_are_placed_and_run(cluster: clusters.Cluster, tmp_path: pathlib.Path) -> None:
    """Bound where they fit, started by the fake kubelets, told of by an event; those of others are left alone."""
    for name in ("n1", "n2"):
        cluster.call("POST", scheduling.NODES, objects.node(name, cpu="2", ready=False))
    with scheduling.scheduler(cluster, tmp_path / "log") as running:
        for number in range(4):
            cluster.call("POST", scheduling.PODS, scheduling.pod(f"p{number}", cpu="1"))
        cluster.call("POST", scheduling.PODS, objects.pod("theirs"))
        scheduling.wait(
            "all four run",
            lambda: (
                4
                == sum(
                    item.get("status", {}).get("phase") == "Running"
                    for item in scheduling.listed(cluster, scheduling.PODS)
                )
            ),
            watched=(running.process,),
        )
        scheduling.wait("the event is there", lambda: bool(scheduling.notes(cluster, "p0")))
        placed = scheduling.places(cluster)

        assert {"n1": 2000, "n2": 2000, "": 100} == dict(scheduling.held_milli(cluster))
        assert "" == placed["theirs"]
        assert [f"Successfully assigned default/p0 to {placed['p0']}"] == scheduling.notes(cluster, "p0")
        assert 4.0 == running.metric('graphsched_bind_total{outcome="bound"}')
        (last, *_) = scheduling.decoded(running.read("/debug/decisions?limit=1"))
        assert ("placed", placed[last["pod"].partition("/")[2]]) == (last["result"], last["node"])


def test_a_pod_without_a_node_says_why_and_is_placed_when_one_comes(
    cluster: clusters.Cluster, tmp_path: pathlib.Path
) -> None:
    """Condition, event and explanation name the reason; a new node ends the wait at once."""
    cluster.call("POST", scheduling.NODES, objects.node("small", cpu="1"))
    with scheduling.scheduler(cluster, tmp_path / "log") as running:
        cluster.call("POST", scheduling.PODS, scheduling.pod("big", cpu="2"))
        scheduling.wait("the condition is there", lambda: scheduling.condition(cluster, "big")[0] == "Unschedulable")
        reason = "0/1 nodes are available: 1 Insufficient cpu."
        assert ("Unschedulable", reason) == scheduling.condition(cluster, "big")
        scheduling.wait("the event is there", lambda: scheduling.notes(cluster, "big") == [reason])
        assert "pending" == scheduling.decoded(running.read("/debug/explain?pod=default/big"))["state"]

        cluster.call("POST", scheduling.NODES, objects.node("large", cpu="4"))
        scheduling.wait("it is bound", lambda: scheduling.places(cluster)["big"] == "large", timeout_s=10.0)
        assert "" == scheduling.condition(cluster, "big")[0]


def test_deleting_a_pod_makes_room_for_another(cluster: clusters.Cluster, tmp_path: pathlib.Path) -> None:
    """The event wakes whom it helps, within seconds."""
    cluster.call("POST", scheduling.NODES, objects.node("n1", cpu="1"))
    with scheduling.scheduler(cluster, tmp_path / "log"):
        cluster.call("POST", scheduling.PODS, scheduling.pod("first", cpu="1"))
        scheduling.wait("the first is bound", lambda: scheduling.places(cluster)["first"] == "n1")
        cluster.call("POST", scheduling.PODS, scheduling.pod("second", cpu="1"))
        scheduling.wait("the second waits", lambda: scheduling.condition(cluster, "second")[0] == "Unschedulable")

        cluster.call("DELETE", f"{scheduling.PODS}/first", {"gracePeriodSeconds": 0})

        scheduling.wait("the second is bound", lambda: scheduling.places(cluster)["second"] == "n1", timeout_s=15.0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_good_order(
    cluster: clusters.Cluster, tmp_path: pathlib.Path, number: signal.Signals
) -> None:
    """Exit code 0, also in the middle of work; the next start takes over where it stopped."""
    cluster.call("POST", scheduling.NODES, objects.node("n1", cpu="64", memory="128Gi", pods="500"))
    with scheduling.scheduler(cluster, tmp_path / "first") as running:
        for each in range(150):
            cluster.call("POST", scheduling.PODS, scheduling.pod(f"p{each}"))
        running.process.send_signal(number)

        assert 0 == running.process.wait(timeout_s=30.0)
        assert "Traceback" not in running.process.tail(1000)
    with scheduling.scheduler(cluster, tmp_path / "second"):
        scheduling.wait("all are bound", lambda: all(scheduling.places(cluster).values()))
        assert 15_000 == scheduling.held_milli(cluster)["n1"]


def test_a_port_that_is_taken_is_told_in_one_line(cluster: clusters.Cluster, tmp_path: pathlib.Path) -> None:
    """Exit code 2, with place and remedy."""
    with scheduling.scheduler(cluster, tmp_path / "log") as running:
        second = processes.Process(
            "second",
            [
                *(sys.executable, "-m", "graphsched", "run"),
                *("--kubeconfig", cluster.kubeconfig, "--port", str(running.port)),
            ],
            log=tmp_path / "second",
        )

        assert 2 == second.wait(timeout_s=30.0)
        assert (
            f"graphsched: 127.0.0.1:{running.port}: can not listen there: address already in use "
            "(choose another --port, or --port 0 for any)"
        ) == second.log.read_text().splitlines()[-1]
