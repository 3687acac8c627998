"""Pods go near their partners over the links of NetworkLinks, away from one that decays, and say by which way."""

import datetime as dt
import pathlib
from typing import Any

import pytest

from tests.cluster import scheduling
from tests.controlplane import cluster as clusters, crds, objects

pytestmark = pytest.mark.cluster

GROUP = "appgroup.diktyo.x-k8s.io"
HALF_LIFE_S = 12.0
# A pod that is tried at each step of the recovery would wait ten seconds after the last one.
CONFIG = f"{{linkHealth: {{reportedHalfLifeSeconds: {HALF_LIFE_S}}}, queue: {{maxBackoffSeconds: 2}}}}"
LINKS = "/apis/graphsched.io/v1alpha1/networklinks"


def link(cluster: clusters.Cluster, start: str, end: str, latency_ms: float) -> None:
    """Two nodes are joined."""
    body = {
        "apiVersion": "graphsched.io/v1alpha1",
        "kind": "NetworkLink",
        "metadata": {"name": f"{start}-{end}"},
        "spec": {"endpoints": [{"node": start}, {"node": end}], "latencyMs": latency_ms},
    }
    cluster.call("POST", LINKS, body)


def measured(cluster: clusters.Cluster, name: str, health: float) -> None:
    """An agent has seen how well the link does."""
    found = cluster.call("GET", f"{LINKS}/{name}")
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    found["status"] = {"health": health, "observedAt": now}
    cluster.call("PUT", f"{LINKS}/{name}/status", found)


def mesh_pod(name: str, peers: str) -> objects.Object:
    """A pod of ours that exchanges data with others."""
    found = scheduling.pod(name)
    found["metadata"]["annotations"] = {"graphsched.io/peers": peers}
    return found


def test_a_mesh_keeps_together_over_links_in_health(cluster: clusters.Cluster, tmp_path: pathlib.Path) -> None:
    """Bound near its partner; a decayed link is avoided, and refuses where a limit says so; it wakes the pod again."""
    for name, cpu in (("n1", "100m"), ("n2", "4"), ("n3", "4")):
        cluster.call("POST", scheduling.NODES, objects.node(name, cpu=cpu))
    with (
        crds.installed(cluster, crds.NETWORK_LINKS),
        scheduling.scheduler(cluster, tmp_path / "log", config=CONFIG) as running,
    ):
        link(cluster, "n1", "n2", 1.0)
        link(cluster, "n1", "n3", 2.0)
        cluster.call("POST", scheduling.PODS, objects.pod("store", labels={"app": "store"}, spec={"nodeName": "n1"}))

        def explained(name: str) -> Any:
            return scheduling.decoded(running.read(f"/debug/explain?pod=default/{name}"))

        cluster.call("POST", scheduling.PODS, mesh_pod("web-1", "app=store"))
        scheduling.wait("it is near the store", lambda: scheduling.places(cluster)["web-1"] == "n2")
        way = explained("web-1")["ways"][0]
        assert ("n2 ─1 ms─ n1", 1) == (way["path"], way["hops"])

        measured(cluster, "n1-n2", 0.1)
        scheduling.wait("the decay is known", lambda: explained("web-1")["ways"][0]["health"] < 1)
        way = explained("web-1")["ways"][0]
        assert 0 <= way["age_s"] < 60
        # What was reported, and no more of what is missing than time has restored since.
        assert 0.1 <= way["health"] <= 1 - 0.9 * 2 ** (-way["age_s"] / HALF_LIFE_S)
        cluster.call("POST", scheduling.PODS, mesh_pod("web-2", "app=store"))
        scheduling.wait("it avoids the link", lambda: scheduling.places(cluster)["web-2"] == "n3")
        assert "n3 ─2 ms─ n1" == explained("web-2")["ways"][0]["path"]

        cluster.call("POST", scheduling.PODS, mesh_pod("web-3", "app=store;maxLatencyMs=1.5"))
        scheduling.wait("it is refused", lambda: scheduling.condition(cluster, "web-3")[0] == "Unschedulable")
        assert "2 node(s) were more than 1.5 ms from app=store in default" in scheduling.condition(cluster, "web-3")[1]

        measured(cluster, "n1-n2", 1.0)
        # A better measurement does no more damage; time restores the rest.
        scheduling.wait("it wakes", lambda: scheduling.places(cluster)["web-3"] == "n2")


def workload(name: str, *calls: str) -> objects.Object:
    """A workload of an AppGroup, and whom it calls."""

    def named(each: str) -> objects.Object:
        place = {"kind": "Deployment", "apiVersion": "apps/v1", "namespace": "default"}
        return {"workload": {**place, "name": each, "selector": each}}

    return {**named(name), "dependencies": [named(each) for each in calls]}


def member(name: str, of: str, **spec: Any) -> objects.Object:
    """A pod of a workload of the group."""
    found = objects.pod(name, spec=spec) if spec else scheduling.pod(name)
    found["metadata"]["labels"] = {GROUP: "shop", f"{GROUP}.workload": of}
    return found


def test_a_mesh_group_keeps_together(cluster: clusters.Cluster, tmp_path: pathlib.Path) -> None:
    """Each workload of an AppGroup is bound near those it calls and those that call it, and `explain` shows the way."""
    for name in ("n1", "n2", "n3", "n4"):
        cluster.call("POST", scheduling.NODES, objects.node(name, cpu="150m"))
    with (
        crds.installed(cluster, crds.NETWORK_LINKS, crds.APP_GROUPS),
        scheduling.scheduler(cluster, tmp_path / "log", config=CONFIG) as running,
    ):
        for start, end, latency_ms in (("n4", "n3", 1.0), ("n3", "n2", 1.0), ("n4", "n1", 5.0)):
            link(cluster, start, end, latency_ms)
        calls = {"front": ("cart",), "cart": ("store",), "store": ()}
        group = {"spec": {"workloads": [workload(name, *called) for name, called in calls.items()]}}
        crds.make(cluster, crds.APP_GROUPS, "shop", group)
        cluster.call("POST", scheduling.PODS, member("store-1", "store", nodeName="n4"))
        known, joined = 'graphsched_graph_vertices{kind="group"}', 'graphsched_graph_edges{kind="link"}'
        scheduling.wait("all is known", lambda: (running.metric(known), running.metric(joined)) == (1.0, 6.0))
        for name, node in (("cart", "n3"), ("front", "n2")):
            cluster.call("POST", scheduling.PODS, member(f"{name}-1", name))
            scheduling.wait(f"{name} is bound", lambda name=name: bool(scheduling.places(cluster)[f"{name}-1"]))
            assert node == scheduling.places(cluster)[f"{name}-1"]
        way = scheduling.decoded(running.read("/debug/explain?pod=default/front-1"))["ways"][0]

        assert ("workload cart of shop", "n2 ─1 ms─ n3", 1.0) == (way["title"], way["path"], way["latency_ms"])
