"""Links recover while nobody says anything: what keeps the graph in step with the ledger of link health.

Comes in: patches of sources, on their way into the graph, with what those have seen of links. Goes out: those patches
with the health that their links have, and patches of our own for what time has restored. `intake` takes them in, on the
loop, so that no patch of ours lies between two of a source.

Invariant: nothing is done, and nobody is woken, while no link recovers.
"""

from __future__ import annotations

import asyncio
import typing

from graphsched.app.groups import Group, Seconds, Share
from graphsched.base.kit import clock as clocks
from graphsched.graph import delta, healths, routes, store as stores

SOURCE = "link-health"
"""Of our own stream of patches."""
EVERY_S = 1.0
"""How often links that recover are looked at."""


class LinkHealthSettings(Group, frozen=True):
    """How links recover from what was observed of them.

    Attributes:
        errors_half_life_seconds: After this long half of the damage that errors did is gone.
        loss_half_life_seconds: The same of lost packets.
        latency_half_life_seconds: The same of latency above what is stated or usual.
        reported_half_life_seconds: The same of a health that somebody else has worked out.
        sick_below: A link less healthy than this is sick: it counts as many hops as its health goes into one, and nodes
            whose links are all sick or down are avoided. 0 for no link.
    """

    errors_half_life_seconds: Seconds = 60.0
    loss_half_life_seconds: Seconds = 60.0
    latency_half_life_seconds: Seconds = 30.0
    reported_half_life_seconds: Seconds = 120.0
    sick_below: Share = routes.SICK_BELOW

    @property
    def half_lives(self) -> healths.HalfLives:
        """For the ledger."""
        return healths.HalfLives(
            errors=self.errors_half_life_seconds,
            loss=self.loss_half_life_seconds,
            latency=self.latency_half_life_seconds,
            reported=self.reported_half_life_seconds,
        )


class Healing:
    """Keeps the ledger, and the graph in step with it."""

    def __init__(
        self, store: stores.Store, half_lives: healths.HalfLives, *, clock: clocks.Clock, ready: asyncio.Event
    ) -> None:
        """Set `ready` when there is something for the loop to take in."""
        self._store = store
        self._ledger = healths.Ledger(half_lives)
        self._clock = clock
        self._ready = ready
        self._work = asyncio.Event()
        self._looked = clock.monotonic()
        self._sequence = 0

    def imprint(self, patch: delta.Patch) -> delta.Patch:
        """The patch with the health that its links have; our own have it already."""
        if not patch.edges or (patch.stream is not None and patch.stream.source == SOURCE):
            return patch
        imprinted = self._ledger.imprint(patch, self._clock.wall())
        self._wake()
        return imprinted

    def due(self, now: float) -> delta.Patch | None:
        """What has to change in the graph by now, a bounded number of links of it; None where nothing has."""
        ledger = self._ledger
        if not ledger.fresh and not (ledger.recovering and now - self._looked >= EVERY_S):
            return None
        self._looked = now
        patch = ledger.due(self._store.edge, self._clock.wall())
        if not len(patch):
            return None
        self._sequence += 1
        patch.stream = delta.Stream(SOURCE, 1, self._sequence)
        return patch

    async def run(self) -> typing.NoReturn:
        """Wake the loop as long as links recover, until cancelled."""
        while True:
            await self._work.wait()
            await asyncio.sleep(EVERY_S)
            if not self._ledger.recovering and not self._ledger.fresh:
                self._work.clear()
            self._ready.set()

    def _wake(self) -> None:
        if self._ledger.fresh:
            self._ready.set()
        if self._ledger.fresh or self._ledger.recovering:
            self._work.set()
