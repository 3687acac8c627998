"""The descheduler itself, beside graphsched: what it evicts comes back as new pods, and graphsched places them anew.

Real: every process. Left out: containers; kwok answers for the kubelets.
"""

import json
import os
import pathlib
from typing import Any

import pytest

from tests.cluster import scheduling
from tests.controlplane import binaries, cluster as clusters, fixtures, objects, processes

pytestmark = [pytest.mark.neighbours, pytest.mark.timeout(300)]

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
REPLICAS = 6


def _policy(*plugins: str, kind: str = "deschedule", args: dict[str, Any] | None = None) -> dict[str, Any]:
    configured = [{"name": "DefaultEvictor", "args": {"nodeFit": True}}]
    configured += [{"name": name, "args": args or {}} for name in plugins]
    profile = {"name": "tests", "pluginConfig": configured, "plugins": {kind: {"enabled": list(plugins)}}}
    return {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy", "profiles": [profile]}


def _deschedule(cluster: clusters.Cluster, policy: dict[str, Any], folder: pathlib.Path) -> None:
    """Run the descheduler once."""
    path = folder / "policy.yaml"
    path.write_text(json.dumps(policy))
    command: list[str | os.PathLike[str]] = [
        binaries.ensure_one(binaries.DESCHEDULER) / "descheduler",
        *(f"--kubeconfig={cluster.kubeconfig}", f"--policy-config-file={path}"),
        *("--descheduling-interval=0", "--disable-metrics=true", "--secure-port=0", "--v=3"),
    ]
    process = processes.Process("descheduler", command, log=folder / "descheduler.log")
    processes.wait_until(lambda: not process.is_alive(), what="the descheduler is done", timeout_s=60.0)
    assert 0 == process.stop(), process.tail()


def _deployment(**spec: Any) -> objects.Object:
    labels = {"app": "web"}
    pod = scheduling.pod("web", cpu="100m", **spec)
    template = {"metadata": {"labels": labels}, "spec": {**pod["spec"], "terminationGracePeriodSeconds": 30}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": REPLICAS, "selector": {"matchLabels": labels}, "template": template},
    }


def _running(cluster: clusters.Cluster) -> dict[str, str]:
    """Pod → node, of those that run and are not being deleted."""
    return {
        item["metadata"]["name"]: item["spec"]["nodeName"]
        for item in scheduling.listed(cluster, scheduling.PODS)
        if item.get("status", {}).get("phase") == "Running" and "deletionTimestamp" not in item["metadata"]
    }


@pytest.fixture
def cluster_with_controllers(new_cluster: fixtures.NewCluster) -> clusters.Cluster:
    """Two nodes, and the controllers that make pods anew."""
    cluster = new_cluster(clusters.Options(kwok=True, controller_manager=True))
    for name in ("n1", "n2"):
        node = objects.node(name, labels={"topology.kubernetes.io/zone": f"zone-{name}"}, ready=False)
        cluster.call("POST", scheduling.NODES, node)
    return cluster


def test_pods_evicted_from_a_tainted_node_are_placed_elsewhere(
    cluster_with_controllers: clusters.Cluster, tmp_path: pathlib.Path
) -> None:
    """RemovePodsViolatingNodeTaints empties the node; their successors run on the other one."""
    cluster = cluster_with_controllers
    with scheduling.scheduler(cluster, tmp_path / "graphsched.log"):
        cluster.call("POST", DEPLOYMENTS, _deployment())
        scheduling.wait("all run", lambda: len(_running(cluster)) == REPLICAS)
        assert {"n1", "n2"} == set(_running(cluster).values())

        _taint(cluster, "n1")
        _deschedule(cluster, _policy("RemovePodsViolatingNodeTaints"), tmp_path)
        scheduling.wait("all run elsewhere", lambda: list(_running(cluster).values()) == ["n2"] * REPLICAS)


def test_pods_evicted_for_their_skew_are_spread(
    cluster_with_controllers: clusters.Cluster, tmp_path: pathlib.Path
) -> None:
    """RemovePodsViolatingTopologySpreadConstraint takes from the full zone; graphsched fills the other one."""
    cluster = cluster_with_controllers
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "nodeTaintsPolicy": "Honor",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
    _taint(cluster, "n2")
    with scheduling.scheduler(cluster, tmp_path / "graphsched.log"):
        cluster.call("POST", DEPLOYMENTS, _deployment(topologySpreadConstraints=spread))
        scheduling.wait("all run", lambda: len(_running(cluster)) == REPLICAS)
        assert {"n1"} == set(_running(cluster).values())

        _untaint(cluster, "n2")
        policy = _policy("RemovePodsViolatingTopologySpreadConstraint", kind="balance")
        _deschedule(cluster, policy, tmp_path)
        scheduling.wait("both zones hold three", lambda: sorted(_running(cluster).values()) == ["n1"] * 3 + ["n2"] * 3)


def _taint(cluster: clusters.Cluster, name: str) -> None:
    node = cluster.call("GET", f"{scheduling.NODES}/{name}")
    node["spec"]["taints"] = [*_others(node), {"key": "tests/moved", "effect": "NoSchedule"}]
    cluster.call("PUT", f"{scheduling.NODES}/{name}", node)


def _untaint(cluster: clusters.Cluster, name: str) -> None:
    node = cluster.call("GET", f"{scheduling.NODES}/{name}")
    node["spec"]["taints"] = _others(node)
    cluster.call("PUT", f"{scheduling.NODES}/{name}", node)


def _others(node: objects.Object) -> list[Any]:
    # A node that came a moment ago may still bear the taint of those that are not ready.
    return [taint for taint in node["spec"].get("taints", []) if taint["key"] != "tests/moved"]
