"""Nodes and pods for tests, said briefly: `make_pod("web").cpu("500m").tolerate("dedicated", "gpu")`.

A builder collects a manifest. `manifest()` gives it as a mapping, `build()` gives the value that the project's own
decoding makes of it, so that tests do not hold opinions of their own about, say, default requests. Every step returns a
new builder: a half-built one can be shared.

A pod has one container, `main`, which asks for nothing; a node has 4 CPUs, 32 GiB, room for 110 pods and its hostname
label.
"""

from __future__ import annotations

import copy
import typing
from collections.abc import Mapping

import msgspec

from graphsched.base.kube import nodes as kube_nodes, pods as kube_pods, wire
from graphsched.base.values import nodes, pods

Manifest = dict[str, typing.Any]
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def need(key: str, operator: str = "Exists", *values: str) -> Manifest:
    """A requirement of a node selector term or label selector."""
    return {"key": key, "operator": operator, "values": list(values)}


def selecting(**labels: str) -> Manifest:
    """A label selector by equality."""
    return {"matchLabels": dict(labels)}


def make_pod(name: str, namespace: str = "default") -> PodBuilder:
    """A pod that asks for nothing."""
    return PodBuilder(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}"},
            "spec": {"containers": [{"name": "main", "image": "app:1"}]},
        },
    )


def make_node(name: str) -> NodeBuilder:
    """A node of 4 CPUs, 32 GiB and 110 pods."""
    return NodeBuilder(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "uid": f"uid-{name}", "labels": {HOSTNAME: name}},
            "status": {"allocatable": {"cpu": "4", "memory": "32Gi", "pods": "110"}},
        },
    )


def make_namespace(name: str, **labels: str) -> nodes.Namespace:
    """A namespace with the label that the API server gives it."""
    return nodes.Namespace(name, tuple(sorted({"kubernetes.io/metadata.name": name, **labels}.items())))


class _Builder:
    """A manifest that grows by copying."""

    def __init__(self, manifest: Manifest, **extra: typing.Any) -> None:
        self._manifest = manifest
        self._extra = extra

    def manifest(self) -> Manifest:
        """The manifest so far, the caller's own copy."""
        return copy.deepcopy(self._manifest)

    def set(self, path: str, value: object) -> typing.Self:
        """Set any field: `set("status.phase", "Running")`. Numbers in the path are list indices."""
        fresh = self.manifest()
        *steps, last = path.split(".")
        target: typing.Any = fresh
        for step in steps:
            target = target[int(step)] if isinstance(target, list) else target.setdefault(step, {})
        if isinstance(target, list):
            target[int(last)] = copy.deepcopy(value)
        else:
            target[last] = copy.deepcopy(value)
        return type(self)(fresh, **self._extra)

    def _put(self, *steps: str, **fields: object) -> typing.Self:
        """Merge fields into the mapping at these steps."""
        fresh = self.manifest()
        target = fresh
        for step in steps:
            target = target.setdefault(step, {})
        target.update(fields)
        return type(self)(fresh, **self._extra)

    def _append(self, *steps: str, item: object) -> typing.Self:
        """Append to the list at these steps."""
        fresh = self.manifest()
        target = fresh
        for step in steps[:-1]:
            target = target.setdefault(step, {})
        target.setdefault(steps[-1], []).append(item)
        return type(self)(fresh, **self._extra)

    def label(self, key: str, value: str) -> typing.Self:
        """Put a label on it."""
        return self._put("metadata", "labels", **{key: value})

    def uid(self, uid: str) -> typing.Self:
        """Make it another object of the same name."""
        return self._put("metadata", uid=uid)


