"""Hands the live graph, and the affinity graph that follows from it, to followers: whole, then what happened since.

Comes in: the store, and questions from `observe/server.py`. Goes out: messages that `graph/followers.py` applies.
Copying tables and the list of patches is done on the loop; merging and encoding go on beside it, on values that never
change. The log of patches begins with the first follower: who has none pays for nothing. Changes are merged into one
message a question, so a follower that is slow gets fewer and larger ones, and never more than the log holds.
"""

from __future__ import annotations

import asyncio
import typing

from graphsched.base.kit import tasks
from graphsched.explain import affinities
from graphsched.graph import delta, edge_codec, edges, followers, patchlog, store as stores
from graphsched.observe import feeds

LOOK_S = 0.1
"""How often it is looked whether something has changed while a follower waits; also what is gathered into one message.
Nothing is done for it where the graph changes, which is the hot path."""
RULES_LOOK_S = 1.0
"""Likewise for the affinity graph. Each look goes over all pods for what they say of nodes, some 30 ms at 100,000 pods,
and it rarely is anything new."""


class _Kept(typing.NamedTuple):
    base: int
    generation: int
    data: bytes


class Feed:
    """The graph of one store, for followers."""

    def __init__(self, store: stores.Store, *, epoch: int) -> None:
        """`epoch` names this life of the graph; another process must have another one."""
        self._store = store
        self._epoch = epoch
        self._last: _Kept | None = None
        self._encoding = asyncio.Lock()

    async def whole(self) -> feeds.Graph:
        """The whole graph, from which a follower goes on with what happened since."""
        self._log()
        generation = self._store.generation
        vertices, edges = self._store.content()
        patch = delta.Patch(vertices=vertices, edges=edges)
        data = await asyncio.to_thread(
            followers.message, patch, epoch=self._epoch, base=generation, generation=generation
        )
        return feeds.Graph(generation, data)

    async def since(self, generation: int, epoch: int, *, wait_s: float, stopping: asyncio.Event) -> feeds.Graph | str:
        """What happened since, see `feeds.Feed`."""
        if epoch != self._epoch:
            return "epoch"
        log = self._log()
        loop = asyncio.get_running_loop()
        end = loop.time() + wait_s
        while self._store.generation == generation:
            left = end - loop.time()
            if left <= 0 or stopping.is_set():
                return "unchanged"
            await tasks.pause(min(LOOK_S, left), until=stopping)
        # One at a time: they would share one interpreter anyway, and most ask for the same.
        async with self._encoding:
            patches = log.since(generation)
            if patches is None:
                return "gap"
            return await self._message(patches, generation, self._store.generation)

    async def _message(self, patches: list[delta.Patch], base: int, generation: int) -> feeds.Graph:
        if self._last is None or self._last[:2] != (base, generation):
            data = await asyncio.to_thread(_merged, patches, self._epoch, base, generation)
            self._last = _Kept(base, generation, data)
        return feeds.Graph(generation, self._last.data)

    def _log(self) -> patchlog.PatchLog:
        if self._store.log is None:
            self._store.log = patchlog.PatchLog(self._store.generation)
        return self._store.log


def _merged(patches: list[delta.Patch], epoch: int, base: int, generation: int) -> bytes:
    return followers.message(delta.merge(patches), epoch=epoch, base=base, generation=generation)


class AffinityFeed:
    """The affinity graph of one store, for followers; it is made when the first of them asks."""

    def __init__(self, store: stores.Store, *, epoch: int) -> None:
        """`epoch` names this life of the graph; another process must have another one."""
        self._store = store
        self._first_epoch = epoch
        self._affinities = affinities.Affinities()

    @property
    def _epoch(self) -> int:
        return self._first_epoch + self._affinities.lives

    async def whole(self) -> feeds.Graph:
        """The whole table, from which a follower goes on with what happened since."""
        ledger = self._affinities.refresh(self._store)
        return await self._message(ledger.whole(), ledger.generation, ledger.generation)

    async def since(self, generation: int, epoch: int, *, wait_s: float, stopping: asyncio.Event) -> feeds.Graph | str:
        """What happened since, see `feeds.Feed`."""
        loop = asyncio.get_running_loop()
        end = loop.time() + wait_s
        while True:
            ledger = self._affinities.refresh(self._store)
            if epoch != self._epoch:
                return "epoch"
            if ledger.generation != generation:
                break
            left = end - loop.time()
            if left <= 0 or stopping.is_set():
                return "unchanged"
            await tasks.pause(min(RULES_LOOK_S, left), until=stopping)
        change = ledger.since(generation)
        return "gap" if change is None else await self._message(change, generation, ledger.generation)

    async def _message(self, change: edges.Change, base: int, generation: int) -> feeds.Graph:
        # The columns of a change are never changed again, so they may be read beside the loop.
        data = await asyncio.to_thread(edge_codec.encode, edge_codec.Message(change, self._epoch, base, generation))
        return feeds.Graph(generation, data)
