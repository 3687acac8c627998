"""A dump: what an audit found and what the scheduler has in hand, as one JSON file for whoever looks into it.

Comes in: a report, and the loop's parts. Goes out: a file of its own in the directory for dumps, readable by nobody
else, the newest few of which are kept; where none can be written, its beginning goes to the log. `queue` is also what
`/debug/queue` answers. Only copying the values is done on the loop; encoding and writing go on in a thread.

Invariant: a dump that can not be written costs a line in the log and nothing else.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import os
import pathlib
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from graphsched.app import findings, intake, parking
from graphsched.base.kit import clock as clocks
from graphsched.sources import progress

_log = logging.getLogger(__name__)

PREFIX = "graphsched-dump-"
ENTRIES_MAX = 100_000
"""Pods of the queue in one dump: some 300 bytes each."""
SHOWN_MAX = 1000
"""Pods that `/debug/queue` shows."""
SLICE = 1000
"""Pods copied at a stretch: 3 ms."""
LOGGED_BYTES_MAX = 16_384
"""How much of a dump goes to the log where no file can be written."""


class Queued(msgspec.Struct, frozen=True, gc=False):
    """A pod in the queue.

    Attributes:
        pod: `namespace/name`.
        uid: Its UID.
        pool: Where it waits.
        attempts: Decisions made on it.
        refused_by: The plugins it waits for.
        waiting_s: Since it entered.
        next_try_s: Until its penalty is over; None where it has none.
    """

    pod: str
    uid: str
    pool: str
    attempts: int
    refused_by: tuple[str, ...]
    waiting_s: float
    next_try_s: float | None


class Queue(msgspec.Struct, frozen=True):
    """The queue.

    Attributes:
        counts: Pool → pods in it.
        pods: Those that came first, in this order.
    """

    counts: dict[str, int]
    pods: list[Queued]


def queue(parts: intake.Parts, now: float) -> Queue:
    """What waits, the first of it one by one."""
    return Queue(_counts(parts), [_queued(entry, now) for entry in parts.backlog.entries()[:SHOWN_MAX]])


def _counts(parts: intake.Parts) -> dict[str, int]:
    return {pool.value: count for pool, count in parts.backlog.counts().items()}


def _queued(entry: parking.Entry, now: float) -> Queued:
    penalised = entry.pool in {parking.Pool.BACKOFF, parking.Pool.ERRORS}
    return Queued(
        pod=entry.pod.full_name,
        uid=entry.pod.uid,
        pool=entry.pool.value,
        attempts=entry.attempts,
        refused_by=entry.plugins,
        waiting_s=round(now - entry.added, 3),
        next_try_s=round(max(0.0, entry.end - now), 3) if penalised else None,
    )


class Dumper:
    """Writes dumps."""

    def __init__(
        self,
        parts: intake.Parts,
        counts: Callable[[], dict[str, int]],
        sources: Sequence[progress.Progress],
        *,
        directory: str,
        kept: int,
        clock: clocks.Clock,
    ) -> None:
        """Prepare; nothing is written.

        Args:
            parts: What the loop works with.
            counts: Kind of vertex → how many the graph holds.
            sources: How the watches are doing.
            directory: Where to; empty for the system's temporary directory.
            kept: How many dumps stay there.
            clock: Its wall time names the file.
        """
        self._parts = parts
        self._counts = counts
        self._sources = sources
        self._directory = directory
        self._kept = kept
        self._clock = clock

    async def dump(self, report: findings.Report) -> None:
        """Write everything down, and say where."""
        content = await self._content(report)
        when = dt.datetime.fromtimestamp(self._clock.wall(), dt.UTC).strftime("%Y%m%dT%H%M%S.%fZ")
        name = f"{PREFIX}{when}-g{self._parts.store.generation}.json"
        try:
            path = await asyncio.to_thread(self._write, name, content)
        except OSError as error:
            place = self._directory or "the temporary directory"
            _log.warning(
                "no dump could be written to %s (%s): set audit.dumpDirectory; it begins: %s",
                place,
                (error.strerror or str(error)).lower(),
                _encode(content)[:LOGGED_BYTES_MAX].decode(errors="ignore"),
            )
            return
        _log.info("dump written to %s", path)

    async def _content(self, report: findings.Report) -> dict[str, Any]:
        entries = self._parts.backlog.entries()[:ENTRIES_MAX]
        waiting: list[Queued] = []
        for start in range(0, len(entries), SLICE):
            waiting += [_queued(entry, self._clock.monotonic()) for entry in entries[start : start + SLICE]]
            await asyncio.sleep(0)
        parts, now = self._parts, self._clock.monotonic()
        promised = parts.promises.all()
        orders = [order for each in promised if (order := parts.dispatcher.get(each.pod.key)) is not None]
        return {
            "time": self._clock.wall(),
            "generation": parts.store.generation,
            "audit": report,
            "graph": self._counts(),
            "sources": [each.state for each in self._sources],
            "promises": [{"pod": each.pod.full_name, "uid": each.pod.uid, "node": each.node} for each in promised],
            "orders": [
                {
                    "pod": order.pod.full_name,
                    "uid": order.pod.uid,
                    "node": order.node,
                    "seconds": round(now - order.asked, 3),
                }
                for order in orders
            ],
            "queue": Queue(_counts(parts), waiting),
        }

    def _write(self, name: str, content: dict[str, Any]) -> pathlib.Path:
        """Runs in a thread.

        Raises:
            OSError: It can not be written, or not wholly.
        """
        folder = pathlib.Path(self._directory or tempfile.gettempdir())
        path, part = folder / name, folder / f"{name}.part"
        data = _encode(content)
        # Never into a file, or through a link, that somebody else has put there.
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            part.rename(path)
        except OSError:
            part.unlink(missing_ok=True)
            raise
        self._clear(folder)
        return path

    def _clear(self, folder: pathlib.Path) -> None:
        """Remove the oldest of our dumps; their names sort by time."""
        mine = sorted(path for path in folder.glob(f"{PREFIX}*.json") if path.lstat().st_uid == os.getuid())
        for path in mine[: -self._kept]:
            path.unlink(missing_ok=True)


def _encode(content: dict[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(content), indent=1)
