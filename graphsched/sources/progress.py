"""How a source is doing: what it last heard, whether it has seen everything, what is in its way.

A reflector tells it what happened; the loop waits for `synced`, health checks read `state`, and an `Observer` (metrics)
hears of everything. Log lines are written where something begins or ends, not for every repetition in between.
"""

from __future__ import annotations

import asyncio
import logging
import typing

import msgspec

from graphsched.base.kit import clock as clocks
from graphsched.base.kube import streams
from graphsched.base.values import errors

_log = logging.getLogger(__name__)

ENDED = "Ended"
"""`reason` of the error for a watch that the server ended before it said anything."""

_USUAL = frozenset({"ended", "expired", "stalled"})
"""Reasons that are part of a watch's life: nothing is failing."""
_BY_REASON = {streams.STALLED: "stalled", ENDED: "ended"}


class Observer(typing.Protocol):
    """Who counts. `source` is a resource's plural name."""

    def on_heard(self, source: str, objects: int) -> None:
        """Objects or events arrived; 0 when a watch was opened."""
        ...

    def on_listed(self, source: str, reason: str, objects: int, changed: int) -> None:
        """A list was taken because of `reason`: so many objects, of which so many were news."""
        ...

    def on_invalid(self, source: str) -> None:
        """An object could not be read and was skipped."""
        ...

    def on_interrupted(self, source: str, reason: str) -> None:
        """A list or watch ended: `ended` (as agreed), `expired`, `forbidden`, `unreachable`, `stalled` or `refused`."""
        ...


class State(msgspec.Struct, frozen=True, kw_only=True):
    """A source at one moment.

    Attributes:
        source: Plural name of the resource.
        synced: Whether one list has been taken whole.
        silent_s: Seconds since the server last said anything; bookmarks come about once a minute.
        objects: How many objects there were at the last list.
        failing: What is in the way, empty when nothing is.
    """

    source: str
    synced: bool
    silent_s: float
    objects: int
    failing: str


class Progress:
    """Keeps track of one source."""

    def __init__(self, source: str, *, clock: clocks.Clock, observer: Observer) -> None:
        self.synced = asyncio.Event()
        """Set once a whole list is in the inbox."""
        self._source = source
        self._clock = clock
        self._observer = observer
        self._heard_at = clock.monotonic()
        self._objects = 0
        self._failing = ""

    @property
    def state(self) -> State:
        """How it is doing now."""
        return State(
            source=self._source,
            synced=self.synced.is_set(),
            silent_s=self._clock.monotonic() - self._heard_at,
            objects=self._objects,
            failing=self._failing,
        )

    def heard(self, objects: int) -> None:
        """The server said something: so many objects or events."""
        self._heard_at = self._clock.monotonic()
        self._observer.on_heard(self._source, objects)
        if self._failing:
            _log.info("%s: the API server answers again", self._source)
            self._failing = ""

    def listed(self, reason: str, *, objects: int, changed: int) -> None:
        """A whole list was taken."""
        self._objects = objects
        self._observer.on_listed(self._source, reason, objects, changed)
        _log.info("%s: listed %d objects, %d of them news (%s)", self._source, objects, changed, reason)
        self.synced.set()

    def ended(self) -> None:
        """A watch ended as agreed."""
        self._observer.on_interrupted(self._source, "ended")

    def interrupted(self, reason: str, error: errors.ClusterError) -> None:
        """A list or a watch failed."""
        self._observer.on_interrupted(self._source, reason)
        if reason in _USUAL:
            _log.info("%s: %s", self._source, error)
            return
        if str(error) != self._failing:
            _log.warning("%s: %s", self._source, error)
        self._failing = str(error)

    def invalid(self, error: errors.InputError, *, say: bool) -> None:
        """An object was skipped; `say` is whether to log it."""
        self._observer.on_invalid(self._source)
        if say:
            _log.warning("%s: skipped, and what was known of it stays: %s", self._source, error)


def reason_of(error: errors.ClusterError) -> str:
    """The closed set of reasons that `Observer.on_interrupted` names."""
    if error.reason in _BY_REASON:
        return _BY_REASON[error.reason]
    if isinstance(error, errors.ExpiredError):
        return "expired"
    if isinstance(error, errors.ForbiddenError):
        return "forbidden"
    return "unreachable" if isinstance(error, errors.UnreachableError) else "refused"
