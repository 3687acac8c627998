"""Manifests become a cluster as an API server and its controllers would have made it."""

import json
import pathlib
import typing

import pytest

from graphsched.base.values import nodes
from graphsched.graph import delta
from graphsched.sources import manifests, state
from tests import builders
from tests.builders import make_namespace, make_node, make_pod, selecting


def collect(*objects: object, unknown_nodes: bool = False, **settings: bool) -> state.ClusterState:
    """The cluster of these objects."""
    collector = manifests.Collector(**settings)
    for index, manifest in enumerate(objects):
        collector.add(manifest, place=f"objects[{index}]")
    return collector.state(unknown_nodes=unknown_nodes)


def config_map(name: str) -> builders.Manifest:
    """An object that scheduling does not read."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def deployment(name: str, replicas: int, **metadata: object) -> builders.Manifest:
    """A Deployment."""
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c"}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, **metadata},
        "spec": {"replicas": replicas, "template": template},
    }


def test_a_file_is_a_cluster(tmp_path: pathlib.Path) -> None:
    """Nodes and pods in document order, what selects pods, the rest counted."""
    (tmp_path / "a.yaml").write_text(
        """\
apiVersion: v1
kind: Node
metadata: {name: n1}
status:
  capacity: {cpu: 2, memory: 4Gi, pods: 10}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
---
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  nodeName: n1
  containers:
  - name: c
    resources:
      limits: {cpu: 0.5}
""",
    )

    found = manifests.read([str(tmp_path / "a.yaml")])

    offered = (("cpu", 2000), ("memory", 4 << 30), ("pods", 10))
    assert (nodes.Node("n1", allocatable=offered, budget=nodes.Budget(offered)),) == found.nodes
    assert ["pod/default/web"] == [pod.key for pod in found.pods]
    assert (("cpu", 500),) == found.pods[0].spec.demand.amounts
    assert (make_namespace("default"),) == found.namespaces
    assert ["selection/Service/default/web"] == [selection.key for selection in found.selections]
    assert {"ConfigMap": 1} == found.ignored


def test_what_kubectl_prints_is_read(tmp_path: pathlib.Path) -> None:
    """A List holds objects of any kind, a PodList pods that need not say so."""
    pod = make_pod("p").manifest()
    del pod["kind"]
    (tmp_path / "a.json").write_text(
        json.dumps({"kind": "List", "apiVersion": "v1", "items": [make_node("n").manifest()]})
    )
    (tmp_path / "b.json").write_text(
        json.dumps({"kind": "PodList", "apiVersion": "v1", "items": [pod], "metadata": {}})
    )
    (tmp_path / "c.json").write_text(json.dumps({"kind": "NodeList", "apiVersion": "v1", "items": None}))

    found = manifests.read([str(tmp_path)])

    assert (["n"], ["p"]) == ([node.name for node in found.nodes], [pod.name for pod in found.pods])


def test_builders_and_manifests_agree() -> None:
    """What is written in full needs no default, apart from the waits on a node that is gone."""
    pod = make_pod("p", "shop").cpu("1").label("a", "b").tolerate(effect="NoExecute")
    node = make_node("n").zone("a")

    found = collect(node.manifest(), pod.manifest())

    assert (node.build(),) == found.nodes
    assert (pod.build(),) == found.pods


def test_namespaces_in_use_are_made() -> None:
    """After those that are given, each once."""
    given = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "b", "labels": {"team": "x"}}}
    found = collect(*(make_pod(f"p{index}", name).manifest() for index, name in enumerate("abca")), given)

    assert (make_namespace("b", team="x"), make_namespace("a"), make_namespace("c")) == found.namespaces


def test_a_class_may_come_after_the_pod_that_names_it() -> None:
    """The order of files is the user's."""
    pod = make_pod("p").set("spec.priorityClassName", "high").set("spec.runtimeClassName", "sandbox").manifest()
    priority = {"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": "high"}, "value": 9}
    runtime = {
        "kind": "RuntimeClass",
        "apiVersion": "node.k8s.io/v1",
        "metadata": {"name": "sandbox"},
        "overhead": {"podFixed": {"cpu": "1"}},
    }

    found = collect(pod, priority, runtime)

    assert (9, (("cpu", 1000),)) == (found.pods[0].priority, found.pods[0].spec.demand.amounts)
    assert (nodes.PriorityClass("high", 9),) == found.priority_classes


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_pods_that_have_ended_are_counted_only(phase: str) -> None:
    """They hold nothing, wherever they ran."""
    found = collect(make_pod("p").node("gone").phase(phase).manifest())

    assert ((), {f"Pod ({phase})": 1}) == (found.pods, found.ignored)


def test_workloads_become_pods_in_their_place() -> None:
    """Between the objects they were written between."""
    found = collect(make_pod("a").manifest(), deployment("web", 2), make_pod("b").manifest())

    assert ["a", "web-0", "web-1", "b"] == [pod.name for pod in found.pods]
    assert found.pods[1].spec is found.pods[2].spec


