"""What every node held at every moment, and when it was too much: an account of the cluster that no scheduler keeps.

Comes in: watch events of nodes and pods, in the order in which the API server wrote them. Goes out: bindings, moved
pods and over-commits, each with those who were there. Invariant: a node is judged when a pod is bound to it, by what
is bound there at that moment; pods that are over hold nothing.
"""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

Object = dict[str, Any]

APART_S = 5.0
"""So far apart may be when the account and the scheduler saw the same binding."""
_OVER = frozenset({"Succeeded", "Failed"})
_UNITS = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}


@dataclasses.dataclass(frozen=True, slots=True)
class Held:
    """What one pod takes: milli-CPU, bytes, and itself."""

    cpu: int
    memory: int
    pods: int = 1

    def __add__(self, other: Held) -> Held:
        return Held(self.cpu + other.cpu, self.memory + other.memory, self.pods + other.pods)


NOTHING = Held(0, 0, 0)


@dataclasses.dataclass(frozen=True, slots=True)
class Bound:
    """A pod on a node."""

    name: str
    node: str
    scheduler: str
    held: Held


@dataclasses.dataclass(frozen=True, slots=True)
class Overcommit:
    """A node that held more than it has, from one binding on."""

    node: str
    pod: str
    scheduler: str
    at_s: float
    short: tuple[str, ...]
    others: frozenset[str]
    """The schedulers whose pods were there, the last one's included."""


@dataclasses.dataclass(slots=True)
class Stream:
    """The pods of one stream: what they ask for together, in milli-CPU, and the names of those that are bound."""

    cpu: int = 0
    running: set[str] = dataclasses.field(default_factory=set)


class Ledger:
    """The account.

    Attributes:
        nodes: Name → object.
        pods: `namespace/name` → object.
        arrived: Stream → how many of its pods have been seen.
        bindings: Stream → how many of its pods were bound.
        streams: Stream → its pods.
        overcommits: All that were seen.
        moved: Pods whose node changed, which must not happen.
    """

    def __init__(self) -> None:
        self.nodes: dict[str, Object] = {}
        self.pods: dict[str, Object] = {}
        self.arrived: collections.Counter[str] = collections.Counter()
        self.bindings: collections.Counter[str] = collections.Counter()
        self.streams: collections.defaultdict[str, Stream] = collections.defaultdict(Stream)
        self.overcommits: list[Overcommit] = []
        self.moved: list[str] = []
        self._bound: dict[str, Bound] = {}
        self._on: dict[str, dict[str, Bound]] = {}

    def node(self, event: Object) -> None:
        """Take in an event of a node."""
        name = event["object"]["metadata"]["name"]
        if event["type"] == "DELETED":
            self.nodes.pop(name, None)
        else:
            self.nodes[name] = event["object"]

    def pod(self, event: Object, now: float) -> None:
        """Take in an event of a pod, seen at `now`."""
        pod = event["object"]
        key = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        before = self._bound.get(key)
        stream = self.streams[whose(pod)]
        if key not in self.pods and event["type"] == "ADDED":
            self.arrived[whose(pod)] += 1
            stream.cpu += held_by(pod).cpu
        gone = event["type"] == "DELETED"
        if gone:
            stream.cpu -= held_by(pod).cpu if self.pods.pop(key, None) is not None else 0
        else:
            self.pods[key] = pod
        node = pod["spec"].get("nodeName", "")
        if gone or not node or pod.get("status", {}).get("phase") in _OVER:
            self._leave(key)
            return
        if before is not None:
            if before.node != node:
                self.moved.append(f"{key}: from {before.node} to {node}")
            return
        bound = Bound(key, node, whose(pod), held_by(pod))
        self._bound[key] = bound
        stream.running.add(key)
        self._on.setdefault(node, {})[key] = bound
        self.bindings[bound.scheduler] += 1
        self._judge(bound, now)

    def held(self, node: str) -> Held:
        """What the pods on a node take together."""
        return sum((bound.held for bound in self._on.get(node, {}).values()), NOTHING)

    def on(self, node: str) -> tuple[Bound, ...]:
        """The pods on a node."""
        return tuple(self._on.get(node, {}).values())

    def fill(self, nodes: list[str]) -> float:
        """The share of these nodes' CPU that is taken, from 0 to 1."""
        offered = sum(offered_by(self.nodes[name]).cpu for name in nodes if name in self.nodes)
        taken = sum(self.held(name).cpu for name in nodes if name in self.nodes)
        return taken / offered if offered else 0.0

    def _leave(self, key: str) -> None:
        bound = self._bound.pop(key, None)
        if bound is not None:
            del self._on[bound.node][key]
            self.streams[bound.scheduler].running.discard(key)

    def _judge(self, bound: Bound, now: float) -> None:
        node = self.nodes.get(bound.node)
        if node is None:
            return
        held, offered = self.held(bound.node), offered_by(node)
        short = tuple(name for name in ("cpu", "memory", "pods") if getattr(held, name) > getattr(offered, name))
        if short:
            others = frozenset(each.scheduler for each in self.on(bound.node))
            self.overcommits.append(Overcommit(bound.node, bound.name, bound.scheduler, now, short, others))


def explains(race: Object, overcommit: Overcommit, *, wall_s: float) -> bool:
    """Whether a record of graphsched is about this over-commit, seen at `wall_s`, and says what others did."""
    if race["kind"] != "overcommitted" or race["node"] != overcommit.node or abs(race["time"] - wall_s) > APART_S:
        return False
    texts = [race["pod"], race["detail"], *(change["what"] for change in race["by"])]
    return bool(race["by"]) and any(overcommit.pod in text for text in texts)


def whose(pod: Object) -> str:
    """Who decided where the pod goes: the label `soak/stream`, as advised pods bear another's schedulerName."""
    return str(pod["metadata"].get("labels", {}).get("soak/stream") or pod["spec"].get("schedulerName", ""))


def held_by(pod: Object) -> Held:
    """What a pod of one container requests."""
    requests = pod["spec"]["containers"][0].get("resources", {}).get("requests", {})
    return Held(milli(requests.get("cpu", "0")), amount(requests.get("memory", "0")))


def offered_by(node: Object) -> Held:
    """What a node has for pods."""
    allocatable = node.get("status", {}).get("allocatable", {})
    return Held(
        milli(allocatable.get("cpu", "0")), amount(allocatable.get("memory", "0")), int(allocatable.get("pods", "0"))
    )


def milli(text: str) -> int:
    """`250m` or `4` as milli-CPU."""
    return int(text[:-1]) if text.endswith("m") else int(text) * 1000


def amount(text: str) -> int:
    """`500Mi` as bytes."""
    return int(text[:-2]) * _UNITS[text[-2:]] if text[-2:] in _UNITS else int(text)
