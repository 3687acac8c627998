"""A feed of a graph in which nothing ever happens, for tests of the server that serves it."""

from __future__ import annotations

import asyncio

from graphsched.observe import feeds


class StillFeed:
    """Has a graph of a few bytes."""

    async def whole(self) -> feeds.Graph:
        """The few bytes."""
        return feeds.Graph(1, b"GSDG")

    async def since(self, generation: int, epoch: int, *, wait_s: float, stopping: asyncio.Event) -> feeds.Graph | str:
        """Nothing."""
        del generation, epoch, wait_s, stopping
        return "unchanged"
