"""How a source is doing: what it last heard, whether it has seen everything, what is in its way.

A reflector tells it what happened; the loop waits for `synced`, health checks read `state`, and an `Observer` (metrics)
hears of everything. Log lines are written where something begins or ends, not for every repetition in between.
"""

from __future__ import annotations

import asyncio
import logging
import typing
from collections.abc import Callable, Mapping

import msgspec

from graphsched.base.kit import clock as clocks
from graphsched.base.kube import streams
from graphsched.base.values import errors

_log = logging.getLogger(__name__)

ENDED = "Ended"
"""`reason` of the error for a watch that the server ended before it said anything."""
_QUIET = frozenset({ENDED, streams.STALLED})
"""Reasons that are part of a watch's life: nothing is failing yet."""


class Observer(typing.Protocol):
    """Who counts. `resource` is a plural name."""

    def watch_event(self, resource: str, kind: str, count: int = 1) -> None:
        """A watch delivered events of one type."""
        ...

    def relist(self, resource: str, reason: str) -> None:
        """A list was taken whole: at the `start`, or because our place was `expired`, `refused`, or `silent` for too
        long, because the server `went back` to an earlier version, for a `resync`, or for a `refresh`.
        """
        ...

    def watch_failure(self, resource: str) -> None:
        """A list or a watch ended by an error."""
        ...

    def invalid(self, resource: str, count: int = 1) -> None:
        """Objects could not be read and were skipped."""
        ...

    def waived(self, resource: str, *, waived: bool) -> None:
        """Whether decisions are made without the resource, as the right to follow it is missing."""
        ...

    def absent(self, resource: str, *, absent: bool) -> None:
        """Whether the API server knows no such resource, as nobody has installed it."""
        ...


class State(msgspec.Struct, frozen=True, kw_only=True):
    """A source at one moment.

    Attributes:
        source: Plural name of the resource.
        synced: Whether one list has been taken whole, or is not waited for.
        silent_s: Seconds since the server last said anything; bookmarks come about once a minute.
        silent_max_s: After so long without a word what is known is not to be trusted any more.
        objects: How many objects there were at the last list.
        failing: What is in the way, empty when nothing is.
        waived: Whether decisions are made without it, as the right to follow it is missing.
        absent: Whether there is no such kind of objects, as nobody has installed it.
    """

    source: str
    synced: bool
    silent_s: float
    silent_max_s: float
    objects: int
    failing: str
    waived: bool
    absent: bool = False


class Progress:
    """Keeps track of one source."""

    def __init__(self, source: str, *, clock: clocks.Clock, observer: Observer, silent_max_s: float) -> None:
        self.synced = asyncio.Event()
        """Set once a whole list is in the inbox, or nobody waits for one any more."""
        self.on_doubt: Callable[[str], None] = lambda _: None
        """Told, in words for the log, when what the graph holds may be of another history: the server `is back` after a
        time without an answer, or it `went back` to an older version."""
        self._source = source
        self._clock = clock
        self._observer = observer
        self._silent_max_s = silent_max_s
        self._heard_at = clock.monotonic()
        self._objects = 0
        self._failing = ""
        self._away = False
        """Whether the server gave no answer at all."""
        self._waived = False
        self._absent = False

    @property
    def state(self) -> State:
        """How it is doing now."""
        return State(
            source=self._source,
            synced=self.synced.is_set(),
            silent_s=self._clock.monotonic() - self._heard_at,
            silent_max_s=self._silent_max_s,
            objects=self._objects,
            failing=self._failing,
            waived=self._waived,
            absent=self._absent,
        )

    def heard(self) -> None:
        """The server said something."""
        self._heard_at = self._clock.monotonic()
        if self._failing:
            _log.info("%s: the API server answers again", self._source)
            self._failing = ""
            if self._away:
                self._away = False
                self.on_doubt("is back")

    def followed(self) -> None:
        """The server let a watch in that goes on where a list or another watch ended."""
        self._claim()
        self.heard()

    def events(self, counts: Mapping[str, int]) -> None:
        """A watch delivered events: type → how many."""
        self.heard()
        for kind, count in counts.items():
            self._observer.watch_event(self._source, kind, count)

    def listed(self, reason: str, detail: str, *, objects: int, changed: int) -> None:
        """A whole list was taken, for one of the reasons of `Observer.relist`."""
        self._objects = objects
        if self._absent:
            self._absent = False
            self._observer.absent(self._source, absent=False)
        self._claim()
        self._observer.relist(self._source, reason)
        _log.info("%s: listed %d objects, %d of them news (%s)", self._source, objects, changed, detail or reason)
        self.synced.set()
        if reason == "went back":
            self.on_doubt(reason)

    def failed(self, error: errors.ClusterError) -> None:
        """A list or a watch ended by an error."""
        if isinstance(error, errors.ExpiredError):
            _log.info("%s: %s", self._source, error)
            return
        self._observer.watch_failure(self._source)
        if error.reason in _QUIET:
            _log.info("%s: %s", self._source, error)
            return
        if str(error) != self._failing:
            _log.warning("%s: %s", self._source, error)
        self._failing = str(error)
        self._away = self._away or not error.status

    def missed(self) -> None:
        """The server knows no such kind of objects; it says so, which is an answer."""
        self.heard()
        self._objects = 0
        if not self._absent:
            self._absent = True
            self._observer.absent(self._source, absent=True)
            _log.info("%s: not installed; it is looked for again now and then", self._source)
        self.synced.set()

    def waive(self) -> None:
        """The right to follow it is missing, and decisions can be made without it."""
        if not self._waived:
            self._waived = True
            self._observer.waived(self._source, waived=True)
            _log.warning(
                "%s: decisions are made without them until the right to list and watch them is given", self._source
            )
        self.synced.set()

    def _claim(self) -> None:
        """Decisions are made with it again."""
        if self._waived:
            self._waived = False
            self._observer.waived(self._source, waived=False)

    def invalid(self, error: errors.InputError, *, say: bool) -> None:
        """An object was skipped; `say` is whether to log it."""
        self._observer.invalid(self._source)
        if say:
            _log.warning("%s: skipped, and what was known of it stays: %s", self._source, error)