class PodBuilder(_Builder):
    """A pod in the making."""

    def build(self) -> pods.Pod:
        """The pod as a value, as the cluster has it."""
        pod = kube_pods.pod(wire.POD.convert(self._manifest))
        gpu: pods.GpuDemand | None = self._extra.get("gpu")
        if gpu is not None:
            pod = msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, gpu=gpu))
        return msgspec.structs.replace(pod, devices=self._extra.get("devices", ()))

    def cpu(self, quantity: str) -> PodBuilder:
        """Request CPU in the main container."""
        return self.request("cpu", quantity)

    def memory(self, quantity: str) -> PodBuilder:
        """Request memory in the main container."""
        return self.request("memory", quantity)

    def request(self, resource: str, quantity: str, container: int = 0) -> PodBuilder:
        """Request any resource, in the main container or the regular one of that index."""
        fresh = self.manifest()
        resources = fresh["spec"]["containers"][container].setdefault("resources", {})
        resources.setdefault("requests", {})[resource] = quantity
        return PodBuilder(fresh, **self._extra)

    def limit(self, resource: str, quantity: str, container: int = 0) -> PodBuilder:
        """Limit any resource, in the main container or the regular one of that index."""
        fresh = self.manifest()
        resources = fresh["spec"]["containers"][container].setdefault("resources", {})
        resources.setdefault("limits", {})[resource] = quantity
        return PodBuilder(fresh, **self._extra)

    def container(self, name: str, requests: Mapping[str, str] | None = None, image: str = "app:1") -> PodBuilder:
        """Add a regular container."""
        return self._append("spec", "containers", item=_container(name, requests, image))

    def init_container(self, name: str, requests: Mapping[str, str] | None = None, image: str = "app:1") -> PodBuilder:
        """Add an init container that runs to its end."""
        return self._append("spec", "initContainers", item=_container(name, requests, image))

    def sidecar(self, name: str, requests: Mapping[str, str] | None = None, image: str = "app:1") -> PodBuilder:
        """Add an init container that keeps running."""
        item = {**_container(name, requests, image), "restartPolicy": "Always"}
        return self._append("spec", "initContainers", item=item)

    def image(self, name: str) -> PodBuilder:
        """Let the main container run this image."""
        return self.set("spec.containers.0.image", name)

    def pod_requests(self, requests: Mapping[str, str]) -> PodBuilder:
        """Request resources for the pod as a whole."""
        return self._put("spec", "resources", requests=dict(requests))

    def overhead(self, resources: Mapping[str, str]) -> PodBuilder:
        """Add what running the pod costs on top."""
        return self._put("spec", overhead=dict(resources))

    def gpu(self, count: int = 1, milli: int = 1000, *models: str) -> PodBuilder:
        """Ask for shareable GPUs, which no manifest field expresses."""
        return PodBuilder(self._manifest, **{**self._extra, "gpu": pods.GpuDemand(count, milli, models)})

    def devices(self, *indices: int) -> PodBuilder:
        """Let it hold these shareable GPUs of its node."""
        return PodBuilder(self._manifest, **{**self._extra, "devices": indices})

    def node(self, name: str) -> PodBuilder:
        """Bind it."""
        return self._put("spec", nodeName=name)

    def nominated(self, node: str) -> PodBuilder:
        """Nominate it."""
        return self._put("status", nominatedNodeName=node)

    def scheduler(self, name: str) -> PodBuilder:
        """Say who is to place it."""
        return self._put("spec", schedulerName=name)

    def priority(self, value: int) -> PodBuilder:
        """Set its priority."""
        return self._put("spec", priority=value)

    def never_preempts(self) -> PodBuilder:
        """Forbid it to evict others."""
        return self._put("spec", preemptionPolicy="Never")

    def gate(self, name: str) -> PodBuilder:
        """Hold it back by a scheduling gate."""
        return self._append("spec", "schedulingGates", item={"name": name})

    def deleting(self, when: str = "2025-01-01T00:00:00Z") -> PodBuilder:
        """Have it deleted, though it still runs."""
        return self._put("metadata", deletionTimestamp=when)

    def created(self, when: str) -> PodBuilder:
        """Set when it was created, as the API writes times."""
        return self._put("metadata", creationTimestamp=when)

    def started(self, when: str) -> PodBuilder:
        """Set when it was started, as the API writes times."""
        return self._put("status", startTime=when)

    def phase(self, phase: str) -> PodBuilder:
        """Set its phase."""
        return self._put("status", phase=phase)

    def node_selector(self, key: str, value: str) -> PodBuilder:
        """Select nodes by label."""
        return self._put("spec", "nodeSelector", **{key: value})

    def require_nodes(self, *needs: Manifest, fields: tuple[Manifest, ...] = ()) -> PodBuilder:
        """Add a required node affinity term of these requirements; several calls are alternatives."""
        term = {"matchExpressions": list(needs), "matchFields": list(fields)}
        return self._append("spec", "affinity", "nodeAffinity", _REQUIRED, "nodeSelectorTerms", item=term)

    def prefer_nodes(self, weight: int, *needs: Manifest) -> PodBuilder:
        """Add a preferred node affinity term."""
        item = {"weight": weight, "preference": {"matchExpressions": list(needs)}}
        return self._append("spec", "affinity", "nodeAffinity", _PREFERRED, item=item)

    def tolerate(self, key: str = "", value: str = "", effect: str = "", operator: str = "") -> PodBuilder:
        """Tolerate taints: of this value, or of any value when none is given."""
        operator = operator or ("Equal" if value else "Exists")
        item = {"key": key, "operator": operator, "value": value, "effect": effect}
        return self._append("spec", "tolerations", item=item)

    def host_port(self, port: int, protocol: str = "TCP", ip: str = "") -> PodBuilder:
        """Take a port of the host, in the main container."""
        fresh = self.manifest()
        item = {"containerPort": port, "hostPort": port, "protocol": protocol, "hostIP": ip}
        fresh["spec"]["containers"][0].setdefault("ports", []).append(item)
        return PodBuilder(fresh, **self._extra)

    def near(self, key: str, selector: Manifest | None, **term: object) -> PodBuilder:
        """Add a required pod affinity term."""
        item = {"topologyKey": key, "labelSelector": selector, **term}
        return self._append("spec", "affinity", "podAffinity", _REQUIRED, item=item)

    def away_from(self, key: str, selector: Manifest | None, **term: object) -> PodBuilder:
        """Add a required pod anti-affinity term."""
        item = {"topologyKey": key, "labelSelector": selector, **term}
        return self._append("spec", "affinity", "podAntiAffinity", _REQUIRED, item=item)

    def prefer_near(self, weight: int, key: str, selector: Manifest | None, **term: object) -> PodBuilder:
        """Add a preferred pod affinity term."""
        item = {"weight": weight, "podAffinityTerm": {"topologyKey": key, "labelSelector": selector, **term}}
        return self._append("spec", "affinity", "podAffinity", _PREFERRED, item=item)

    def prefer_away_from(self, weight: int, key: str, selector: Manifest | None, **term: object) -> PodBuilder:
        """Add a preferred pod anti-affinity term."""
        item = {"weight": weight, "podAffinityTerm": {"topologyKey": key, "labelSelector": selector, **term}}
        return self._append("spec", "affinity", "podAntiAffinity", _PREFERRED, item=item)

    def spread(
        self,
        key: str,
        selector: Manifest | None,
        *,
        max_skew: int = 1,
        hard: bool = True,
        **more: object,
    ) -> PodBuilder:
        """Add a topology spread constraint."""
        item = {
            "maxSkew": max_skew,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule" if hard else "ScheduleAnyway",
            "labelSelector": selector,
            **more,
        }
        return self._append("spec", "topologySpreadConstraints", item=item)

    def claim(self, name: str) -> PodBuilder:
        """Mount a PersistentVolumeClaim."""
        return self._append(
            "spec", "volumes", item={"name": f"volume-{name}", "persistentVolumeClaim": {"claimName": name}}
        )


