"""
`graphsched snapshot`: everything scheduling reads is in the file, nothing else is, and the file replays.

The fake API server stands in where the real one can not be made to refuse; the last test runs on a real one.
"""

import asyncio
import json
import pathlib
import typing

import pytest

from graphsched.app import cli, offline, snapshot
from graphsched.base.kube import credentials
from graphsched.base.values import errors, keys
from graphsched.sources import custom
from tests.builders import make_node, make_pod
from tests.controlplane import cluster as clusters, objects
from tests.fakes import apiserver

SECRET = "hunter2"

POD: dict[str, typing.Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "web",
        "namespace": "default",
        "uid": "u1",
        "labels": {"app": "web"},
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": SECRET},
        "managedFields": [{"manager": SECRET}],
    },
    "spec": {
        "nodeName": "n1",
        "serviceAccountName": SECRET,
        "imagePullSecrets": [{"name": SECRET}],
        "containers": [
            {
                "name": "main",
                "image": "app:1",
                "command": ["run", SECRET],
                "args": [SECRET],
                "env": [{"name": "PASSWORD", "value": SECRET}],
                "envFrom": [{"secretRef": {"name": SECRET}}],
                "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": SECRET}]}},
                "resources": {"requests": {"cpu": "1"}},
                "ports": [{"containerPort": 80, "hostPort": 80}],
            },
        ],
        "volumes": [
            {"name": "a", "secret": {"secretName": SECRET}},
            {"name": "b", "iscsi": {"iqn": "iqn.1", "lun": 0, "secretRef": {"name": SECRET}}},
            {"name": "c", "csi": {"driver": "d", "volumeAttributes": {"key": SECRET}}},
            {"name": "d", "persistentVolumeClaim": {"claimName": "data"}},
        ],
    },
    "status": {"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [{"name": "main", "imageID": SECRET}]},
}


def captured(server: typing.Callable[[apiserver.FakeApiServer], None]) -> list[dict[str, typing.Any]]:
    """What is captured of a fake API server that `server` has set up."""
    found: list[dict[str, typing.Any]] = []

    async def main() -> None:
        async with apiserver.FakeApiServer() as fake:
            server(fake)

            async def load() -> credentials.Credentials:
                return credentials.Credentials(origin="test", server=fake.url)

            await snapshot.capture(load, found.append)

    asyncio.run(main())
    return found


def test_nothing_private_reaches_the_file() -> None:
    """Values of variables, commands, probes, annotations, references to secrets."""
    text = json.dumps(snapshot.stripped(POD))

    assert SECRET not in text
    assert "podIP" not in text


def test_everything_scheduling_reads_stays() -> None:
    """The pod means the same before and after."""
    stripped = snapshot.stripped(POD)

    assert {"name": "web", "namespace": "default", "uid": "u1", "labels": {"app": "web"}} == stripped["metadata"]
    assert {"requests": {"cpu": "1"}} == stripped["spec"]["containers"][0]["resources"]
    assert [{"containerPort": 80, "hostPort": 80}] == stripped["spec"]["containers"][0]["ports"]
    assert ["a", "b", "c", "d"] == [volume["name"] for volume in stripped["spec"]["volumes"]]
    assert {"iqn": "iqn.1", "lun": 0} == stripped["spec"]["volumes"][1]["iscsi"]


def test_every_kind_is_captured_page_by_page() -> None:
    """First what describes the capture, then nodes before the pods on them."""

    def fill(server: apiserver.FakeApiServer) -> None:
        for number in range(3):
            server.create(apiserver.NODES, make_node(f"n{number}").manifest())
        server.create(apiserver.PODS, make_pod("web").node("n1").manifest())

    found = captured(fill)

    assert ["Snapshot", "Node", "Node", "Node", "Pod"] == [entry["kind"] for entry in found]
    assert found[0]["by"].startswith("graphsched ")


def test_a_capture_replays(tmp_path: pathlib.Path) -> None:
    """What simulate reads is what was there."""

    def fill(server: apiserver.FakeApiServer) -> None:
        server.create(apiserver.NODES, make_node("n1").taint("gpu").manifest())
        server.create(apiserver.PODS, make_pod("web").cpu("2").node("n1").manifest())

    path = tmp_path / "cluster.json"
    path.write_text("\n".join(json.dumps(entry) for entry in captured(fill)))
    cluster = offline.load([str(path)])

    assert ["gpu"] == [taint.key for taint in cluster.nodes[0].taints]
    assert [("default/web", "n1", (("cpu", 2000),))] == [
        (pod.full_name, pod.node, pod.spec.demand.amounts) for pod in cluster.pods
    ]


