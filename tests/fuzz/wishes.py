"""What pods ask for, at random: the parts of a pod spec that bear on scheduling.

A seeded random source comes in, manifests as an API server would accept them go out. Names and values come from small
vocabularies, so that what pods ask and what nodes have (`clusters`) meet often and miss often.
"""

from __future__ import annotations

import random
import typing

Json = dict[str, typing.Any]

NODE_NAMES = tuple(f"n{number}" for number in range(8))
ZONES = ("a", "b", "c")
DISKS = ("ssd", "hdd")
NUMBERS = ("1", "5", "9", "05", "x")
TAINT_KEYS = ("dedicated", "gpu", "node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready")
TAINT_VALUES = ("", "a", "b")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
APPS = ("web", "db")
TIERS = ("x", "y")
NAMESPACES = ("default", "default", "team")
IMAGES = ("app", "app:v1", "registry.test:5000/app", "registry.test:5000/app:v2", "tool:latest")
GPU = "example.com/gpu"
HUGE = "hugepages-2Mi"
CPUS = ("100m", "250m", "500m", "1", "1500m", "0", "1.1", "0.0005")
MEMORIES = ("64Mi", "200Mi", "256M", "512Mi", "1Gi", "0", "1.5Gi", "100")
STORAGES = ("1Gi", "2Gi", "500M")


def chance(rng: random.Random, part: float) -> bool:
    """True in that part of all cases."""
    return rng.random() < part


def some(rng: random.Random, values: typing.Sequence[str], most: int) -> list[str]:
    """Up to `most` different values, at least one."""
    return rng.sample(values, rng.randint(1, min(most, len(values))))


def manifest(kind: str, name: str, *, api: str = "v1", **fields: object) -> Json:
    """An object of the API."""
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, **fields}


def pod_labels(rng: random.Random) -> dict[str, str]:
    """Labels of a pod, from none to two."""
    labels = {}
    if chance(rng, 0.7):
        labels["app"] = rng.choice(APPS)
    if chance(rng, 0.4):
        labels["tier"] = rng.choice(TIERS)
    return labels


# ── resources ──────────────────────────────────────────────────────────────────────────────────────────────────────


def resources(rng: random.Random) -> Json:
    """`resources` of a container: requests, limits, both or none; never more requested than the limit."""
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}
    if chance(rng, 0.7):
        requests["cpu"] = rng.choice(CPUS)
    if chance(rng, 0.6):
        requests["memory"] = rng.choice(MEMORIES)
    if chance(rng, 0.15):
        requests["ephemeral-storage"] = rng.choice(STORAGES)
    if chance(rng, 0.2):
        limits = {name: most for name, most in (("cpu", "2"), ("memory", "2Gi")) if chance(rng, 0.6)}
    if chance(rng, 0.15):
        limits[GPU] = rng.choice(("0", "1", "2"))
        if chance(rng, 0.5):
            requests[GPU] = limits[GPU]
    if chance(rng, 0.08):
        limits[HUGE] = rng.choice(("2Mi", "4Mi"))
        requests.setdefault("cpu", "100m")
    found: Json = {}
    if requests:
        found["requests"] = requests
    if limits:
        found["limits"] = limits
    return found


def pod_level(rng: random.Random) -> Json:
    """`spec.resources`: more than any four containers of this vocabulary ask together."""
    requests = {}
    if chance(rng, 0.8):
        requests["cpu"] = rng.choice(("8", "10"))
    if chance(rng, 0.6):
        requests["memory"] = rng.choice(("9Gi", "10Gi"))
    limits = {name: "16" if name == "cpu" else "16Gi" for name in requests if chance(rng, 0.4)}
    return {"requests": requests, **({"limits": limits} if limits else {})}


def small_pod_level(rng: random.Random) -> Json:
    """`spec.resources` for a pod whose containers name no cpu and memory."""
    requests = {}
    if chance(rng, 0.8):
        requests["cpu"] = rng.choice(("200m", "1"))
    if chance(rng, 0.6):
        requests["memory"] = rng.choice(("128Mi", "1Gi"))
    limits = {name: "2" if name == "cpu" else "2Gi" for name in ("cpu", "memory") if chance(rng, 0.3)}
    return {"requests": requests, **({"limits": limits} if limits else {})}


# ── containers ─────────────────────────────────────────────────────────────────────────────────────────────────────


