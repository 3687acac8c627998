"""Scenarios at random: a nearly full cluster, and pods to place on it in turn.

A seed and a number come in, a request of the `evaluate` contract goes out, always the same one for the same pair.
`comparing` gives it to graphsched and to the oracle.

Invariant: the API server would accept every object (the oracle validates pods and says so in its warnings).
"""

from __future__ import annotations

import random

from tests.fuzz import configurations, machines, neighbours, wishes
from tests.fuzz.wishes import Json, chance

SPREAD, AFFINITY, OWNERS = "spread", "affinity", "owners"
EXTRAS = (SPREAD, AFFINITY, OWNERS)
"""Fields that are left out unless they are asked for."""

PRIORITIES = (("low", -5), ("middle", 10), ("high", 1000))


def scenario(seed: int, number: int, *, extras: frozenset[str] = frozenset()) -> Json:
    """The scenario of that number in that series."""
    return _Scenario(random.Random(f"{seed}/{number}"), extras).make(f"{seed}/{number}")


class _Scenario:
    def __init__(self, rng: random.Random, extras: frozenset[str]) -> None:
        self._rng = rng
        self._extras = extras
        self._names = list(wishes.NODE_NAMES[: rng.choice((0, 1, 2, 3, 3, 4, 4, 5, 6, 8))])
        self._classes = [name for name, _ in PRIORITIES if chance(rng, 0.6)]
        self._runtimes = ["heavy", "picky"] if chance(rng, 0.4) else []
        # A scenario is rich in few things, so that pods get past most plugins and meet each of them last.
        self._host_users = chance(rng, 0.2)
        # In every second scenario nodes are wide, so that several are left to be scored.
        self._wide = chance(rng, 0.8 if extras else 0.5)
        rich = 0.2 if extras else 0.4
        self._rich = {part: chance(rng, rich) for part in ("taints", "labels", "ports", "images", "nominated")}
        self._rich["full"] = chance(rng, 0.4)

    def make(self, identity: str) -> Json:
        rng = self._rng
        maker = machines.Machines(
            rng,
            wide=self._wide,
            labelled=0.93 if self._extras else 0.8,
            tainted=self._often("taints"),
            stocked=self._often("images"),
        )
        nodes = [maker.node(name) for name in self._names]
        objects: list[Json] = [*self._common(), *nodes]
        for name in self._names:
            held = rng.randint(0, 4 if self._rich["full"] else 2)
            objects.extend(self._bound(name, f"{name}-{number}") for number in range(held))
        waiting_pods = rng.randint(0, 3 if self._rich["nominated"] else 1)
        objects.extend(self._pending(f"w{number}") for number in range(waiting_pods))
        if chance(rng, 0.3):
            rng.shuffle(objects)
        pods: list[object] = [self._pod(f"p{number}") for number in range(rng.choice((1, 1, 2, 3, 5)))]
        if chance(rng, 0.2):
            again = rng.choice(pods)
            assert isinstance(again, dict)
            pods.append(f"{again['metadata'].get('namespace', 'default')}/{again['metadata']['name']}")
        waiting = [
            each for each in objects if each["kind"] == "Pod" and "nodeName" not in each["spec"] and not _other(each)
        ]
        if waiting and chance(rng, 0.3):
            chosen = rng.choice(waiting)["metadata"]
            pods.insert(rng.randint(0, len(pods)), f"{chosen.get('namespace', 'default')}/{chosen['name']}")
        # Only behind this gate may a pod on the host's network have users of its own.
        gates = {"featureGates": {machines.FEATURES[1]: True}} if self._host_users else {}
        config = {"config": configurations.configuration(rng)} if chance(rng, 0.2) else {}
        return {"id": identity, **gates, **config, "objects": objects, "pods": pods}

    def _common(self) -> list[Json]:
        found: list[Json] = []
        for name, value in PRIORITIES:
            if name in self._classes:
                found.append(wishes.manifest("PriorityClass", name, api="scheduling.k8s.io/v1", value=value))
        if found and chance(self._rng, 0.2):
            found[0]["globalDefault"] = True
        if found and chance(self._rng, 0.2):
            found[-1]["preemptionPolicy"] = "Never"
        if self._runtimes:
            overhead = {"podFixed": {"cpu": "250m", "memory": "120Mi"}}
            found.append(
                wishes.manifest("RuntimeClass", "heavy", api="node.k8s.io/v1", handler="heavy", overhead=overhead)
            )
            toleration = {"key": "dedicated", "operator": "Exists"}
            scheduling = {"nodeSelector": {"disk": "ssd"}, "tolerations": [toleration]}
            found.append(
                wishes.manifest("RuntimeClass", "picky", api="node.k8s.io/v1", handler="picky", scheduling=scheduling)
            )
        if chance(self._rng, 0.5):
            team = wishes.manifest("Namespace", "team")
            team["metadata"]["labels"] = {"team": self._rng.choice(("red", "blue"))}
            found.append(team)
        if OWNERS in self._extras:
            found.extend(neighbours.owners(self._rng))
        return found

    # ── pods ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _often(self, part: str) -> float:
        return 0.7 if self._rich[part] else 0.1 if self._extras else 0.15

    def _pod(self, name: str) -> Json:
        rng = self._rng
        pod = wishes.manifest("Pod", name, spec={})
        if chance(rng, 0.5):
            pod["metadata"]["namespace"] = rng.choice(wishes.NAMESPACES)
        labels = wishes.pod_labels(rng)
        if labels:
            pod["metadata"]["labels"] = labels
        if OWNERS in self._extras and chance(rng, 0.5):
            pod["metadata"]["ownerReferences"] = [neighbours.owner_reference(rng)]
        spec = pod["spec"]
        spec["containers"] = [wishes.container(rng, f"c{number}") for number in range(rng.choice((1, 1, 1, 2)))]
        if chance(rng, 0.2):
            spec["initContainers"] = wishes.init_containers(rng)
        self._distinct_ports(spec)
        self._resize(spec)
        self._place(spec)
        if "nodeName" not in spec and chance(rng, 0.03):
            spec["schedulingGates"] = [{"name": f"example.com/{gate}"} for gate in wishes.some(rng, ("a", "b"), 2)]
        if self._classes and chance(rng, 0.4):
            spec["priorityClassName"] = rng.choice(self._classes)
        elif chance(rng, 0.3):
            spec["priority"] = rng.choice((-5, 0, 7, 1000))
        if self._names and "nodeName" not in spec and chance(rng, 0.3 if self._rich["nominated"] else 0.05):
            pod["status"] = {"nominatedNodeName": rng.choice([*self._names, "gone"])}
        return pod

    def _distinct_ports(self, spec: Json) -> None:
        """The API refuses a pod whose containers want one host port twice; on the host's network, every port is one."""
        seen: set[tuple[int, str]] = set()
        for each in (*spec.get("initContainers", ()), *spec["containers"]):
            kept = []
            for port in each.pop("ports", ()):
                wanted = {
                    (port[field], port.get("protocol", "TCP"))
                    for field in ("hostPort", "containerPort")
                    if field in port
                }
                if not wanted & seen:
                    kept.append(port)
                seen |= wanted
            if kept:
                each["ports"] = kept

    def _resize(self, spec: Json) -> None:
        """What the pod as a whole takes."""
        rng = self._rng
        if self._runtimes and chance(rng, 0.3):
            spec["runtimeClassName"] = rng.choice(self._runtimes)
        if chance(rng, 0.04):
            spec["resources"] = wishes.pod_level(rng)
        elif chance(rng, 0.06):
            for each in (*spec["containers"], *spec.get("initContainers", ())):
                each.pop("resources", None)
            spec["resources"] = wishes.small_pod_level(rng)
        if chance(rng, 0.06):
            spec["hostNetwork"] = True
            for each in (*spec["containers"], *spec.get("initContainers", ())):
                for port in each.get("ports", ()):
                    if "hostPort" in port:
                        port["hostPort"] = port["containerPort"]
            if self._host_users and chance(rng, 0.6):
                spec["hostUsers"] = False
        if not self._rich["ports"] and chance(rng, 0.7):
            for each in (*spec["containers"], *spec.get("initContainers", ())):
                each.pop("ports", None)

    def _place(self, spec: Json) -> None:
        """Where it wants to be."""
        rng = self._rng
        if chance(rng, self._often("taints")):
            spec["tolerations"] = [wishes.toleration(rng) for _ in range(rng.randint(1, 3))]
        if chance(rng, 0.4 * self._often("labels")):
            spec["nodeSelector"] = {"zone": rng.choice(wishes.ZONES)}
            if chance(rng, 0.3) and "runtimeClassName" not in spec:
                spec["nodeSelector"]["disk"] = rng.choice(wishes.DISKS)
        affinity: Json = {}
        if chance(rng, self._often("labels")):
            affinity["nodeAffinity"] = wishes.node_affinity(rng, required=0.3 if self._wide else 0.6)
        if AFFINITY in self._extras and chance(rng, 0.5):
            affinity.update(neighbours.pod_affinity(rng))
        if affinity:
            spec["affinity"] = affinity
        if SPREAD in self._extras and chance(rng, 0.3 if OWNERS in self._extras else 0.5):
            spec["topologySpreadConstraints"] = neighbours.spread(rng)
        if self._names and chance(rng, 0.02):
            spec["nodeName"] = rng.choice([*self._names, "gone"])
        if chance(rng, 0.05):
            image = {"reference": rng.choice(wishes.IMAGES), "pullPolicy": "IfNotPresent"}
            spec["volumes"] = [{"name": "model", "image": image}]

    def _bound(self, node: str, name: str) -> Json:
        """A pod that has its node; kubelets report on some, and some are over or on their way out."""
        rng = self._rng
        pod = self._pod(name)
        spec = pod["spec"]
        spec.pop("schedulingGates", None)
        spec["nodeName"] = node if chance(rng, 0.97) else "gone"
        status: Json = {"phase": "Running", "startTime": f"2026-01-01T00:{rng.randint(0, 59):02}:00Z"}
        if chance(rng, 0.05):
            status["phase"] = rng.choice(("Succeeded", "Failed"))
        if chance(rng, 0.1):
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T02:00:00Z"
        if chance(rng, 0.25):
            self._report(spec, status)
        pod["status"] = status
        if chance(rng, 0.1):
            spec["schedulerName"] = "other"
        return pod

    def _report(self, spec: Json, status: Json) -> None:
        """What the kubelet says containers have, in the middle of a resize."""
        rng = self._rng
        for field, containers in (("containerStatuses", "containers"), ("initContainerStatuses", "initContainers")):
            entries = []
            for each in spec.get(containers, ()):
                entry: Json = {"name": each["name"], "image": "", "imageID": "", "ready": True, "restartCount": 0}
                if chance(rng, 0.7):
                    entry["resources"] = {"requests": self._amounts()}
                if chance(rng, 0.5):
                    entry["allocatedResources"] = self._amounts()
                entries.append(entry)
            if entries:
                status[field] = entries
        if "resources" in spec and chance(rng, 0.7):
            status["resources"] = {"requests": self._amounts()}
            if chance(rng, 0.5):
                status["allocatedResources"] = self._amounts()
        if chance(rng, 0.5):
            reason = rng.choice(("Infeasible", "Deferred"))
            condition = {"type": "PodResizePending", "status": "True", "reason": reason}
            status["conditions"] = [condition]

    def _amounts(self) -> Json:
        rng = self._rng
        found = {"cpu": rng.choice(wishes.CPUS), "memory": rng.choice(wishes.MEMORIES)}
        if chance(rng, 0.15):
            del found[rng.choice(("cpu", "memory"))]
        return found

    def _pending(self, name: str) -> Json:
        """A pod in the queue; most are nominated to a node."""
        rng = self._rng
        pod = self._pod(name)
        pod["spec"].pop("nodeName", None)
        if self._names and chance(rng, 0.8):
            pod["status"] = {"nominatedNodeName": rng.choice(self._names)}
        if chance(rng, 0.1):
            pod["spec"]["schedulerName"] = "other"
        if chance(rng, 0.05):
            pod["metadata"]["deletionTimestamp"] = "2026-01-01T02:00:00Z"
        return pod


def _other(pod: Json) -> bool:
    return bool(pod["spec"].get("schedulerName"))
