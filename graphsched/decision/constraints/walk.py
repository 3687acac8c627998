"""The topological walk over the constraint DAG.

The vertices are the checks that apply to a pod, the edges say which check is worth running before which. The walk
visits each vertex once and evaluates it over all nodes as a vector, so a decision makes at most |V| + |E| predicate
calls whatever the number of nodes. The order is free where only the mask counts; where reasons are wanted, `attribute`
goes through the checks in kube-scheduler's order and charges each node to the first check that refuses it.
"""

from __future__ import annotations

import graphlib
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from graphsched.base.values import status
from graphsched.decision import trace
from graphsched.decision.constraints import check, feasibility, granted, identity, neighbours, paths, sharing, spread
from graphsched.decision.policy import compliance
from graphsched.graph import view

COMPANY: tuple[check.Check, ...] = (spread.PodTopologySpread(), neighbours.InterPodAffinity())
"""Of kube-scheduler's checks, those that look at other pods."""
PATHS = paths.Paths()
GRANTED = granted.Granted()
POLICY = compliance.GraphPolicy()
OUTSIDE: tuple[check.Check, ...] = (*COMPANY, PATHS, GRANTED, POLICY)
"""Checks that depend on more than spec and node, so no class may cache their answer."""

IN_ORDER: tuple[check.Check, ...] = (
    sharing.Pool(),
    identity.NodeUnschedulable(),
    identity.NodeName(),
    identity.TaintToleration(),
    identity.NodeAffinity(),
    feasibility.NodePorts(),
    feasibility.NodeResourcesFit(),
    *COMPANY,
    identity.NodeDeclaredFeatures(),
    feasibility.GpuDevices(),
    sharing.Headroom(),
    PATHS,
    GRANTED,
    POLICY,
)
"""Every check, in the order of kube-scheduler's default profile. Our own come last, but for the pool: a node outside is
no candidate at all, so what else speaks against it is no news."""


class Attributed(msgspec.Struct, frozen=True, gc=False):
    """Who refused which row, and why.

    Attributes:
        codes: int8 a row of `status.Code`; SUCCESS where every check passed.
        plugin: int8 a row, index into `plugins`; -1 where every check passed.
        plugins: Names of the plugins, in order.
        refusals: For each of `plugins`, its reasons with the rows they cover. A row counts only under its own plugin.
    """

    codes: npt.NDArray[np.int8]
    plugin: npt.NDArray[np.int8]
    plugins: tuple[str, ...]
    refusals: tuple[tuple[check.Refusal, ...], ...]

    def reasons(self, row: int) -> tuple[str, ...]:
        """The sorted reasons of the plugin that refused the row; none where it passed."""
        number = int(self.plugin[row])
        if number < 0:
            return ()
        return tuple(sorted(refusal.reason for refusal in self.refusals[number] if refusal.mask[row]))


def plan(checks: Iterable[check.Check], subject: check.Subject) -> tuple[check.Check, ...]:
    """The checks that apply, in a topological order of the DAG; the given order decides among equals."""
    vertices = {each.plugin: each for each in checks if each.applies(subject)}
    sorter: graphlib.TopologicalSorter[str] = graphlib.TopologicalSorter()
    for plugin, each in vertices.items():
        sorter.add(plugin, *(before for before in each.after if before in vertices))
    return tuple(vertices[plugin] for plugin in sorter.static_order())


def mask(graph: view.View, subject: check.Subject, checks: Sequence[check.Check], rows: check.Rows) -> trace.Mask:
    """Bool for each of the rows: it holds a node, and every check passes. Stops when no row is left."""
    passed: trace.Mask = graph.columns.live[rows].copy()
    for each in checks:
        if not passed.any():
            break
        passed &= each.passes(graph, subject, rows)
    return passed


def attribute(graph: view.View, subject: check.Subject, checks: Iterable[check.Check]) -> Attributed:
    """Charge every row to the first of the checks, in the order given, that refuses it."""
    capacity = graph.columns.capacity
    codes = np.zeros(capacity, np.int8)
    plugin = np.full(capacity, -1, np.int8)
    names: list[str] = []
    found: list[tuple[check.Refusal, ...]] = []
    for each in checks:
        if not each.applies(subject):
            continue
        open_rows = plugin < 0
        charged = []
        for refusal in each.refusals(graph, subject, slice(None)):
            here = refusal.mask & open_rows & graph.columns.live
            if not here.any():
                continue
            charged.append(check.Refusal(refusal.reason, here, refusal.unresolvable))
            plugin[here] = len(names)
            hard = here & refusal.unresolvable
            codes[here & (codes == status.Code.SUCCESS)] = status.Code.UNSCHEDULABLE
            codes[hard] = status.Code.UNRESOLVABLE
        if charged:
            names.append(each.plugin)
            found.append(tuple(charged))
    return Attributed(codes, plugin, tuple(names), tuple(found))


def overlaid(base: Attributed, other: Attributed, row: int) -> Attributed:
    """`base` with one row as `other` has it, if `other` refuses that row."""
    number = int(other.plugin[row])
    if number < 0:
        return base
    only = np.zeros(len(base.codes), np.bool_)
    only[row] = True
    name = other.plugins[number]
    kept = [
        tuple(check.Refusal(each.reason, each.mask & ~only, each.unresolvable) for each in refusals)
        for refusals in base.refusals
    ]
    names = list(base.plugins)
    if name not in names:
        names.append(name)
        kept.append(())
    place = names.index(name)
    added = (check.Refusal(each.reason, each.mask & only, each.unresolvable) for each in other.refusals[number])
    kept[place] = (*kept[place], *(each for each in added if each.mask.any()))
    codes, plugin = base.codes.copy(), base.plugin.copy()
    codes[row], plugin[row] = other.codes[row], place
    used = [index for index in range(len(names)) if any(each.mask.any() for each in kept[index])]
    renumbered = np.full(len(names) + 1, -1, np.int8)
    renumbered[used] = np.arange(len(used), dtype=np.int8)
    return Attributed(
        codes,
        renumbered[plugin],
        tuple(names[index] for index in used),
        tuple(tuple(each for each in kept[index] if each.mask.any()) for index in used),
    )
