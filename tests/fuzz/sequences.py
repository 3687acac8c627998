"""Event sequences at random: a cluster that changes while its scheduler runs, looked at now and then.

A seed and a number come in, a request goes out, always the same one for the same pair: `objects` that are there at
first, `events` in order, and `pods` to try at every `check` among them. `living` carries it out.

An event says what happened and to what, never more, so that leaving any of them out gives another sequence:

    set      an object is there, or another one of its name      change   a field of an object
    delete   an object is gone (its name may come again)         check    all engines say what they think
    decide   the live engine decides on a pod and promises it to the node
    confirm  the cluster shows the pod bound there               forget   its binding came to nothing

Invariant: objects are as an API server returns them, defaults filled in, since that is what a watch delivers.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec

from graphsched.base.kube import defaults, nodes as kube_nodes, wire
from graphsched.base.values import keys, nodes
from tests.fuzz import configurations, defaults as spreading, scenarios, wishes
from tests.fuzz.wishes import Json, chance

EVENTS = (8, 15, 25, 40)
"""How many may lie before the last check."""
LATE = "late"
"""A namespace that is not there from the beginning."""


def sequence(seed: int, number: int, *, extras: frozenset[str] = scenarios.ALL_EXTRAS) -> Json:
    """The sequence of that number in that series."""
    return _Sequence(random.Random(f"events/{seed}/{number}"), extras).make(f"events/{seed}/{number}")


class _Sequence:
    def __init__(self, rng: random.Random, extras: frozenset[str]) -> None:
        self._rng = rng
        self._maker = scenarios.Maker(rng, extras)
        self._spreading = scenarios.DEFAULTS in extras
        self._common = self._maker.common()
        self._nodes: dict[str, Json] = {}
        self._pods: dict[str, Json] = {}
        self._late = False
        self._made = 0
        self._sizes: dict[str, int] = {}

    def make(self, identity: str) -> Json:
        rng = self._rng
        objects = [_namespace(name) for name in ("default", "team")]
        objects += [self._node(name) for name in self._maker.names]
        for name in self._maker.names:
            objects += [self._bound(name) for _ in range(rng.randint(0, 2))]
        objects += [self._pending() for _ in range(rng.randint(0, 2))]
        pods: list[object] = [self._probe(f"probe{number}") for number in range(rng.randint(2, 4))]
        pods += rng.sample(sorted(self._pods), min(len(self._pods), 1))
        events: list[Json] = [{"do": "check"}] if chance(rng, 0.5) else []
        for _ in range(rng.choice(EVENTS)):
            events += self._events()
            if chance(rng, 0.12):
                events.append({"do": "check"})
        events.append({"do": "check"})
        config = {"config": configurations.configuration(rng)} if chance(rng, 0.15) else {}
        request = {"id": identity, **config, "objects": objects, "events": events, "pods": pods}
        if self._spreading:
            spreading.furnish(rng, request)
        return request

    # ── events ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _events(self) -> list[Json]:
        choices: tuple[tuple[int, Callable[[], list[Json]]], ...] = (
            (5, self._pod_added),
            (6, self._pod_decided),
            (4, self._pod_labelled),
            (4, self._pod_changed),
            (4, self._pod_gone),
            (2, self._node_added),
            (2, self._node_gone),
            (5, self._node_changed),
            (2, self._namespace_changed),
            (3 * self._spreading, self._selection_changed),
        )
        (make,) = self._rng.choices([each for _, each in choices], [weight for weight, _ in choices])
        return make()

    def _pod_added(self) -> list[Json]:
        names = sorted(self._nodes)
        if names and chance(self._rng, 0.4):
            return [_set(self._bound(self._rng.choice(names)))]
        return [_set(self._pending())]

    def _pod_decided(self) -> list[Json]:
        """Decided on, and what comes of it: at once, later, or never."""
        rng = self._rng
        waiting = [key for key, pod in self._pods.items() if "nodeName" not in pod["spec"]]
        found = [] if waiting and chance(rng, 0.5) else [_set(self._pending())]
        key = rng.choice(waiting) if not found else _key(found[0]["object"])
        found.append({"do": "decide", "of": key})
        if chance(rng, 0.5):
            found.append({"do": rng.choice(("confirm", "confirm", "forget")), "of": key})
        return found

    def _pod_labelled(self) -> list[Json]:
        key = self._some_pod()
        return [_change(key, ["metadata", "labels"], wishes.pod_labels(self._rng))] if key else []

    def _pod_changed(self) -> list[Json]:
        rng, key = self._rng, self._some_pod()
        if not key:
            return []
        pod = self._pods[key]
        if chance(rng, 0.3):
            return [{"do": rng.choice(("decide", "confirm", "forget")), "of": key}]
        if "nodeName" in pod["spec"]:
            if chance(rng, 0.4):
                return [_change(key, ["metadata", "deletionTimestamp"], "2026-01-01T02:00:00Z")]
            if chance(rng, 0.3):
                return [_change(key, ["status", "phase"], rng.choice(("Succeeded", "Failed")))]
            status: Json = {"phase": "Running", "startTime": pod.get("status", {}).get("startTime")}
            self._maker.report(pod["spec"], status)
            return [_change(key, ["status"], status)]
        if pod["spec"].get("schedulingGates"):
            # From here on it may be promised a node, but never be nominated to one.
            return [_change(key, ["spec", "schedulingGates"], None)]
        if chance(rng, 0.3) and self._nodes:
            # Another scheduler was faster.
            return [_change(key, ["spec", "nodeName"], rng.choice(sorted(self._nodes)))]
        if pod["spec"]["schedulerName"] != "default-scheduler":
            return []
        nominated = rng.choice([*sorted(self._nodes), "gone", None])
        return [_change(key, ["status", "nominatedNodeName"], nominated)]

    def _pod_gone(self) -> list[Json]:
        key = self._some_pod()
        if not key:
            return []
        before = self._pods.pop(key)
        found: list[Json] = [{"do": "delete", "of": key}]
        if chance(self._rng, 0.4):
            bound = before["spec"].get("nodeName")
            name = before["metadata"]["name"]
            found.append(_set(self._bound(bound, name) if bound and chance(self._rng, 0.5) else self._pending(name)))
        return found

    def _some_pod(self) -> str:
        return self._rng.choice(sorted(self._pods)) if self._pods else ""

    def _node_added(self) -> list[Json]:
        free = [name for name in wishes.NODE_NAMES if name not in self._nodes]
        return [_set(self._node(self._rng.choice(free)))] if free else []

    def _node_gone(self) -> list[Json]:
        if not self._nodes:
            return []
        name = self._rng.choice(sorted(self._nodes))
        del self._nodes[name]
        found: list[Json] = [{"do": "delete", "of": f"node/{name}"}]
        return [*found, _set(self._node(name))] if chance(self._rng, 0.5) else found

    def _node_changed(self) -> list[Json]:
        rng = self._rng
        if not self._nodes:
            return []
        name = rng.choice(sorted(self._nodes))
        key, other = f"node/{name}", self._furnished(self._maker.node(name))
        if chance(rng, 0.2):
            return [_change(key, ["spec", "unschedulable"], rng.choice((True, None)))]
        if chance(rng, 0.2):
            taints = [self._maker.taint()] if chance(rng, 0.6) else None
            return [_change(key, ["spec", "taints"], taints)]
        if chance(rng, 0.3):
            return [_change(key, ["status", "allocatable"], self._maker.allocatable())]
        if chance(rng, 0.15):
            return [_change(key, ["status", "images"], self._sized(self._maker.images()))]
        return [_change(key, ["metadata", "labels"], other["metadata"]["labels"])]

    def _namespace_changed(self) -> list[Json]:
        rng = self._rng
        if chance(rng, 0.4):
            self._late = not self._late
            label = {"team": rng.choice(("red", "blue"))} if chance(rng, 0.5) else {}
            return [_set(_namespace(LATE, **label)) if self._late else {"do": "delete", "of": f"namespace/{LATE}"}]
        name = rng.choice(("default", "team", "team"))
        labels = _namespace(name, **({"team": rng.choice(("red", "blue"))} if chance(rng, 0.7) else {}))
        return [_change(f"namespace/{name}", ["metadata", "labels"], labels["metadata"]["labels"])]

    def _selection_changed(self) -> list[Json]:
        """A Service or a controller is there, selects others or is gone, or a pod comes under another one."""
        rng, key = self._rng, self._some_pod()
        if key and chance(rng, 0.3):
            owned = self._furnished({"kind": "Pod", "metadata": {}, "spec": {}})["metadata"]
            return [_change(key, ["metadata", "ownerReferences"], owned.get("ownerReferences"))]
        drawn: Json = {"objects": [], "pods": []}
        spreading.furnish(rng, drawn)
        if not drawn["objects"]:
            return []
        made = rng.choice(drawn["objects"])
        about = made["metadata"]
        gone = {"do": "delete", "of": keys.selection_key(made["kind"], about["namespace"], about["name"])}
        return [gone] if chance(rng, 0.4) else [_set(made)]

    # ── objects ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _node(self, name: str) -> Json:
        made = self._identified(self._maker.node(name))
        if "images" in made["status"]:
            made["status"]["images"] = self._sized(made["status"]["images"])
        body = defaults.node(wire.NODE.convert(self._furnished(made)))
        self._nodes[name] = _written("Node", body)
        return self._nodes[name]

    def _furnished(self, made: Json) -> Json:
        """The object with what default spreading goes by."""
        if self._spreading:
            spreading.furnish(self._rng, {"objects": [made], "pods": []})
        return made

    def _sized(self, images: list[Json]) -> list[Json]:
        """The images, each name of one size: where nodes disagree, kube-scheduler goes by which of them was first."""
        return [
            {**image, "sizeBytes": self._sizes.setdefault(image["names"][0], image["sizeBytes"])} for image in images
        ]

    def _bound(self, node: str, name: str = "") -> Json:
        return self._keep(self._maker.bound(node, name or self._name("b")))

    def _pending(self, name: str = "") -> Json:
        pod = self._maker.pending(name or self._name("w"))
        if pod["spec"].get("schedulerName") or pod["spec"].get("schedulingGates"):
            # Only pods of the active queue are nominated, which neither others' nor gated ones are in.
            pod.pop("status", None)
        return self._keep(pod)

    def _probe(self, name: str) -> Json:
        return self._admitted(self._maker.pod(name))

    def _name(self, prefix: str) -> str:
        self._made += 1
        return f"{prefix}{self._made}"

    def _keep(self, pod: Json) -> Json:
        if self._late and chance(self._rng, 0.1):
            pod["metadata"]["namespace"] = LATE
        found = self._admitted(self._furnished(pod))
        self._pods[_key(found)] = found
        return found

    def _admitted(self, pod: Json) -> Json:
        """The pod after admission, under this cluster's classes."""
        classes: dict[str, nodes.PriorityClass] = {}
        runtimes: dict[str, wire.RuntimeClass] = {}
        for each in self._common:
            name = each["metadata"]["name"]
            if each["kind"] == "PriorityClass":
                classes[name] = kube_nodes.priority_class(wire.PRIORITY_CLASS.convert(each))
            elif each["kind"] == "RuntimeClass":
                runtimes[name] = wire.RUNTIME_CLASS.convert(each)
        body = defaults.pod(wire.POD.convert(pod), priority_classes=classes, runtime_classes=runtimes)
        return self._identified(_written("Pod", body))

    def _identified(self, made: Json) -> Json:
        """With a UID that no object had before."""
        self._made += 1
        made["metadata"]["uid"] = f"u{self._made}"
        return made


def _written(kind: str, body: wire.Body) -> Json:
    found: Json = msgspec.json.decode(msgspec.json.encode(body))
    return {"apiVersion": "v1", "kind": kind, "spec": {}, "status": {}, **found}


def _namespace(name: str, **labels: str) -> Json:
    every = {"kubernetes.io/metadata.name": name, **labels}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": every}}


def _key(pod: Json) -> str:
    return f"pod/{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _set(made: Json) -> Json:
    return {"do": "set", "object": made}


def _change(key: str, path: list[str], to: object) -> Json:
    return {"do": "change", "of": key, "path": path, "to": to}