def container(rng: random.Random, name: str) -> Json:
    """A container."""
    found: Json = {"name": name, "image": rng.choice(IMAGES)}
    wanted = resources(rng)
    if wanted:
        found["resources"] = wanted
    if chance(rng, 0.2):
        found["ports"] = [_port(rng)]
    if chance(rng, 0.03):
        found["restartPolicy"] = "Never"
        rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}
        found["restartPolicyRules"] = [rule]
    return found


def _port(rng: random.Random) -> Json:
    port: Json = {"containerPort": rng.choice((80, 81))}
    if chance(rng, 0.8):
        port["hostPort"] = rng.choice((80, 81))
    if chance(rng, 0.4):
        port["protocol"] = rng.choice(("TCP", "UDP"))
    if chance(rng, 0.4):
        port["hostIP"] = rng.choice(("127.0.0.1", "10.0.0.1", "0.0.0.0"))  # noqa: S104  nothing is bound
    return port


def init_containers(rng: random.Random) -> list[Json]:
    """Init containers, some of them sidecars."""
    found = []
    for number in range(rng.randint(1, 3)):
        each = container(rng, f"i{number}")
        for field in ("restartPolicy", "restartPolicyRules"):
            each.pop(field, None)
        if chance(rng, 0.5):
            each["restartPolicy"] = "Always"
        found.append(each)
    return found


# ── where to ───────────────────────────────────────────────────────────────────────────────────────────────────────


def toleration(rng: random.Random) -> Json:
    """A toleration that the API accepts."""
    found: Json = {}
    if chance(rng, 0.85):
        found["key"] = rng.choice(TAINT_KEYS)
    if "key" not in found or chance(rng, 0.4):
        found["operator"] = "Exists"
    else:
        if chance(rng, 0.5):
            found["operator"] = "Equal"
        if chance(rng, 0.7):
            found["value"] = rng.choice(TAINT_VALUES)
    if chance(rng, 0.6):
        found["effect"] = rng.choice(EFFECTS)
    if found.get("effect") == "NoExecute" and chance(rng, 0.3):
        found["tolerationSeconds"] = 60
    return found


def expression(rng: random.Random) -> Json:
    """A requirement on node labels."""
    operator = rng.choice(("In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
    if operator in {"Gt", "Lt"}:
        return {"key": "num", "operator": operator, "values": [rng.choice(("0", "5", "3", "8"))]}
    key, values = rng.choice((("zone", ZONES), ("disk", DISKS), ("num", NUMBERS), ("gone", ("a",))))
    if operator in {"Exists", "DoesNotExist"}:
        return {"key": key, "operator": operator}
    return {"key": key, "operator": operator, "values": some(rng, values, 2)}


def field(rng: random.Random, *, pinning: bool) -> Json:
    """A requirement on the node's name."""
    operator = "In" if pinning or chance(rng, 0.5) else "NotIn"
    return {"key": "metadata.name", "operator": operator, "values": [rng.choice((*NODE_NAMES[:4], "gone"))]}


def node_term(rng: random.Random) -> Json:
    """A node selector term; now and then it is empty and matches nothing."""
    term: Json = {}
    if chance(rng, 0.8):
        term["matchExpressions"] = [expression(rng) for _ in range(rng.randint(1, 2))]
    if chance(rng, 0.2):
        term["matchFields"] = [field(rng, pinning=False) for _ in range(rng.randint(1, 2))]
    return term


def node_affinity(rng: random.Random, *, required: float = 0.6) -> Json:
    """Required terms (in that part of all cases), preferred terms, or both."""
    found: Json = {}
    if chance(rng, required):
        if chance(rng, 0.25):
            terms = [{"matchFields": [field(rng, pinning=True)]} for _ in range(rng.randint(1, 2))]
            if chance(rng, 0.2):
                terms[0]["matchFields"].append(field(rng, pinning=True))
            if chance(rng, 0.3):
                terms[0]["matchExpressions"] = [expression(rng)]
        else:
            terms = [node_term(rng) for _ in range(rng.randint(1, 2))]
        found["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if not found or chance(rng, 0.4):
        found["preferredDuringSchedulingIgnoredDuringExecution"] = [
            {"weight": rng.choice((1, 10, 33, 100)), "preference": node_term(rng)} for _ in range(rng.randint(1, 3))
        ]
    return found
