"""What the watches say, brought to everybody it concerns.

Comes in: patches from the inbox. Goes out: the graph brought up to date; pods of ours put into the queue, changed there
or taken out; promises ended that the cluster has confirmed; orders told what became of their pod; news for the queue's
hints. `loop` calls it once a turn and decides afterwards.

A gap in a stream is mended by asking its source for everything again. A row that the graph can not hold would come
again with it, so that row alone is left out, said, and the rest is taken.

Invariants: of what a patch says nothing is acted on unless the graph took it; a pod enters the queue only if it is
ours, neither bound nor being deleted, and not promised to a node already.
"""

from __future__ import annotations

import collections
import logging
import typing

import msgspec

from graphsched.app import backlog, fullness, healing, promises, races, rechecks, rejections, strategies, tidings
from graphsched.base.values import groups, keys, nodes, pods, policies
from graphsched.explain import refusals
from graphsched.graph import admission, delta, store as stores
from graphsched.observe import metrics as meters
from graphsched.sources import inbox

_log = logging.getLogger(__name__)

ROWS_A_TURN = 1000
"""At 5 to 10 µs a row this stays within the 10 ms that a turn may take."""
_WAYS = frozenset({keys.Kind.PLACE, keys.Kind.GROUP, keys.Kind.SELECTION})
"""Kinds of vertices, beside nodes and pods, that have a say in which ways a pod's partners are away."""
BAD_ROWS_LOGGED = 10
"""Of one patch; a source that sends nothing but bad rows may not fill the disk."""


class Resync(typing.Protocol):
    """Asks a source to send everything again."""

    def __call__(self, source: str, reason: str, *, epoch: int) -> None:
        """`source` and `epoch` as in `delta.Stream`; asking for an epoch that is over changes nothing."""
        ...


class Source(typing.Protocol):
    """Whoever sends patches in a stream of its own."""

    def resync(self, reason: str, *, epoch: int) -> None:
        """Send everything again; asking for an epoch that is over changes nothing."""


class Onlooker(typing.Protocol):
    """Is told what happened to nodes and pods, once it is in the graph; None stands for one that is not there."""

    def node(self, before: nodes.Node | None, after: nodes.Node | None) -> None:
        """A node came, changed or went."""

    def pod(self, before: pods.Pod | None, after: pods.Pod | None) -> None:
        """A pod came, changed or went."""


@typing.runtime_checkable
class GroupOnlooker(Onlooker, typing.Protocol):
    """Is told what happened to groups as well."""

    def group(self, before: groups.Group | None, after: groups.Group | None) -> None:
        """A group of workloads came, changed or went."""


class Parts(msgspec.Struct, frozen=True):
    """What the loop works with; `wiring` makes it."""

    store: stores.Store
    inbox: inbox.Inbox
    backlog: backlog.Backlog
    promises: promises.Promises
    dispatcher: strategies.Orders
    conditions: strategies.Conditions
    events: strategies.Events
    meters: meters.Metrics
    resync: Resync
    strategy: strategies.Strategy
    onlookers: tuple[Onlooker, ...]
    races: races.Races
    last_look: rechecks.LastLook
    rejections: rejections.Rejections
    healing: healing.Healing
    fullness: fullness.Fullness


def waits(parts: Parts, pod: pods.Pod) -> bool:
    """Whether the pod belongs into the queue, unless it is promised a node."""
    return not pod.node and parts.strategy.ours(pod)


