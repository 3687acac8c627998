"""
What is scheduled: the nodes and pods of each kind of workload, encoded before the clock runs.

Comes in: a kind and sizes. Goes out: request bodies for `measure.py`. The shapes and sizes are those of the upstream
workloads that kube-scheduler is measured with, so that numbers can be held against published ones.

Invariant: bodies depend on nothing but the arguments, so that all schedulers get the same.
"""

import dataclasses
import json

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


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """How the pods of one kind of workload are, and how many there are where nothing is said."""

    #: In the words of the command line's help.
    about: str
    pods: int
    #: Labels of each pod.
    labels: dict[str, str] = dataclasses.field(default_factory=dict)
    #: Added to each pod's spec.
    spec: objects.Object = dataclasses.field(default_factory=dict)
    #: All pods have to be in one zone.
    together: bool = False
    #: The most by which zones may differ in pods; 0 where they may at will.
    max_skew: int = 0


ZONE = "topology.kubernetes.io/zone"
#: As upstream's TopologySpreading has them; nodes take turns.
ZONES = ("moon-1", "moon-2", "moon-3")
_BLUE = {"color": "blue"}
_MAX_SKEW = 5

KINDS = {
    "basic": Kind(about="pods that ask for nothing but room", pods=5000),
    # SchedulingPodAffinity's pods. There all nodes are in one zone; in three, the first pod decides for all.
    "affinity": Kind(
        about="pods that must be in one zone with each other",
        pods=2000,
        labels=_BLUE,
        spec={
            "affinity": {
                "podAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"labelSelector": {"matchLabels": _BLUE}, "topologyKey": ZONE},
                    ],
                },
            },
        },
        together=True,
    ),
    # TopologySpreading's pods.
    "spread": Kind(
        about="pods that must be spread evenly over the zones",
        pods=2000,
        labels=_BLUE,
        spec={
            "topologySpreadConstraints": [
                {
                    "maxSkew": _MAX_SKEW,
                    "topologyKey": ZONE,
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": _BLUE},
                },
            ],
        },
        max_skew=_MAX_SKEW,
    ),
}


def make(kind: str, *, nodes: int, pods: int, scheduler: str) -> Workload:
    """The workload `kind` (one of `KINDS`) for the pods' `schedulerName`."""
    shape = KINDS[kind]
    zoned = shape.together or shape.max_skew > 0
    return Workload(
        kind=kind,
        nodes=tuple(
            _encode(
                objects.node(f"node-{number:06}", labels={ZONE: ZONES[number % len(ZONES)]} if zoned else None),
            )
            for number in range(nodes)
        ),
        pods=tuple(
            _encode(objects.pod(f"pod-{number:06}", labels=shape.labels, scheduler=scheduler, spec=shape.spec))
            for number in range(pods)
        ),
        probe=_encode(objects.pod("probe", scheduler=scheduler)),
    )


def _encode(one: objects.Object) -> bytes:
    return json.dumps(one, separators=(",", ":")).encode()
