"""
What must hold, whatever goes wrong. Each failure is a sentence with the moment it was found.

Comes in: what the server carries out, what a scheduler decides and believes, and the rest at the end. Goes out:
`failures`. The rules of who fits where are the plain loops of `tests/decision`, which share nothing with the engine.

What is checked, and when:

- when a scheduler decides, and before each call (`Judge.decided`): by what its watches have told it, with its own
  orders that are out counted in, the node takes the pod. So it never over-commits by its own doing, nor breaks any
  rule; what somebody else did and no watch has told yet is a race that no scheduler can win.
- when the server binds (`Ledger.bound`): the pod was bound nowhere; the order is one that is still out, for this node;
  on a node that nobody else has touched there is room, whatever anybody believed. One replica leads at most, and no
  process says that a pod waits which it has bound.
- at rest (`at_rest`): every pod of ours is bound, or waits with a reason, and the plain rules find no node for it; the
  graph is what the server has; nothing is promised, ordered or queued that is not there.
- at the end: no task is left, nothing was logged as an error, and no minute had more calls than it may.
"""

from __future__ import annotations

import collections
import typing
from collections.abc import Iterable, Mapping

import msgspec

from graphsched.action import bind
from graphsched.app import wiring
from graphsched.base.values import descriptions, keys, pods
from graphsched.decision import profile
from graphsched.graph import delta, store as stores
from graphsched.sources import collection, resources
from tests.decision import plain_cluster, plain_filters
from tests.fakes import serving, storage
from tests.simulation import traces, world as worlds

#: Calls of one scheduler in a minute; see `Ledger.called`.
CALLS_A_MINUTE_MAX = 1500


class Failures:
    """What was found."""

    def __init__(self, trace: traces.Trace) -> None:
        self.found: list[str] = []
        self._trace = trace

    def add(self, text: str) -> None:
        """Something does not hold."""
        self.found.append(text)
        self._trace.add("FAILURE", text)


class Judge:
    """Looks over the shoulder of one process of a scheduler."""

    def __init__(self, program: wiring.Program, settings: profile.Profile, failures: Failures) -> None:
        self._program = program
        self._store = program.parts.store
        self._settings = settings
        self._failures = failures
        #: Orders that are out, or whose success no watch has told yet.
        self.orders: dict[keys.VertexKey, bind.Order] = {}
        #: Uids of pods whose order was given up with the lease.
        self.given_up: set[str] = set()
        self._bound: set[bind.Order] = set()

    @property
    def leads(self) -> bool:
        """Whether this process may write."""
        return self._program.elector is None or self._program.elector.leading

    def decided(self, order: bind.Order) -> None:
        """The scheduler wants the pod bound there, or is about to ask for it."""
        cluster = self._cluster(order.pod)
        machine = cluster.machines.get(order.node)
        if machine is None:
            self._failures.add(f"{order.pod.full_name} is to go to {order.node}, of which no watch has told")
            return
        refused = plain_filters.before_nodes(order.pod, self._settings)
        refused = refused or plain_filters.refusal(cluster, order.pod, machine, self._settings)
        if refused is not None:
            there = ", ".join(sorted(pod.full_name for pod, _ in machine.pods))
            told = f"{refused.by}: {', '.join(refused.reasons)}; there: {there}"
            self._failures.add(f"{order.pod.full_name} is to go to {order.node}, which refuses it: {told}")
        self.orders[order.pod.key] = order

    def ended(self, outcomes: Iterable[bind.Outcome]) -> None:
        """The scheduler knows what became of these."""
        for outcome in outcomes:
            if outcome.end in bind.PLACED:
                self._bound.add(outcome.order)
            else:
                self.orders.pop(outcome.order.pod.key, None)

    def abandoned(self, orders: Iterable[bind.Order]) -> None:
        """Another replica leads, or may: these may still take effect, or not."""
        for order in orders:
            self.orders.pop(order.pod.key, None)
            self.given_up.add(order.pod.uid)

    def rolled_back(self) -> None:
        """The server has forgotten what it answered."""
        self.orders = {key: order for key, order in self.orders.items() if order not in self._bound}

    def _cluster(self, pod: pods.Pod) -> plain_cluster.Cluster:
        """What the scheduler has been told, and what it has ordered itself."""
        vertices, _ = self._store.content()
        cluster = plain_cluster.Cluster(vertices, {})
        for key, order in list(self.orders.items()):
            known = vertices.get(key)
            if not isinstance(known, pods.Pod) or known.uid != order.pod.uid or known.node:
                # Gone, or told: then it is among the vertices.
                del self.orders[key]
            elif key != pod.key:
                # It has room now, wherever some is kept for it.
                cluster.nominated = [each for each in cluster.nominated if each.key != key]
                if order.node in cluster.machines:
                    cluster.machines[order.node].pods.append((known, ()))
        return cluster


