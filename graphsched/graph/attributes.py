"""Attributes of nodes as dictionary-encoded columns: labels, taints, declared features, GPU models.

A constraint on labels is a question about a few distinct values, not about thousands of nodes: it is asked once for
each value and the answers are spread over the nodes by one indexed read. `store` writes, `decision/constraints` asks.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, KeysView
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from graphsched.base.values import labels, nodes

Value = TypeVar("Value", bound=Hashable)
Rows = npt.NDArray[np.intp] | slice

_SLACK = 1024
"""Distinct values a column may hold beyond four for each row before it is encoded anew."""


class Encoded(Generic[Value]):
    """One attribute of every node: an id a row and the distinct values behind the ids.

    Attributes:
        ids: int32 a row, the index into `values`; -1 where the node has none.
        values: The distinct values, in order of appearance.
    """

    def __init__(self, capacity: int) -> None:
        self.ids: npt.NDArray[np.int32] = np.full(capacity, -1, np.int32)
        self.values: list[Value] = []
        self._index: dict[Value, int] = {}
        self._answers: dict[Hashable, npt.NDArray[np.generic]] = {}

    def resize(self, capacity: int) -> None:
        """Follow the node columns; new rows have no value."""
        grown = np.full(capacity, -1, np.int32)
        grown[: len(self.ids)] = self.ids
        self.ids = grown

    def set(self, row: int, value: Value | None) -> None:
        """Give the row a value, or none."""
        if value is None:
            self.ids[row] = -1
            return
        found = self._index.get(value)
        if found is None:
            if len(self.values) >= 4 * len(self.ids) + _SLACK:
                self._encode_anew()
            found = self._index[value] = len(self.values)
            self.values.append(value)
            self._answers.clear()
        self.ids[row] = found

    def ask(
        self, question: Hashable, answer: Callable[[Value | None], bool | int], dtype: type[np.generic]
    ) -> npt.NDArray[np.generic]:
        """`answer` for every distinct value, and last for None, kept under `question` until a new value appears.

        Index it with `ids`: -1 finds the last place, which is the answer for "has none".
        """
        table = self._answers.get(question)
        if table is None:
            if len(self._answers) >= _SLACK:
                self._answers.clear()
            table = np.array([answer(value) for value in self.values] + [answer(None)], dtype)
            self._answers[question] = table
        return table

    def _encode_anew(self) -> None:
        """Drop the values no row has any more, so that labels that count up do not fill the memory."""
        used = np.unique(self.ids[self.ids >= 0])
        place = np.full(len(self.values), -1, np.int32)
        place[used] = np.arange(len(used), dtype=np.int32)
        self.ids = np.where(self.ids >= 0, place[self.ids], np.int32(-1)).astype(np.int32)
        self.values = [self.values[index] for index in used.tolist()]
        self._index = {value: index for index, value in enumerate(self.values)}
        self._answers.clear()


class Attributes:
    """All encoded attributes of the nodes.

    Attributes:
        taints: The taints of a node as one value; absent for a node without any.
        features: Declared features; absent for a node without any.
        gpu_models: Model of the shareable GPUs.
        unschedulable: bool a row, the cordon.
    """

    LABEL_KEYS_MAX = 512
    """Label keys with a column of their own; beyond, the one asked for longest ago makes room."""

    def __init__(self) -> None:
        self.taints: Encoded[tuple[nodes.Taint, ...]] = Encoded(0)
        self.features: Encoded[tuple[str, ...]] = Encoded(0)
        self.gpu_models: Encoded[str] = Encoded(0)
        self.unschedulable: npt.NDArray[np.bool_] = np.zeros(0, np.bool_)
        self._labels: dict[str, Encoded[str]] = {}
        self._node_labels: dict[int, labels.Labels] = {}

    def resize(self, capacity: int) -> None:
        """Follow the node columns."""
        self.taints.resize(capacity)
        self.features.resize(capacity)
        self.gpu_models.resize(capacity)
        for column in self._labels.values():
            column.resize(capacity)
        grown = np.zeros(capacity, np.bool_)
        grown[: len(self.unschedulable)] = self.unschedulable
        self.unschedulable = grown

    def set(self, row: int, node: nodes.Node | None) -> None:
        """Take over the node's attributes; None empties the row."""
        self.taints.set(row, (node.taints or None) if node else None)
        self.features.set(row, (node.features or None) if node else None)
        self.gpu_models.set(row, (node.gpu_model or None) if node else None)
        self.unschedulable[row] = node.unschedulable if node else False
        if node is None:
            self._node_labels.pop(row, None)
        else:
            self._node_labels[row] = node.labels
        mapping = dict(node.labels) if node and self._labels else {}
        for key, column in self._labels.items():
            column.set(row, mapping.get(key))

    @property
    def label_keys(self) -> KeysView[str]:
        """The label keys that have a column, the one asked for longest ago first."""
        return self._labels.keys()

    def label(self, key: str) -> Encoded[str]:
        """The column of a label key, built when it is first asked for."""
        column = self._labels.pop(key, None)
        if column is None:
            column = Encoded(len(self.unschedulable))
            for row, node_labels in self._node_labels.items():
                column.set(row, dict(node_labels).get(key))
            while len(self._labels) >= self.LABEL_KEYS_MAX:
                self._labels.pop(next(iter(self._labels)))
        self._labels[key] = column
        return column

    def labels_in_columns(self, row: int) -> dict[str, str]:
        """The row's labels as the columns that there are have them; builds none, and none counts as asked for."""
        return {key: column.values[number] for key, column in self._labels.items() if (number := column.ids[row]) >= 0}

    def holds(self, requirement: labels.Requirement, rows: Rows) -> npt.NDArray[np.bool_]:
        """Bool for each of `rows`: whether the node's labels satisfy the requirement."""
        column = self.label(requirement.key)
        table = column.ask(requirement, requirement.holds, np.bool_)
        answers: npt.NDArray[np.bool_] = table[column.ids[rows]].astype(np.bool_, copy=False)
        return answers

    def all_hold(self, requirements: Iterable[labels.Requirement], rows: Rows) -> npt.NDArray[np.bool_]:
        """Bool for each of `rows`: whether the node's labels satisfy every requirement."""
        answers = np.ones(len(self.unschedulable[rows]), np.bool_)
        for requirement in requirements:
            answers &= self.holds(requirement, rows)
        return answers
