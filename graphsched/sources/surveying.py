"""Keeps the survey in step with the nodes, and sends what comes of it, in the order in which it comes.

Reflectors of described objects tell the survey what those say; the graph's own news of nodes reaches it through `node`.
Either way what has changed is sent at once, as patches. What asks for every node is looked at here, in pieces of a few
milliseconds, beside everything else.

Invariant: patches come into the inbox in the order in which they were made, whoever sends them: `publish` lets one at a
time.
"""

from __future__ import annotations

import asyncio
import collections
import typing
from collections.abc import Awaitable, Callable, Iterable

from graphsched.base.values import descriptions, keys, labels, nodes, pods
from graphsched.graph import delta
from graphsched.sources import inbox as inboxes, surveys

SOURCE = "survey"
"""The stream of what follows from nodes, and of what was described in files."""
ROWS_MAX = 250
"""Rows of one patch, as a reflector's."""
NODES_A_PIECE = 100
PAIRS_A_PIECE = 1000
"""Pairs of an object and a node looked at between two turns of everybody else: some 3 ms."""


class Surveyor:
    """Owns the survey. `run` is an eternal task.

    Attributes:
        survey: What is described.
    """

    def __init__(self, inbox: inboxes.Inbox, described: Iterable[descriptions.Description] = ()) -> None:
        """Begin with what is described in files."""
        self.survey = surveys.Survey()
        for description in described:
            self.survey.describe(description)
        self._inbox = inbox
        self._news: collections.deque[tuple[str, labels.Labels | None]] = collections.deque()
        self._wake = asyncio.Event()
        self._turn = asyncio.Lock()
        self._epoch = 1
        self._sequence = 0
        if not self.survey.settled:
            self._wake.set()

    @property
    def settled(self) -> bool:
        """Whether all that was told so far is in the inbox."""
        return not self._news and self.survey.settled and not self._turn.locked()

    # ── who tells ──────────────────────────────────────────────────────────────────────────────────────────────────

    def node(self, before: nodes.Node | None, after: nodes.Node | None) -> None:
        """A node came, changed or went in the graph."""
        if before is not None and (after is None or after.uid != before.uid):
            # Its edges are gone with it, also where another one of the name is there at once.
            self._news.append((before.name, None))
        elif before is not None and after is not None and before.labels == after.labels:
            return
        if after is not None:
            self._news.append((after.name, after.labels))
        self._wake.set()

    def pod(self, before: pods.Pod | None, after: pods.Pod | None) -> None:
        """Nothing is described of pods."""

    def resync(self, reason: str, *, epoch: int) -> None:  # noqa: ARG002  what a source is asked, whatever the reason
        """Send everything again: who applies the patches has lost track in this epoch."""
        if epoch != self._epoch:
            return
        self._epoch += 1
        self._sequence = 0
        self.survey.refresh()
        self._wake.set()

    def forget(self, key: keys.VertexKey) -> None:
        """The object says nothing any more, although nobody told its reflector."""
        self.survey.forget(key)
        self._wake.set()

    # ── who sends ──────────────────────────────────────────────────────────────────────────────────────────────────

    async def publish(self, patch: delta.Patch, put: Callable[[delta.Patch], Awaitable[None]]) -> None:
        """Add to the patch what the survey has to say, and send it by `put`, in parts of a bounded size."""
        async with self._turn:
            self.survey.flush(patch)
            if len(patch):
                for part in delta.split(patch, rows_max=ROWS_MAX):
                    await put(part)
        if not self.settled:
            self._wake.set()

    async def run(self) -> typing.NoReturn:
        """Look at what is due, piece by piece, until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while not self.settled:
                for _ in range(min(len(self._news), NODES_A_PIECE)):
                    self.survey.set_node(*self._news.popleft())
                self.survey.work(PAIRS_A_PIECE)
                await self.publish(delta.Patch(), self._put)
                await asyncio.sleep(0)

    async def _put(self, patch: delta.Patch) -> None:
        self._sequence += 1
        patch.stream = delta.Stream(SOURCE, self._epoch, self._sequence)
        await self._inbox.put(patch)