class Intake:
    """Takes patches in.

    Attributes:
        counts: Kind of vertex → how many the graph holds.
    """

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.counts: collections.Counter[str] = collections.Counter()
        self._news = tidings.News()
        self._kept: list[promises.Promise] = []

    def absorb(self, now: float) -> None:
        """Take in what waits, a bounded number of rows of it."""
        for patch in self._parts.inbox.drain(rows_max=ROWS_A_TURN):
            self._take(patch, now)
        healed = self._parts.healing.due(now)
        if healed is not None:
            self._take(healed, now)
        self._conclude()

    def correct(self, patch: delta.Patch, now: float) -> None:
        """Take in what an audit found out, as if a watch had said it."""
        self._take(patch, now)
        self._conclude()

    def _conclude(self) -> None:
        if self._kept:
            kept, self._kept = self._kept, []
            self._parts.promises.end(kept)
        if self._news:
            news, self._news = self._news, tidings.News()
            self._parts.backlog.tell(news)

    def _take(self, patch: delta.Patch, now: float) -> None:
        store, patch = self._parts.store, self._parts.healing.imprint(patch)
        source = "" if patch.stream is None else patch.stream.source
        if patch.stream is not None and patch.stream.sequence == 1:
            # Sources of this very process need no other introduction than their first patch.
            store.streams.open(patch.stream.source, patch.stream.epoch)
        changes = self._changes(patch)
        ways = self._moves_ways(patch)
        self._parts.strategy.foresee(changes)
        applied = store.apply(patch)
        if isinstance(applied, delta.Refused) and applied.reason == "invalid":
            patch = self._sifted(patch, source)
            changes = self._changes(patch)
            applied = store.apply(patch)
        if isinstance(applied, delta.Refused):
            self._parts.meters.patch(source, "refused")
            _log.warning("a patch was refused (%s): %s", applied.reason, applied.detail)
            if patch.stream is not None:
                self._parts.resync(source, applied.reason, epoch=patch.stream.epoch)
            return
        if applied.repeated:
            self._parts.meters.patch(source, "repeated")
            return
        self._parts.meters.patch(source, "applied", len(patch))
        gone = {key for key in patch.removed if keys.kind_of(key) == keys.Kind.NODE}
        if gone:
            self._parts.promises.keep(gone)
        for key, before, after in changes:
            if (before is None) != (after is None):
                self.counts[keys.kind_of(key)] += 1 if before is None else -1
            if isinstance(after, nodes.Node):
                self._news.node(before if isinstance(before, nodes.Node) else None, after)
            elif isinstance(after, pods.Pod):
                self._pod(before if isinstance(before, pods.Pod) else None, after, now)
            elif isinstance(before, pods.Pod):
                self._pod(before, None, now)
            elif isinstance(before, nodes.Node):
                self._news.gone(before)
            elif keys.kind_of(key) in _WAYS and before != after:
                ways = True
            elif isinstance(after if before is None else before, policies.Rule):
                self._news.rules = True
            for onlooker in self._parts.onlookers:
                _show(onlooker, before, after)
        self._news.ways = self._news.ways or ways

    def _moves_ways(self, patch: delta.Patch) -> bool:
        """Whether the patch is about to change an edge of the physical layer."""
        if not patch.edges and not patch.cut:
            return False
        edge = self._parts.store.edge
        told = (each for each, value in patch.edges.items() if edge(each) != value)
        return any(each.kind is not keys.EdgeKind.RUNS for each in (*told, *patch.cut))

    def _changes(self, patch: delta.Patch) -> list[strategies.Change]:
        """Each vertex that the patch touches, as it is and as it will be."""
        store = self._parts.store
        # Sorted, as a set of texts has another order in every process, and a run is to be repeatable.
        departed = sorted(patch.removed - patch.vertices.keys())
        gone: list[strategies.Change] = [(key, store.vertex(key), None) for key in departed]
        return gone + [(key, store.vertex(key), after) for key, after in patch.vertices.items()]

    def _sifted(self, patch: delta.Patch, source: str) -> delta.Patch:
        """The patch without the rows that the graph can not hold; of what they are about it keeps what it has."""
        good, problems = self._parts.store.sift(patch)
        if problems:
            self._parts.meters.patch(source, "refused")
        for problem in problems[:BAD_ROWS_LOGGED]:
            _log.warning("%s: left out, the graph can not hold it: %s", source, problem)
        if len(problems) > BAD_ROWS_LOGGED:
            _log.warning("%s: %d more were left out", source, len(problems) - BAD_ROWS_LOGGED)
        for key in patch.vertices.keys() - good.vertices.keys():
            vertex = patch.vertices[key]
            if isinstance(vertex, pods.Pod) and waits(self._parts, vertex):
                # Its owner reads events, not our log; how many are written has its own bounds.
                why = admission.of_vertex(vertex)
                self._parts.events.failed(vertex, f"this pod can not be scheduled, nor will it be tried: {why}")
        return good

    def _pod(self, before: pods.Pod | None, after: pods.Pod | None, now: float) -> None:
        promise = None if before is None else self._parts.promises.get(before.key, before.uid)
        self._news.pod(before, after, assumed="" if promise is None else promise.node)
        if before is not None and (after is None or after.uid != before.uid):
            self._gone(before, promise, now)
            promise = None
        if after is None:
            return
        if after.node:
            self._bound(after, promise, now)
        elif not waits(self._parts, after):
            self._none_of_ours(after, now)
        elif promise is None or after.key in self._parts.backlog:
            self._parts.backlog.add(self._parts.strategy.subject(after), now)

    def _gone(self, pod: pods.Pod, promise: promises.Promise | None, now: float) -> None:
        self._tell_order(pod, None)
        self._parts.backlog.remove(pod.key, now)
        self._parts.conditions.forget(pod.key)
        if promise is not None:
            self._kept.append(promise)

    def _bound(self, pod: pods.Pod, promise: promises.Promise | None, now: float) -> None:
        self._tell_order(pod, pod.node)
        if self._parts.backlog.remove(pod.key, now) is not None:
            self._parts.conditions.forget(pod.key)
        if promise is not None:
            self._kept.append(promise)

    def _none_of_ours(self, pod: pods.Pod, now: float) -> None:
        self._parts.strategy.passed_over(pod)
        if self._parts.backlog.remove(pod.key, now) is None:
            return
        self._parts.conditions.forget(pod.key)
        if pod.deleting:
            self._parts.events.failed(pod, refusals.deleting(pod), last=True)

    def _tell_order(self, pod: pods.Pod, node: str | None) -> None:
        order = self._parts.dispatcher.get(pod.key)
        if order is not None and order.pod.uid == pod.uid:
            order.saw(node)


def _show(onlooker: Onlooker, before: delta.Vertex | None, after: delta.Vertex | None) -> None:
    kind = after if after is not None else before
    if isinstance(kind, pods.Pod):
        onlooker.pod(before if isinstance(before, pods.Pod) else None, after if isinstance(after, pods.Pod) else None)
    elif isinstance(kind, nodes.Node):
        onlooker.node(
            before if isinstance(before, nodes.Node) else None, after if isinstance(after, nodes.Node) else None
        )
    elif isinstance(kind, groups.Group) and isinstance(onlooker, GroupOnlooker):
        onlooker.group(
            before if isinstance(before, groups.Group) else None, after if isinstance(after, groups.Group) else None
        )
