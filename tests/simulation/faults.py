"""
What goes wrong in a simulated run, by lot: on the way, at the server, with watches, clocks and the scheduler itself.

Comes in: a seed's dice. Goes out: `Weather`, which the server asks about every request (a spell of bad weather hits
some of them for a while), and `Trouble`, which does something bad at once. Each seed draws which kinds there are.

Invariant: `clear` ends everything that is bad, so that what is wrong afterwards is the scheduler's doing; what a fault
has broken by then stays broken (a silent watch stays silent).
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import random
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

from graphsched.action import conditions
from tests.fakes import faults, serving, storage, virtual, watching
from tests.simulation import memory, traces

BINDING = r".*/pods/[^/]+/binding"
POD = r".*/pods/[^/]+"
STATUS = r".*/pods/[^/]+/status"
LISTS = r"/apis?/(v1|[^/]+/v1)/[a-z]+"
LEASES = r".*/leases(/.*)?"
EVENTS = r".*/events(/.*)?"
CALLS = {
    # A condition that is forbidden is not written, and nothing would write it later.
    "bind": ("POST", BINDING, (401, 403, 409, 429, 500, 503, 504)),
    "read": ("GET", POD, (401, 403, 429, 500, 503, 504)),
    "status": ("PATCH", STATUS, (429, 500, 503, 504)),
    "follow": ("GET", LISTS, (401, 403, 410, 429, 500, 503, 504)),
    "lease": ("*", LEASES, (401, 403, 409, 429, 500, 503, 504)),
    "event": ("*", EVENTS, (403, 429, 500, 503)),
}
REASONS = {401: "Unauthorized", 403: "Forbidden", 409: "Conflict", 410: "Expired", 429: "TooManyRequests"}
#: A server ends what it works on after a minute at the latest; until then a call may take effect.
SERVER_S_MAX = 60.0


@dataclasses.dataclass
class Spell:
    """Some requests of a kind go wrong, until a moment."""

    fault: faults.Fault
    chance: float
    until_s: float


class Weather(faults.Faults):
    """Decides over each request; also how long its ways take."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__()
        self._rng = rng
        self._spells: list[Spell] = []
        self._slow_until_s = 0.0
        self._far_s = rng.choice((0.0, 0.001, 0.02))

    def add(self, spell: Spell) -> None:
        """From now on."""
        self._spells.append(spell)

    def lag(self, seconds: float) -> None:
        """Everything arrives late for so long."""
        self._slow_until_s = virtual.now() + seconds

    def clear(self) -> None:
        """All is well."""
        super().clear()
        self._spells.clear()
        self._slow_until_s = 0.0

    def take(self, method: str, path: str, query: Mapping[str, str]) -> faults.Fault | None:
        """The first spell that hits this request."""
        now = virtual.now()
        self._spells = [spell for spell in self._spells if now < spell.until_s]
        for spell in self._spells:
            if spell.fault.is_for(method, path, query) and self._rng.random() < spell.chance:
                return spell.fault
        return None

    def there_s(self, _request: serving.Request) -> float:
        """How long a request takes to arrive."""
        return self._far_s * self._rng.random()

    def back_s(self, request: serving.Request) -> float:
        """How long an answer takes to arrive."""
        slow = virtual.now() < self._slow_until_s and request.method == "GET"
        return (5.0 if slow else self._far_s) * self._rng.random()


class Victim(Protocol):
    """The scheduler, as something that can be hurt."""

    @property
    def process(self) -> str:
        """Name of its present process."""
        ...

    async def crash(self) -> None:
        """Die at once, and begin again."""
        ...

    async def restart(self) -> None:
        """End in good order, and begin again."""
        ...

    def freeze(self, seconds: float) -> None:
        """Stand still."""
        ...

    def thaw(self) -> None:
        """Go on."""
        ...

    def shift(self, seconds: float) -> None:
        """Have the wall clock jump."""
        ...


