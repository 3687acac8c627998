"""The QoS class of a pod, as far as scheduling needs it: whether it is Guaranteed, so that kubelets align it.

Semantics: kube-apiserver's status.qosClass, which manifests do not have; so it is computed of every spec.
"""

from __future__ import annotations

from collections.abc import Iterable

from graphsched.base.kube import requests, wire
from graphsched.base.values import nodes

_ALIGNED = (nodes.CPU, nodes.MEMORY)


def guaranteed(spec: wire.PodSpec) -> bool:
    """Whether every container limits CPU and memory, and all limits together are what they request together.

    Where the pod as a whole has resources, those decide alone.

    Raises:
        InputError: A quantity is none, or negative.
    """
    if spec.resources is not None and (spec.resources.requests or spec.resources.limits):
        return _guaranteed([("spec.resources", spec.resources)])
    containers = [
        *((f"spec.containers[{index}]", each) for index, each in enumerate(spec.containers or ())),
        *((f"spec.initContainers[{index}]", each) for index, each in enumerate(spec.init_containers or ())),
    ]
    return _guaranteed(
        (f"{field}.resources", container.resources or wire.ResourceRequirements()) for field, container in containers
    )


def _guaranteed(parts: Iterable[tuple[str, wire.ResourceRequirements]]) -> bool:
    wanted, most = dict.fromkeys(_ALIGNED, 0), dict.fromkeys(_ALIGNED, 0)
    for field, part in parts:
        for name in _ALIGNED:
            limit = _amount(part.limits, name, f"{field}.limits")
            if not limit:
                return False
            most[name] += limit
            wanted[name] += _amount(part.requests, name, f"{field}.requests")
    return wanted == most and all(most.values())


def _amount(resources: wire.Resources | None, name: str, field: str) -> int:
    text = (resources or {}).get(name)
    return 0 if text is None else requests.milli(text, f"{field}.{name}")
