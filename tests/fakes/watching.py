"""
The watches of a fake API server: each follows the history of one collection, and can be made to fail.

Comes in: a `Storage` and what the client asked for. Goes out: lines of JSON, at once and in order. A test may take an
open watch by hand: end it, cut it, send whatever bytes it likes.

Invariants: the server sends nothing by itself but changes, and bookmarks as often as the real one does; an object that
stops matching a field selector is told as deleted, one that starts to as added.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

import msgspec

from tests.fakes import storage

BOOKMARK_PERIOD_S = 60.0
_KINDS = {
    "pods": "Pod",
    "nodes": "Node",
    "namespaces": "Namespace",
    "priorityclasses": "PriorityClass",
    "services": "Service",
    "replicationcontrollers": "ReplicationController",
    "replicasets": "ReplicaSet",
    "statefulsets": "StatefulSet",
}


class Selector:
    """A field selector."""

    def __init__(self, text: str) -> None:
        self._terms: list[tuple[list[str], bool, str]] = []
        for term in filter(None, text.split(",")):
            path, _, value = term.partition("=")
            equal = not path.endswith("!")
            self._terms.append((path.rstrip("!").split("."), equal, value.lstrip("=")))

    def matches(self, item: storage.Object | None) -> bool:
        """Whether the object has the fields asked for; an absent one counts as empty."""
        return item is not None and all((_field(item, path) == value) is equal for path, equal, value in self._terms)


def _field(item: storage.Object, path: list[str]) -> str:
    found: Any = item
    for name in path:
        found = found.get(name, "") if isinstance(found, dict) else ""
    return str(found)


class Pipe(Protocol):
    """The way to the client."""

    async def write(self, data: bytes) -> None:
        """Send bytes; raises ConnectionError when nobody is there any more."""

    def abort(self) -> None:
        """Break the connection."""


class Watch:
    """One open watch."""

    def __init__(
        self,
        stored: storage.Storage,
        pipe: Pipe,
        *,
        collection: str,
        namespace: str,
        query: Mapping[str, str],
    ) -> None:
        self.path = collection
        self.query = query
        #: Whether changes are sent; a test that turns it off has a silent server.
        self.live = True
        self._storage = stored
        self.pipe = pipe
        self._namespace = namespace
        self._selector = Selector(query.get("fieldSelector", ""))
        self._sent = int(query.get("resourceVersion") or 0)
        #: Whether bookmarks are sent, as the client has asked.
        self.bookmarks = query.get("allowWatchBookmarks") == "true"
        self._ends_s = float(query.get("timeoutSeconds") or 1800)
        self._wake = asyncio.Event()
        self._ended = False
        #: The place lies in the future: the real server begins, and waits for it without a word.
        self._early = self._sent > stored.version

    async def serve(self) -> None:
        """Send what happens until the agreed time is over or a test ends it."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self._ends_s
        bookmark = loop.time() + BOOKMARK_PERIOD_S
        if not self._sent:
            await self._send_all()
        while not self._ended:
            self._wake.clear()
            if self.live:
                await self.catch_up()
            try:
                async with asyncio.timeout_at(min(end, bookmark)):
                    await self._wake.wait()
            except TimeoutError:
                if self.live and self.bookmarks and not self._early:
                    await self.bookmark()
                bookmark = loop.time() + BOOKMARK_PERIOD_S
                if loop.time() >= end:
                    self._ended = True

    def wake(self) -> None:
        """Something has changed."""
        self._wake.set()

    async def catch_up(self) -> None:
        """Send every change that has not been sent; an ERROR when some of them are forgotten."""
        if self._early:
            return
        if self._sent < self._storage.compacted:
            await self.error(410, "Expired", f"too old resource version: {self._sent} ({self._storage.compacted})")
            return
        lines = [line for change in self._storage.changes(self._sent) if (line := self._line(change))]
        self._sent = self._storage.version
        if lines:
            await self.send(b"".join(lines))

    async def bookmark(self) -> None:
        """Send the version up to which everything has been sent."""
        metadata = {"resourceVersion": str(self._sent), "creationTimestamp": None}
        item = {"kind": _KINDS.get(self.path.rpartition("/")[2], "Object"), "apiVersion": "v1", "metadata": metadata}
        await self.send(_encode("BOOKMARK", item))

    async def error(self, status: int, reason: str, message: str = "as scripted") -> None:
        """Send an ERROR event and end."""
        await self.send(_encode("ERROR", storage.Refusal(status, reason, message).body))
        self.end()

    async def send(self, data: bytes) -> None:
        """Send bytes of any kind."""
        await self.pipe.write(data)

    def end(self) -> None:
        """End as a server does whose time is over."""
        self._ended = True
        self._wake.set()

    def cut(self) -> None:
        """Break the connection."""
        self.end()
        self.pipe.abort()

    async def _send_all(self) -> None:
        self._sent = self._storage.version
        for item in self._storage.items(self.path, self._namespace):
            if self._selector.matches(item):
                await self.send(_encode("ADDED", item))

    def _line(self, change: storage.Change) -> bytes:
        if change.key.collection != self.path or self._namespace not in {"", change.key.namespace}:
            return b""
        before, after = self._selector.matches(change.before), self._selector.matches(change.after)
        if after:
            assert change.after is not None
            return _encode("MODIFIED" if before else "ADDED", change.after)
        if before:
            assert change.before is not None
            metadata = {**change.before["metadata"], "resourceVersion": str(change.version)}
            return _encode("DELETED", {**change.before, "metadata": metadata})
        return b""


def _encode(kind: str, item: storage.Object) -> bytes:
    return msgspec.json.encode({"type": kind, "object": item}) + b"\n"
