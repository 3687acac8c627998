"""Mode advise on a real control plane: the real kube-scheduler binds, exactly where it was told to."""

import pathlib
from collections import Counter

import pytest

from tests.chart import rendering, trial as trials
from tests.cluster import scheduling
from tests.controlplane import cluster as clusters, fixtures, objects

pytestmark = pytest.mark.cluster

GATE = "graphsched.io/advise"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NODES, PODS = 6, 40
RIGHTS = rendering.rules("cluster", {"http": {"auth": "loopback"}, "mode": "advise"})
CONFIG = "{mode: advise, advise: {giveUpSeconds: 4}}"


def gated(name: str, cpu: str, **spec: object) -> objects.Object:
    """A pod of the default scheduler that our gate holds."""
    return objects.pod(name, cpu=cpu, spec={"schedulingGates": [{"name": GATE}], **spec})


def tied_to(item: objects.Object) -> set[str]:
    """The nodes that the pod's required affinity names; it must name one in every term."""
    required = item["spec"].get("affinity", {}).get("nodeAffinity", {}).get(REQUIRED, {})
    return {
        value
        for term in required.get("nodeSelectorTerms", [])
        for field in term.get("matchFields", [])
        for value in field["values"]
    }


def test_kube_scheduler_binds_where_advised(new_cluster: fixtures.NewCluster, tmp_path: pathlib.Path) -> None:
    """Every pod once, on the node it was tied to, nodes full but never too full; what no node holds keeps its gate.

    With the chart's rights for this mode, which are not to bind.
    """
    cluster = new_cluster(clusters.Options(scheduler=True))
    for number in range(NODES):
        labels = {"tier": "gold" if number % 2 else "tin"}
        cluster.call("POST", scheduling.NODES, objects.node(f"n{number}", cpu="4", labels=labels))
    cluster.call("POST", scheduling.PODS, objects.pod("theirs", cpu="1500m"))
    gold = {
        "nodeAffinity": {
            REQUIRED: {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["gold"]}]},
                    {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["platinum"]}]},
                ]
            }
        }
    }
    account = trials.Trial("graphsched-advise", trials.spread(RIGHTS))
    assert ("", "pods/binding", "create") not in account.rights
    with (
        trials.granted(cluster, [account]),
        scheduling.scheduler(
            cluster,
            tmp_path / "log",
            config=CONFIG,
            kubeconfig=cluster.kubeconfig_with_token(
                account.name, cluster.service_account_token(trials.NAMESPACE, account.name)
            ),
        ) as running,
    ):
        scheduling.wait("kube-scheduler serves its own", lambda: scheduling.places(cluster)["theirs"] != "")
        # They ask for 20 of the 22.5 CPUs that are left.
        for number in range(PODS):
            spec = {"affinity": gold} if number % 4 == 0 else {}
            cluster.call("POST", scheduling.PODS, gated(f"p{number}", f"{300 + 100 * (number % 5)}m", **spec))
        cluster.call("POST", scheduling.PODS, gated("huge", "5"))
        scheduling.wait(
            "all that fit are bound",
            lambda: sum(bool(node) for node in scheduling.places(cluster).values()) == PODS + 1,
            watched=(running.process,),
        )
        items = {item["metadata"]["name"]: item for item in scheduling.listed(cluster, scheduling.PODS)}
        scheduling.wait(
            "all are seen there",
            lambda: running.metric('graphsched_advice_ended_total{outcome="bound"}') == PODS,
        )

        for number in range(PODS):
            item = items[f"p{number}"]
            assert {item["spec"]["nodeName"]} == tied_to(item)
            if number % 4 == 0:
                assert int(item["spec"]["nodeName"][1:]) % 2, "the affinity that was asked for holds"
        assert max(scheduling.held_milli(cluster)[f"n{number}"] for number in range(NODES)) <= 4000
        assert [{"name": GATE}] == items["huge"]["spec"]["schedulingGates"]
        assert "SchedulingGated" == scheduling.condition(cluster, "huge")[0]
        scheduling.wait("it is told why", lambda: bool(scheduling.notes(cluster, "huge")))
        assert [f"0/{NODES} nodes are available: {NODES} Insufficient cpu."] == scheduling.notes(cluster, "huge")
        told = Counter(
            (item["reportingController"], item["reason"])
            for item in scheduling.listed(cluster, scheduling.EVENTS)
            if item["regarding"]["name"] != "huge"
        )
        assert Counter({("default-scheduler", "Scheduled"): PODS + 1}) == told
        assert 0.0 == running.metric('graphsched_bind_total{outcome="bound"}')
        assert 0.0 == running.metric("graphsched_advice_outstanding")
        assert 0.0 == running.metric('scheduler_cache_size{type="assumed_pods"}')
        assert "forbidden" not in running.process.tail(10_000)


def test_a_pod_whose_room_is_taken_is_told_of(cluster: clusters.Cluster, tmp_path: pathlib.Path) -> None:
    """No scheduler binds it before somebody fills the node: the pod is stuck, and said to be."""
    cluster.call("POST", scheduling.NODES, objects.node("n1", cpu="2"))
    with scheduling.scheduler(cluster, tmp_path / "log", config=CONFIG) as running:
        cluster.call("POST", scheduling.PODS, gated("web", "2"))
        scheduling.wait(
            "it is tied", lambda: tied_to(cluster.call("GET", f"{scheduling.PODS}/web")) == {"n1"}, timeout_s=10.0
        )
        cluster.call("POST", scheduling.PODS, objects.pod("thief", cpu="2", spec={"nodeName": "n1"}))
        scheduling.wait(
            "its room is given back", lambda: running.metric("graphsched_advice_given_up") == 1, timeout_s=15.0
        )
        told = scheduling.decoded(running.read("/debug/explain?pod=default/web"))
        assert "advised" == told["state"]
        assert "full" in told["headline"]
        scheduling.wait("an event says so", lambda: bool(scheduling.notes(cluster, "web")))
        (note,) = scheduling.notes(cluster, "web")
        assert "its room is for others again" in note
