"""
What a reflector says, taken at its word: the graph's part in the tests of sources.

Comes in: patches from an `Inbox`. Goes out: the vertices that a store would hold. The positions of streams are
checked by the store's own rules, so a gap or a ghost of an earlier epoch fails the test.
"""

import asyncio
import collections
import contextlib
import random
from collections.abc import AsyncIterator, Mapping
from typing import Generic

from graphsched.base.kube import client as clients, wire
from graphsched.base.values import keys, nodes, pods
from graphsched.graph import delta, streams
from graphsched.sources import collection, inbox as inboxes, reflector as reflectors, resources, surveying
from tests.fakes import storage, virtual


class Observer:
    """Counts what it hears."""

    def __init__(self) -> None:
        self.counts: collections.Counter[str] = collections.Counter()

    def watch_event(self, resource: str, kind: str, count: int = 1) -> None:
        """Count events."""
        self.counts[f"{resource} {kind}"] += count

    def relist(self, resource: str, reason: str) -> None:
        """Count a list."""
        self.counts[f"{resource} relist {reason}"] += 1

    def watch_failure(self, resource: str) -> None:
        """Count a failure."""
        self.counts[f"{resource} failure"] += 1

    def invalid(self, resource: str, count: int = 1) -> None:
        """Count what was skipped."""
        self.counts[f"{resource} invalid"] += count

    def waived(self, resource: str, *, waived: bool) -> None:
        """Count what is done without."""
        self.counts[f"{resource} waived {waived}"] += 1

    def absent(self, resource: str, *, absent: bool) -> None:
        """Count it."""
        self.counts[f"{resource} absent {absent}"] += 1


class Mirror:
    """Applies patches to a plain mapping."""

    def __init__(self, inbox: inboxes.Inbox) -> None:
        self.inbox = inbox
        self.vertices: dict[keys.VertexKey, delta.Vertex] = {}
        #: Every patch taken so far.
        self.patches: list[delta.Patch] = []
        self._streams = streams.StreamTable()

    def take(self) -> list[delta.Patch]:
        """Apply what waits; return the patches."""
        taken = self.inbox.drain()
        for patch in taken:
            assert patch.stream is not None
            if patch.stream.sequence == 1:
                assert self._streams.open(patch.stream.source, patch.stream.epoch) is None
            assert self._streams.check(patch.stream) is streams.Admission.NEW
            self._streams.advance(patch.stream)
            for key in patch.removed:
                self.vertices.pop(key, None)
            self.vertices.update(patch.vertices)
        self.patches.extend(taken)
        return taken

    async def until(self, *names: str, within_s: float = 3600.0) -> None:
        """Apply until exactly these vertices are there (all by their keys without the kind)."""
        async with asyncio.timeout(within_s):
            self.take()
            while self.names != set(names):
                await self.inbox.ready.wait()
                self.take()

    def pod(self, name: str) -> pods.Pod:
        """Return the pod of this `namespace/name`."""
        return pod_of(self.vertices, name)

    @property
    def names(self) -> set[str]:
        """The keys without the kind."""
        return {keys.name_of(key) for key in self.vertices}


class Following(Generic[collection.Body]):
    """A running reflector and what has become of its patches."""

    def __init__(
        self,
        client: clients.Client,
        resource: collection.Resource[collection.Body],
        *,
        seed: int = 0,
        rows_max: int = inboxes.ROWS_MAX,
    ) -> None:
        self.observer = Observer()
        self.inbox = inboxes.Inbox(rows_max=rows_max)
        self.mirror = Mirror(self.inbox)
        self.reflector = reflectors.Reflector(
            resource,
            client=client,
            inbox=self.inbox,
            clock=virtual.LoopClock(),
            observer=self.observer,
            rng=random.Random(seed),
            surveyor=surveying.Surveyor(self.inbox),
        )

    @property
    def name(self) -> str:
        """Plural name of what is followed."""
        return self.reflector.resource.name

    @property
    def synced(self) -> asyncio.Event:
        """Set once a whole list is in the inbox."""
        return self.reflector.synced

    @property
    def counts(self) -> Mapping[str, int]:
        """What the observer has counted."""
        return self.observer.counts


@contextlib.asynccontextmanager
async def following(
    client: clients.Client,
    resource: collection.Resource[collection.Body],
    *,
    seed: int = 0,
    rows_max: int = inboxes.ROWS_MAX,
) -> AsyncIterator[Following[collection.Body]]:
    """Run a reflector for the time of the block; its own failure ends the block."""
    one = Following(client, resource, seed=seed, rows_max=rows_max)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(one.reflector.run(), name=resource.name)
        try:
            yield one
        finally:
            task.cancel()


def following_pods(
    client: clients.Client,
    *,
    seed: int = 0,
    rows_max: int = inboxes.ROWS_MAX,
) -> contextlib.AbstractAsyncContextManager[Following[wire.Pod]]:
    """As `following`, of pods."""
    return following(client, resources.PODS, seed=seed, rows_max=rows_max)


def pod_of(vertices: Mapping[keys.VertexKey, delta.Vertex], name: str) -> pods.Pod:
    """Return the pod of this `namespace/name`."""
    found = vertices[keys.VertexKey(f"pod/{name}")]
    assert isinstance(found, pods.Pod)
    return found


def node_of(vertices: Mapping[keys.VertexKey, delta.Vertex], name: str) -> nodes.Node:
    """Return the node of this name."""
    found = vertices[keys.node_key(name)]
    assert isinstance(found, nodes.Node)
    return found


def pod_names(items: list[storage.Object]) -> set[str]:
    """Return `namespace/name` of these pods."""
    return {f"{item['metadata']['namespace']}/{item['metadata']['name']}" for item in items}
