"""Profiles at random: fields of a KubeSchedulerConfiguration that graphsched honours.

What it refuses (other strategies of NodeResourcesFit, extenders, lists of default spread constraints) is left out.
"""

from __future__ import annotations

import random

from tests.fuzz import wishes
from tests.fuzz.wishes import Json, chance

_SCORES = (
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
    "DynamicResources",
)
_FILTERS = ("NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit")


def configuration(rng: random.Random) -> Json:
    """A configuration with one profile, under the default name."""
    profile: Json = {"schedulerName": "default-scheduler"}
    plugins = _plugins(rng)
    if plugins:
        profile["plugins"] = plugins
    arguments = [
        {"name": name, "args": args}
        for name, args in (
            ("NodeResourcesFit", _fit(rng)),
            ("NodeResourcesBalancedAllocation", _balanced(rng)),
            ("NodeAffinity", _affinity(rng)),
        )
        if args
    ]
    if arguments:
        profile["pluginConfig"] = arguments
    return {"profiles": [profile]}


def _plugins(rng: random.Random) -> Json:
    found: Json = {}
    if chance(rng, 0.5):
        enabled = [{"name": name, "weight": rng.randint(1, 7)} for name in wishes.some(rng, _SCORES, 3)]
        found["multiPoint"] = {"enabled": enabled}
    if chance(rng, 0.3):
        found["score"] = {"disabled": [{"name": name} for name in wishes.some(rng, _SCORES, 2)]}
    if chance(rng, 0.3):
        found["filter"] = {"disabled": [{"name": name} for name in wishes.some(rng, _FILTERS, 2)]}
    return found


def _resources(rng: random.Random) -> list[Json]:
    names = wishes.some(rng, ("cpu", "memory", "ephemeral-storage", wishes.GPU), 4)
    return [{"name": name, "weight": rng.randint(1, 5)} for name in names]


def _fit(rng: random.Random) -> Json:
    found: Json = {}
    if chance(rng, 0.5):
        found["scoringStrategy"] = {"type": "LeastAllocated", "resources": _resources(rng)}
    if chance(rng, 0.2):
        found["ignoredResources"] = [wishes.GPU]
    if chance(rng, 0.2):
        found["ignoredResourceGroups"] = ["example.com"]
    return found


def _balanced(rng: random.Random) -> Json:
    if not chance(rng, 0.5):
        return {}
    return {"resources": [{"name": each["name"], "weight": 1} for each in _resources(rng)]}


def _affinity(rng: random.Random) -> Json:
    return {"addedAffinity": wishes.node_affinity(rng)} if chance(rng, 0.3) else {}
