"""The races with other schedulers: every conflict counted, and of the last ones who raced with whom, and when.

Comes in: what the watches say of nodes and pods, from `intake`; what became of our decisions, from `loop`. Goes out:
the metric by kind, and records for whoever asks (`/debug/conflicts`). Nothing here is acted on.

A race has two sides: a decision of ours, made at one generation of the graph, and something others did that the graph
showed only at a later one. So the last changes by others are kept for a while, and a conflict is explained by those
that the decision did not know of. Everything kept is bounded.
"""

from __future__ import annotations

import collections
import enum
import itertools
from collections.abc import Iterator, Sequence

import msgspec

from graphsched.base.kit import clock as clocks
from graphsched.base.values import nodes, pods, status
from graphsched.decision import trace
from graphsched.explain import wording
from graphsched.graph import store as stores
from graphsched.observe import metrics as meters

KEPT_S = 120.0
"""How long changes by others and decisions of ours are remembered: a race is decided within seconds, or when a binding
without an answer takes effect, a minute later at most."""
CHANGES_MAX = 8192
"""Changes by others that are remembered at most: at 200 bindings a second some 40 s."""
DECISIONS_MAX = 8192
"""Decisions of ours that are remembered at most."""
RACES_MAX = 1000
BY_MAX = 5
"""Changes that one record names."""
NAMED_MAX = 16
"""Pods of one patch that one record names."""


class Kind(enum.StrEnum):
    """Kinds of conflicts; the values are those of the metric `graphsched_conflicts_total`."""

    MOVED = "moved"
    """The node no longer took the pod just before its binding; another one was found, or the pod was decided anew."""
    OVERCOMMITTED = "overcommitted"
    """A pod of ours and one of others were bound to a node that has not enough for both."""
    BOUND = "bound"
    """Somebody else bound the pod first."""
    CHANGED = "changed"
    """The pod was gated between decision and binding."""
    REJECTED = "rejected"
    """The node's kubelet turned the pod away."""


class Change(msgspec.Struct, frozen=True, gc=False):
    """Something others did.

    Attributes:
        node: Where.
        generation: Of the graph that first showed it.
        seen: When that was, in seconds since the epoch.
        what: In words.
    """

    node: str
    generation: int
    seen: float
    what: str


class Race(msgspec.Struct, frozen=True, gc=False):
    """One conflict.

    Attributes:
        kind: Of which sort.
        pod: `namespace/name` of our pod.
        node: Where we decided to place it.
        time: When the conflict was found, in seconds since the epoch.
        decided: Generation of the graph that the decision knew; 0 where it was made too long ago, or by another run.
        found: Generation at which the conflict was found.
        detail: What came of it, in words.
        by: What others did there in between, the latest first; empty where it has not been seen.
    """

    kind: Kind
    pod: str
    node: str
    time: float
    decided: int
    found: int
    detail: str
    by: tuple[Change, ...] = ()


class _Decided(msgspec.Struct, frozen=True, gc=False):
    """A decision of ours: the generation it knew, and when it was made, on the clock's monotonic time."""

    generation: int
    at: float


