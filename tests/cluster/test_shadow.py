"""Mode shadow beside the real kube-scheduler: it agrees, and leaves no trace."""

import pathlib
import subprocess
import sys

import pytest

from tests.chart import rendering, trial as trials
from tests.cluster import scheduling
from tests.controlplane import cluster as clusters, fixtures, objects

pytestmark = pytest.mark.cluster

NODES, ONE_BY_ONE, AT_ONCE = 8, 30, 40
RIGHTS = rendering.rules("cluster", {"http": {"auth": "loopback"}, "mode": "shadow"})


def test_it_agrees_with_the_real_kube_scheduler(new_cluster: fixtures.NewCluster, tmp_path: pathlib.Path) -> None:
    """Pods one by one go where we say, or where the score is equal; in a burst none goes where we would not.

    Nodes differ in size, labels and taints. The chart's rights for this mode, which are to read, are enough.
    """
    cluster = new_cluster(clusters.Options(scheduler=True))
    for number in range(NODES):
        node = objects.node(
            f"n{number}", cpu=str(4 + number), memory=f"{30 + 7 * number}Gi", labels={"even": str(number % 2)}
        )
        if number == NODES - 1:
            node["spec"] = {"taints": [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]}
        cluster.call("POST", scheduling.NODES, node)
    account = trials.Trial("graphsched-shadow", trials.spread(RIGHTS))
    assert {"list", "watch"} == {verb for _, _, verb in account.rights}
    with trials.granted(cluster, [account]):
        token = cluster.service_account_token(trials.NAMESPACE, account.name)
        kubeconfig = cluster.kubeconfig_with_token(account.name, token)
        _compare(cluster, tmp_path / "log", kubeconfig)


def _compare(cluster: clusters.Cluster, log: pathlib.Path, kubeconfig: pathlib.Path) -> None:
    """Create pods, one by one and then at once, and look at what is told of them."""
    with scheduling.scheduler(
        cluster, log, kubeconfig=kubeconfig, config="{mode: shadow, shadow: {settleSeconds: 5}}"
    ) as running:

        def compared() -> int:
            return int(scheduling.decoded(running.read("/debug/shadow"))["compared"])

        for number in range(ONE_BY_ONE):
            spec = {"nodeSelector": {"even": str(number % 2)}} if number % 3 == 0 else {}
            cluster.call(
                "POST", scheduling.PODS, objects.pod(f"p{number}", cpu=f"{100 + 50 * (number % 4)}m", spec=spec)
            )
            scheduling.wait(
                "it is bound and compared", lambda count=number + 1: compared() == count, watched=(running.process,)
            )
        found = scheduling.decoded(running.read("/debug/shadow"))
        assert {"unseen": 0, "gone": 0} == found["not_compared"]
        assert [] == found["worst"], "kube-scheduler was unhurried: there is no excuse for a difference"
        assert ONE_BY_ONE == found["agreed"]

        cluster.call("POST", scheduling.PODS, objects.pod("huge", cpu="64"))
        for number in range(AT_ONCE):
            cluster.call("POST", scheduling.PODS, objects.pod(f"q{number}", cpu=f"{100 + 10 * (number % 7)}m"))
        scheduling.wait("all are compared", lambda: compared() == ONE_BY_ONE + AT_ONCE + 1, watched=(running.process,))
        found = scheduling.decoded(running.read("/debug/shadow?limit=100"))
        results = found["results"]
        assert (1, 0, 0, 0) == tuple(results[name] for name in ("unschedulable", "refused", "none", "pending"))
        # What differs was decided while others were on their way, whose nodes nobody could know.
        assert all(each["in_flight"] for each in found["worst"]), found["worst"]

        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "graphsched",
                "shadow",
                "--server",
                f"http://127.0.0.1:{running.port}",
                "--at-least",
                "90",
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert "0 on nodes we would refuse." in done.stdout.splitlines()[-1], done.stdout + done.stderr
        assert 0 == done.returncode
        assert "orbidden" not in running.process.tail(10_000)
        scheduling.wait(
            "only kube-scheduler has told of the pods",
            lambda: (
                {"default-scheduler"}
                == {item["reportingController"] for item in scheduling.listed(cluster, scheduling.EVENTS)}
            ),
        )