class Ledger:
    """Keeps the server's account of bindings and calls."""

    def __init__(self, stored: storage.Storage, failures: Failures) -> None:
        self._storage = stored
        self._failures = failures
        self._nodes: dict[str, str] = {}
        self._asked: dict[tuple[str, str], str] = {}
        self._calls: collections.Counter[tuple[str, int]] = collections.Counter()
        #: Nodes on which more may be than fits, and no scheduler of ours is to blame.
        self._excused: set[str] = set()
        self._binders: dict[str, str] = {}

    def changed(self, change: storage.Change) -> None:
        """The server has taken a change, whoever made it."""
        before, after = change.before, change.after
        if change.key.collection == serving.NODES:
            if after is None or before is None or before["status"] != after["status"]:
                self._excused.add(change.key.name)
        elif change.key.collection == serving.PODS and after is not None:
            was = "" if before is None else before["spec"].get("nodeName", "")
            now = after["spec"].get("nodeName", "")
            if was not in {"", now}:
                self._failures.add(f"{change.key.name} moved from {was} to {now}")

    def placed_by_others(self, node: str) -> None:
        """Somebody else has put a pod there."""
        self._excused.add(node)

    def told(self, key: storage.Key, sender: str) -> None:
        """A scheduler of ours writes why a pod waits: not over a binding of its own."""
        pod = self._storage.get(key)
        if pod["spec"].get("nodeName") and self._binders.get(pod["metadata"]["uid"]) == sender:
            self._failures.add(f"{key.name} was bound by {sender}, which says now that it waits")

    def led(self, judges: Mapping[str, Judge]) -> None:
        """A scheduler of ours writes: one of them leads at most."""
        leaders = [sender for sender, judge in judges.items() if judge.leads]
        if len(leaders) > 1:
            self._failures.add(f"more than one leads: {leaders}")

    def rolled_back(self) -> None:
        """The server has gone back to a backup: what it bound since then it never did, and anybody may be misled."""
        pods_there = self._storage.items(serving.PODS)
        self._nodes = {pod["metadata"]["uid"]: pod["spec"].get("nodeName", "") for pod in pods_there}
        self._nodes = {uid: node for uid, node in self._nodes.items() if node}
        self._asked.clear()
        self._excused.update(item["metadata"]["name"] for item in self._storage.items(serving.NODES))

    def bound(self, key: storage.Key, node: str, sender: str, judge: Judge | None) -> None:
        """The server has bound a pod for a scheduler of ours; `judge` is None when that process has died since."""
        pod = self._storage.get(key)
        name, uid = f"{key.namespace}/{key.name}", pod["metadata"]["uid"]
        first = self._nodes.setdefault(uid, node)
        if first != node:
            self._failures.add(f"{name} is bound to {node}, and was to {first}")
        self._binders[uid] = sender
        if judge is None or uid in judge.given_up:
            # Sent before its death, or under a lease that is over: whoever came after could not know.
            self._excused.add(node)
        else:
            order = judge.orders.get(keys.pod_key(key.namespace, key.name))
            if order is None or order.pod.uid != uid or order.node != node:
                self._failures.add(f"{name} was bound to {node} after its order had ended ({sender})")
        if node not in self._excused:
            self._require_room(node)

    def asked(self, key: storage.Key, uid: str, node: str, sender: str) -> None:
        """A scheduler of ours asks for a binding that it may have asked for before."""
        before = self._asked.get((sender, uid))
        if before not in {None, node} and self._nodes.get(uid) == before:
            self._failures.add(f"{key.name} was bound to {before}, and {sender} asks for {node} as well")
        self._asked[sender, uid] = node

    def called(self, sender: str, minute: int) -> None:
        """A scheduler of ours makes a call: each pod costs a few, and each watch one now and then."""
        self._calls[sender, minute] += 1
        if self._calls[sender, minute] == CALLS_A_MINUTE_MAX:
            self._failures.add(f"{sender} made {CALLS_A_MINUTE_MAX} calls in minute {minute}")

    @property
    def busiest(self) -> int:
        """Calls in the busiest minute of a process."""
        return max(self._calls.values(), default=0)

    def _require_room(self, node: str) -> None:
        found = storage.Key(serving.NODES, "", node)
        if found not in self._storage:
            return
        offers = int(self._storage.get(found)["status"]["allocatable"]["cpu"])
        there = [
            pod
            for pod in self._storage.items(serving.PODS)
            if pod["spec"].get("nodeName") == node and pod["status"].get("phase") in {"Pending", "Running"}
        ]
        wanted = sum(worlds.cpu(pod) for pod in there)
        if wanted > offers:
            self._failures.add(f"{node} offers {offers} CPUs, and pods for {wanted} are bound there")