class Races:
    """Remembers, explains and counts."""

    def __init__(self, store: stores.Store, metrics: meters.Metrics, *, scheduler: str, clock: clocks.Clock) -> None:
        self._store = store
        self._meters = metrics
        self._scheduler = scheduler
        self._clock = clock
        self._changes: collections.deque[tuple[float, Change]] = collections.deque(maxlen=CHANGES_MAX)
        self._decided: collections.OrderedDict[str, _Decided] = collections.OrderedDict()
        self._races: collections.deque[Race] = collections.deque(maxlen=RACES_MAX)
        self._came: dict[str, list[pods.Pod]] = {}
        """Node → who came there with the patch of this generation."""
        self._came_as_of = -1

    def newest(self, limit: int) -> list[Race]:
        """At most `limit` records, the newest first."""
        return list(self._races)[: -limit - 1 : -1]

    # ── what others do ─────────────────────────────────────────────────────────────────────────────────────────────

    def node(self, before: nodes.Node | None, after: nodes.Node | None) -> None:
        """A node came, changed or went."""
        if before is None:
            return
        for what in _changed(before, after):
            self._note(before.name, what)

    def pod(self, before: pods.Pod | None, after: pods.Pod | None) -> None:
        """A pod came, changed or went."""
        if after is None or not after.node:
            return
        if not pods.came(before, after):
            return
        if after.scheduler != self._scheduler:
            self._note(after.node, f"{after.scheduler} bound {after.full_name}")
        if self._came_as_of != self._store.generation:
            self._came, self._came_as_of = {}, self._store.generation
        came = self._came.setdefault(after.node, [])
        came.append(after)
        self._look_for_overcommit(after, came)

    def _note(self, node: str, what: str) -> None:
        now = self._clock.monotonic()
        while self._changes and now - self._changes[0][0] > KEPT_S:
            self._changes.popleft()
        self._changes.append((now, Change(node, self._store.generation, self._clock.wall(), what)))

    # ── what we do ─────────────────────────────────────────────────────────────────────────────────────────────────

    def decided(self, decision: trace.Decision) -> None:
        """A pod of ours is about to be bound."""
        now = self._clock.monotonic()
        self._decided[decision.uid] = _Decided(decision.generation, now)
        self._decided.move_to_end(decision.uid)
        while len(self._decided) > DECISIONS_MAX or now - next(iter(self._decided.values())).at > KEPT_S:
            self._decided.popitem(last=False)

    def moved(self, pod: pods.Pod, node: str, refused: status.Status, to: str) -> None:
        """The node does not take the pod any more; it goes to another one, or back to the queue when that is empty."""
        then = f"it goes to {to}" if to else "no other candidate takes it, so it is decided anew"
        self._record(Kind.MOVED, pod, node, f"{', '.join(refused.reasons)}: {then}")

    def beaten(self, pod: pods.Pod, node: str, kind: Kind, detail: str) -> None:
        """The API server did not bind the pod, because of what others did to it."""
        self._record(kind, pod, node, detail)

    def rejected(self, pod: pods.Pod, detail: str) -> None:
        """The kubelet of its node turned a pod of ours away."""
        self._record(Kind.REJECTED, pod, pod.node, detail)

    # ── inside ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _look_for_overcommit(self, pod: pods.Pod, came: Sequence[pods.Pod]) -> None:
        """See whether the node has enough for the pod that was just bound there, be it ours or not.

        It is the last of those that came there with one patch, as far as they were told.
        """
        short = self._short(pod)
        if not short:
            return
        # A promise among them may still go elsewhere: what is bound has to be too much.
        there = [placement.pod for placement in self._store.on_node(pod.node).values() if placement.pod.node]
        short = [name for name in short if _total(there, name) > self._offered(pod.node, name)]
        if not short:
            return
        holding = [each for each in there if each.uid == pod.uid or any(_holds(each, name) for name in short)]
        ours = [each for each in holding if each.scheduler == self._scheduler]
        # What an earlier run, or another replica, decided is no race of this one.
        recent = [each for each in ours if each.uid in self._decided]
        if not recent or len(ours) == len(holding):
            return
        # The last of ours to be decided is the one that did not fit any more, unless others came later.
        last = max(recent, key=lambda each: self._decided[each.uid].generation)
        bound = f"{wording.both(_some(came))} {'was' if len(came) == 1 else 'were'} bound there"
        detail = f"{bound}, and {' and '.join(short)} is not enough for all"
        self._record(Kind.OVERCOMMITTED, last, pod.node, detail, again=self._took_back(last, pod.node))

    def _short(self, pod: pods.Pod) -> list[str]:
        columns = self._store.columns
        row = columns.rows.get(pod.node)
        if row is None:
            return []
        short = [nodes.PODS] if columns.pods[row] > self._offered(pod.node, nodes.PODS) else []
        return short + [
            name for name, _ in pod.held.amounts if columns.requested[name][row] > self._offered(pod.node, name)
        ]

    def _offered(self, node: str, name: str) -> int:
        """What the node has of a resource for pods; the node is known."""
        columns = self._store.columns
        offered = columns.allocatable.get(name)
        return 0 if offered is None else int(offered[columns.rows[node]])

    def _took_back(self, pod: pods.Pod, node: str) -> bool:
        """Remove what was recorded of this node for a pod that came in the same patch; whether there was such a record.

        A patch is applied whole and told pod by pod: each is one more that is too much, and the last knows of all.
        """
        recent = itertools.takewhile(lambda each: each.found == self._store.generation, reversed(self._races))
        for race in recent:
            if (race.kind, race.pod, race.node) == (Kind.OVERCOMMITTED, pod.full_name, node):
                self._races.remove(race)
                return True
        return False

    def _record(self, kind: Kind, pod: pods.Pod, node: str, detail: str, *, again: bool = False) -> None:
        """Count and remember a conflict; one that was counted already when it is told `again`, as more is known."""
        if not again:
            self._meters.conflict(kind.value)
        known = self._decided.get(pod.uid)
        decided = 0 if known is None else known.generation
        by: list[Change] = []
        for change in self._since(decided) if decided else ():
            if change.node == node:
                by.append(change)
                if len(by) == BY_MAX:
                    break
        self._races.append(
            Race(
                *(kind, pod.full_name, node, self._clock.wall()),
                *(decided, self._store.generation, detail, tuple(by)),
            )
        )

    def _since(self, generation: int) -> Iterator[Change]:
        """What others did that this generation did not show, the latest first."""
        for _, change in reversed(self._changes):
            if change.generation <= generation:
                return
            yield change


def _total(there: Sequence[pods.Pod], name: str) -> int:
    """What these pods hold of a resource together."""
    if name == nodes.PODS:
        return len(there)
    return sum(amount for each in there for held, amount in each.held.amounts if held == name)


def _some(came: Sequence[pods.Pod]) -> list[str]:
    """The first `NAMED_MAX` with their schedulers, and how many more there are."""
    named = [f"{each.full_name} of {each.scheduler}" for each in came[:NAMED_MAX]]
    return named if len(came) <= NAMED_MAX else [*named, f"{len(came) - NAMED_MAX} more"]


def _holds(pod: pods.Pod, resource: str) -> bool:
    return resource == nodes.PODS or any(name == resource for name, _ in pod.held.amounts)


def _changed(before: nodes.Node, after: nodes.Node | None) -> Iterator[str]:
    if after is None:
        yield "the node was deleted"
        return
    if before.unschedulable != after.unschedulable:
        yield "the node was cordoned" if after.unschedulable else "the node was uncordoned"
    for field in ("taints", "labels", "allocatable", "features"):
        if getattr(before, field) != getattr(after, field):
            yield f"the node's {field} changed"
