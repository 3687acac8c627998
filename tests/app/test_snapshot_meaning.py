"""
A snapshot decides as the cluster it was taken of: what is left out bears on nothing.

Scenarios at random, as the oracle is compared on, with all that people keep in a pod besides. Nothing is simulated:
`evaluate` answers for the objects as they were, and for what a snapshot keeps of them.
"""

import copy
import json
import random
import types
import typing

import msgspec
import pytest

from graphsched.app import evaluate, snapshot
from graphsched.base.kube import wire
from tests.fuzz import scenarios

CANARY = "canary-hunter2"
PART, PARTS = 40, 3

Json = dict[str, typing.Any]


def furnished(body: Json) -> Json:
    """The object with a canary wherever a person or a program may have put a secret."""
    full = copy.deepcopy(body)
    full.setdefault("metadata", {}).update(
        annotations={"kubectl.kubernetes.io/last-applied-configuration": CANARY, "note": CANARY},
        managedFields=[{"manager": CANARY}],
        finalizers=[f"example.org/{CANARY}"],
    )
    if full["kind"] == "Namespace":
        full["status"] = {"conditions": [{"type": "X", "message": CANARY}]}
    if full["kind"] == "PriorityClass":
        full["description"] = CANARY
    if full["kind"] == "Service":
        full.setdefault("spec", {})["externalName"] = CANARY
    if full["kind"] == "Node":
        full.setdefault("spec", {})["providerID"] = f"cloud:///{CANARY}"
        full.setdefault("status", {}).update(
            nodeInfo={"machineID": CANARY},
            addresses=[
                {"type": "Hostname", "address": CANARY},
                {"type": "InternalIP", "address": "10.0.0.1", "note": CANARY},
            ],
            conditions=[{"type": "Ready", "status": "True", "message": CANARY}],
        )
    if full["kind"] == "Pod":
        _furnish_pod(full)
    return full


def _furnish_pod(full: Json) -> None:
    spec = full.setdefault("spec", {})
    spec |= {"imagePullSecrets": [{"name": CANARY}], "serviceAccountName": CANARY, "hostAliases": [{"ip": CANARY}]}
    spec["securityContext"] = {"seLinuxOptions": {"user": CANARY}}
    for container in [*spec.get("containers", []), *spec.get("initContainers", [])]:
        container |= {
            "env": [
                {"name": "PASSWORD", "value": CANARY},
                {"name": CANARY, "valueFrom": {"secretKeyRef": {"name": CANARY, "key": "k"}}},
            ],
            "envFrom": [{"configMapRef": {"name": CANARY}}],
            "command": ["run", CANARY],
            "args": [f"--password={CANARY}"],
            "workingDir": CANARY,
            "lifecycle": {"postStart": {"exec": {"command": [CANARY]}}},
            "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": CANARY}]}},
        }
    spec.setdefault("volumes", []).extend(
        [
            {"name": "vs", "secret": {"secretName": CANARY}},
            {"name": "vp", "projected": {"sources": [{"secret": {"name": CANARY}}]}},
            {"name": "vc", "csi": {"driver": "d", "volumeAttributes": {"key": CANARY}}},
            {"name": "vn", "nfs": {"server": CANARY, "path": "/"}},
        ]
    )
    status = full.setdefault("status", {})
    status.setdefault("containerStatuses", []).extend([])
    status |= {"podIP": CANARY, "message": CANARY, "hostIP": CANARY}
    for condition in status.setdefault("conditions", []):
        condition["message"] = CANARY


def kept(body: Json) -> Json:
    """What a snapshot keeps of it, after it was written and read."""
    stripped: Json = json.loads(json.dumps(snapshot.stripped(body)))
    return stripped


def typed(entry: Json) -> Json:
    """A pod of a request, which need not say what it is."""
    return {"apiVersion": "v1", "kind": "Pod", **entry}


def answer(request: Json) -> Json:
    """What `evaluate` says."""
    told: Json = msgspec.json.decode(msgspec.json.encode(evaluate.answer(msgspec.json.encode(request))))
    return told


@pytest.mark.parametrize("part", range(PARTS))
def test_decisions_on_a_snapshot_are_those_on_the_cluster(part: int) -> None:
    """Node by node, plugin by plugin, word by word; and not a canary is left."""
    decided = 0
    for number in range(part * PART, (part + 1) * PART):
        request = scenarios.scenario(77, number)
        raw = {**request, "objects": [furnished(each) for each in request["objects"]]}
        raw["pods"] = [furnished(typed(each)) if isinstance(each, dict) else each for each in request["pods"]]
        bare = {**raw, "objects": [kept(each) for each in raw["objects"]]}
        bare["pods"] = [kept(each) if isinstance(each, dict) else each for each in raw["pods"]]

        assert CANARY not in json.dumps(bare)
        told = answer(raw)
        assert told == answer(bare)
        decided += "error" not in told
    assert decided > PART // 2


def fields_of(kind: type) -> dict[str, typing.Any]:
    """Name on the wire → type, of a struct."""
    hints = typing.get_type_hints(kind)
    return {field.encode_name: hints[field.name] for field in msgspec.structs.fields(kind)}


def full(hint: typing.Any, rng: random.Random) -> typing.Any:
    """A value of the type with every field there, so that it is seen if one is lost."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in {typing.Union, types.UnionType}:
        return full(next(each for each in arguments if each is not type(None)), rng)
    if origin is list:
        return [full(arguments[0], rng)]
    if origin is dict:
        return {"key": full(arguments[1], rng)}
    if hint is wire.NodeAddress:
        # Those of other types are names, which nobody reads.
        return {"type": "InternalIP", "address": rng.randrange(1 << 30)}
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return {name: full(field, rng) for name, field in fields_of(hint).items()}
    return rng.randrange(1 << 30)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("Pod", wire.Pod),
        ("Node", wire.Node),
        ("Namespace", wire.Namespace),
        ("PriorityClass", wire.PriorityClass),
        ("RuntimeClass", wire.RuntimeClass),
    ],
)
def test_a_snapshot_keeps_every_field_that_is_read(kind: str, body: type) -> None:
    """Whoever teaches the decoder a field must let it into snapshots, too."""
    raw = {**full(body, random.Random(1)), "apiVersion": "v1", "kind": kind}
    want = {**raw, "metadata": {key: value for key, value in raw["metadata"].items() if key in snapshot._METADATA}}

    assert want == kept(raw)
