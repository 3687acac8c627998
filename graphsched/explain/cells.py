"""How a pod lies in the NUMA cells of a node, as its agent last reported them: what the score of cells went by.

A view and a pod come in, one `Fit` a node goes out; none for pods that no kubelet aligns, or where the profile gives
the score no weight.
"""

from __future__ import annotations

import msgspec

from graphsched.base.values import places, pods
from graphsched.decision import names, profile
from graphsched.decision.scoring import cells as scoring
from graphsched.explain import wording
from graphsched.graph import view


class Fit(msgspec.Struct, frozen=True, gc=False):
    """How a pod lies in the cells of a node.

    Attributes:
        node: Name of the node.
        cells: How many cells it tells of; 0 where there is no NodeResourceTopology, or none that says what is free.
        taken: How many of them the pod takes; 0 where all of them together have not enough.
        cell: The first that holds all of it, where one does.
        policy: Of the node's topology manager; empty where nobody says.
    """

    node: str
    cells: int = 0
    taken: int = 0
    cell: str = ""
    policy: str = ""

    def __str__(self) -> str:
        """One line, without indentation."""
        if not self.cells:
            return f"{self.node} does not tell what is free in which"
        policy = f" (policy {self.policy})" if self.policy else ""
        if self.cell:
            return f"all of it fits into {self.cell} of {self.node}{policy}"
        if not self.taken:
            return f"{self.node} reports too little in all {self.cells}{policy}"
        return f"it takes {self.taken} of the {wording.count(self.cells, 'cell')} of {self.node}{policy}"


def of_node(graph: view.View, pod: pods.Pod, node: str, settings: profile.Profile) -> Fit | None:
    """How the pod would lie there; None where cells do not count for it."""
    if not graph.cells or not pod.spec.guaranteed or not settings.weights.get(names.GRAPH_CELLS):
        return None
    there, amounts = graph.cells.of(node), pod.spec.demand.amounts
    if not there:
        return Fit(node)
    whole = scoring.holder(there, amounts)
    return Fit(
        node=node,
        cells=len(there),
        taken=scoring.taken(there, amounts),
        cell="" if whole is None or whole.cell is None else whole.cell[1],
        policy=dict(there[0].labels).get(places.POLICY, ""),
    )
