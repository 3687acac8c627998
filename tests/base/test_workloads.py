"""Workloads of a manifest become the pods that their controllers would make."""

import typing

import pytest

from graphsched.base.kube import pods as kube_pods, wire, workloads
from graphsched.base.values import errors

TEMPLATE: dict[str, typing.Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
}


def expand(kind: str, **spec: typing.Any) -> list[wire.Pod]:
    """The pods of a workload called web in the namespace shop."""
    manifest = {"metadata": {"name": "web", "namespace": "shop"}, "spec": {"template": TEMPLATE, **spec}}
    return workloads.expand(kind, workloads.CODECS[kind].convert(manifest))


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "ReplicationController", "StatefulSet"])
def test_replicas_are_numbered_from_zero(kind: str) -> None:
    """The same names on every run, the template's labels and spec on each."""
    pods = expand(kind, replicas=3)

    assert ["web-0", "web-1", "web-2"] == [pod.metadata.name for pod in pods]
    values = [kube_pods.pod(pod) for pod in pods]
    assert {("shop", (("cpu", 1000),))} == {(value.namespace, value.spec.demand.amounts) for value in values}
    assert all(("app", "web") in value.labels for value in values)


COUNTS = [
    ("Deployment", {}, 1),
    ("Deployment", {"replicas": 0}, 0),
    ("Deployment", {"replicas": None}, 1),
    ("Job", {}, 1),
    ("Job", {"parallelism": 3}, 3),
    ("Job", {"parallelism": 3, "completions": 2}, 2),
    ("Job", {"parallelism": 3, "completions": 9}, 3),
    ("Job", {"completions": 9}, 1),
    ("Job", {"parallelism": 3, "suspend": True}, 0),
]


@pytest.mark.parametrize(("kind", "spec", "count"), COUNTS)
def test_as_many_pods_as_run_at_once(kind: str, spec: dict[str, typing.Any], count: int) -> None:
    """A job never runs more than are left to complete."""
    assert count == len(expand(kind, **spec))


def test_a_stateful_set_marks_its_pods() -> None:
    """Index and name as labels, and a claim of each pod's own for every template."""
    pod = expand("StatefulSet", replicas=2, volumeClaimTemplates=[{"metadata": {"name": "data"}}])[1]

    assert {
        "app": "web",
        "apps.kubernetes.io/pod-index": "1",
        "statefulset.kubernetes.io/pod-name": "web-1",
    } == pod.metadata.labels
    assert ("persistentVolumeClaim data-web-1",) == kube_pods.pod(pod).spec.claims


def test_a_claim_of_the_set_replaces_a_volume_of_the_template() -> None:
    """As the controller does."""
    template = {"spec": {**TEMPLATE["spec"], "volumes": [{"name": "data", "emptyDir": {}}, {"name": "tmp"}]}}
    pods = expand("StatefulSet", template=template, volumeClaimTemplates=[{"metadata": {"name": "data"}}])

    assert ["tmp", "data"] == [volume.name for volume in pods[0].spec.volumes or []]


def test_an_indexed_job_marks_its_pods() -> None:
    """With the job's name and the index."""
    pod = expand("Job", parallelism=2, completionMode="Indexed")[1]

    assert {
        "app": "web",
        "job-name": "web",
        "batch.kubernetes.io/job-name": "web",
        "batch.kubernetes.io/job-completion-index": "1",
    } == pod.metadata.labels


@pytest.mark.parametrize("replicas", [-1, 200_001, 10**30])
def test_a_slip_of_the_keyboard_is_refused(replicas: int) -> None:
    """Before the memory is full."""
    with pytest.raises(errors.InputError) as caught:
        expand("Deployment", replicas=replicas)

    assert str(caught.value) == f'Deployment "shop/web": spec.replicas: {replicas} is out of range (use 0 to 200000)'


@pytest.mark.parametrize(
    ("metadata", "managed"),
    [
        ({}, False),
        ({"uid": "u"}, True),
        ({"ownerReferences": [{"controller": True}]}, True),
        ({"ownerReferences": [{"controller": False}]}, False),
    ],
)
def test_what_comes_from_a_cluster_or_is_owned_has_its_pods_elsewhere(
    metadata: dict[str, typing.Any],
    managed: bool,
) -> None:
    """A dump holds the pods beside the workload."""
    body = workloads.CODECS["ReplicaSet"].convert({"metadata": {"name": "a", **metadata}})

    assert managed is body.managed
