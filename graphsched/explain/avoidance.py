"""Nodes that would take the pod and look worse for a while: whose kubelet turned pods away, or whose links decayed
or are down.

A view and what was learned come in; values and sentences go out, for `why` and `telling`.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable, Mapping

import msgspec

from graphsched.base.values import relations
from graphsched.decision import context as contexts, names
from graphsched.explain import wording
from graphsched.graph import view


class Avoided(msgspec.Struct, frozen=True, gc=False):
    """One of them, and one cause.

    Attributes:
        node: Its name.
        points: What that takes from its total.
        reason: The kubelet's word for why it turned a pod away; empty where the links are the cause.
        seconds: How long ago the last time was, or the measurement of the links; None where nobody says.
        links: Health of its best link, where the links are the cause; `relations.DOWN` where all are down.
    """

    node: str
    points: int
    reason: str
    seconds: float | None
    links: float | None = None

    def __str__(self) -> str:
        """A sentence without its full stop."""
        ago = "" if self.seconds is None else wording.duration(self.seconds)
        if self.links is None:
            cause = f"whose kubelet turned a pod away {ago} ago ({self.reason})"
        elif self.links <= relations.DOWN:
            cause = "whose links are all down"
        else:
            cause = f"whose best link has health {self.links:.2f}" + (f" ({ago} old)" if ago else "")
        return f"{self.node}, {cause}; it counts {self.points} less"


class Scored(typing.Protocol):
    """A node that takes the pod, with what each plugin says."""

    @property
    def node(self) -> str:
        """Its name."""

    @property
    def scores(self) -> Mapping[str, int]:
        """Plugin → weighted score."""


def avoided(
    graph: view.View,
    ranked: Iterable[Scored],
    context: contexts.Context,
    rejections: Mapping[str, tuple[str, float]],
) -> tuple[Avoided, ...]:
    """Those among the ranked nodes, in their order.

    Args:
        graph: The view.
        ranked: The nodes that would take the pod.
        context: What the decision goes by.
        rejections: Node → the reason its kubelet turned a pod of ours away for, and how many seconds ago.
    """
    candidates = [*ranked]
    sound = max((each.scores.get(names.GRAPH_HEALTH, 0) for each in candidates), default=0)
    found = []
    for each in candidates:
        if each.node in context.costs and each.node in rejections:
            found.append(Avoided(each.node, context.costs[each.node], *rejections[each.node]))
        lost, best = sound - each.scores.get(names.GRAPH_HEALTH, 0), graph.links.best(each.node)
        if lost > 0 and best is not None:
            age = max(0.0, context.now - best.at) if context.now and best.at else None
            found.append(Avoided(each.node, lost, "", age, best.health))
    return tuple(found)
