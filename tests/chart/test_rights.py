"""The chart's list of rights, held against a real API server: it is enough, and nothing in it is too much."""

import pathlib
from typing import Any

import pytest
import yaml

from graphsched.sources import collection, custom, resources
from tests.chart import rendering, trial as trials
from tests.cluster import scheduling
from tests.controlplane import cluster as clusters, crds, objects

pytestmark = pytest.mark.cluster

POLICY_RIGHTS: tuple[trials.Right, ...] = (
    ("graphsched.io", "graphpolicies", "list"),
    ("graphsched.io", "graphpolicies", "watch"),
    ("graphsched.io", "graphpolicies/status", "patch"),
)


def followed(right: trials.Right) -> collection.Resource[Any]:
    """What the right to list or watch is for."""
    group, resource, _ = right
    before = f"/apis/{group}/" if group else "/api/"
    all_of_them: tuple[collection.Resource[Any], ...] = resources.ALL + custom.ALL
    return next(
        each for each in all_of_them if each.path.startswith(before) and each.path.rpartition("/")[2] == resource
    )


def config_of(mode: str) -> rendering.Object:
    """What the chart makes of its values, as far as rights depend on it."""
    lease = {"enabled": True, "namespace": trials.NAMESPACE, "leaseName": ""}
    # What policies need is looked at where there is one, below.
    return {
        "mode": mode,
        "http": {"auth": "delegated"},
        "leaderElection": lease,
        "policies": {"enabled": "never"},
    }


def rights_in(mode: str) -> frozenset[trials.Right]:
    """All that the chart grants in a mode."""
    config = config_of(mode)
    return trials.spread([*rendering.rules("cluster", config), *rendering.rules("namespace", config)])


def name_without(right: trials.Right) -> str:
    """A name for the account that lacks this right alone."""
    group, resource, verb = right
    # Two groups may have resources of one name.
    return f"without-{verb}-{resource.replace('/', '-')}-{group.partition('.')[0] or 'core'}"


def test_with_exactly_these_rights_everything_works(cluster: clusters.Cluster, tmp_path: pathlib.Path) -> None:
    """`graphsched run` under an account with the roles' rights leads, places a pod, and says why another waits."""
    lease = {"enabled": True, "namespace": trials.NAMESPACE, "leaseName": "ours"}
    config: rendering.Object = {"mode": "shared", "http": {"auth": "loopback"}, "leaderElection": lease}
    name = "graphsched-test"
    cluster.call("POST", scheduling.NODES, objects.node("n1", cpu="1"))
    with (
        trials.roles(cluster, name, rendering.rules("cluster", config)),
        trials.roles(cluster, name, rendering.rules("namespace", config), namespace=trials.NAMESPACE),
    ):
        token = cluster.service_account_token(trials.NAMESPACE, name)
        with scheduling.scheduler(
            cluster,
            tmp_path / "log",
            kubeconfig=cluster.kubeconfig_with_token(name, token),
            config=yaml.safe_dump(config),
            elect=True,
        ) as running:
            for each in ("web", "more"):
                cluster.call("POST", scheduling.PODS, scheduling.pod(each, cpu="1"))
            scheduling.wait("one is bound", lambda: "n1" in scheduling.places(cluster).values())
            scheduling.wait(
                "the other says why",
                lambda: any(scheduling.condition(cluster, each)[0] == "Unschedulable" for each in ("web", "more")),
            )
            scheduling.wait("there are events", lambda: len(scheduling.listed(cluster, scheduling.EVENTS)) == 2)

            assert 0.0 == running.metric('graphsched_events_total{outcome="failed"}')
            assert 1.0 == running.metric('leader_election_master_status{name="default/ours"}')
            assert "forbidden" not in running.process.tail(1000)


@pytest.mark.parametrize("mode", trials.WORK)
def test_each_right_is_missed_when_it_is_taken_away(cluster: clusters.Cluster, mode: str) -> None:
    """With all rights nothing is complained of; without one of them exactly that one is named in the log."""
    rights = rights_in(mode)
    # What is followed is the same in all modes, and looked at in one.
    missing = {right for right in rights if mode == "shared" or right[2] not in {"list", "watch"}}
    whole = trials.Trial("whole", rights, mode)
    partial = {right: trials.Trial(name_without(right), rights - {right}, mode) for right in sorted(missing)}
    with crds.installed(cluster, *crds.ALL), trials.granted(cluster, [whole, *partial.values()]):
        trials.hold(cluster, [whole, *partial.values()], **config_of(mode))

    assert set() == whole.complaints
    assert {right: {(right[2], right[1])} for right in partial} == {
        right: trial.complaints for right, trial in partial.items()
    }
    for right, trial in partial.items():
        _, resource, verb = right
        if verb == "list" and followed(right).optional:
            assert 1.0 == trial.metric("graphsched_watch_waived", resource=followed(right).name)
        elif verb == "list":
            assert f'cannot list resource "{resource}"' in trial.unready()[f"watch/{resource}"]
        elif verb == "watch":
            assert trial.metric("graphsched_watch_failures_total", resource=followed(right).name) >= 1


@pytest.mark.parametrize("right", [None, *POLICY_RIGHTS], ids=str)
def test_each_right_that_policies_need_is_missed_when_it_is_taken_away(
    cluster: clusters.Cluster, right: trials.Right | None
) -> None:
    """With a policy of which something is to be said: by the log, be it kopf's, which names that one and no other."""
    config = {**config_of("shared"), "policies": {"enabled": "auto"}}
    rights = trials.spread([*rendering.rules("cluster", config), *rendering.rules("namespace", config)])
    assert set(POLICY_RIGHTS) == rights - rights_in("shared")
    name = "ruled" if right is None else name_without(right)
    trial = trials.Trial(name, rights.difference([right]), ruled="edge")
    broken = {"name": "typo", "action": "deny", "match": {"when": {"node": "nod.x"}}}
    with crds.installed(cluster, crds.GRAPH_POLICIES), trials.granted(cluster, [trial]):
        crds.make(cluster, crds.GRAPH_POLICIES, "edge", {"spec": {"rules": [broken]}})
        trials.hold(cluster, [trial], **config)
        status = cluster.call("GET", f"{crds.path_of(crds.GRAPH_POLICIES)}/edge").get("status")

    assert (set() if right is None else {(right[2], right[1])}) == trial.complaints
    if right is None:
        assert {"rules": 2, "broken": 2} == status["counts"]
    elif right[2] != "watch":
        assert status is None
