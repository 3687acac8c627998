"""What a decision goes by besides the graph and the pod: data that its caller brings along.

`app` makes a context, `cycle` reads it. It holds what was learned elsewhere and changes with time, so that a decision
needs no clock and the same arguments give the same decision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
import numpy as np

from graphsched.decision import names, trace
from graphsched.graph import view

AVOIDED_MAX = 3
"""How many nodes that were made to look worse a decision names."""


def never() -> bool:
    """The time that never comes: for work that may take as long as it takes."""
    return False


class Context(msgspec.Struct, frozen=True, gc=False):
    """Beside the graph and the pod.

    Attributes:
        costs: Node name → points taken from its total, each positive. No node is refused for its cost.
        now: Seconds since the epoch, for whatever has an age; 0.0 where nobody says.
        expired: Whether the decision has used up its time. Work on the graph that may be long asks it between pieces,
            and does without its answer once it is true; a decision is made in any case.
    """

    costs: Mapping[str, int] = {}
    now: float = 0.0
    expired: Callable[[], bool] = never


PLAIN = Context()
"""Nothing was learned: totals are kube-scheduler's."""


class Costs:
    """The costs as a column over the rows of one view."""

    def __init__(self, graph: view.View, given: Mapping[str, int]) -> None:
        self._graph = graph
        self.column: trace.Scores = np.zeros(graph.columns.capacity, np.int64)
        for name, cost in given.items():
            row = graph.columns.rows.get(name)
            if row is not None:
                self.column[row] = cost
        self.most = int(self.column.max(initial=0))

    def avoided(self, passed: trace.Mask) -> tuple[tuple[str, int], ...]:
        """Nodes that passed in spite of a cost, with it, the dearest first; at most `AVOIDED_MAX`."""
        found = [
            (self._graph.columns.names[row], int(self.column[row]))
            for row in np.flatnonzero(passed & (self.column > 0))
        ]
        return tuple(sorted(found, key=lambda each: (-each[1], each[0]))[:AVOIDED_MAX])

    def score(self, row: int) -> tuple[tuple[str, int], ...]:
        """The row's part of a total, as plugin and score; none where it costs nothing."""
        cost = int(self.column[row])
        return ((names.REJECTIONS, -cost),) if cost else ()


def costs_of(graph: view.View, context: Context) -> Costs | None:
    """The costs of nodes that the view has; None where nothing costs anything."""
    if not context.costs:
        return None
    costs = Costs(graph, context.costs)
    return costs if costs.most else None
