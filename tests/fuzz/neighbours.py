"""What pods ask of other pods, at random: topology spread constraints, pod affinity and anti-affinity; and the services
and controllers that pods belong to, which the default constraints follow.

Kept apart from `wishes`, because a comparison may want to leave these plugins out.
"""

from __future__ import annotations

import random

from tests.fuzz import wishes
from tests.fuzz.wishes import Json

TOPOLOGY_KEYS = ("zone", "disk", "kubernetes.io/hostname")


def selector(rng: random.Random) -> Json:
    """A label selector over pods; now and then the empty one."""
    if wishes.chance(rng, 0.1):
        return {}
    found: Json = {}
    if wishes.chance(rng, 0.6):
        key, values = rng.choice((("app", wishes.APPS), ("tier", wishes.TIERS)))
        found["matchLabels"] = {key: rng.choice(values)}
    if not found or wishes.chance(rng, 0.3):
        key, values = rng.choice((("app", wishes.APPS), ("tier", wishes.TIERS)))
        operator = rng.choice(("In", "NotIn", "Exists", "DoesNotExist"))
        expression: Json = {"key": key, "operator": operator}
        if operator in {"In", "NotIn"}:
            expression["values"] = wishes.some(rng, values, 2)
        found["matchExpressions"] = [expression]
    return found


def spread(rng: random.Random) -> list[Json]:
    """`topologySpreadConstraints`; no pair of key and strictness twice, as the API demands."""
    pairs = [(key, when) for key in TOPOLOGY_KEYS for when in ("DoNotSchedule", "ScheduleAnyway")]
    found = []
    for key, when in rng.sample(pairs, rng.randint(1, 3)):
        entry: Json = {"maxSkew": rng.choice((1, 1, 1, 2, 3)), "topologyKey": key, "whenUnsatisfiable": when}
        if wishes.chance(rng, 0.9):
            entry["labelSelector"] = selector(rng)
            if wishes.chance(rng, 0.2):
                taken = {*entry["labelSelector"].get("matchLabels", ())}
                taken |= {each["key"] for each in entry["labelSelector"].get("matchExpressions", ())}
                keys = sorted({"app", "tier", "gone"} - taken)
                entry["matchLabelKeys"] = wishes.some(rng, keys, 2)
        if when == "DoNotSchedule" and wishes.chance(rng, 0.3):
            entry["minDomains"] = rng.randint(1, 4)
        for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if wishes.chance(rng, 0.3):
                entry[policy] = rng.choice(("Honor", "Ignore"))
        found.append(entry)
    return found


def _term(rng: random.Random) -> Json:
    found: Json = {"topologyKey": rng.choice(TOPOLOGY_KEYS)}
    if wishes.chance(rng, 0.95):
        found["labelSelector"] = selector(rng)
        taken = {*found["labelSelector"].get("matchLabels", ())}
        taken |= {each["key"] for each in found["labelSelector"].get("matchExpressions", ())}
        free = sorted({"app", "tier", "gone"} - taken)
        if wishes.chance(rng, 0.15):
            found[rng.choice(("matchLabelKeys", "mismatchLabelKeys"))] = wishes.some(rng, free, 1)
    if wishes.chance(rng, 0.2):
        found["namespaces"] = wishes.some(rng, ("default", "team"), 2)
    if wishes.chance(rng, 0.2):
        found["namespaceSelector"] = rng.choice(
            (
                {},
                {"matchLabels": {"team": "red"}},
                {"matchExpressions": [{"key": "team", "operator": "Exists"}]},
                {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["red"]}]},
                {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
            ),
        )
    return found


def pod_affinity(rng: random.Random) -> Json:
    """`podAffinity`, `podAntiAffinity` or both."""
    found: Json = {}
    for kind in rng.choice((("podAffinity",), ("podAntiAffinity",), ("podAffinity", "podAntiAffinity"))):
        part: Json = {}
        if wishes.chance(rng, 0.6):
            part["requiredDuringSchedulingIgnoredDuringExecution"] = [_term(rng) for _ in range(rng.randint(1, 2))]
        if not part or wishes.chance(rng, 0.4):
            part["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": rng.choice((1, 10, 50, 100)), "podAffinityTerm": _term(rng)}
                for _ in range(rng.randint(1, 2))
            ]
        found[kind] = part
    return found


CONTROLLERS = (("v1", "ReplicationController"), ("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet"))


def owners(rng: random.Random) -> list[Json]:
    """Services and controllers, one or two of each kind that is there at all."""
    found: list[Json] = []
    for api, kind in (("v1", "Service"), *CONTROLLERS):
        for number in range(rng.choice((0, 0, 1, 2))):
            labels = {"app": rng.choice(wishes.APPS)}
            if wishes.chance(rng, 0.3):
                labels["tier"] = rng.choice(wishes.TIERS)
            metadata = {"name": f"{kind.lower()}-{number}", "namespace": rng.choice(wishes.NAMESPACES)}
            spec: Json = {"selector": labels}
            if kind == "Service":
                if wishes.chance(rng, 0.1):
                    spec = {}
                spec["ports"] = [{"port": 80}]
            else:
                if api == "apps/v1":
                    spec = {"selector": selector(rng) if wishes.chance(rng, 0.3) else {"matchLabels": labels}}
                pod = {"containers": [{"name": "c", "image": "app"}]}
                spec |= {"replicas": 0, "template": {"metadata": {"labels": labels}, "spec": pod}}
            found.append({"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec})
    return found


def owner_reference(rng: random.Random) -> Json:
    """A reference to a controller, which may not exist."""
    api, kind = rng.choice(CONTROLLERS)
    name = f"{kind.lower()}-{rng.randint(0, 1)}"
    return {"apiVersion": api, "kind": kind, "name": name, "uid": name, "controller": wishes.chance(rng, 0.9)}
