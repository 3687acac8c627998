"""Rules that require a way, on a real API server: each sends its pod to the right node and tells of path and age."""

import datetime as dt
import pathlib
from typing import Any

import pytest

from tests.cluster import scheduling
from tests.cluster.test_policies import POLICIES, condition, policy
from tests.controlplane import cluster as clusters, crds, objects

pytestmark = pytest.mark.cluster

LINKS = "/apis/graphsched.io/v1alpha1/networklinks"
# Nothing recovers while the test looks.
CONFIG = "{linkHealth: {reportedHalfLifeSeconds: 3600}, queue: {maxBackoffSeconds: 2}}"
RULES = {
    "hops": {"to": {"node": "n4"}, "maxHops": 1},
    "latency": {"to": {"node": "n1"}, "maxLatencyMs": 2},
    "bandwidth": {"to": {"node": "n4"}, "minBandwidthMbps": 500},
}


def link(cluster: clusters.Cluster, start: str, end: str, latency_ms: float, mbps: float) -> None:
    """Two nodes are joined."""
    spec = {"endpoints": [{"node": start}, {"node": end}], "latencyMs": latency_ms, "bandwidthMbps": mbps}
    crds.make(cluster, crds.NETWORK_LINKS, f"{start}-{end}", {"spec": spec})


def measured(cluster: clusters.Cluster, name: str, health: float) -> None:
    """An agent has seen how well the link does."""
    found = cluster.call("GET", f"{LINKS}/{name}")
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    found["status"] = {"health": health, "observedAt": now}
    cluster.call("PUT", f"{LINKS}/{name}/status", found)


def ruled(app: str, name: str, *, on: str = "") -> objects.Object:
    """A pod that one of the rules is about, on any node or on this one."""
    made = scheduling.pod(name, nodeSelector={"kubernetes.io/hostname": on} if on else {})
    made["metadata"]["labels"] = {"app": app}
    return made


def test_a_rule_by_hops_latency_or_bandwidth_chooses_the_node_and_tells_why(
    cluster: clusters.Cluster, tmp_path: pathlib.Path
) -> None:
    """The right node is taken and the wrong one refused; with path, rule and age; a decayed link is no way any more."""
    for name, cpu in (("n1", "50m"), ("n2", "4"), ("n3", "4"), ("n4", "50m")):
        cluster.call("POST", scheduling.NODES, objects.node(name, cpu=cpu))
    with (
        crds.installed(cluster, crds.NETWORK_LINKS, crds.GRAPH_POLICIES),
        scheduling.scheduler(cluster, tmp_path / "log", config=CONFIG) as running,
    ):
        # A fast way from n2 to n1, and a wide one from n3 to n4; between these two pairs neither.
        for start, end, latency_ms, mbps in (
            ("n2", "n1", 1.0, 900.0),
            ("n3", "n4", 1.5, 900.0),
            ("n1", "n3", 5.0, 9.0),
        ):
            link(cluster, start, end, latency_ms, mbps)
        for app, require in RULES.items():
            rule = {
                "name": app,
                "action": "require",
                "require": require,
                "match": {"pods": {"matchLabels": {"app": app}}},
            }
            cluster.call("POST", POLICIES, policy(f"by-{app}", rule, priority=7))
        for name in ("n2-n1", "n3-n4"):
            measured(cluster, name, 0.9)
        for app in RULES:
            scheduling.wait(
                "the rule is in force", lambda app=app: condition(cluster, f"by-{app}", "Ready")[0] == "True"
            )

        def explained(name: str) -> Any:
            return scheduling.decoded(running.read(f"/debug/explain?pod=default/{name}"))

        for app, right, wrong, path, why in (
            ("hops", "n3", "n2", "n3 ─1.5 ms─ n4", "more than 1 hops to node n4"),
            ("latency", "n2", "n3", "n2 ─1 ms─ n1", "more than 2 ms to node n1"),
            ("bandwidth", "n3", "n2", "n3 ─1.5 ms─ n4", "less than 500 Mbps to node n4"),
        ):
            cluster.call("POST", scheduling.PODS, ruled(app, app))
            scheduling.wait("it is bound", lambda app=app, right=right: scheduling.places(cluster)[app] == right)
            (met,) = explained(app)["met"]
            assert (f"by-{app}", app, 7, path, path) == (
                *(met["policy"], met["rule"], met["priority"]),
                *(met["way"]["path"], met["slowest"]),
            )
            assert 0 <= met["age_s"] < 60

            cluster.call("POST", scheduling.PODS, ruled(app, f"{app}-wrong", on=wrong))
            text = f"node(s) didn't meet policy by-{app} rule {app}: {why}"
            scheduling.wait(
                "it is refused", lambda app=app, text=text: text in scheduling.condition(cluster, f"{app}-wrong")[1]
            )
            told = explained(f"{app}-wrong")
            assert f"not meeting policy by-{app} rule {app} (priority 7): {why}" in str(told["groups"])

        measured(cluster, "n2-n1", 0.1)
        scheduling.wait("the decay is known", lambda: not explained("latency").get("met"))
        cluster.call("POST", scheduling.PODS, ruled("latency", "late"))
        text = "node(s) didn't meet policy by-latency rule latency: more than 2 ms to node n1"
        scheduling.wait("it is refused", lambda: text in scheduling.condition(cluster, "late")[1])
        assert (
            "n2, which would not be chosen now: it is not meeting policy by-latency" in explained("latency")["headline"]
        )
