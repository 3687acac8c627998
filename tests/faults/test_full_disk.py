"""The disk that the log goes to is full, from the first line to the last."""

import pathlib
import sys

import pytest

from tests.cluster import scheduling
from tests.controlplane import cluster as clusters, objects, processes

pytestmark = pytest.mark.cluster

FULL = 'exec "$@" 2>/dev/full >/dev/full'


def _start(cluster: clusters.Cluster, tmp_path: pathlib.Path, number: int) -> scheduling.Scheduler:
    port = processes.free_ports(1)[0]
    command = [
        *(sys.executable, "-m", "graphsched", "run"),
        *("--kubeconfig", str(cluster.kubeconfig), "--port", str(port), "--log-level", "debug"),
    ]
    process = processes.Process("graphsched", ["sh", "-c", FULL, "sh", *command], log=tmp_path / f"log{number}")
    running = scheduling.Scheduler(process, port, "http")
    scheduling.wait("it is ready", running.ready, watched=(process,))
    return running


def test_a_full_disk_for_the_log_stops_nothing(cluster: clusters.Cluster, tmp_path: pathlib.Path) -> None:
    """At start-up, at rest, in a burst and after a restart pods are bound, and the lines that are lost are counted."""
    cluster.call("POST", scheduling.NODES, objects.node("n1", cpu="4"))
    cluster.call("POST", scheduling.PODS, scheduling.pod("first"))
    made = 1
    for number in range(2):
        running = _start(cluster, tmp_path, number)
        try:
            scheduling.wait("what waited is bound", lambda: all(scheduling.places(cluster).values()))
            for _ in range(5):
                made += 1
                cluster.call("POST", scheduling.PODS, scheduling.pod(f"p{made}"))
            scheduling.wait("the burst is bound", lambda: all(scheduling.places(cluster).values()))
            assert running.metric("graphsched_log_lines_lost_total") > 0
            assert running.ready()
        finally:
            code = running.process.stop()
        # Python itself can not flush its output at the end, and says so by this code.
        assert code in {0, 120}
    assert made * 100 == scheduling.held_milli(cluster)["n1"]
