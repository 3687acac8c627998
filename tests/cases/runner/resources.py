"""
Where objects of each kind live in the API, and what of them a client must write in a second request.

Comes in: a manifest as a user writes it. Goes out: paths and bodies. `arena.py` sends them.
"""

from tests.cases.runner import cases

#: Kind → the collection's name and whether it has namespaces.
_COLLECTIONS = {
    "CSINode": ("csinodes", False),
    "Namespace": ("namespaces", False),
    "Node": ("nodes", False),
    "PersistentVolume": ("persistentvolumes", False),
    "PersistentVolumeClaim": ("persistentvolumeclaims", True),
    "Pod": ("pods", True),
    "PodDisruptionBudget": ("poddisruptionbudgets", True),
    "PodGroup": ("podgroups", True),
    "PriorityClass": ("priorityclasses", False),
    "ReplicaSet": ("replicasets", True),
    "ReplicationController": ("replicationcontrollers", True),
    "RuntimeClass": ("runtimeclasses", False),
    "Service": ("services", True),
    "StatefulSet": ("statefulsets", True),
    "StorageClass": ("storageclasses", False),
    "VolumeAttachment": ("volumeattachments", False),
}

_FIRST, _NODES, _PODS = 0, 1, 2


def collection(manifest: cases.Object) -> str:
    """The path that objects of its kind are created at."""
    plural, namespaced = _COLLECTIONS[manifest["kind"]]
    version = manifest["apiVersion"]
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return (
        f"{root}/namespaces/{manifest['metadata'].get('namespace', 'default')}/{plural}"
        if namespaced
        else (f"{root}/{plural}")
    )


def path(manifest: cases.Object) -> str:
    """The object's own path."""
    return f"{collection(manifest)}/{manifest['metadata']['name']}"


def in_order(objects: tuple[cases.Object, ...]) -> list[cases.Object]:
    """As written, but nodes after all that pods refer to, and pods last: schedulers read each kind on its own."""
    ranks = {"Node": _NODES, "Pod": _PODS}
    return sorted(objects, key=lambda item: ranks.get(item["kind"], _FIRST))


def body(manifest: cases.Object) -> cases.Object:
    """What is created: without the time of its deletion, which nobody may write."""
    metadata = {key: value for key, value in manifest["metadata"].items() if key != "deletionTimestamp"}
    return {**manifest, "metadata": metadata}


def status(manifest: cases.Object) -> cases.Object | None:
    """What is written to the object's status once it is there; None for nothing. A bound pod runs."""
    if manifest["kind"] == "Node":
        # The API server takes a new node's status as it comes.
        return None
    written: cases.Object = manifest.get("status", {})
    if manifest["kind"] == "Pod" and "nodeName" in manifest["spec"]:
        written = {"phase": "Running", **written}
    return written or None