def test_a_cluster_that_can_not_be_reached_leaves_no_file(
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Half a snapshot would replay as another cluster."""
    config = {
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c"}}],
        "current-context": "x",
    }
    (tmp_path / "config").write_text(json.dumps(config))
    target = tmp_path / "cluster.json"
    code = cli.execute(["snapshot", "--kubeconfig", str(tmp_path / "config"), "--output", str(target)])
    captured_text = capsys.readouterr()

    assert (2, 1, "") == (code, captured_text.err.count("\n"), captured_text.out)
    assert ["config"] == [path.name for path in tmp_path.iterdir()]


def test_a_folder_that_is_not_there_is_said(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before the cluster is asked."""
    (tmp_path / "config").write_text("{}")
    target = str(tmp_path / "nowhere" / "cluster.json")

    assert 2 == cli.execute(["snapshot", "--kubeconfig", str(tmp_path / "config"), "--output", target])
    assert f"graphsched: {target}: can not be written" in capsys.readouterr().err


def test_what_describes_the_network_is_kept_where_it_is_installed(tmp_path: pathlib.Path) -> None:
    """In whichever version, without what nobody reads; a replay has the same links and places."""
    kueue = "/apis/kueue.x-k8s.io/v1beta2/topologies"
    link: dict[str, typing.Any] = {
        "metadata": {"name": "a", "annotations": {"note": SECRET}},
        "spec": {"endpoints": [{"node": "n1"}, {"place": "rail-0"}]},
        "status": {"health": 0.5, "observedAt": "2026-01-02T03:04:05Z", "conditions": [{"message": SECRET}]},
    }

    def fill(server: apiserver.FakeApiServer) -> None:
        server.create(apiserver.NODES, make_node("n1").label("example.com/rack", "r1").manifest())
        for path in (kueue, custom.NETWORK_LINKS.path):
            server.install(path)
        server.create(custom.NETWORK_LINKS.path, link)
        levels = {"levels": [{"nodeLabel": "example.com/rack"}]}
        server.create(kueue, {"metadata": {"name": "default"}, "spec": levels})

    bodies = captured(fill)
    assert SECRET not in json.dumps(bodies)
    file = tmp_path / "cluster.json"
    file.write_text("\n".join(json.dumps(body) for body in bodies))
    graph = offline.graph_of(offline.load([str(file)]))

    assert {"place/rail-0", "place/example.com/rack=r1"} == set(graph.vertex_keys("place/"))
    (health,) = {getattr(graph.edge(edge), "health", 0.0) for edge in graph.edge_ids(keys.EdgeKind.LINK)}
    assert 0.5 == health


def test_a_missing_right_is_an_error_except_for_classes() -> None:
    """Nodes and pods are the point; classes only refine."""

    def forbid(server: apiserver.FakeApiServer) -> None:
        server.tokens = {"nobody"}

    with pytest.raises(errors.ForbiddenError):
        captured(forbid)


@pytest.mark.cluster
def test_a_real_cluster_replays(
    cluster: clusters.Cluster,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """From a real API server to a simulation, through the commands."""
    cluster.call("POST", "/api/v1/nodes", objects.node("n1"))
    cluster.call("POST", "/api/v1/namespaces/default/pods", objects.pod("web", scheduler="graph-scheduler"))
    path = str(tmp_path / "cluster.json")
    kubeconfig = str(cluster.kubeconfig)
    codes = [
        cli.execute(["snapshot", "--kubeconfig", kubeconfig, "--output", path]),
        cli.execute(["simulate", path, "--scheduler", "graph-scheduler"]),
        cli.execute(["explain", "web", path]),
    ]
    captured_text = capsys.readouterr()

    assert [0, 0, 0] == codes
    assert "captured 1 node" in captured_text.err
    assert "All 1 pod found a node on 1 node." in captured_text.out
    assert "web is pending and fits: it would go to n1" in captured_text.out
