"""Kubernetes events about pods, and now and then about a node: what `kubectl describe` shows.

Comes in: that a pod was placed or was not, with the text. Goes out: events of events.k8s.io/v1, at a bounded rate. The
same text about the same pod adds to the series of the first one; a new text within `RENEW_S` is left to the condition,
which always holds the newest. Best effort: an event that can not be had is dropped and counted.
"""

from __future__ import annotations

import collections
import random
from collections.abc import Callable

import msgspec

from graphsched.action import calls, happenings, outlet
from graphsched.base.kit import clock as clocks
from graphsched.base.values import nodes, pods

RENEW_S = 30.0
SERIES_S = 360.0
"""Kubernetes' own recorder ends a series when nothing came for six minutes."""
TOLD_S = 1800.0
"""A series that goes on is written so often at least: the API server forgets events that nobody writes for an hour."""
SERIES_MAX = 8192
WORKERS = 2
DEADLINE_S = 10.0


class _Series(msgspec.Struct, gc=False):
    """An event that was written, and how often it happened.

    Attributes:
        name: Of the event object.
        note: Its text.
        first: When it was written, monotonic seconds.
        last: When it last happened, monotonic seconds.
        told: When its growth was last written, monotonic seconds.
        count: How often.
    """

    name: str
    note: str
    first: float
    last: float
    told: float
    count: int = 1


Topic = tuple[str, str, str]
"""Key and UID of the pod, and the reason."""


class _Call(msgspec.Struct, frozen=True, gc=False):
    """What to send: a new event, or the growth of the series on a topic."""

    path: str
    body: bytes
    grows: Topic | None = None


class Events:
    """Records events.

    Attributes:
        dropped: How many were dropped so far.
    """

    def __init__(
        self,
        client: calls.Client,
        *,
        controller: str,
        instance: str,
        rate: outlet.Rate,
        length_max: int,
        clock: clocks.Clock,
        rng: random.Random,
        on_end: Callable[[str], None],
    ) -> None:
        """Prepare; `run` does the work.

        Args:
            client: Makes the calls.
            controller: The scheduler's name, as reportingController.
            instance: This process, as reportingInstance.
            rate: How fast events are written.
            length_max: How many may wait.
            clock: For names, times and series.
            rng: For the jitter of pauses.
            on_end: Hears of `written`, `merged`, `moot`, `failed` and `dropped`.
        """
        self._client = client
        self._clock = clock
        self._on_end = on_end
        self._maker = happenings.Maker(controller=controller, instance=instance, clock=clock)
        self._series: collections.OrderedDict[Topic, _Series] = collections.OrderedDict()
        self._outlet = outlet.Outlet[object, _Call](
            "events",
            self._send,
            rate=rate,
            length_max=length_max,
            workers=WORKERS,
            rng=rng,
            on_end=self._ended,
        )

    def __len__(self) -> int:
        """Number of events that wait."""
        return len(self._outlet)

    def scheduled(self, pod: pods.Pod, node: str) -> None:
        """The pod was bound."""
        note = f"Successfully assigned {pod.full_name} to {node}"
        self._create(pod, kind=happenings.NORMAL, reason="Scheduled", action="Binding", note=note)

    def failed(self, pod: pods.Pod, note: str, *, last: bool = False) -> None:
        """The pod found no node, or something went wrong with it; the `last` word is said in any case."""
        note, now = happenings.cut(note), self._clock.monotonic()
        topic = (pod.key, pod.uid, "FailedScheduling")
        series = self._series.get(topic)
        renewed = series is not None and series.note != note and (last or now - series.first > RENEW_S)
        if series is None or renewed or now - series.last > SERIES_S:
            name = self._create(pod, kind=happenings.WARNING, reason="FailedScheduling", action="Scheduling", note=note)
            self._series[topic] = _Series(name, note, now, now, now)
            self._series.move_to_end(topic)
            if len(self._series) > SERIES_MAX:
                self._series.popitem(last=False)
            return
        series.last = now
        if series.note == note:
            series.count += 1
            # Doubling keeps the number of calls to the logarithm of the number of happenings.
            if series.count & (series.count - 1) == 0 or now - series.told >= TOLD_S:
                series.told = now
                self._grow(pod, topic, series)
                return
        self._on_end("merged")

    def about(self, node: nodes.Node, *, reason: str, note: str) -> None:
        """Something about a node that its operator should know; it is for the caller not to say it twice."""
        subject = happenings.Subject("v1", "Node", node.name, node.uid)
        self._write(subject, kind=happenings.WARNING, reason=reason, action="Watching", note=note)

    def clear(self) -> None:
        """Write nothing of what waits."""
        self._outlet.clear()

    async def run(self) -> None:
        """Write until cancelled."""
        await self._outlet.run()

    async def flush(self, *, deadline_s: float) -> int:
        """Write what waits, for so long at most; returns how many are left."""
        return await self._outlet.flush(deadline_s=deadline_s)

    def _create(self, pod: pods.Pod, *, kind: str, reason: str, action: str, note: str) -> str:
        subject = happenings.Subject("v1", "Pod", pod.name, pod.uid, pod.namespace)
        return self._write(subject, kind=kind, reason=reason, action=action, note=note)

    def _write(self, subject: happenings.Subject, *, kind: str, reason: str, action: str, note: str) -> str:
        made = self._maker.made(subject, kind=kind, reason=reason, action=action, note=note)
        self._outlet.put(made.name, _Call(made.path, made.body))
        return made.name

    def _grow(self, pod: pods.Pod, topic: Topic, series: _Series) -> None:
        change = {"series": {"count": series.count, "lastObservedTime": happenings.moment(self._clock.wall())}}
        path = f"{happenings.collection(pod.namespace)}/{series.name}"
        self._outlet.put((series.name, "series"), _Call(path, msgspec.json.encode(change), topic))

    async def _send(self, _key: object, call: _Call) -> None:
        if call.grows is None:
            await self._client.post(call.path, call.body, deadline_s=DEADLINE_S)
        else:
            await self._client.patch(call.path, call.body, kind="merge", deadline_s=DEADLINE_S)

    def _ended(self, _key: object, call: _Call, end: str) -> None:
        if call.grows is not None and end == "moot":
            # Its event is gone; the next time is a first one.
            self._series.pop(call.grows, None)
        self._on_end(end)
