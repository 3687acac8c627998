"""Health of links on a real control plane: an agent's status lowers it, the node is avoided, and time restores it."""

import datetime as dt
import pathlib

import pytest

from tests.cluster import scheduling
from tests.controlplane import cluster as clusters, crds, objects

pytestmark = pytest.mark.cluster

LINKS = "/apis/graphsched.io/v1alpha1/networklinks"
CONFIG = "linkHealth: {lossHalfLifeSeconds: 20}"
WORST = "graphsched_link_health_worst"


def place(cluster: clusters.Cluster, running: scheduling.Scheduler, name: str) -> str:
    """Where a new pod of ours goes."""
    cluster.call("POST", scheduling.PODS, scheduling.pod(name))
    watched = (running.process,)
    scheduling.wait(f"{name} is placed", lambda: bool(scheduling.places(cluster).get(name)), watched=watched)
    return scheduling.places(cluster)[name]


@pytest.mark.timeout(120)
def test_damage_told_by_status_is_avoided_and_heals(cluster: clusters.Cluster, tmp_path: pathlib.Path) -> None:
    """The emptier node loses its only link; some seconds later it is chosen again."""
    for name, cpu in (("n1", "8"), ("n2", "4")):
        cluster.call("POST", scheduling.NODES, objects.node(name, cpu=cpu))
    link = {
        "apiVersion": "graphsched.io/v1alpha1",
        "kind": "NetworkLink",
        "metadata": {"name": "n1-leaf"},
        "spec": {"endpoints": [{"node": "n1"}, {"place": "leaf"}], "latencyMs": 0.2},
    }
    with crds.installed(cluster, crds.NETWORK_LINKS):
        cluster.call("POST", LINKS, link)
        with scheduling.scheduler(cluster, tmp_path / "log", config=CONFIG) as running:
            watched = (running.process,)
            scheduling.wait(
                "both directions are known",
                lambda: running.metric('graphsched_links{health="well"}') == 2,
                watched=watched,
            )
            assert place(cluster, running, "before") == "n1"

            known = cluster.call("GET", f"{LINKS}/n1-leaf")
            known["status"] = {"lossPercent": 100, "observedAt": dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
            cluster.call("PUT", f"{LINKS}/n1-leaf/status", known)
            scheduling.wait("the damage is seen", lambda: running.metric(WORST) < 0.5, watched=watched)
            assert place(cluster, running, "meanwhile") == "n2"

            scheduling.wait("time has restored it", lambda: running.metric(WORST) > 0.4, watched=watched)
            assert place(cluster, running, "after") == "n1"
