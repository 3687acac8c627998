"""`queue.order` on a real control plane: pods of an AppGroup find room in the order of their dependencies."""

import pathlib

import pytest
import yaml

from tests.cluster import scheduling
from tests.controlplane import cluster as clusters, crds, objects

pytestmark = pytest.mark.cluster

GROUP = "appgroup.diktyo.x-k8s.io"
CALLS = {"web": ["api"], "api": ["db"], "db": []}
"""Who calls whom; the pods arrive in this order."""


def described() -> objects.Object:
    """The AppGroup."""
    return {
        "spec": {
            "topologySortingAlgorithm": "KahnSort",
            "workloads": [
                {
                    "workload": _workload(name),
                    "dependencies": [{"workload": _workload(called)} for called in calls],
                }
                for name, calls in CALLS.items()
            ],
        }
    }


def _workload(name: str) -> objects.Object:
    return {"kind": "Deployment", "apiVersion": "apps/v1", "name": name, "selector": name, "namespace": "default"}


def _told(running: scheduling.Scheduler, name: str) -> objects.Object | None:
    """The place in the queue that `explain` tells of a pod."""
    found: objects.Object | None = scheduling.decoded(running.read(f"/debug/explain?pod=default/{name}"))["waiting"][
        "order"
    ]
    return found


@pytest.mark.parametrize(
    ("order", "first_to_last"),
    [("criticalPath", ["db", "api", "web"]), ("priorityQueue", ["db", "api", "web"]), ("", ["web"])],
)
def test_room_goes_to_whom_others_wait_for(
    cluster: clusters.Cluster, tmp_path: pathlib.Path, order: str, first_to_last: list[str]
) -> None:
    """Nodes for one pod each join one after the other; without the setting the pod that came first is the first.

    `explain` tells the place of each, and whom it comes after.
    """
    # A pod in penalty goes by the end of it, whatever its place.
    config = yaml.safe_dump({"queue": {"order": order, "maxBackoffSeconds": 0, "orderBudgetSeconds": 0.05}})
    with (
        crds.installed(cluster, crds.APP_GROUPS),
        scheduling.scheduler(cluster, tmp_path / "log", config=config) as running,
    ):
        crds.make(cluster, crds.APP_GROUPS, "shop", described())
        known = 'graphsched_graph_vertices{kind="group"}'
        scheduling.wait("the group is known", lambda: running.metric(known) == 1.0, watched=(running.process,))
        for name in CALLS:
            pod = scheduling.pod(name)
            pod["metadata"]["labels"] = {GROUP: "shop", f"{GROUP}.workload": name}
            cluster.call("POST", scheduling.PODS, pod)
        for name in CALLS:
            scheduling.wait("it waits", lambda name=name: bool(scheduling.condition(cluster, name)[0]))
        for name, calls in CALLS.items():
            expected = None
            if order:
                after = [f"default/{called}" for called in calls]
                place = first_to_last.index(name) + 1
                expected = {"plugin": order, "place": place, "of": len(CALLS), "after": after}
            # A plugin that was too late on a busy machine is asked again after a second.
            scheduling.wait(f"{name} has its place", lambda name=name, it=expected: it == _told(running, name))
        resting = 'scheduler_pending_pods{queue="unschedulable"}'
        for number, name in enumerate(first_to_last):
            left = len(CALLS) - number
            scheduling.wait("the others rest", lambda left=left: running.metric(resting) == left)
            cluster.call("POST", scheduling.NODES, objects.node(f"n{number}", pods="1"))
            scheduling.wait(
                f"{name} is on n{number}",
                lambda name=name, number=number: scheduling.places(cluster)[name] == f"n{number}",
                watched=(running.process,),
            )
