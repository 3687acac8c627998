"""Services and controllers at random, by which pods without spread constraints of their own are spread by default.

A request of `scenarios` comes in and is furnished with them: zones on nodes, owners on pods, and now and then arguments
of the two plugins that look at other pods. Nothing else of it changes.
"""

from __future__ import annotations

import random

from tests.fuzz import neighbours, wishes
from tests.fuzz.wishes import Json, chance

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
CONTROLLERS = (("ReplicationController", "v1"), ("ReplicaSet", "apps/v1"), ("StatefulSet", "apps/v1"))
STRANGERS = (("ReplicaSet", "apps/v1beta2"), ("DaemonSet", "apps/v1"), ("ReplicaSet", "example.com/v1"))
"""Owners whose selector does not count."""


def furnish(rng: random.Random, request: Json) -> None:
    """Add to a request, in place."""
    objects = request["objects"]
    for each in objects:
        if each["kind"] == "Node" and chance(rng, 0.7):
            each["metadata"]["labels"][ZONE] = rng.choice(("a", "b", "c", "") if chance(rng, 0.1) else ("a", "b"))
    names = ("one", "two")
    made: list[Json] = []
    for namespace in ("default", "team"):
        made += [_service(rng, f"service-{number}", namespace) for number in range(rng.choice((0, 1, 1, 2)))]
        made += [
            _controller(rng, kind, api, name, namespace)
            for kind, api in CONTROLLERS
            for name in names
            if chance(rng, 0.5)
        ]
    pods = [each for each in (*objects, *request["pods"]) if isinstance(each, dict) and each["kind"] == "Pod"]
    for pod in pods:
        if chance(rng, 0.6):
            pod["metadata"]["ownerReferences"] = _owners(rng, rng.choice(names))
        if chance(rng, 0.3):
            pod["spec"].pop("topologySpreadConstraints", None)
    objects.extend(made)
    if chance(rng, 0.25):
        _configure(rng, request)


def _service(rng: random.Random, name: str, namespace: str) -> Json:
    spec: Json = {"ports": [{"port": 80}]}
    if chance(rng, 0.9):
        labels = {"app": rng.choice(wishes.APPS), "tier": rng.choice(wishes.TIERS)}
        spec["selector"] = {key: labels[key] for key in wishes.some(rng, ("app", "tier"), 2 if chance(rng, 0.3) else 1)}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def _controller(rng: random.Random, kind: str, api: str, name: str, namespace: str) -> Json:
    labels = {"app": rng.choice(wishes.APPS)}
    chosen = labels if kind == "ReplicationController" else neighbours.selector(rng) or {"matchLabels": labels}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "app"}]}}
    spec = {"replicas": 1, "selector": chosen, "template": template}
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}


def _owners(rng: random.Random, name: str) -> list[Json]:
    kind, api = rng.choice(CONTROLLERS if chance(rng, 0.9) else STRANGERS)
    owner: Json = {"apiVersion": api, "kind": kind, "name": name, "uid": f"{kind}-{name}"}
    if chance(rng, 0.9):
        owner["controller"] = True
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "other"}
    return [other, owner] if chance(rng, 0.2) else [owner]


def _configure(rng: random.Random, request: Json) -> None:
    profiles = request.setdefault("config", {"profiles": [{"schedulerName": "default-scheduler"}]})["profiles"]
    arguments = profiles[0].setdefault("pluginConfig", [])
    spread: Json = {}
    if chance(rng, 0.6):
        pairs = [(key, when) for key in (ZONE, HOSTNAME, "disk") for when in ("DoNotSchedule", "ScheduleAnyway")]
        spread = {"defaultingType": "List", "defaultConstraints": []}
        for key, when in rng.sample(pairs, rng.randint(0, 3)):
            entry: Json = {"maxSkew": rng.randint(1, 3), "topologyKey": key, "whenUnsatisfiable": when}
            for policy in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
                if chance(rng, 0.2):
                    entry[policy] = rng.choice(("Honor", "Ignore"))
            spread["defaultConstraints"].append(entry)
    elif chance(rng, 0.5):
        spread = {"defaultingType": "System"}
    if spread:
        arguments.append({"name": "PodTopologySpread", "args": spread})
    if chance(rng, 0.6):
        args: Json = {"hardPodAffinityWeight": rng.choice((0, 1, 5, 100))}
        if chance(rng, 0.4):
            args["ignorePreferredTermsOfExistingPods"] = chance(rng, 0.7)
        arguments.append({"name": "InterPodAffinity", "args": args})
    if not arguments:
        del profiles[0]["pluginConfig"]
