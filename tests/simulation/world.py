"""
The cluster around the scheduler: nodes, users, kubelets, controllers and another scheduler, all by lot.

Comes in: a seed's dice. Goes out: changes at the API server, made as those would make them. Each seed draws which kinds
of things happen at all, so that a thousand seeds are not all the same mixture.

Invariant: nothing here depends on what the scheduler does inside, only on what the server shows.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tests import builders
from tests.fakes import serving, storage
from tests.simulation import traces

NAME = "graph-scheduler"
OTHER = "default-scheduler"
#: A pod with this label can not be bound: admission says no, so many times; `ever` for always.
REFUSED = "example.com/refused"
NAMESPACES = ("default", "batch")
ZONES = ("a", "b", "c")
APPS = ("web", "db", "job")
PODS_MAX = 60
SERVICES = "/api/v1/services"


class World:
    """Changes the cluster."""

    def __init__(self, stored: storage.Storage, rng: random.Random, trace: traces.Trace) -> None:
        self._storage = stored
        self._rng = rng
        self._trace = trace
        self._made = 0
        self._nodes = rng.randint(2, 7)
        common: list[Callable[[], None]] = [self.create] * 6 + [self.tend] * 4 + [self.delete] * 2
        rare = [self.burst, self.finish, self.recreate, self.ungate, self.relabel_pod, self.nominate]
        rare += [self.foreign, self.steal, self.cordon, self.taint, self.label, self.resize, self.rebuild, self.fail]
        rare += [self.add_node, self.remove_node, self.annotate, self.serve, self.relabel_namespace]
        self._kinds = common + [kind for kind in rare if rng.random() < 0.6] * 2
        self._foreigners = {"foreign", "steal"} & {kind.__name__ for kind in self._kinds}

    def populate(self) -> None:
        """What is there before the scheduler comes."""
        for name in NAMESPACES:
            body = {"metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}}}
            self._storage.create(serving.NAMESPACES, body)
        for number in range(self._nodes):
            self._create_node(number)
        for _ in range(self._rng.randint(0, 12)):
            self.create()

    def step(self) -> None:
        """One thing happens."""
        self._rng.choice(self._kinds)()

    def settle(self) -> None:
        """What is under way comes to its end, and nothing new begins."""
        for pod in self.pods():
            self._tend(pod)

    # ── what there is ──────────────────────────────────────────────────────────────────────────────────────────────

    def pods(self) -> list[storage.Object]:
        """All pods."""
        return self._storage.items(serving.PODS)

    def nodes(self) -> list[storage.Object]:
        """All nodes."""
        return self._storage.items(serving.NODES)

    def _some(self, found: list[storage.Object]) -> storage.Object | None:
        return self._rng.choice(found) if found else None

    def _waiting(self) -> list[storage.Object]:
        return [pod for pod in self.pods() if not _node(pod) and pod["spec"]["schedulerName"] == NAME]

    def _say(self, what: str) -> None:
        self._trace.add("world", what)

    # ── users ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def create(self) -> None:
        """A pod of ours, under a new name or one that was there before."""
        number = self._rng.randrange(self._made + 1) if self._rng.random() < 0.2 else self._made
        self._made += 1
        if len(self.pods()) < PODS_MAX:
            self._create_pod(f"p{number}", self._rng.choice(NAMESPACES))

    def burst(self) -> None:
        """A workload: pods that are all alike."""
        made = self._shape(builders.make_pod("x"))
        for _ in range(min(self._rng.randint(3, 12), PODS_MAX - len(self.pods()))):
            self._put(made.set("metadata.name", f"p{self._made}"))
            self._made += 1

    def delete(self) -> None:
        """A pod is deleted; a kubelet has to end it if it runs."""
        pod = self._some(self.pods())
        if pod is not None:
            grace = self._rng.choice((0, 30))
            self._say(f"deletes {_name(pod)} with {grace} s of grace")
            self._storage.delete(_key(pod), {"gracePeriodSeconds": grace})

    def recreate(self) -> None:
        """A pod is replaced by another of its name, as a StatefulSet does."""
        pod = self._some(self.pods())
        if pod is not None:
            self._say(f"replaces {_name(pod)}")
            self._storage.delete(_key(pod), {"gracePeriodSeconds": 0})
            self._create_pod(pod["metadata"]["name"], pod["metadata"]["namespace"])

    def ungate(self) -> None:
        """A gate is lifted."""
        pod = self._some([pod for pod in self.pods() if pod["spec"].get("schedulingGates")])
        if pod is not None:
            self._say(f"ungates {_name(pod)}")
            self._storage.patch(_key(pod), {"spec": {"schedulingGates": None}}, strategic=False)

    def relabel_pod(self) -> None:
        """A pod gets another label."""
        pod = self._some(self.pods())
        if pod is not None:
            app = self._rng.choice(APPS)
            self._say(f"labels {_name(pod)} app={app}")
            self._storage.patch(_key(pod), {"metadata": {"labels": {"app": app}}}, strategic=False)

    def annotate(self) -> None:
        """A pod changes in a way that decides nothing."""
        pod = self._some(self.pods())
        if pod is not None:
            self._say(f"annotates {_name(pod)}")
            change = {"metadata": {"annotations": {"example.com/note": str(self._rng.randrange(1000))}}}
            self._storage.patch(_key(pod), change, strategic=False)

    def serve(self) -> None:
        """A Service comes, or goes."""
        key = storage.Key(SERVICES, "default", self._rng.choice(APPS))
        there = [item["metadata"]["name"] for item in self._storage.items(SERVICES, "default")]
        if key.name in there:
            self._say(f"removes the service {key.name}")
            self._storage.delete(key)
        else:
            self._say(f"adds the service {key.name}")
            body = {"metadata": {"name": key.name}, "spec": {"selector": {"app": key.name}}}
            self._storage.create(SERVICES, body, namespace="default")

    def relabel_namespace(self) -> None:
        """A namespace changes its team."""
        name, team = self._rng.choice(NAMESPACES), self._rng.choice(("red", "blue"))
        self._say(f"labels the namespace {name} team={team}")
        key = storage.Key(serving.NAMESPACES, "", name)
        self._storage.patch(key, {"metadata": {"labels": {"team": team}}}, strategic=False)

    # ── others that schedule ───────────────────────────────────────────────────────────────────────────────────────

    def foreign(self) -> None:
        """Another scheduler places a pod of its own, without asking for room."""
        node = self._some(self.nodes())
        if node is not None and len(self.pods()) < PODS_MAX:
            made = self._shape(builders.make_pod(f"f{self._made}")).scheduler(OTHER).node(node["metadata"]["name"])
            self._made += 1
            self._put(made)

    def steal(self) -> None:
        """Another scheduler binds a pod of ours."""
        pod, node = self._some(self._waiting()), self._some(self.nodes())
        if pod is not None and node is not None and not pod["spec"].get("schedulingGates"):
            self._say(f"steals {_name(pod)} for {node['metadata']['name']}")
            self._storage.bind(_key(pod), {"target": {"name": node["metadata"]["name"]}})

    def nominate(self) -> None:
        """Room is kept for a pod somewhere, or no longer."""
        pod, node = self._some(self._waiting()), self._some(self.nodes())
        if pod is not None:
            name = node["metadata"]["name"] if node is not None and self._rng.random() < 0.6 else ""
            self._say(f"nominates {_name(pod)} to {name or 'nothing'}")
            self._storage.patch(_key(pod), {"status": {"nominatedNodeName": name}}, strategic=False)

    # ── kubelets ───────────────────────────────────────────────────────────────────────────────────────────────────

    def tend(self) -> None:
        """Kubelets take notice of some pods."""
        for pod in self.pods():
            if self._rng.random() < 0.5:
                self._tend(pod)

    def finish(self) -> None:
        """A pod ends by itself."""
        pod = self._some([pod for pod in self.pods() if _node(pod) and pod["status"].get("phase") == "Running"])
        if pod is not None:
            phase = self._rng.choice(("Succeeded", "Failed"))
            self._say(f"{_name(pod)} has {phase.lower()}")
            self._storage.patch(_key(pod), {"status": {"phase": phase}}, strategic=False)

    def _tend(self, pod: storage.Object) -> None:
        if not _node(pod):
            return
        if pod["metadata"].get("deletionTimestamp"):
            self._say(f"{_name(pod)} is ended")
            self._storage.delete(_key(pod), {"gracePeriodSeconds": 0})
        elif pod["status"].get("phase") == "Pending":
            phase = "Running" if self._admitted(pod) else "Failed"
            self._say(f"{_name(pod)} is {phase.lower()} on {_node(pod)}")
            self._storage.patch(_key(pod), {"status": {"phase": phase}}, strategic=False)

    def _admitted(self, pod: storage.Object) -> bool:
        """Whether the kubelet finds room for it beside those that run there."""
        node = next((node for node in self.nodes() if node["metadata"]["name"] == _node(pod)), None)
        if node is None:
            return True
        running = [
            each for each in self.pods() if _node(each) == _node(pod) and each["status"].get("phase") == "Running"
        ]
        return sum(cpu(each) for each in [*running, pod]) <= int(node["status"]["allocatable"]["cpu"])

    # ── nodes ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def add_node(self) -> None:
        """A node joins."""
        if len(self.nodes()) < 9:
            self._create_node(self._nodes)
            self._nodes += 1

    def remove_node(self) -> None:
        """A node leaves for good; its pods are collected."""
        node = self._some(self.nodes())
        if node is not None and len(self.nodes()) > 1:
            name = node["metadata"]["name"]
            self._say(f"removes {name} and its pods")
            self._storage.delete(_key(node))
            for pod in self.pods():
                if _node(pod) == name:
                    self._storage.delete(_key(pod), {"gracePeriodSeconds": 0})

    def rebuild(self) -> None:
        """A node is deleted and registers again under its name, while pods run there or are on their way."""
        node = self._some(self.nodes())
        if node is not None:
            self._say(f"rebuilds {node['metadata']['name']}")
            self._storage.delete(_key(node))
            self._create_node(int(node["metadata"]["name"][1:]))

    def fail(self) -> None:
        """A node is deleted; its pods stay for the moment."""
        node = self._some(self.nodes())
        if node is not None and len(self.nodes()) > 1:
            self._say(f"loses {node['metadata']['name']}")
            self._storage.delete(_key(node))

    def cordon(self) -> None:
        """A node takes no more pods, or takes them again."""
        self._change(lambda node: {"spec": {"unschedulable": not node["spec"].get("unschedulable", False)}}, "cordons")

    def taint(self) -> None:
        """A node gets a taint, or loses it."""
        taints = [{"key": "dedicated", "value": "x", "effect": self._rng.choice(("NoSchedule", "PreferNoSchedule"))}]
        self._change(lambda node: {"spec": {"taints": None if node["spec"].get("taints") else taints}}, "taints")

    def label(self) -> None:
        """A node moves to another zone."""
        zone = self._rng.choice(ZONES)
        self._change(lambda _: {"metadata": {"labels": {builders.ZONE: zone}}}, f"moves to zone {zone}:")

    def resize(self) -> None:
        """A node offers more or less than before."""
        count = str(self._rng.randint(1, 6))
        self._change(lambda _: {"status": {"allocatable": {"cpu": count}}}, f"resizes to {count} CPUs:")

    def _change(self, change: Callable[[storage.Object], dict[str, Any]], word: str) -> None:
        node = self._some(self.nodes())
        if node is not None:
            self._say(f"{word} {node['metadata']['name']}")
            self._storage.patch(_key(node), change(node), strategic=False)

    # ── making ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _create_node(self, number: int) -> None:
        made = builders.make_node(f"n{number}").cpu(str(self._rng.randint(2, 5))).pods(self._rng.choice((3, 110)))
        made = made.zone(ZONES[number % len(ZONES)]).set("spec", {})
        if self._rng.random() < 0.1:
            made = made.taint("dedicated", "x")
        self._say(f"adds n{number}")
        self._storage.create(serving.NODES, made.manifest())

    def _create_pod(self, name: str, namespace: str) -> None:
        self._put(self._shape(builders.make_pod(name, namespace)))

    def _put(self, pod: builders.PodBuilder) -> None:
        body = pod.manifest()
        key = storage.Key(serving.PODS, body["metadata"]["namespace"], body["metadata"]["name"])
        if key not in self._storage:
            self._say(f"adds {key.namespace}/{key.name} {_told(body)}")
            self._storage.create(serving.PODS, body, namespace=key.namespace)

    def _shape(self, pod: builders.PodBuilder) -> builders.PodBuilder:
        """One of many kinds of pods."""
        rng = self._rng
        app = rng.choice(APPS)
        made = pod.scheduler(NAME).label("app", app).cpu(str(rng.choice((0, 1, 1, 2, 3))))
        made = made.priority(rng.choice((0, 0, 1, 10)))
        same, other = builders.selecting(app=app), builders.selecting(app=rng.choice(APPS))
        domain = rng.choice((builders.ZONE, builders.HOSTNAME))
        match rng.randrange(24):
            case 0:
                made = made.host_port(80)
            case 1:
                made = made.away_from(domain, same)
            case 2:
                made = made.near(domain, other)
            case 3:
                made = made.away_from(domain, other, namespaceSelector={"matchLabels": {"team": "red"}})
            case 4 | 5:
                made = made.spread(domain, same, max_skew=rng.randint(1, 2))
            case 6:
                made = made.node_selector(builders.ZONE, rng.choice(ZONES))
            case 7:
                made = made.tolerate("dedicated")
            case 8:
                made = made.gate("example.com/wait")
            case 9:
                made = made.prefer_near(10, domain, same).prefer_away_from(5, builders.HOSTNAME, other)
            case 10:
                made = made.spread(domain, same, hard=False)
            case 11:
                made = made.require_nodes(builders.need(builders.HOSTNAME, "In", f"n{rng.randrange(self._nodes)}"))
            case 12:
                made = made.label(REFUSED, rng.choice(("ever", "1", "3")))
            case _:
                pass
        return made


def cpu(pod: storage.Object) -> int:
    """How many CPUs it asks for."""
    return int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])


def _told(pod: storage.Object) -> str:
    """The fields of its spec that matter, for the trace."""
    spec = {name: value for name, value in pod["spec"].items() if name not in {"containers", "schedulerName"}}
    return f"cpu={cpu(pod)} labels={pod['metadata'].get('labels', {})} {spec}"


def _node(pod: storage.Object) -> str:
    found: str = pod["spec"].get("nodeName", "")
    return found


def _name(pod: storage.Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _key(item: storage.Object) -> storage.Key:
    namespace = item["metadata"].get("namespace", "")
    return storage.Key(serving.PODS if namespace else serving.NODES, namespace, item["metadata"]["name"])
