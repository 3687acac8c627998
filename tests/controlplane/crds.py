"""Custom resources for a control plane: our own as the chart has them, those of others as far as a test needs them.

Of the others the names and the scope are theirs; the schema keeps whatever an object holds.
"""

import contextlib
import pathlib
from collections.abc import Iterator

import yaml

from tests.controlplane import cluster as clusters, objects, processes

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_OURS = pathlib.Path(__file__).resolve().parents[2] / "charts" / "graphsched" / "crds"


def _theirs(group: str, version: str, kind: str, plural: str, *, namespaced: bool = False) -> objects.Object:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced" if namespaced else "Cluster",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
            "versions": [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": anything}}],
        },
    }


NETWORK_LINKS: objects.Object = yaml.safe_load((_OURS / "networklinks.yaml").read_text())
GRAPH_POLICIES: objects.Object = yaml.safe_load((_OURS / "graphpolicies.yaml").read_text())
HYPER_NODES = _theirs("topology.volcano.sh", "v1alpha1", "HyperNode", "hypernodes")
# The newest version of Kueue's API, which is not the first that is tried.
KUEUE_TOPOLOGIES = _theirs("kueue.x-k8s.io", "v1beta2", "Topology", "topologies")
NETWORK_TOPOLOGIES = _theirs(
    "networktopology.diktyo.x-k8s.io", "v1alpha1", "NetworkTopology", "networktopologies", namespaced=True
)
APP_GROUPS = _theirs("appgroup.diktyo.x-k8s.io", "v1alpha1", "AppGroup", "appgroups", namespaced=True)
NODE_RESOURCE_TOPOLOGIES = _theirs("topology.node.k8s.io", "v1alpha2", "NodeResourceTopology", "noderesourcetopologies")
ALL = (
    NETWORK_LINKS,
    HYPER_NODES,
    KUEUE_TOPOLOGIES,
    _theirs("kai.scheduler", "v1alpha1", "Topology", "topologies"),
    NETWORK_TOPOLOGIES,
    APP_GROUPS,
    NODE_RESOURCE_TOPOLOGIES,
    _theirs("scheduling.koordinator.sh", "v1alpha1", "ClusterNetworkTopology", "clusternetworktopologies"),
)


@contextlib.contextmanager
def installed(cluster: clusters.Cluster, *definitions: objects.Object) -> Iterator[None]:
    """These kinds are there within the block, and gone with all their objects after it."""
    for each in definitions:
        cluster.call("POST", _DEFINITIONS, _annotated(each))
    try:
        for each in definitions:
            path = f"{_DEFINITIONS}/{each['metadata']['name']}"
            processes.wait_until(
                lambda path=path: _established(cluster.call("GET", path)),  # type: ignore[misc]  # a default argument
                what=f"{each['metadata']['name']} is served",
                timeout_s=20.0,
            )
        yield
    finally:
        names = {each["metadata"]["name"] for each in definitions}
        for name in names:
            cluster.call("DELETE", f"{_DEFINITIONS}/{name}")
        # Their objects go first, which takes a moment; until then none of the name can be made.
        processes.wait_until(
            lambda: names.isdisjoint(each["metadata"]["name"] for each in cluster.call("GET", _DEFINITIONS)["items"]),
            what=f"{', '.join(sorted(names))} are gone",
            timeout_s=30.0,
        )


def path_of(definition: objects.Object, *, namespace: str = "") -> str:
    """Where the objects of this kind are."""
    spec = definition["spec"]
    where = f"namespaces/{namespace}/" if namespace else ""
    return f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{where}{spec['names']['plural']}"


def make(cluster: clusters.Cluster, definition: objects.Object, name: str, body: objects.Object) -> None:
    """Create an object of this kind, in the namespace `default` if it lives in one."""
    spec = definition["spec"]
    whole = {
        "apiVersion": f"{spec['group']}/{spec['versions'][0]['name']}",
        "kind": spec["names"]["kind"],
        "metadata": {"name": name},
        **body,
    }
    cluster.call("POST", path_of(definition, namespace=_namespace(definition)), whole)


def remove(cluster: clusters.Cluster, definition: objects.Object, name: str) -> None:
    """Delete an object of this kind."""
    cluster.call("DELETE", f"{path_of(definition, namespace=_namespace(definition))}/{name}")


def _namespace(definition: objects.Object) -> str:
    return "default" if definition["spec"]["scope"] == "Namespaced" else ""


def _annotated(definition: objects.Object) -> objects.Object:
    """Groups of the Kubernetes community ask for a word about who approved them."""
    metadata = {**definition["metadata"], "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"}}
    return {**definition, "metadata": metadata}


def _established(definition: objects.Object) -> bool:
    conditions = definition.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
