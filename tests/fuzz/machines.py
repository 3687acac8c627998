"""Nodes at random: small or wide, tainted, cordoned, with images and features.

Part of a scenario (`scenarios`), which says how rich in what its nodes are.
"""

from __future__ import annotations

import random

from tests.fuzz import wishes
from tests.fuzz.wishes import Json, chance

FEATURES = ("RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport")
MIB = 1 << 20


class Machines:
    """Makes the nodes of one scenario.

    `wide` nodes have room for many pods and more soft taints; `labelled`, `tainted` and `stocked` are the parts of all
    nodes that have each topology label, taints and images.
    """

    def __init__(self, rng: random.Random, *, wide: bool, labelled: float, tainted: float, stocked: float) -> None:
        self._rng = rng
        self._wide = wide
        self._labelled = labelled
        self._tainted = tainted
        self._stocked = stocked

    def node(self, name: str) -> Json:
        """A node of that name."""
        rng = self._rng
        labels = {}
        if chance(rng, 0.95):
            labels["kubernetes.io/hostname"] = name
        for key, values in (("zone", wishes.ZONES), ("disk", wishes.DISKS), ("num", wishes.NUMBERS)):
            if chance(rng, self._labelled):
                labels[key] = rng.choice(values)
        node = wishes.manifest("Node", name, spec={}, status={})
        node["metadata"]["labels"] = labels
        taints = [self._taint() for _ in range(rng.randint(0, 3))] if chance(rng, self._tainted) else []
        # The API takes each pair of key and effect once.
        distinct = {(taint["key"], taint["effect"]): taint for taint in taints}
        if distinct:
            node["spec"]["taints"] = list(distinct.values())
        if chance(rng, 0.08):
            node["spec"]["unschedulable"] = True
        field = "capacity" if chance(rng, 0.1) else "allocatable"
        node["status"][field] = self._allocatable()
        if chance(rng, self._stocked):
            node["status"]["images"] = self._images()
        if chance(rng, 0.3):
            node["status"]["declaredFeatures"] = sorted(wishes.some(rng, FEATURES, 2))
        return node

    def _allocatable(self) -> Json:
        rng = self._rng
        found = {
            "cpu": rng.choice(("8", "12") if self._wide else ("1", "2", "4", "3900m", "12")),
            "memory": rng.choice(("8000M", "12Gi") if self._wide else ("1Gi", "2Gi", "4000M", "4Gi", "12Gi")),
            "pods": rng.choice(("8", "110") if self._wide else ("1", "2", "3", "5", "110", "110", "110")),
        }
        if chance(rng, 0.6):
            found["ephemeral-storage"] = rng.choice(("2Gi", "5Gi", "10G"))
        if chance(rng, 0.5):
            found[wishes.GPU] = rng.choice(("0", "1", "2", "4"))
        if chance(rng, 0.4):
            found[wishes.HUGE] = rng.choice(("0", "4Mi", "8Mi"))
        for name in ("cpu", "memory", "pods"):
            if chance(rng, 0.02):
                del found[name]
        return found

    def _taint(self) -> Json:
        rng = self._rng
        soft = self._wide and chance(rng, 0.6)
        effect = "PreferNoSchedule" if soft else rng.choice(wishes.EFFECTS)
        taint = {"key": rng.choice(wishes.TAINT_KEYS), "effect": effect}
        if chance(rng, 0.6):
            taint["value"] = rng.choice(wishes.TAINT_VALUES)
        return taint

    def _images(self) -> list[Json]:
        rng = self._rng
        found = []
        for image in wishes.some(rng, wishes.IMAGES, 4):
            names = [image if ":" in image.rpartition("/")[2] else f"{image}:latest"]
            if chance(rng, 0.3):
                names.append(f"{image.partition(':')[0]}@sha256:{'0' * 64}")
            size = rng.choice((5, 23, 60, 300, 1000, 2500)) * MIB + rng.randint(0, 1000)
            found.append({"names": names, "sizeBytes": size})
        return found
