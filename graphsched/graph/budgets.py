"""What may be used of each node: ceilings that an operator set, and what is kept for whom and not yet used by them.

The columns beside `columns.allocatable`, by resource as well. A reservation is used up by the pods of its holder: what
is left of it is what others must leave free. A holder is a namespace, or `namespace/workload`, whose pods carry that
name in the label `app.kubernetes.io/name`, or else in `app`; where both are kept for, a pod uses up the narrower one
and may use both.

Comes in: budgets of nodes, and which nodes' pods changed, from `store`. Goes out: columns, for `decision`. Invariant:
they follow from the nodes and the pods on them. Nothing is kept, and nothing is to be paid, while nobody sets a limit.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping

import numpy as np
import numpy.typing as npt

from graphsched.base.values import labels, nodes, pods

Int64 = npt.NDArray[np.int64]
Left = dict[str, dict[str, int]]
"""Holder → resource → what is kept for it and not used."""
UNBOUNDED = np.iinfo(np.int64).max
WORKLOAD_LABELS = ("app.kubernetes.io/name", "app")


def holders(namespace: str, pod_labels: labels.Labels) -> tuple[str, ...]:
    """Whom a pod belongs to, the narrower holder first."""
    have = dict(pod_labels)
    workload = next((have[key] for key in WORKLOAD_LABELS if have.get(key)), "")
    return (f"{namespace}/{workload}", namespace) if workload else (namespace,)


def left(reserved: nodes.Reservations, there: Iterable[pods.Pod]) -> Left:
    """What is left of the reservations of a node on which these pods are."""
    found = {holder: dict(amounts) for holder, amounts in reserved}
    for pod in there:
        holder = next((each for each in holders(pod.namespace, pod.labels) if each in found), None)
        if holder is None:
            continue
        mine = found[holder]
        for resource, amount in (*pod.held.amounts, (nodes.PODS, 1)):
            if resource in mine:
                mine[resource] = max(0, mine[resource] - amount)
    return found


class Budgets:
    """Ceilings and reservations of the nodes that have any.

    Attributes:
        ceilings: Resource → int64 a row; `UNBOUNDED` where the node has none.
        kept: Resource → int64 a row, what is left of all reservations together.
        kept_for: Holder → the same of what is kept for it.
        reserving: Whether anything is kept for anybody.
    """

    def __init__(self, rows: Mapping[str, int]) -> None:
        """Follow the nodes that have these rows; the mapping changes with them."""
        self._rows = rows
        self._capacity = 0
        self._budgets: dict[str, nodes.Budget] = {}
        self._stale: set[str] = set()
        self.ceilings: dict[str, Int64] = {}
        self.kept: dict[str, Int64] = {}
        self.kept_for: dict[str, dict[str, Int64]] = {}
        self.reserving = False

    def __bool__(self) -> bool:
        """Whether any node has a limit."""
        return bool(self._budgets)

    def resize(self, capacity: int) -> None:
        """Follow the node columns."""
        self._capacity = capacity
        self.ceilings = {name: self._grown(column, UNBOUNDED) for name, column in self.ceilings.items()}
        self.kept = {name: self._grown(column, 0) for name, column in self.kept.items()}
        self.kept_for = {
            holder: {name: self._grown(column, 0) for name, column in table.items()}
            for holder, table in self.kept_for.items()
        }

    def set(self, row: int, name: str, budget: nodes.Budget) -> None:
        """Give the node on the row this budget; what of it is used is counted when somebody asks."""
        self.drop(row, name)
        if not budget.ceilings and not budget.reserved:
            return
        self._budgets[name] = budget
        for resource, amount in budget.ceilings:
            if resource not in self.ceilings:
                self.ceilings[resource] = np.full(self._capacity, UNBOUNDED)
            self.ceilings[resource][row] = amount
        if budget.reserved:
            self.reserving = True
            self._stale.add(name)

    def drop(self, row: int, name: str) -> None:
        """The node on the row has no budget, or the row no node."""
        if self._budgets.pop(name, None) is None:
            return
        for column in self.ceilings.values():
            column[row] = UNBOUNDED
        self._clear(row)
        self._stale.discard(name)
        self.reserving = any(budget.reserved for budget in self._budgets.values())
        if not self.reserving:
            self.kept, self.kept_for = {}, {}
        if not self._budgets:
            self.ceilings = {}

    def touch(self, name: str) -> None:
        """The pods on the node changed."""
        budget = self._budgets.get(name)
        if budget is not None and budget.reserved:
            self._stale.add(name)

    def settle(self, there: Callable[[str], Iterable[pods.Pod]]) -> Budgets:
        """Count anew where pods changed; returns itself. `there` tells the pods on a node."""
        while self._stale:
            name = self._stale.pop()
            self._write(self._rows[name], left(self._budgets[name].reserved, there(name)))
        return self

    def reserves(self, name: str) -> bool:
        """Whether the node keeps anything for anybody."""
        budget = self._budgets.get(name)
        return budget is not None and bool(budget.reserved)

    def with_pods(self, changed: Mapping[str, Iterable[pods.Pod]]) -> Budgets:
        """A copy that counts other pods on some of the nodes that reserve; the original does not change."""
        twin = copy.copy(self)
        twin.kept = {name: column.copy() for name, column in self.kept.items()}
        twin.kept_for = {
            holder: {name: column.copy() for name, column in table.items()} for holder, table in self.kept_for.items()
        }
        for name, there in changed.items():
            twin._write(self._rows[name], left(self._budgets[name].reserved, there))  # noqa: SLF001  its own kind
        return twin

    def kept_from(self, resource: str, mine: tuple[str, ...]) -> Int64 | None:
        """Int64 a row: what is kept of the resource for others than these; None where nothing is for anybody."""
        column = self.kept.get(resource)
        if column is None:
            return None
        for holder in mine:
            own = self.kept_for.get(holder, {}).get(resource)
            column = column if own is None else column - own
        return column

    def row(self, name: str) -> dict[str, object]:
        """All that is derived of one node, for those who check it; `settle` was called before."""
        row = self._rows[name]
        return {
            "ceilings": {key: int(column[row]) for key, column in self.ceilings.items() if column[row] != UNBOUNDED},
            "kept": {key: int(column[row]) for key, column in self.kept.items() if column[row]},
            "kept for": {
                holder: found
                for holder, table in self.kept_for.items()
                if (found := {key: int(column[row]) for key, column in table.items() if column[row]})
            },
        }

    def unused(self, name: str) -> Left:
        """What is left of the reservations of one node, in their order, without zeros; `settle` was called before."""
        budget, row = self._budgets.get(name, nodes.NO_BUDGET), self._rows[name]
        return {
            holder: found
            for holder, amounts in budget.reserved
            if (found := {key: left for key, _ in amounts if (left := int(self.kept_for[holder][key][row]))})
        }

    def _write(self, row: int, unused: Left) -> None:
        self._clear(row)
        for holder, amounts in unused.items():
            for resource, amount in amounts.items():
                for table in (self.kept, self.kept_for.setdefault(holder, {})):
                    if resource not in table:
                        table[resource] = np.zeros(self._capacity, np.int64)
                    table[resource][row] += amount

    def _clear(self, row: int) -> None:
        for table in (self.kept, *self.kept_for.values()):
            for column in table.values():
                column[row] = 0

    def _grown(self, column: Int64, fill: int) -> Int64:
        grown = np.full(self._capacity, fill, np.int64)
        grown[: len(column)] = column
        return grown