def test_workloads_of_a_dump_are_counted_only() -> None:
    """Their pods are in the dump as well."""
    found = collect(deployment("web", 2, uid="u"), make_pod("web-x").manifest())

    assert (["web-x"], {"Deployment": 1}) == ([pod.name for pod in found.pods], found.ignored)


IGNORED = [
    ("v1", "ConfigMap"),
    ("v1", "Secret"),
    ("v1", "ServiceAccount"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("apps/v1", "DaemonSet"),
    ("batch/v1", "CronJob"),
    ("policy/v1", "PodDisruptionBudget"),
    ("storage.k8s.io/v1", "StorageClass"),
    ("resource.k8s.io/v1", "ResourceClaim"),
    ("example.com/v1", "Anything"),
    ("example.com/v1", "Pod"),
    ("scheduling.x-k8s.io/v1alpha1", "PodGroup"),
]


@pytest.mark.parametrize(("api_version", "kind"), IGNORED)
def test_what_scheduling_does_not_read_is_counted(api_version: str, kind: str) -> None:
    """Somebody's own kinds as well, whatever they are called."""
    manifest = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "a"}, "spec": 3}

    assert {kind: 2} == collect(manifest, manifest).ignored


def test_kinds_are_counted_in_order() -> None:
    """Sorted, so that two runs print the same."""
    roles = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role"}

    assert ["ConfigMap", "Role"] == list(collect(roles, config_map("a")).ignored)


def test_normalized_objects_are_taken_as_they_are() -> None:
    """They come from an API server, which has done all that."""
    pod = make_pod("p").limit("cpu", "1").spread("a", {}).manifest()
    node = make_node("n").set("status", {"capacity": {"cpu": "1"}}).manifest()
    namespace = {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "default"}}

    found = collect(pod, node, namespace, normalized=True)

    assert ((), (), ()) == (
        found.pods[0].spec.demand.amounts,
        found.nodes[0].allocatable,
        found.namespaces[0].labels,
    )


def test_label_keys_are_merged_unless_that_was_done() -> None:
    """In pod terms only the API server does it."""
    pod = make_pod("p").label("rev", "1").near("a", selecting(app="x"), matchLabelKeys=["rev"]).manifest()

    def requirements(**settings: bool) -> int:
        selector = collect(pod, **settings).pods[0].spec.pod_affinity[0].selector
        return len(selector.requirements) if selector else 0

    assert (2, 1) == (requirements(), requirements(normalized=True))


def test_a_pod_may_be_bound_to_an_unknown_node_where_that_is_allowed() -> None:
    """As in a cluster, where the node can go first."""
    found = collect(make_pod("p").node("gone").manifest(), unknown_nodes=True)

    assert "gone" == found.pods[0].node


def test_pending_pods_are_those_bound_nowhere() -> None:
    """In document order."""
    found = collect(
        make_node("n").manifest(),
        make_pod("a").manifest(),
        make_pod("b").node("n").manifest(),
        make_pod("c").manifest(),
    )

    assert ["a", "c"] == [pod.name for pod in found.pending]


def test_a_pod_to_be_placed_is_admitted_under_the_classes_at_hand() -> None:
    """It does not become part of the cluster, and need not say what it is."""
    collector = manifests.Collector()
    collector.add(
        {"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": "high"}, "value": 9},
        place="objects[0]",
    )
    pod = make_pod("p").node("n").set("spec.priorityClassName", "high").manifest()
    del pod["kind"]

    incoming = collector.incoming(pod, place="pod")

    assert ("", "n", 9) == (incoming.node, incoming.spec.node_name, incoming.priority)
    assert () == collector.state().pods


def test_unchecked_objects_may_be_what_the_api_server_refuses() -> None:
    """A request above its limit is a warning there, and no reason not to answer."""
    pod = make_pod("p").cpu("2").limit("cpu", "1").manifest()

    assert 1 == len(collect(pod, checked=False).pods)


def test_a_cluster_is_one_patch() -> None:
    """From nothing to all of it."""
    found = collect(make_node("n").manifest(), make_pod("p").node("n").manifest())

    patch = state.to_patch(found)

    expected: list[delta.Vertex] = [*found.namespaces, *found.nodes, *found.pods]
    assert {vertex.key: vertex for vertex in expected} == patch.vertices
    assert (set(), set(), {}, None) == (patch.removed, patch.cut, patch.edges, patch.stream)


def test_reading_twice_gives_the_same(tmp_path: pathlib.Path) -> None:
    """Nothing depends on time, chance or the order of a folder's entries on disk."""
    for name in ("b", "a", "c"):
        manifest: dict[str, typing.Any] = make_pod(name).manifest()
        (tmp_path / f"{name}.yaml").write_text(json.dumps(manifest))

    assert manifests.read([str(tmp_path)]) == manifests.read([str(tmp_path)])
    assert ["a", "b", "c"] == [pod.name for pod in manifests.read([str(tmp_path)]).pods]
