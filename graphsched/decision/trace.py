"""What a decision leaves behind, as finished values.

`cycle` makes them; `action` binds what a `Decision` says, `app/backlog` parks what it refuses, `explain` and `observe`
read both. `Evaluation` is the same walk with nothing left out: every node's refusal or its score by plugin. It is made
only on request (`evaluate`, `explain`, the debug endpoint), since a decision never needs that much.
"""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from graphsched.base.values import keys, status


class Diagnosis(msgspec.Struct, frozen=True, gc=False):
    """Why no node was left.

    Attributes:
        nodes: Number of nodes known.
        reasons: (reason, number of nodes refused for it), sorted as the text `count reason`. A node with several
            reasons counts under each.
        plugins: Names of the plugins that refused, sorted: what must change before a retry makes sense.
        prefilter: The refusal of the pod as a whole, before any node was looked at; None otherwise. Its code is ERROR
            where the attempt failed: such a pod is not unschedulable, it is tried again with the backoff for errors.
        helpful: Whether evicting pods may help on some node (a node refused as UNSCHEDULABLE).
    """

    nodes: int
    reasons: tuple[tuple[str, int], ...] = ()
    plugins: tuple[str, ...] = ()
    prefilter: status.Status | None = None
    helpful: bool = False


class Decision(msgspec.Struct, frozen=True, gc=False):
    """Where a pod goes, or why nowhere.

    Attributes:
        pod: Key of the pod.
        uid: Its UID.
        generation: Generation of the graph that was decided on.
        node: Name of the node; empty when refused.
        devices: Indices of the shareable GPUs it gets on that node.
        score: Weighted total of the chosen node; 0 when it was the only one, as scoring is skipped then.
        scores: (plugin, its part of the total) for the chosen node; empty when scoring was skipped.
        feasible: Number of nodes that passed every check.
        runners_up: Names of the next best nodes, best first (at most two), for when the first has moved.
        avoided: Nodes that passed in spite of a cost, with the points it took from them, the dearest first.
        diagnosis: Why nowhere; None when placed.
    """

    pod: keys.VertexKey
    uid: str
    generation: int
    node: str = ""
    devices: tuple[int, ...] = ()
    score: int = 0
    scores: tuple[tuple[str, int], ...] = ()
    feasible: int = 0
    runners_up: tuple[str, ...] = ()
    avoided: tuple[tuple[str, int], ...] = ()
    diagnosis: Diagnosis | None = None

    @property
    def placed(self) -> bool:
        """Whether it found a node."""
        return bool(self.node)


class Weighing(msgspec.Struct, frozen=True, gc=False):
    """A node that somebody else chose, beside the decision made here.

    Attributes:
        decision: What would have been decided.
        status: Whether that node would have passed, or what refuses it.
        total: Its weighted total; 0 where it does not pass.
        best: The greatest total of all nodes that pass; 0 where none does.
    """

    decision: Decision
    status: status.Status
    total: int = 0
    best: int = 0


class Verdict(msgspec.Struct, frozen=True, gc=False):
    """One node's part of an evaluation.

    Attributes:
        status: Passed, or refused by which plugin for which reasons (sorted).
        scores: Plugin → normalised score × weight, for nodes that passed; a plugin that skipped is absent.
        total: Sum of the scores.
    """

    status: status.Status
    scores: dict[str, int] = {}
    total: int = 0


class Evaluation(msgspec.Struct, frozen=True, gc=False):
    """Every node's verdict on one pod.

    Attributes:
        pod: Key of the pod.
        generation: Generation of the graph.
        verdicts: Node name → verdict, for every node.
        prefilter: The refusal of the pod as a whole, or None; every node then has it as its verdict.
        best: Sorted names of the nodes with the greatest total.
        diagnosis: Why nowhere; None when some node passed.
    """

    pod: keys.VertexKey
    generation: int
    verdicts: dict[str, Verdict]
    prefilter: status.Status | None
    best: tuple[str, ...]
    diagnosis: Diagnosis | None


Mask = npt.NDArray[np.bool_]
"""One bool a row of the node columns."""

Scores = npt.NDArray[np.int64]
"""One int64 a row of the node columns."""
