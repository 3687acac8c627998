"""Nothing stays: pods come and go, nodes are tainted, drained, deleted and come back.

Comes in: the streams and the ledger. Goes out: calls to the API server, from a seed; what was done is counted. Nodes
are drained by evictions, which budgets may refuse, as an administrator or an autoscaler does it.
"""

from __future__ import annotations

import asyncio
import collections
import random
import time
from typing import Any

from tests.controlplane import api, cluster as clusters
from tests.soak import ledger, streams

PODS = "/api/v1/namespaces/default/pods"
NODES = "/api/v1/nodes"
EVERY_S = 0.25
_FILLING = 8
"""Creations at a time, of each stream."""
_ARRIVAL_S = 10.0
_LOOK_S = 0.05
_MANY = 50
_DRAIN_S = 25.0
_AWAY_S = 8.0
_TAINT = {"key": "soak/maintenance", "effect": "NoSchedule"}


class Churn:
    """Keeps a cluster in motion.

    Attributes:
        done: What was done → how often.
    """

    def __init__(self, client: api.Api, book: ledger.Ledger, *, nodes: int, seed: int, haste: float) -> None:
        """`haste` multiplies the rates of all streams."""
        self._client = client
        self._book = book
        self._rng = random.Random(seed)
        self._haste = haste
        self._groups = streams.groups(nodes)
        self._numbers = dict.fromkeys((stream.name for stream in streams.STREAMS), 0)
        self.done: collections.Counter[str] = collections.Counter()

    async def populate(self) -> None:
        """Create nodes and budgets."""
        made = (streams.node(name, group) for group, names in self._groups.items() for name in names)
        await self._client.create_many(NODES, made)
        budgets = (streams.budget(stream, app) for stream in streams.STREAMS for app in range(streams.APPS))
        await self._client.create_many("/apis/policy/v1/namespaces/default/poddisruptionbudgets", budgets)

    async def stream(self, stream: streams.Stream) -> None:
        """Keep one stream at its share, for ever: `rate` pods a second end, and others take their place."""
        wanted = stream.share * streams.CPU * len(self._groups[stream.group])
        owed, before = 0.0, time.monotonic()
        while True:
            mine = self._book.streams[stream.name]
            missing = max(0, round((wanted - mine.cpu) / (sum(streams.SIZES) / len(streams.SIZES))))
            await self._create(stream, missing)
            now = time.monotonic()
            # What was missing at once is the filling at the start, which nothing ends yet.
            owed, before = (owed + (now - before) * stream.rate * self._haste if missing < _MANY else 0.0), now
            ending = self._rng.sample(sorted(mine.running), min(int(owed), len(mine.running)))
            owed -= int(owed)
            async with asyncio.TaskGroup() as group:
                for name in ending:
                    group.create_task(self._end(name.partition("/")[2]))
            await asyncio.sleep(EVERY_S)

    async def nodes(self) -> None:
        """One after another, nodes are drained, deleted and come back; others are tainted for a while."""
        while True:
            group = self._rng.choice(list(self._groups))
            name = self._rng.choice(self._groups[group])
            if self._rng.random() < 0.4:
                await self._taint(name)
            else:
                await self._replace(name, group)

    async def _create(self, stream: streams.Stream, count: int) -> None:
        first = self._numbers[stream.name]
        self._numbers[stream.name] += count
        bodies = (streams.pod(stream, first + number, self._rng) for number in range(count))
        before = self._book.arrived[stream.name]
        self.done[f"{stream.name}: pods created"] += await self._client.create_many(PODS, bodies, concurrency=_FILLING)
        # What is not in the account yet would be created once more. A list made anew may pass over pods that have gone.
        for _ in range(round(_ARRIVAL_S / _LOOK_S)):
            if self._book.arrived[stream.name] >= before + count:
                return
            await asyncio.sleep(_LOOK_S)

    async def _end(self, name: str) -> None:
        await self._tolerating(self._client.delete(f"{PODS}/{name}"), 404)
        self.done["pods deleted"] += 1

    async def _taint(self, name: str) -> None:
        await self._patch(name, [*self._taints(name), _TAINT])
        self.done["nodes tainted"] += 1
        await asyncio.sleep(_AWAY_S)
        await self._patch(name, [taint for taint in self._taints(name) if taint["key"] != _TAINT["key"]])

    def _taints(self, name: str) -> list[Any]:
        return list(self._book.nodes.get(name, {}).get("spec", {}).get("taints", []))

    async def _patch(self, name: str, taints: list[Any]) -> None:
        await self._tolerating(self._client.patch(f"{NODES}/{name}", {"spec": {"taints": taints}}), 404)

    async def _replace(self, name: str, group: str) -> None:
        await self._client.patch(f"{NODES}/{name}", {"spec": {"unschedulable": True}})
        try:
            async with asyncio.timeout(_DRAIN_S):
                while there := self._book.on(name):
                    for bound in there:
                        await self._evict(bound.name.partition("/")[2])
                    await asyncio.sleep(0.5)
        except TimeoutError:
            # Budgets have held some back; an administrator in a hurry does not ask.
            self.done["drains cut short"] += 1
        await self._tolerating(self._client.delete(f"{NODES}/{name}"), 404)
        for bound in self._book.on(name):
            await self._end(bound.name.partition("/")[2])
        self.done["nodes replaced"] += 1
        await asyncio.sleep(_AWAY_S)
        await self._client.create(NODES, streams.node(name, group))

    async def _evict(self, name: str) -> None:
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        body["deleteOptions"] = {"gracePeriodSeconds": 0}
        status = await self._tolerating(self._client.create(f"{PODS}/{name}/eviction", body), 404, 429, 500)
        self.done["evictions refused by a budget" if status == 429 else "pods evicted"] += 1

    async def _tolerating(self, call: Any, *statuses: int) -> int:
        try:
            await call
        except clusters.RequestError as error:
            if error.status not in statuses:
                raise
            return error.status
        return 200
