"""The questions of those who copy the graph: what they may ask, how many at a time, how long they may wait.

A follower begins with the whole graph and asks for what happened since, again and again; a question for which there is
no news yet waits for some. Comes in: what stands behind `?` in a request to `/debug/graph`. Goes out: bytes from the
feed that `app` keeps, or a refusal with its HTTP status. Invariants: at most `FOLLOWERS_MAX` are answered at a time; no
question waits longer than `WAIT_S_MAX`, nor longer than the server runs.
"""

from __future__ import annotations

import asyncio
import typing
from collections.abc import Mapping

import msgspec

from graphsched.observe import metrics as meters

FOLLOWERS_MAX = 8
"""Answered at a time; each may hold one request while it waits for news."""
WAIT_S_MAX = 30.0
"""Below what proxies take for a dead connection."""
_NUMBER_MAX = 1 << 62


class Graph(msgspec.Struct, frozen=True):
    """The graph, or what happened to it, as of one moment.

    Attributes:
        generation: That moment.
        data: Encoded, to be passed on as it is.
    """

    generation: int
    data: bytes


class Feed(typing.Protocol):
    """Has the graph to hand out."""

    async def whole(self) -> Graph:
        """The whole graph, for a follower to begin with."""
        ...

    async def since(self, generation: int, epoch: int, *, wait_s: float, stopping: asyncio.Event) -> Graph | str:
        """What happened since, after waiting for something to happen.

        `unchanged` when nothing did; `gap` or `epoch` when the follower has to begin again.
        """
        ...


class Refusal(msgspec.Struct, frozen=True):
    """An answer without a graph: HTTP status, and one sentence where there is something to say."""

    status: int
    text: str = ""


class _Question(typing.NamedTuple):
    after: int
    epoch: int
    wait_s: float


_AGAIN = "begin again with ?follow"
_REFUSALS = {
    "unchanged": Refusal(204),
    "gap": Refusal(410, f"the changes since that generation are not kept any more: {_AGAIN}"),
    "epoch": Refusal(410, f"the scheduler was restarted since: {_AGAIN}"),
}


class Feeding:
    """Answers followers."""

    def __init__(self, feed: Feed, metrics: meters.Metrics, *, stopping: asyncio.Event) -> None:
        """Hand out what the feed has, until `stopping` is set."""
        self._feed = feed
        self._meters = metrics.following
        self._stopping = stopping
        self._asking = 0

    async def whole(self, query: Mapping[str, str]) -> Graph:
        """The whole graph, for a follower to begin with; it may say why it does, see `app/following.py`."""
        because = query.get("because", "")
        self._meters.refused(because)
        graph = await self._feed.whole()
        self._meters.told("whole", len(graph.data))
        self._meters.resynced(because)
        return graph

    async def answer(self, query: Mapping[str, str]) -> Graph | Refusal:
        """What happened since the generation that the follower names."""
        self._meters.refused(query.get("because", ""))
        question = _question(query)
        if isinstance(question, str):
            self._meters.told("malformed")
            return Refusal(400, question)
        if self._asking >= FOLLOWERS_MAX:
            self._meters.told("busy")
            return Refusal(503, f"{FOLLOWERS_MAX} followers are being answered, try again")
        self._asking += 1
        self._meters.set_waiting(self._asking)
        try:
            found = await self._feed.since(
                question.after, question.epoch, wait_s=question.wait_s, stopping=self._stopping
            )
        finally:
            self._asking -= 1
            self._meters.set_waiting(self._asking)
        if isinstance(found, str):
            self._meters.told(found)
            return _REFUSALS[found]
        self._meters.told("changes", len(found.data))
        return found


def _question(query: Mapping[str, str]) -> _Question | str:
    """What is asked, or what is wrong with it."""
    numbers: dict[str, int] = {}
    for name, default in (("after", ""), ("epoch", ""), ("wait", "0")):
        text = query.get(name, default)
        if not text.isascii() or not text.isdigit() or int(text[:20]) > _NUMBER_MAX:
            return f"{name}={text[:40]!r} is no number: ask for ?after=GENERATION&epoch=EPOCH&wait=SECONDS"
        numbers[name] = int(text[:20])
    if numbers["wait"] > WAIT_S_MAX:
        return f"wait={numbers['wait']} is longer than the {WAIT_S_MAX:.0f} seconds anybody may wait"
    return _Question(numbers["after"], numbers["epoch"], float(numbers["wait"]))
