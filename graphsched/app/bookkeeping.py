"""Queue and promises beside the graph: does everybody who waits have somebody who will look at it again?

Comes in: the loop's parts, between two turns, when all of them are to agree. Goes out: differences, each mended on the
spot. What only the cluster can tell (a binding that was undone by a restored backup, a pod that nobody holds) comes in
two steps: `quiet` and `stray` name the candidates before a fresh list is asked for, `undone` and `lost` act once the
list, which is as new as the database, shows them waiting.

Invariants: an order under way is never touched, nor the promise that goes with it; every mend is one that the watch
could have caused as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import TypeVar

from graphsched.app import findings, intake, parking, promises, tidings
from graphsched.base.values import keys, pods, relations
from graphsched.graph import delta

SLICE = 500
"""Entries looked at between two turns of the loop: a millisecond."""

Item = TypeVar("Item")


class Books:
    """Audits the queue and the promises of one scheduler."""

    def __init__(self, parts: intake.Parts) -> None:
        self._parts = parts

    # ── what the cluster must tell ─────────────────────────────────────────────────────────────────────────────────

    def quiet(self) -> dict[keys.VertexKey, promises.Promise]:
        """The promises whose binding is over: what the API server says from now on must show it. None in a mode that
        writes nothing.
        """
        if not self._parts.strategy.writes:
            return {}
        return {each.pod.key: each for each in self._parts.promises.all() if not self._is_ordered(each.pod.key)}

    async def stray(self) -> dict[keys.VertexKey, str]:
        """Key → UID of pods that wait by what the graph holds, and that nobody would look at again.

        Some of them are none: a pod that another scheduler was seen to bind waits for nothing but the watch.
        """
        found: dict[keys.VertexKey, str] = {}
        async for part in _slices(self._parts.store.vertex_keys(f"{keys.Kind.POD.value}/")):
            for key in part:
                pod = self._parts.store.pod(key)
                if pod is not None and self._is_stray(pod):
                    found[key] = pod.uid
        return found

    def undone(self, promise: promises.Promise, now: float) -> findings.Difference | None:
        """The cluster shows the pod of a quiet promise waiting: its binding was undone. End it, and queue the pod.

        Returns None, and does nothing, when the promise has ended meanwhile, or the graph has heard more.
        """
        key, pod = promise.pod.key, self._parts.store.pod(promise.pod.key)
        if self._parts.promises.get(key, promise.pod.uid) is not promise or self._is_ordered(key):
            return None
        if pod is None or pod.uid != promise.pod.uid or not intake.waits(self._parts, pod):
            return None
        self._end(promise)
        self._queue(pod, now)
        return findings.Difference(
            findings.Kind.PROMISE, key, f"is promised to {promise.node}, and its binding there was undone"
        )

    def lost(self, key: keys.VertexKey, uid: str, now: float) -> findings.Difference | None:
        """The cluster shows a stray pod waiting: queue it. None when it is none any more."""
        pod = self._parts.store.pod(key)
        if pod is None or pod.uid != uid or not self._is_stray(pod):
            return None
        self._queue(pod, now)
        return findings.Difference(findings.Kind.LOST, key, "waits for a node, and was not in the queue")

    # ── what the parts know among themselves ───────────────────────────────────────────────────────────────────────

    async def inspect(self, now: Callable[[], float]) -> AsyncIterator[findings.Difference]:
        """Everything about queue and promises that does not agree with the graph, each mended before the next."""
        async for some in _slices(list(self._parts.promises.all())):
            for promise in some:
                for found in self._promise(promise):
                    yield found
        async for edges in _slices(self._parts.store.edge_ids(keys.EdgeKind.RUNS)):
            for edge in edges:
                for found in self._edge(edge):
                    yield found
        async for entries in _slices(list(self._parts.backlog.entries())):
            for entry in entries:
                for found in self._entry(entry, now()):
                    yield found

    def _promise(self, promise: promises.Promise) -> Iterator[findings.Difference]:
        key, kept = promise.pod.key, self._parts.promises
        if kept.get(key, promise.pod.uid) is not promise:
            return
        if self._parts.store.edge(promise.edge) is None:
            kept.keep({promise.edge.target})
            detail = f"is promised to {promise.node}, and the graph does not know"
            yield findings.Difference(findings.Kind.PROMISE, key, detail)
        if self._is_ordered(key):
            return
        pod, entry = self._parts.store.pod(key), self._parts.backlog.get(key)
        if pod is None or pod.uid != promise.pod.uid:
            why = "is gone"
        elif pod.node:
            why = f"is bound to {pod.node}"
        elif entry is not None and entry.pod.uid == pod.uid:
            why = "is in the queue again"
        else:
            return
        self._end(promise)
        yield findings.Difference(findings.Kind.PROMISE, key, f"is promised to {promise.node} still, although it {why}")

    def _edge(self, edge: keys.EdgeID) -> Iterator[findings.Difference]:
        held = self._parts.store.edge(edge)
        if not isinstance(held, relations.Runs):
            return
        promise = self._parts.promises.get(edge.source, held.uid)
        if promise is None or promise.edge != edge:
            self._parts.store.apply(delta.Patch(cut={edge}))
            detail = f"counts on {keys.name_of(edge.target)} by a promise that nobody made"
            yield findings.Difference(findings.Kind.PROMISE, edge.source, detail)

    def _entry(self, entry: parking.Entry, now: float) -> Iterator[findings.Difference]:
        key, backlog = entry.pod.key, self._parts.backlog
        if backlog.get(key) is not entry or self._is_ordered(key):
            return
        pod = self._parts.store.pod(key)
        if pod is None or not intake.waits(self._parts, pod):
            backlog.remove(key, now)
            self._parts.conditions.forget(key)
            detail = "is gone" if pod is None else f"is bound to {pod.node}" if pod.node else "is no business of ours"
            yield findings.Difference(findings.Kind.QUEUE, key, f"is in the queue, and {detail}")
            return
        stuck, due = entry.pool in {parking.Pool.BINDING, parking.Pool.DECIDING}, self._parts.strategy.subject(pod)
        if stuck or entry.pod != due or (entry.pool is parking.Pool.GATED) != bool(due.gates):
            backlog.remove(key, now)
            self._queue(pod, now)
            detail = f"is {entry.pool.value}, and nobody is at it" if stuck else "is in the queue as it was before"
            yield findings.Difference(findings.Kind.QUEUE, key, detail)

    # ── details ────────────────────────────────────────────────────────────────────────────────────────────────────

    def _is_ordered(self, key: keys.VertexKey) -> bool:
        return self._parts.dispatcher.get(key) is not None

    def _is_stray(self, pod: pods.Pod) -> bool:
        return (
            intake.waits(self._parts, pod)
            and pod.key not in self._parts.backlog
            and not self._is_ordered(pod.key)
            and self._parts.promises.get(pod.key, pod.uid) is None
        )

    def _queue(self, pod: pods.Pod, now: float) -> None:
        self._parts.backlog.add(self._parts.strategy.subject(pod), now)

    def _end(self, promise: promises.Promise) -> None:
        self._parts.promises.end((promise,))
        news = tidings.News()
        news.left(promise.pod, promise.node)
        self._parts.backlog.tell(news)


async def _slices(items: Sequence[Item]) -> AsyncIterator[Sequence[Item]]:
    for start in range(0, len(items), SLICE):
        yield items[start : start + SLICE]
        await asyncio.sleep(0)
