"""Feasibility: constraints on what is left on a node, resources, host ports, shareable GPUs.

The consumer of the resource layer; `policy/reachability` reads the physical one and `policy/compliance` the rules.

Their answers change with every pod that comes or goes, for the rows it touches. Semantics of the first two:
kube-scheduler's NodeResourcesFit and NodePorts; the third is the device ledger, where a fraction of a GPU must come
from one device.
"""

from __future__ import annotations

import numpy as np

from graphsched.base.values import nodes
from graphsched.decision import names, trace
from graphsched.decision.constraints import check
from graphsched.graph import view


class NodeResourcesFit:
    """Room for one more pod, and for every resource it requests.

    A resource that is not requested is not looked at, even where it is over-committed. A request above what the node
    offers altogether makes the refusal unresolvable; too many pods never does.
    """

    plugin = names.NODE_RESOURCES_FIT
    static = False
    after: tuple[str, ...] = (names.NODE_UNSCHEDULABLE, names.TAINT_TOLERATION, names.NODE_AFFINITY)

    def applies(self, subject: check.Subject) -> bool:  # noqa: ARG002  the number of pods is always bounded
        """Always."""
        return True

    def passes(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> trace.Mask:
        """Bool for each row: it has room."""
        columns = graph.columns
        mask = columns.pods[rows] < columns.allocatable[nodes.PODS][rows]
        for name, amount in counted(subject):
            offered = columns.allocatable.get(name)
            if offered is None:
                return np.zeros(len(mask), np.bool_)
            held = columns.requested.get(name)
            room = offered[rows] if held is None else offered[rows] - held[rows]
            mask &= room >= amount
        return mask

    def refusals(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> list[check.Refusal]:
        """Too many pods, then each resource that is short."""
        columns = graph.columns
        full = columns.pods[rows] >= columns.allocatable[nodes.PODS][rows]
        found = [check.Refusal("Too many pods", full, unresolvable=False)]
        for name, amount in counted(subject):
            offered = columns.column(columns.allocatable, name)[rows]
            short = offered - columns.column(columns.requested, name)[rows] < amount
            found.append(check.Refusal(f"Insufficient {name}", short, short & (offered < amount)))
        return found


def counted(subject: check.Subject) -> list[tuple[str, int]]:
    """The requests that are looked at: positive ones, less the extended resources the profile ignores."""
    amounts = subject.spec.demand.amounts
    if not subject.ignored_resources and not subject.ignored_groups:
        return [(name, amount) for name, amount in amounts if amount > 0]
    return [
        (name, amount)
        for name, amount in amounts
        if amount > 0
        and not (
            _extended(name) and (name in subject.ignored_resources or name.split("/", 1)[0] in subject.ignored_groups)
        )
    ]


def _extended(name: str) -> bool:
    """Whether a resource is an extended one: huge pages and what Kubernetes itself names can not be ignored."""
    return "/" in name and "kubernetes.io/" not in name and not name.startswith("requests.")


class NodePorts:
    """Every host port the pod wants is free."""

    plugin = names.NODE_PORTS
    static = False
    after: tuple[str, ...] = (names.NODE_RESOURCES_FIT,)
    reason = "node(s) didn't have free ports for the requested pod ports"

    def applies(self, subject: check.Subject) -> bool:
        """Where the pod wants host ports."""
        return bool(subject.spec.ports)

    def passes(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> trace.Mask:
        """Bool for each row: no wanted port is taken."""
        mask = np.ones(graph.columns.capacity, np.bool_)
        mask[list(graph.ports.blocked(subject.spec.ports))] = False
        return mask[rows]

    def refusals(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> list[check.Refusal]:
        """The rows where a wanted port is taken."""
        return [check.Refusal(self.reason, ~self.passes(graph, subject, rows), unresolvable=False)]


class GpuDevices:
    """Enough shareable GPUs of a wanted model, each with the wanted thousandths free on that one device."""

    plugin = names.GPU_DEVICES
    static = False
    after: tuple[str, ...] = (names.NODE_RESOURCES_FIT,)
    reason_model = "node(s) had no GPU of a requested model"
    reason_devices = "node(s) didn't have enough free GPU devices"

    def applies(self, subject: check.Subject) -> bool:
        """Where the pod wants shareable GPUs."""
        return subject.spec.gpu is not None

    def passes(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> trace.Mask:
        """Bool for each row: model and devices fit."""
        gpu = subject.spec.gpu
        if gpu is None:
            return np.ones(check.count(graph, rows), np.bool_)
        fitting = graph.devices.fit(gpu, rows)
        if gpu.models:
            fitting &= self._model(graph, gpu.models, rows)
        return fitting

    def refusals(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> list[check.Refusal]:
        """Rows without a wanted model, which no eviction changes; then rows without enough room on their devices."""
        gpu = subject.spec.gpu
        if gpu is None:
            return []
        devices = graph.devices.numbers[rows]
        model = self._model(graph, gpu.models, rows) if gpu.models else devices > 0
        short = ~graph.devices.fit(gpu, rows) & model
        return [
            check.Refusal(self.reason_model, ~model, unresolvable=True),
            check.Refusal(self.reason_devices, short, short & (devices < gpu.count)),
        ]

    def _model(self, graph: view.View, models: tuple[str, ...], rows: check.Rows) -> trace.Mask:
        column = graph.attributes.gpu_models
        table = column.ask(models, lambda model: model in models, np.bool_)
        return table[column.ids[rows]].astype(np.bool_)
