"""Karpenter itself, beside graphsched: it reads what graphsched says of a pod, and graphsched uses the nodes it makes.

Real: every process. Left out: machines; Karpenter's provider for kwok makes Node objects, and kwok answers for them.
"""

import pathlib

import pytest
import yaml

from tests.cluster import scheduling
from tests.controlplane import binaries, cluster as clusters, fixtures, objects, processes

pytestmark = [pytest.mark.neighbours, pytest.mark.timeout(300)]

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POOL = {
    "apiVersion": "karpenter.sh/v1",
    "kind": "NodePool",
    "metadata": {"name": "default"},
    "spec": {
        "template": {
            "spec": {
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "default"},
                "requirements": [
                    {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                    {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                ],
                # Longer than the test: what goes must go because it is empty.
                "expireAfter": "720h",
            },
        },
        "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "0s"},
        "limits": {"cpu": "256"},
    },
}


@pytest.fixture
def karpenter(new_cluster: fixtures.NewCluster, tmp_path: pathlib.Path) -> clusters.Cluster:
    """A control plane with Karpenter, which may make as many nodes as it likes, and none yet."""
    folder = binaries.ensure_one(binaries.KARPENTER)
    cluster = new_cluster(clusters.Options(kwok=True))
    for definition in filter(None, yaml.safe_load_all((folder / "crds.yaml").read_text())):
        cluster.call("POST", CRDS, definition)
    scheduling.wait("the definitions are in force", lambda: all(map(_established, scheduling.listed(cluster, CRDS))))
    node_class = {"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "default"}}
    scheduling.wait("a class of nodes is there", lambda: _made(cluster, "karpenter.kwok.sh/v1alpha1", node_class))
    scheduling.wait("a pool of nodes is there", lambda: _made(cluster, "karpenter.sh/v1", POOL))
    metrics, health = processes.free_ports(2)
    environment = {
        "KUBECONFIG": str(cluster.kubeconfig),
        "KUBERNETES_MIN_VERSION": "1.19.0-0",
        "DISABLE_LEADER_ELECTION": "true",
        "SYSTEM_NAMESPACE": "kube-system",
        "METRICS_PORT": str(metrics),
        "HEALTH_PROBE_PORT": str(health),
        "BATCH_IDLE_DURATION": "1s",
    }
    cluster.adopt(processes.Process("karpenter", [folder / "karpenter"], log=tmp_path / "log", environment=environment))
    return cluster


def test_karpenter_makes_nodes_for_pods_that_graphsched_refuses_and_takes_them_away(
    karpenter: clusters.Cluster, tmp_path: pathlib.Path
) -> None:
    """Without a node the pods are Unschedulable; Karpenter makes some, they are bound there; left empty, they go."""
    with scheduling.scheduler(karpenter, tmp_path / "graphsched.log") as running:
        for number in range(12):
            karpenter.call("POST", scheduling.PODS, scheduling.pod(f"p{number}", cpu="1"))
        scheduling.wait(
            "all are bound",
            lambda: all(scheduling.places(karpenter).values()),
            timeout_s=120.0,
            watched=(running.process,),
        )
        made = {node["metadata"]["name"]: node for node in scheduling.listed(karpenter, scheduling.NODES)}
        places = scheduling.places(karpenter)

        assert set(places.values()) <= set(made)
        assert {"default"} == {made[name]["metadata"]["labels"]["karpenter.sh/nodepool"] for name in places.values()}
        assert 12 == running.metric('graphsched_bind_total{outcome="bound"}')

        karpenter.call("DELETE", scheduling.PODS, {"gracePeriodSeconds": 0})
        scheduling.wait(
            "the empty nodes are gone", lambda: not scheduling.listed(karpenter, scheduling.NODES), timeout_s=120.0
        )
        scheduling.wait(
            "graphsched knows of none", lambda: not running.metric('scheduler_cache_size{type="nodes"}'), timeout_s=10.0
        )


def test_a_pod_that_no_node_could_hold_makes_karpenter_do_nothing(
    karpenter: clusters.Cluster, tmp_path: pathlib.Path
) -> None:
    """A gated pod is none of its business, as it is none of graphsched's; a pod beside it that waits gets its node."""
    with scheduling.scheduler(karpenter, tmp_path / "graphsched.log"):
        karpenter.call("POST", scheduling.PODS, scheduling.pod("gated", cpu="1", schedulingGates=[{"name": "x/y"}]))
        karpenter.call("POST", scheduling.PODS, scheduling.pod("waiting", cpu="1"))
        scheduling.wait("it is bound", lambda: bool(scheduling.places(karpenter)["waiting"]), timeout_s=120.0)

        assert ("", 1) == (scheduling.places(karpenter)["gated"], len(scheduling.listed(karpenter, scheduling.NODES)))


def _established(definition: objects.Object) -> bool:
    conditions = definition.get("status", {}).get("conditions", [])
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def _made(cluster: clusters.Cluster, version: str, body: objects.Object) -> bool:
    """Create it, as soon as its kind is served."""
    try:
        cluster.call("POST", f"/apis/{version}/{body['kind'].lower().replace('class', 'classe')}s", body)
    except clusters.RequestError as error:
        if error.status == 404:
            return False
        raise
    return True
