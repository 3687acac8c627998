"""A real Prometheus scrapes a real scheduler at work: no query of the dashboard and no rule is empty talk."""

import itertools
import pathlib

import pytest

from scripts import dashboard
from tests.cluster import scheduling
from tests.controlplane import cluster as clusters, objects, processes
from tests.monitoring import prometheus, rules

pytestmark = pytest.mark.cluster


def queries(mode: str) -> list[str]:
    """Those that this mode answers: panels of one mode begin with its name, all others are for every mode."""
    titled = {"advise": "Mode advise", "shadow": "Mode shadow"}
    panels = [panel for panel in dashboard.dashboard()["panels"] if "targets" in panel]
    chosen = [
        panel
        for panel in panels
        if (
            panel["title"].startswith(titled[mode])
            if mode in titled
            else not panel["title"].startswith(tuple(titled.values()))
        )
    ]
    return [
        target["expr"].replace("$job", prometheus.JOB).replace("$__rate_interval", "20s")
        for panel in chosen
        for target in panel["targets"]
    ]


ANSWERED_S = 60.0
#: The namespace that is emptied between tests.
CONFIG = "leaderElection: {namespace: default}\nwatermarks: {cpu: {highPercent: 90, lowPercent: 75}}"


@pytest.mark.parametrize("mode", ["shared", "advise", "shadow"])
def test_every_query_has_an_answer_while_pods_come_and_some_wait(
    cluster: clusters.Cluster, tmp_path: pathlib.Path, mode: str
) -> None:
    """Pods are placed all the time, one fits nowhere: no panel is empty, no rule fails, and no alert fires."""
    for name in ("n1", "n2"):
        cluster.call("POST", scheduling.NODES, objects.node(name, cpu="64", pods="500"))
    with (
        scheduling.scheduler(cluster, tmp_path / "log", config=f"{CONFIG}\nmode: {mode}", elect=True) as running,
        prometheus.scraping(running.port, tmp_path) as seen,
    ):
        cluster.call("POST", scheduling.PODS, scheduling.pod("big", cpu="1000"))
        numbers = itertools.count()
        unanswered = set(queries(mode))
        assert unanswered

        def all_answered() -> bool:
            cluster.call("POST", scheduling.PODS, scheduling.pod(f"p{next(numbers)}"))
            unanswered.difference_update([query for query in unanswered if seen.query(query)])
            return not unanswered

        try:
            scheduling.wait(
                "every query has an answer",
                all_answered,
                timeout_s=ANSWERED_S,
                watched=(running.process, seen.process),
            )
        except processes.DeadlineError:
            assert [] == sorted(unanswered)
        if mode == "shared":
            assert [1.0] == seen.query('max(scheduler_pending_pods{queue="unschedulable"})')
        found = seen.rules()

    assert set(rules.alerts()) == {rule["name"] for rule in found}
    assert {"ok"} == {rule["health"] for rule in found}
    # Pending is what a slow machine may make of them.
    assert [] == [rule["name"] for rule in found if rule["state"] == "firing"]
