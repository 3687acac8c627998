"""GraphPolicies on a real API server, with kopf live: rules hold, wake pods, and say how they stand."""

import contextlib
import datetime as dt
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.chart import rendering, trial as trials
from tests.cluster import scheduling
from tests.controlplane import cluster as clusters, crds, objects

pytestmark = pytest.mark.cluster

POLICIES = "/apis/graphsched.io/v1alpha1/graphpolicies"
ZONE = "topology.kubernetes.io/zone"
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


def policy(name: str, *rules: dict[str, Any], priority: int = 0) -> objects.Object:
    """A GraphPolicy."""
    spec = {"priority": priority, "rules": list(rules)}
    return {"apiVersion": "graphsched.io/v1alpha1", "kind": "GraphPolicy", "metadata": {"name": name}, "spec": spec}


def condition(cluster: clusters.Cluster, name: str, kind: str) -> tuple[str, str]:
    """Status and reason of a condition of a policy; empty where it has none."""
    for each in cluster.call("GET", f"{POLICIES}/{name}").get("status", {}).get("conditions", []):
        if each["type"] == kind:
            return each["status"], each["reason"]
    return "", ""


def node(name: str, zone: str) -> objects.Object:
    """A node in a zone."""
    made = objects.node(name, cpu="4")
    made["metadata"].setdefault("labels", {})[ZONE] = zone
    return made


@contextlib.contextmanager
def with_rights(cluster: clusters.Cluster, tmp_path: pathlib.Path) -> Iterator[scheduling.Scheduler]:
    """A scheduler under an account that has the chart's rights and no others."""
    name, config = "ruled", {"mode": "shared", "http": {"auth": "loopback"}}
    with trials.roles(cluster, name, rendering.rules("cluster", config)):
        token = cluster.service_account_token(trials.NAMESPACE, name)
        kubeconfig = cluster.kubeconfig_with_token(name, token)
        with scheduling.scheduler(cluster, tmp_path / "log", kubeconfig=kubeconfig) as running:
            yield running


def test_rules_hold_wake_pods_and_say_how_they_stand(cluster: clusters.Cluster, tmp_path: pathlib.Path) -> None:
    """A denial keeps a pod waiting until it is lifted; a required domain is kept; a broken rule stops nobody."""
    for name, zone in (("n1", "a"), ("n2", "b")):
        cluster.call("POST", scheduling.NODES, node(name, zone))
    with crds.installed(cluster, crds.GRAPH_POLICIES), with_rights(cluster, tmp_path) as running:
        everybody = {"match": {"pods": {"matchLabels": {"denied": "yes"}}}}
        cluster.call("POST", POLICIES, policy("stop", {"name": "all", "action": "deny", **everybody}, priority=100))
        scheduling.wait("the rule is in force", lambda: condition(cluster, "stop", "Ready")[0] == "True")
        waiting = scheduling.pod("denied")
        waiting["metadata"]["labels"] = {"denied": "yes"}
        cluster.call("POST", scheduling.PODS, waiting)
        reason = "0/2 nodes are available: 2 node(s) were denied by policy stop rule all."
        scheduling.wait("it waits", lambda: scheduling.condition(cluster, "denied") == ("Unschedulable", reason))
        told = scheduling.decoded(running.read("/debug/explain?pod=default/denied"))
        assert "denied by policy stop rule all (priority 100)" in told["headline"]
        assert 1.0 <= running.metric('graphsched_policy_refusals_total{policy="stop"}')
        cluster.call("DELETE", f"{POLICIES}/stop")
        scheduling.wait(
            "it is bound",
            lambda: bool(scheduling.places(cluster)["denied"]),
            timeout_s=10.0,
            watched=(running.process,),
        )

        near = {"to": {"node": "n2"}, "sameDomain": ZONE}
        broken = {"name": "typo", "action": "deny", "match": {"when": {"node": "nod.metadata.name == 'n1'"}}}
        cluster.call("POST", POLICIES, policy("near", {"name": "by-n2", "action": "require", "require": near}, broken))
        scheduling.wait("it says so", lambda: condition(cluster, "near", "Broken") == ("True", "RulesBroken"))
        cluster.call("POST", scheduling.PODS, scheduling.pod("close"))
        scheduling.wait("it is bound in the zone", lambda: scheduling.places(cluster)["close"] == "n2")
        found = cluster.call("GET", f"{POLICIES}/near")
        assert ["Ready", "Broken"] == [each["state"] for each in found["status"]["rules"]]
        assert {"rules": 2, "broken": 1} == found["status"]["counts"]
        assert found["metadata"]["generation"] == found["status"]["observedGeneration"]
        assert "annotations" not in found["metadata"]
        assert "finalizers" not in found["metadata"]
        scheduling.wait("there is an event", lambda: bool(scheduling.notes(cluster, "near")))
        (note,) = scheduling.notes(cluster, "near")
        assert note.startswith("rule typo: left out: when.node: 1:")
        assert "undeclared reference to 'nod" in note
        assert "forbidden" not in running.process.tail(1000)


def test_a_standby_writes_no_status_and_a_definition_may_come_later(
    cluster: clusters.Cluster, tmp_path: pathlib.Path
) -> None:
    """Started without the definition, it finds it; it knows the rules and keeps silent until it leads."""
    config = {"leaderElection": {"enabled": True, "namespace": "default", "leaseName": "held", "leaseSeconds": 4}}
    config["leaderElection"] |= {"renewSeconds": 3, "retrySeconds": 1}
    now = dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": "other", "leaseDurationSeconds": 3600, "acquireTime": now, "renewTime": now}
    cluster.call("POST", LEASES, {"metadata": {"name": "held"}, "spec": spec})
    cluster.call("POST", scheduling.NODES, node("n1", "a"))
    with crds.installed(cluster, crds.GRAPH_POLICIES):
        cluster.call(
            "POST", POLICIES, policy("one", {"name": "typo", "action": "deny", "match": {"when": {"pod": "1"}}})
        )
        with scheduling.scheduler(cluster, tmp_path / "log", config=yaml.safe_dump(config), elect=True) as running:
            known = 'graphsched_policy_rules{state="broken"}'
            scheduling.wait("it knows the rule", lambda: running.metric(known) == 1.0, watched=(running.process,))
            assert ("", "") == condition(cluster, "one", "Broken")
            assert [] == scheduling.notes(cluster, "one")
            lease = cluster.call("GET", f"{LEASES}/held")
            lease["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1}
            cluster.call("PUT", f"{LEASES}/held", lease)
            scheduling.wait(
                "it leads and writes",
                lambda: condition(cluster, "one", "Broken")[0] == "True",
                watched=(running.process,),
            )
