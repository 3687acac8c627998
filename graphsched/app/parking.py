"""A pod in the queue, and the groups that refused pods wait in.

`backlog` makes, moves and forgets them; `loop` reads the entry of the pod it decides on. Nothing here acts.
"""

from __future__ import annotations

import dataclasses
import enum
import math

from graphsched.app import backoff, hints
from graphsched.base.values import keys, pods
from graphsched.graph import budgets


class Pool(enum.Enum):
    """Where a pod is."""

    ACTIVE = "active"
    BACKOFF = "backoff"
    ERRORS = "errors"
    UNSCHEDULABLE = "unschedulable"
    GATED = "gated"
    ASIDE = "aside"
    DECIDING = "deciding"
    BINDING = "binding"


GroupKey = tuple[object, ...]
STEP_S = 0.005
"""The first step of those that wait aside; each later one is twice as long."""


@dataclasses.dataclass(slots=True, eq=False)
class Entry:
    """A pod in the queue.

    Attributes:
        pod: Its newest value.
        serial: Counts up with every pod that is added: the last resort of the order.
        added: When it entered, gates aside; what its waiting time is measured from.
        since: When it last entered or came back; older ones of equal priority go first.
        pool: Where it is.
        attempts: Decisions made on it.
        refusals: How often no node was found, which is what its penalty grows with.
        failures: Errors in a row; they have a series of their own.
        plugins: Who refused it last.
        pending: Whether the refusal asked to be retried without penalty once something outside has happened.
        end: When its penalty ends.
        skipping: Whether it was taken out of its penalty for that, as nobody was in line.
        popped: Turn of news at which it was taken out for a decision.
        changed: The pod as it was when it was taken out, if it has changed since.
        group: The group it waits in, or that released it.
        losses: How often its node moved just before the binding.
        urgent: Whether it goes before all others of its priority, once.
        rank: What goes first has a smaller one; see `ordering`. All are 0 unless the queue is ordered by a plugin.
        aside: Since when what a decision on it takes is being found out; None where nothing is, or all was.
        searched_s: How long that took so far, the waiting for its turn not counted.
        hasty: Whether to decide on it next time with what is known by then.
    """

    pod: pods.Pod
    serial: int
    added: float
    since: float
    pool: Pool = Pool.ACTIVE
    attempts: int = 0
    refusals: int = 0
    failures: int = 0
    plugins: tuple[str, ...] = ()
    pending: bool = False
    end: float = float("-inf")
    skipping: bool = False
    popped: int = 0
    changed: pods.Pod | None = None
    group: GroupKey | None = None
    losses: int = 0
    urgent: bool = False
    rank: int = 0
    aside: float | None = None
    searched_s: float = 0.0
    hasty: bool = False

    @property
    def order(self) -> backoff.Order:
        """Its place in the queue."""
        if self.urgent:
            return (-self.pod.priority, -1, float("-inf"), self.serial)
        return (-self.pod.priority, self.rank, self.since, self.serial)

    @property
    def step(self) -> int:
        """0 until something was searched for on its behalf for `STEP_S`, then one more each time this has doubled."""
        return max(0, math.frexp(self.searched_s / STEP_S)[1])

    @property
    def slice_s(self) -> float:
        """How much more it takes to the next step."""
        return STEP_S * 2.0**self.step - self.searched_s

    @property
    def aside_order(self) -> backoff.Order:
        """Its place among those that wait aside: of equal priority the one first on whose behalf least was done.

        Counted in steps that double, so that whoever has little to find out is not kept by who has much, and yet two
        that have much do not take turns so often that each pushes out what the other one has found.
        """
        priority, *others = self.order
        return (priority, float(self.step), *others)


@dataclasses.dataclass(slots=True, eq=False)
class Group:
    """Refused pods that no event can tell apart, the one that waits longest first.

    Attributes:
        plugins: Who refused them, or an envoy of theirs since.
        spec: Their spec, kept so that its id stays taken.
        members: Keys in order of arrival; the values mean nothing.
        released: The one that was let go to try on behalf of all; None while nobody is out.
    """

    plugins: tuple[str, ...]
    spec: pods.Spec
    members: dict[keys.VertexKey, None] = dataclasses.field(default_factory=dict)
    released: keys.VertexKey | None = None


QUEUES = {
    Pool.ACTIVE: "active",
    Pool.ASIDE: "active",
    Pool.BACKOFF: "backoff",
    Pool.ERRORS: "backoff",
    Pool.UNSCHEDULABLE: "unschedulable",
    Pool.GATED: "gated",
}


def group_key(entry: Entry) -> GroupKey:
    """What events can tell refused pods apart by. Specs are interned, so equal ones mostly have the same id; where they
    do not, there are two groups instead of one and nothing is lost.

    The room kept for a nominated pod counts against all others, so it and they do not speak for each other.
    """
    pod = entry.pod
    shared = (id(pod.spec), pod.priority, entry.plugins, entry.pending, pod.nominated)
    if hints.BY_SPEC.issuperset(entry.plugins):
        return shared
    if hints.BY_HOLDER.issuperset(entry.plugins):
        return (*shared, budgets.holders(pod.namespace, pod.labels))
    return (*shared, pod.namespace, pod.labels, pod.owner)
