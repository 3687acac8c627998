"""What is said about objects that are no pods: their status, and events about them.

Comes in: a status or a sentence, as often as somebody has reason to say it. Goes out: one call for each that is new, at
a bounded rate; what was said already is not said again in this life of the process.
"""

from __future__ import annotations

import collections
import random
import typing
from collections.abc import Callable

import msgspec

from graphsched.action import calls, happenings, outlet
from graphsched.base.kit import clock as clocks

LENGTH_MAX = 1000
SAID_MAX = 4096
WORKERS = 1
DEADLINE_S = 10.0


class _Call(typing.NamedTuple):
    """What to send: a new object, or a change of the one at `path`."""

    path: str
    body: bytes
    patches: bool


class Notices:
    """Writes statuses and events. `run` is an eternal task."""

    def __init__(
        self,
        client: calls.Client,
        *,
        controller: str,
        instance: str,
        rate: outlet.Rate,
        clock: clocks.Clock,
        rng: random.Random,
        on_end: Callable[[str], None],
    ) -> None:
        """Prepare.

        Args:
            client: Makes the calls.
            controller: The scheduler's name, as reportingController.
            instance: This process, as reportingInstance.
            rate: How fast.
            clock: For names and times.
            rng: For the jitter of pauses.
            on_end: Hears of `written`, `failed`, `moot` and `dropped`.
        """
        self._client = client
        self._maker = happenings.Maker(controller=controller, instance=instance, clock=clock)
        self._said: collections.OrderedDict[tuple[str, str, str], None] = collections.OrderedDict()
        self._outlet = outlet.Outlet[object, _Call](
            "notices",
            self._send,
            rate=rate,
            length_max=LENGTH_MAX,
            workers=WORKERS,
            rng=rng,
            on_end=lambda _key, _call, end: on_end(end),
        )

    def state(self, about: happenings.Subject, path: str, status: dict[str, typing.Any]) -> None:
        """Write the status of the object, unless it is being written."""
        if self._outlet.sending(about) is None:
            metadata = {"uid": about.uid}
            self._outlet.put(about, _Call(path, msgspec.json.encode({"metadata": metadata, "status": status}), True))

    def warn(self, about: happenings.Subject, reason: str, note: str) -> None:
        """Write an event about the object, once for each sentence."""
        said = (about.uid, reason, note)
        if said in self._said:
            return
        self._said[said] = None
        if len(self._said) > SAID_MAX:
            self._said.popitem(last=False)
        made = self._maker.made(about, kind=happenings.WARNING, reason=reason, action="Reading", note=note)
        self._outlet.put(made.name, _Call(made.path, made.body, False))

    def clear(self) -> None:
        """Write nothing of what waits; it may be said again later."""
        self._outlet.clear()
        self._said.clear()

    async def run(self) -> None:
        """Write until cancelled."""
        await self._outlet.run()

    async def _send(self, _key: object, call: _Call) -> None:
        if call.patches:
            await self._client.patch(call.path, call.body, kind="merge", deadline_s=DEADLINE_S)
        else:
            await self._client.post(call.path, call.body, deadline_s=DEADLINE_S)
