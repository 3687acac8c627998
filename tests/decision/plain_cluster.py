"""A cluster as the plain loops see it: nodes with the pods on them, counted again for every question.

Comes in: the vertices and edges of a graph. Goes out: `Cluster`, to `plain_filters` and `plain_scores`. Nothing is kept
but the values themselves, so there is nothing that could be out of step.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping

from graphsched.base.values import keys, nodes, pods, relations
from graphsched.graph import delta


@dataclasses.dataclass
class Machine:
    """A node and the pods that count on it, each with the devices it holds there; `promised` are the keys of those
    among them that only wait for room nominated to them.
    """

    node: nodes.Node
    pods: list[tuple[pods.Pod, tuple[int, ...]]]
    promised: set[keys.VertexKey] = dataclasses.field(default_factory=set)

    def allocatable(self, resource: str) -> int:
        """How much it offers."""
        return dict(self.node.allocatable).get(resource, 0)

    def requested(self, resource: str) -> int:
        """How much its pods hold."""
        return sum(dict(pod.held.amounts).get(resource, 0) for pod, _ in self.pods)

    def label(self, key: str) -> str | None:
        """The value of its label; None without one."""
        return dict(self.node.labels).get(key)

    def free_devices(self) -> list[int]:
        """Thousandths left on each of its shareable GPUs."""
        free = [1000] * self.node.gpus
        for pod, devices in self.pods:
            for device in devices:
                if pod.spec.gpu is not None and device < len(free):
                    free[device] -= pod.spec.gpu.milli
        return free


class Cluster:
    """Nodes with their pods, pods waiting for room nominated to them, and the labels of namespaces."""

    def __init__(
        self,
        vertices: Mapping[keys.VertexKey, delta.Vertex],
        edges: Mapping[keys.EdgeID, relations.Edge],
    ) -> None:
        self.machines = {each.name: Machine(each, []) for each in vertices.values() if isinstance(each, nodes.Node)}
        self.namespaces = {each.name: each.labels for each in vertices.values() if isinstance(each, nodes.Namespace)}
        self.nominated: list[pods.Pod] = []
        promises = {edge.source: (edge, value) for edge, value in edges.items() if isinstance(value, relations.Runs)}
        for key, pod in vertices.items():
            if not isinstance(pod, pods.Pod):
                continue
            where, devices = pod.node, pod.devices
            if not where and key in promises:
                edge, promise = promises[key]
                if promise.uid == pod.uid:
                    where, devices = keys.name_of(edge.target), promise.devices
            if where in self.machines:
                self.machines[where].pods.append((pod, devices))
            if not where and pod.nominated:
                self.nominated.append(pod)

    def crowded(self, machine: Machine, pod: pods.Pod) -> Machine:
        """The node with the pods nominated to it that matter as much as the pod, counted as if they ran there."""
        full = Machine(machine.node, list(machine.pods))
        for other in self.nominated:
            if other.nominated == machine.node.name and other.priority >= pod.priority and other.key != pod.key:
                full.pods.append((other, choose_devices(full, other.spec.gpu)))
                full.promised.add(other.key)
        return full

    def with_machine(self, machine: Machine) -> Cluster:
        """The same cluster with one node as it is here."""
        twin = copy.copy(self)
        twin.machines = {**self.machines, machine.node.name: machine}
        return twin


def choose_devices(machine: Machine, gpu: pods.GpuDemand | None) -> tuple[int, ...]:
    """The devices a pod gets: those with the least left that is enough, in order of their index among equals."""
    if gpu is None:
        return ()
    fitting = [(left, device) for device, left in enumerate(machine.free_devices()) if left >= gpu.milli]
    return tuple(sorted(device for _, device in sorted(fitting)[: gpu.count]))
