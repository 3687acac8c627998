"""The chart's list of rights, held against a real API server: it is enough, and nothing in it is too much."""

import pathlib

import pytest

from tests.chart import rendering, trial as trials
from tests.cluster import scheduling
from tests.controlplane import cluster as clusters, objects

pytestmark = pytest.mark.cluster

CONFIG: rendering.Object = {"http": {"auth": "delegated"}}
RIGHTS = trials.spread(rendering.rules("cluster", CONFIG))


def name_without(right: trials.Right) -> str:
    """A name for the account that lacks this right alone."""
    _, resource, verb = right
    return f"without-{verb}-{resource.replace('/', '-')}"


def test_with_exactly_these_rights_everything_works(cluster: clusters.Cluster, tmp_path: pathlib.Path) -> None:
    """`graphsched run` under an account that may do what the list says places a pod, and says why another waits."""
    config: rendering.Object = {"http": {"auth": "loopback"}}
    account = trials.Trial("graphsched-test", trials.spread(rendering.rules("cluster", config)))
    cluster.call("POST", scheduling.NODES, objects.node("n1", cpu="1"))
    with trials.granted(cluster, [account]):
        token = cluster.service_account_token(trials.NAMESPACE, account.name)
        kubeconfig = cluster.kubeconfig_with_token(account.name, token)
        with scheduling.scheduler(cluster, tmp_path / "log", kubeconfig=kubeconfig) as running:
            for each in ("web", "more"):
                cluster.call("POST", scheduling.PODS, scheduling.pod(each, cpu="1"))
            scheduling.wait("one is bound", lambda: "n1" in scheduling.places(cluster).values())
            scheduling.wait(
                "the other says why",
                lambda: any(scheduling.condition(cluster, each)[0] == "Unschedulable" for each in ("web", "more")),
            )
            scheduling.wait("there are events", lambda: len(scheduling.listed(cluster, scheduling.EVENTS)) == 2)

            assert 0.0 == running.metric('graphsched_events_total{outcome="failed"}')
            assert "forbidden" not in running.process.tail(1000)


def test_each_right_is_missed_when_it_is_taken_away(cluster: clusters.Cluster) -> None:
    """With all rights nothing is complained of; without one of them exactly that one is named in the log."""
    whole = trials.Trial("whole", RIGHTS)
    partial = {right: trials.Trial(name_without(right), RIGHTS - {right}) for right in sorted(RIGHTS)}
    with trials.granted(cluster, [whole, *partial.values()]):
        trials.hold(cluster, [whole, *partial.values()], **CONFIG)

    assert set() == whole.complaints
    assert {right: {(right[2], right[1])} for right in partial} == {
        right: trial.complaints for right, trial in partial.items()
    }
    for (_, resource, verb), trial in partial.items():
        if verb == "list":
            assert f'cannot list resource "{resource}"' in trial.unready()[f"watch/{resource}"]
        elif verb == "watch":
            assert trial.metric("graphsched_watch_failures_total", resource=resource) >= 1
