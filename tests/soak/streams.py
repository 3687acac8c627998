"""The load of a soak: who sends which pods to which nodes, and how fast they come and go.

A stream is one scheduler's pods on one group of nodes. It is kept at a share of the group's CPU: pods are deleted at a
rate, and created whenever the share is not reached. Sizes, wishes and names come from the seed.
"""

from __future__ import annotations

import dataclasses
import json
import random
from typing import Any

from tests.controlplane import objects

Object = dict[str, Any]

CPU = 8000
"""Milli-CPU of a node."""
SIZES = (100, 200, 250, 400)
APPS = 20
ZONES = 3
GATE = "graphsched.io/advise"
POOL = {"key": "graphsched.io/pool", "value": "graph-exclusive"}


@dataclasses.dataclass(frozen=True, slots=True)
class Stream:
    """Pods of one kind.

    Attributes:
        name: Of the stream, and of its pods' label `soak/stream`.
        scheduler: Their schedulerName.
        group: The nodes they go to.
        share: Of the group's CPU they ask for together.
        rate: Pods that end, a second.
        advised: Whether a gate holds them until their node is chosen.
    """

    name: str
    scheduler: str
    group: str
    share: float
    rate: float
    advised: bool = False


STREAMS = (
    Stream("shared", "graph-shared", "shared", 0.50, 4.0),
    Stream("shared-kube", "default-scheduler", "shared", 0.44, 4.0),
    Stream("exclusive", "graph-exclusive", "exclusive", 0.94, 3.0),
    Stream("advise", "default-scheduler", "advise", 0.50, 3.0, advised=True),
    Stream("advise-kube", "default-scheduler", "advise", 0.44, 2.0),
)
GROUPS = {"shared": 0.52, "exclusive": 0.24, "advise": 0.24}
"""Group → its share of the nodes."""


def groups(nodes: int) -> dict[str, list[str]]:
    """Group → names of its nodes."""
    named = iter(f"n{number:04}" for number in range(nodes))
    return {group: [next(named) for _ in range(int(nodes * share))] for group, share in GROUPS.items()}


def node(name: str, group: str) -> Object:
    """A node of a group; those of the pool bear its label and taint."""
    zone = f"zone-{int(name[1:]) % ZONES}"
    labels = {"soak": group, "topology.kubernetes.io/zone": zone}
    if group == "exclusive":
        labels[POOL["key"]] = POOL["value"]
    made = objects.node(name, labels=labels, cpu=f"{CPU // 1000}", memory="64Gi", ready=False)
    if group == "exclusive":
        made["spec"] = {"taints": [{**POOL, "effect": "NoSchedule"}]}
    return made


def pod(stream: Stream, number: int, rng: random.Random) -> bytes:
    """A pod of the stream, encoded."""
    app = f"{stream.name}-{rng.randrange(APPS)}"
    size = rng.choice(SIZES)
    spec: Object = {"nodeSelector": {"soak": stream.group}}
    if stream.group == "exclusive":
        spec["tolerations"] = [{**POOL, "operator": "Equal", "effect": "NoSchedule"}]
    if stream.advised:
        spec["schedulingGates"] = [{"name": GATE}]
    wish = rng.random()
    chosen = {"labelSelector": {"matchLabels": {"app": app}}}
    if wish < 0.10:
        spec["topologySpreadConstraints"] = [
            {"maxSkew": 5, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule", **chosen}
        ]
    elif wish < 0.20:
        term = {"topologyKey": "kubernetes.io/hostname", **chosen}
        spec["affinity"] = {
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 50, "podAffinityTerm": term}]
            }
        }
    labels = {"app": app, "soak/stream": stream.name}
    made = objects.pod(
        f"{stream.name}-{number}", labels=labels, scheduler=stream.scheduler, cpu=f"{size}m", memory="500Mi", spec=spec
    )
    return json.dumps(made).encode()


def budget(stream: Stream, app: int) -> Object:
    """A disruption budget for one app of a stream: pods without a controller allow a number, no share."""
    name = f"{stream.name}-{app}"
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"minAvailable": 5, "selector": {"matchLabels": {"app": name}}},
    }
