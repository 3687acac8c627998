"""
What is scheduled: the nodes and pods of each kind of workload, encoded before the clock runs.

Comes in: a kind and sizes. Goes out: request bodies for `measure.py`. The shapes and sizes are those of the upstream
workloads that kube-scheduler is measured with, so that numbers can be held against published ones.

Invariant: bodies depend on nothing but the arguments, so that all schedulers get the same.
"""

import dataclasses
import json
from collections.abc import Callable

from tests.controlplane import objects


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Nodes that exist before the scheduler starts, and pods that are created while it is measured."""

    kind: str
    #: Encoded Node objects.
    nodes: tuple[bytes, ...]
    #: Encoded Pod objects, all of the measured scheduler.
    pods: tuple[bytes, ...]
    #: A pod like the others, to see that the scheduler is at work.
    probe: bytes


def _basic(number: int, scheduler: str) -> objects.Object:
    return objects.pod(f"pod-{number:06}", scheduler=scheduler)


#: How a pod of each kind is made, from its number and its scheduler's name.
KINDS: dict[str, Callable[[int, str], objects.Object]] = {"basic": _basic}


def make(kind: str, *, nodes: int, pods: int, scheduler: str) -> Workload:
    """The workload `kind` (one of `KINDS`) for the pods' `schedulerName`."""
    pod = KINDS[kind]
    probe = objects.pod("probe", scheduler=scheduler)
    return Workload(
        kind=kind,
        nodes=tuple(_encode(objects.node(f"node-{number:06}")) for number in range(nodes)),
        pods=tuple(_encode(pod(number, scheduler)) for number in range(pods)),
        probe=_encode(probe),
    )


def _encode(one: objects.Object) -> bytes:
    return json.dumps(one, separators=(",", ":")).encode()