class NodeBuilder(_Builder):
    """A node in the making."""

    def build(self) -> nodes.Node:
        """The node as a value."""
        node = kube_nodes.node(wire.NODE.convert(self._manifest))
        return msgspec.structs.replace(node, **self._extra)

    def cpu(self, quantity: str) -> NodeBuilder:
        """Set its allocatable CPU."""
        return self.resource("cpu", quantity)

    def memory(self, quantity: str) -> NodeBuilder:
        """Set its allocatable memory."""
        return self.resource("memory", quantity)

    def pods(self, count: int) -> NodeBuilder:
        """Set how many pods it takes."""
        return self.resource("pods", str(count))

    def resource(self, name: str, quantity: str) -> NodeBuilder:
        """Set how much it has of any resource."""
        return self._put("status", "allocatable", **{name: quantity})

    def without(self, resource: str) -> NodeBuilder:
        """Let it not know a resource."""
        fresh = self.manifest()
        del fresh["status"]["allocatable"][resource]
        return NodeBuilder(fresh, **self._extra)

    def zone(self, name: str) -> NodeBuilder:
        """Put it into a zone."""
        return self.label(ZONE, name)

    def region(self, name: str) -> NodeBuilder:
        """Put it into a region."""
        return self.label(REGION, name)

    def taint(self, key: str, value: str = "", effect: str = "NoSchedule") -> NodeBuilder:
        """Taint it."""
        return self._append("spec", "taints", item={"key": key, "value": value, "effect": effect})

    def cordoned(self) -> NodeBuilder:
        """Cordon it, as kubectl does: flag and taint."""
        return self._put("spec", unschedulable=True).taint("node.kubernetes.io/unschedulable")

    def image(self, size: int, *names: str) -> NodeBuilder:
        """Let it hold an image of `size` bytes."""
        return self._append("status", "images", item={"names": list(names), "sizeBytes": size})

    def feature(self, name: str) -> NodeBuilder:
        """Let it declare a feature."""
        return self._append("status", "declaredFeatures", item=name)

    def address(self, kind: str, text: str) -> NodeBuilder:
        """Let it have an address of this type: InternalIP, ExternalIP, Hostname."""
        return self._append("status", "addresses", item={"type": kind, "address": text})

    def gpus(self, count: int, model: str = "") -> NodeBuilder:
        """Give it shareable GPUs, which no manifest field expresses."""
        return NodeBuilder(self._manifest, **{**self._extra, "gpus": count, "gpu_model": model})


def _container(name: str, requests: Mapping[str, str] | None, image: str) -> Manifest:
    return {"name": name, "image": image, "resources": {"requests": dict(requests or {})}}