def content(stored: storage.Storage) -> dict[keys.VertexKey, delta.Vertex]:
    """What a graph of this cluster would hold."""
    found: dict[keys.VertexKey, delta.Vertex] = {}
    followed: tuple[collection.Resource[typing.Any], ...] = resources.ALL
    for resource in followed:
        for item in stored.items(resource.path):
            if item.get("status", {}).get("phase") in {"Succeeded", "Failed"}:
                continue
            body = resource.decode(msgspec.json.encode(item))
            vertex = resource.convert(body)
            assert not isinstance(vertex, descriptions.Description)
            found[resource.key(body.metadata)] = vertex
    return found


def at_rest(
    program: wiring.Program,
    stored: storage.Storage,
    settings: profile.Profile,
    failures: Failures,
) -> None:
    """Nothing is going on any more: everything must be as it should be."""
    vertices = content(stored)
    parts = program.parts
    _require_same(parts.store, vertices, failures)
    for line in parts.store.audit():
        failures.add(f"audit: {line}")
    cluster = plain_cluster.Cluster(vertices, {})
    waiting = set()
    for key, pod in vertices.items():
        if not isinstance(pod, pods.Pod) or pod.scheduler != worlds.NAME:
            continue
        item = stored.get(storage.Key(serving.PODS, pod.namespace, pod.name))
        told = _condition(item)
        if not pod.node and not pod.deleting:
            waiting.add(key)
            if pod.gates:
                continue
            _require_reason(cluster, pod, item, settings, failures)
            if told is None or not told.get("message"):
                failures.add(f"{pod.full_name} waits and is not told why")
    queued = set(parts.backlog._entries)
    if queued != waiting:
        failures.add(f"in the queue and not waiting: {sorted(queued - waiting)}, missing: {sorted(waiting - queued)}")
    for name, count in (
        ("promises", len(parts.promises)),
        ("orders", len(parts.dispatcher)),
        ("tries", len(program.loop._tries)),
        ("patches in the inbox", len(parts.inbox)),
    ):
        if count:
            failures.add(f"at rest there are {count} {name}")
    for each in program.reflectors:
        if not each.progress.synced.is_set() or each.progress.state.failing:
            failures.add(f"at rest {each.resource.name} is failing: {each.progress.state}")


def _require_reason(
    cluster: plain_cluster.Cluster,
    pod: pods.Pod,
    item: storage.Object,
    settings: profile.Profile,
    failures: Failures,
) -> None:
    """The pod waits: then no node takes it, or admission does not let it be bound."""
    if item["metadata"]["labels"].get(worlds.REFUSED) == "ever":
        return
    if plain_filters.before_nodes(pod, settings) is not None:
        return
    for name, machine in sorted(cluster.machines.items()):
        if plain_filters.refusal(cluster, pod, machine, settings) is None:
            failures.add(f"{pod.full_name} waits although {name} would take it")
            return


def _condition(item: storage.Object) -> storage.Object | None:
    found = [each for each in item.get("status", {}).get("conditions", []) if each["type"] == "PodScheduled"]
    return found[0] if found else None


def _require_same(store: stores.Store, due: dict[keys.VertexKey, delta.Vertex], failures: Failures) -> None:
    have, edges = store.content()
    for key in sorted(due.keys() - have.keys()):
        failures.add(f"the graph lacks {key}")
    for key in sorted(have.keys() - due.keys()):
        failures.add(f"the graph has {key}, which is gone")
    for key in sorted(due.keys() & have.keys()):
        if have[key] != due[key]:
            failures.add(f"the graph has {have[key]} and should have {due[key]}")
    if edges:
        failures.add(f"the graph has edges left: {sorted(edges)}")
