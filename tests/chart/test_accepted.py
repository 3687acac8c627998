"""What helm renders is what a real API server takes: every object of Kubernetes' own kinds, dry, with validation."""

import pathlib

import pytest

from tests.chart import rendering
from tests.chart.test_rendered import CHOICES, CUSTOM, render
from tests.controlplane import cluster as clusters

pytestmark = pytest.mark.cluster

PLURALS = {"NetworkPolicy": "networkpolicies", "PriorityClass": "priorityclasses"}
CLUSTER_WIDE = {"ClusterRole", "ClusterRoleBinding", "FlowSchema", "PriorityClass", "PriorityLevelConfiguration"}


def collection(document: rendering.Object) -> str:
    """The path under which an object is created."""
    version, kind = document["apiVersion"], document["kind"]
    plural = PLURALS.get(kind, f"{kind.lower()}s")
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return f"{root}/{plural}" if kind in CLUSTER_WIDE else f"{root}/namespaces/default/{plural}"


@pytest.mark.parametrize("choice", CHOICES)
def test_a_real_api_server_takes_every_object(cluster: clusters.Cluster, tmp_path: pathlib.Path, choice: str) -> None:
    """A dry run with strict field validation refuses none."""
    refused = {}
    for document in render(CHOICES[choice], tmp_path):
        if document["kind"] in CUSTOM:
            continue
        # The release's namespace is not made for this.
        metadata = {**document["metadata"], "namespace": "default"}
        if document["kind"] in CLUSTER_WIDE:
            del metadata["namespace"]
        try:
            path = f"{collection(document)}?dryRun=All&fieldValidation=Strict"
            cluster.call("POST", path, {**document, "metadata": metadata})
        except clusters.RequestError as error:
            refused[document["kind"], error.status] = str(error)

    assert {} == refused
