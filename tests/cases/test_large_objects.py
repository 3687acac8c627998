"""
Case 037: objects as large as the store takes them pass through list, watch, cache and the scheduler's own format.

Real: API server and each scheduler. Left out: kubelets, as nothing needs to run here.
"""

import asyncio
import copy
import pathlib

import pytest

from graphsched.app import cli, offline
from graphsched.base.values import keys, labels
from tests.cases.runner import cases, schedulers
from tests.cluster import scheduling
from tests.controlplane import api, cluster as clusters, fixtures, processes

pytestmark = pytest.mark.cluster

CASE = cases.all_cases()["037-lifecycle-large-watch-object"]
NAME = "patient-scheduler"
KIB = 1024

SMALL = 3000
#: So that all of them together are more than 10 MiB as one list.
PADDING = "x" * (3 * KIB + 512)

IMAGES = [{"names": [f"{name}-{number:02}-".ljust(200, "x") for name in ("tag", "digest")]} for number in range(50)]


def huge() -> cases.Object:
    """The pod of about 1.1 MiB: 240 KiB in one annotation, 900 KiB in 30 variables."""
    pod = _ours("huge")
    pod["metadata"]["annotations"] = {"example.com/notes": "n" * (240 * KIB)}
    pod["spec"]["containers"][0]["env"] = [{"name": f"V{number}", "value": "v" * (30 * KIB)} for number in range(30)]
    return pod


def node(manifest: cases.Object) -> cases.Object:
    """A node of the case; n2 with long annotations and a long list of images."""
    if manifest["metadata"]["name"] != "n2":
        return manifest
    large = copy.deepcopy(manifest)
    large["metadata"]["annotations"] = {"example.com/notes": "n" * (200 * KIB)}
    large["status"]["images"] = IMAGES
    return large


@pytest.mark.parametrize("which", schedulers.BOTH)
def test_large_objects_neither_stop_nor_blind_a_scheduler(new_cluster: fixtures.NewCluster, which: str) -> None:
    """A pod of 1.1 MiB, ten changes of it, a huge node and a list of 10 MiB: pods are placed all the while."""
    cluster = new_cluster(clusters.Options())
    for manifest in CASE.objects:
        cluster.call("POST", scheduling.NODES, node(manifest))
    with schedulers.either(which, cluster, name=NAME) as running:
        _placed(cluster, huge(), running.process)
        _placed(cluster, _ours("after"), running.process)
        asyncio.run(_relabel(cluster, rounds=10))
        _placed(cluster, _ours("after", called="after-the-changes"), running.process)
    asyncio.run(_fill(cluster))
    with schedulers.either(which, cluster, name=NAME) as running:
        _placed(cluster, _ours("after", called="after-the-restart"), running.process)
        assert "Traceback" not in running.process.tail(10_000)


def test_large_objects_reach_the_own_format_unharmed(cluster: clusters.Cluster, tmp_path: pathlib.Path) -> None:
    """The graph that a running scheduler hands out holds the pod's last labels and every name of the node's images."""
    for manifest in CASE.objects:
        cluster.call("POST", scheduling.NODES, node(manifest))
    path = str(tmp_path / "cluster.dg")
    with schedulers.graphsched(cluster, name=NAME) as running:
        _placed(cluster, huge(), running.process)
        asyncio.run(_relabel(cluster, rounds=1))
        _placed(cluster, _ours("after"), running.process)
        server = f"http://127.0.0.1:{running.port}"
        assert 0 == cli.execute(["snapshot", "--from-scheduler", "--server", server, "--output", path])
    state = offline.load([path])
    labels_of = {pod.key: pod.labels for pod in state.pods}
    images_of = {each.name: [list(image.names) for image in each.images] for each in state.nodes}

    assert labels.from_mapping({"round": "r0"}) == labels_of[keys.pod_key("default", "huge")]
    assert {"n1": [], "n2": [image["names"] for image in IMAGES]} == images_of


def _ours(name: str, *, called: str = "") -> cases.Object:
    pod = copy.deepcopy(next(pod for pod in CASE.pending if pod["metadata"]["name"] == name))
    pod["metadata"]["name"] = called or name
    pod["spec"]["schedulerName"] = NAME
    return pod


def _placed(cluster: clusters.Cluster, pod: cases.Object, process: processes.Process) -> None:
    """Create the pod and wait until it is on n2, the only node with its label."""
    name = pod["metadata"]["name"]
    cluster.call("POST", scheduling.PODS, pod)
    path = f"{scheduling.PODS}/{name}"
    scheduling.wait(
        f"{name} is bound", lambda: cluster.call("GET", path)["spec"].get("nodeName") == "n2", watched=(process,)
    )


async def _relabel(cluster: clusters.Cluster, *, rounds: int) -> None:
    """Change the huge pod so often; each change is one long line of a watch."""
    async with api.Api(cluster) as client:
        for number in range(rounds):
            await client.patch(f"{scheduling.PODS}/huge", {"metadata": {"labels": {"round": f"r{number}"}}})


async def _fill(cluster: clusters.Cluster) -> None:
    pods = (
        {
            "metadata": {"name": f"small-{number}", "annotations": {"example.com/notes": PADDING}},
            "spec": {
                "nodeName": "n1",
                "schedulerName": "another",
                "containers": [{"name": "main", "image": "pause:1"}],
            },
        }
        for number in range(SMALL)
    )
    async with api.Api(cluster) as client:
        await client.create_many(scheduling.PODS, pods)
