"""
Nodes and pods as the API server takes them, for tests and load on a real control plane.

Comes in: a name and what matters to the test. Goes out: the object as a dict, to be encoded as JSON. The values
follow the workloads that kube-scheduler is measured with upstream: nodes of 4 CPU, 32 GiB and 110 pods, pods of 100m
and 500Mi.
"""

from typing import Any

Object = dict[str, Any]


def node(
    name: str,
    *,
    labels: dict[str, str] | None = None,
    cpu: str = "4",
    memory: str = "32Gi",
    pods: str = "110",
    extended: dict[str, str] | None = None,
    ready: bool = True,
) -> Object:
    """
    A node; ready at once unless a fake kubelet is to make it so.

    The API server takes a new node's status as it comes, and derives allocatable from capacity.
    """
    condition = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "status": {
            "capacity": {"cpu": cpu, "memory": memory, "pods": pods, **(extended or {})},
            "conditions": [condition] if ready else [],
        },
    }


def pod(
    name: str,
    *,
    labels: dict[str, str] | None = None,
    scheduler: str = "default-scheduler",
    cpu: str = "100m",
    memory: str = "500Mi",
    spec: Object | None = None,
) -> Object:
    """A pod of one container that requests `cpu` and `memory`; `spec` adds to its spec or replaces parts of it."""
    container = {
        "name": "pause",
        "image": "registry.k8s.io/pause:3.10.2",
        "resources": {"requests": {"cpu": cpu, "memory": memory}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {
            "schedulerName": scheduler,
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            **(spec or {}),
        },
    }
