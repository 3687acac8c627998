"""The contract of a check: one vertex of the constraint DAG.

A check answers for many nodes at once. `passes` is the fast question, asked on every decision; `refusals` is the full
one, asked when nothing fits or somebody wants to know why. Both must agree: a node passes exactly when no refusal
covers it (a property in the tests).
"""

from __future__ import annotations

import typing
from collections.abc import Callable

import msgspec

from graphsched.base.values import labels, pods
from graphsched.decision import context, trace
from graphsched.graph import attributes, view

Rows = attributes.Rows
"""Which rows to answer for: an index array, or a slice for all."""


class Subject(msgspec.Struct, frozen=True, gc=False):
    """What is being placed: the spec with the profile's part already joined to it.

    Namespace, labels, priority, default constraints and the deadline are filled in only for the checks outside the
    class cache: no other may read them.
    """

    spec: pods.Spec
    added_affinity: tuple[pods.NodeTerm, ...] | None = None
    added_preferred: tuple[pods.PreferredNodeTerm, ...] = ()
    ignored_resources: frozenset[str] = frozenset()
    ignored_groups: frozenset[str] = frozenset()
    pool: tuple[str, str] | None = None
    headroom: int = 0
    namespace: str = ""
    labels: labels.Labels = labels.NO_LABELS
    priority: int = 0
    default_spread: tuple[pods.SpreadConstraint, ...] = ()
    keys_optional: bool = False
    expired: Callable[[], bool] = context.never

    @property
    def spread(self) -> tuple[pods.SpreadConstraint, ...]:
        """Its topology spread constraints, or else those it has by default.

        `keys_optional` says that those of the default score nodes that lack some of their keys, too.
        """
        return self.spec.spread or self.default_spread


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """One reason and the nodes it covers.

    Attributes:
        reason: What a user reads.
        mask: Bool for each of the rows asked about.
        unresolvable: Bool for each of the rows: evicting pods can not help; or one bool for all.
    """

    reason: str
    mask: trace.Mask
    unresolvable: trace.Mask | bool


class Check(typing.Protocol):
    """A filter plugin.

    Attributes:
        plugin: Its name.
        static: Whether the answer depends on the node object alone, not on the pods there.
        after: Plugins that should run first because they are cheaper or refuse more.
    """

    plugin: str
    static: bool
    after: tuple[str, ...]

    def applies(self, subject: Subject) -> bool:
        """Whether it can refuse anything for this subject; otherwise it is left out of the walk."""

    def passes(self, graph: view.View, subject: Subject, rows: Rows) -> trace.Mask:
        """Bool for each of the rows."""

    def refusals(self, graph: view.View, subject: Subject, rows: Rows) -> list[Refusal]:
        """Every reason that covers some of the rows."""


def count(graph: view.View, rows: Rows) -> int:
    """Number of rows an answer has."""
    return graph.columns.capacity if isinstance(rows, slice) else len(rows)