class Trouble:
    """Makes it."""

    def __init__(
        self,
        server: memory.Server,
        weather: Weather,
        victims: Sequence[Victim],
        rng: random.Random,
        trace: traces.Trace,
        *,
        on_rollback: Callable[[], None],
    ) -> None:
        self._server = server
        self._weather = weather
        self._victims = victims
        self._rng = rng
        self._trace = trace
        self._on_rollback = on_rollback
        self._backup: storage.Snapshot | None = None
        kinds: list[Callable[[], Awaitable[None]]] = [self.spell, self.cut, self.stall, self.error, self.compact]
        kinds += [self.blind, self.lag, self.outage, self.crash, self.restart, self.freeze, self.shift]
        self._kinds = [kind for kind in kinds if rng.random() < 0.5] or [self.spell]
        #: Spells are the most various.
        self._kinds += [self.spell] * 3

    async def step(self) -> None:
        """Do something bad."""
        # A watch may have lost its client, and then there is nobody to hurt.
        with contextlib.suppress(ConnectionError):
            await self._rng.choice(self._kinds)()

    def clear(self) -> None:
        """No more of it."""
        self._weather.clear()
        self._server.start()
        for victim in self._victims:
            victim.thaw()

    def _say(self, what: str) -> None:
        self._trace.add("fault", what)

    # ── on the way ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def spell(self) -> None:
        """Some calls of one kind go wrong for a while."""
        rng = self._rng
        name = rng.choice(tuple(CALLS))
        method, path, answers = CALLS[name]
        chance, lasts_s = rng.choice((0.2, 0.5, 1.0)), rng.choice((0.5, 3.0, 15.0, 60.0))
        kind = rng.choice(tuple(faults.Kind))
        if kind is faults.Kind.GARBLE and method != "GET":
            kind = faults.Kind.REFUSE
        status = rng.choice(answers)
        retry_after_s = rng.choice((None, 1, 7)) if status in {429, 503} else None
        refusal = storage.Refusal(status, REASONS.get(status, ""), "by lot", retry_after_s=retry_after_s)
        # A server that patches after the deadline of the call may do so after the binding.
        latest = conditions.DEADLINE_S - 1.0 if name == "status" else SERVER_S_MAX
        seconds = latest * rng.choice((0.01, 0.1, 0.5, 1.0))
        fault = faults.Fault(
            kind, method, re.compile(path), {}, 0, refusal if kind is faults.Kind.REFUSE else None, seconds, b"<html>"
        )
        told = status if kind is faults.Kind.REFUSE else f"{seconds:g} s" if kind is faults.Kind.DELAY else ""
        self._say(f"{kind.name.lower()} {told} {chance:.0%} of {name} for {lasts_s:g} s")
        self._weather.add(Spell(fault, chance, virtual.now() + lasts_s))

    async def lag(self) -> None:
        """What the server says arrives seconds late."""
        seconds = self._rng.choice((3.0, 30.0))
        self._say(f"lag for {seconds:g} s")
        self._weather.lag(seconds)

    # ── watches ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def cut(self) -> None:
        """A watch breaks, in the middle of a line or between two."""
        watch = self._watch()
        if watch is not None:
            self._say(f"cuts the watch of {watch.path}")
            if self._rng.random() < 0.5:
                await watch.send(b'{"type":"MODIFIED","object":{"kind')
            watch.cut()

    async def stall(self) -> None:
        """A watch falls silent for ever, or loses its bookmarks."""
        watch = self._watch()
        if watch is not None:
            watch.bookmarks = False
            if self._rng.random() < 0.5:
                watch.live = False
            self._say(f"{'no bookmarks' if watch.live else 'silence'} for the watch of {watch.path}")

    async def error(self) -> None:
        """A watch ends with an ERROR event."""
        watch = self._watch()
        if watch is not None:
            status, reason = self._rng.choice(((410, "Expired"), (410, "Gone"), (500, "InternalError"), (429, "")))
            self._say(f"ends the watch of {watch.path} with {status} {reason}")
            await watch.error(status, reason)

    async def compact(self) -> None:
        """The history is forgotten, and some watches have to begin from there."""
        self._say("compacts")
        self._server.expired_by_event = self._rng.random() < 0.5
        self._server.storage.compact()
        for watch in list(self._server.watches):
            if self._rng.random() < 0.5:
                watch.cut()

    async def blind(self) -> None:
        """Pods are deleted while nobody watches, and the history of it is lost."""
        self._say("deletes unseen")
        for watch in list(self._server.watches):
            watch.live = False
        await asyncio.sleep(0.1)
        for pod in self._server.storage.items(serving.PODS):
            if self._rng.random() < 0.2:
                key = storage.Key(serving.PODS, pod["metadata"]["namespace"], pod["metadata"]["name"])
                self._server.storage.delete(key, {"gracePeriodSeconds": 0})
        self._server.storage.compact()
        for watch in list(self._server.watches):
            watch.cut()

    def _watch(self) -> watching.Watch | None:
        open_ones = self._server.watches
        return self._rng.choice(open_ones) if open_ones else None

    # ── the server and the scheduler ───────────────────────────────────────────────────────────────────────────────

    async def outage(self) -> None:
        """The server is away for a while, and comes back with all that it had."""
        seconds = self._rng.choice((0.1, 3.0, 20.0, 90.0))
        self._say(f"the server is down for {seconds:g} s")
        await self._server.stop()
        asyncio.get_running_loop().call_later(seconds, self._server.start)

    async def rollback(self) -> None:
        """A backup is made; the next time the server comes back with it, and what was since then never happened."""
        if self._backup is None:
            self._say("makes a backup")
            self._backup = self._server.storage.snapshot()
            return
        self._say("the server comes back with its backup")
        await self._server.stop()
        await asyncio.sleep(1.0)
        self._server.storage.restore(self._backup)
        self._backup = None
        self._on_rollback()
        self._server.start()

    async def crash(self) -> None:
        """The scheduler is killed, and another one begins."""
        self._say("kill -9")
        await self._rng.choice(self._victims).crash()

    async def restart(self) -> None:
        """The scheduler is told to end, and another one begins."""
        self._say("SIGTERM")
        await self._rng.choice(self._victims).restart()

    async def freeze(self) -> None:
        """The scheduler stands still, longer than some of its deadlines."""
        seconds = self._rng.choice((0.5, 8.0, 45.0))
        self._say(f"SIGSTOP for {seconds:g} s")
        self._rng.choice(self._victims).freeze(seconds)

    async def shift(self) -> None:
        """The wall clock jumps."""
        seconds = self._rng.choice((-86_400.0, -1.0, 5.0, 86_400.0))
        self._say(f"the wall clock jumps by {seconds:g} s")
        self._rng.choice(self._victims).shift(seconds)
