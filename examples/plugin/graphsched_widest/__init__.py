"""A graphsched plugin that orders the queue: what most pods wait for goes first."""

from __future__ import annotations

from collections.abc import Sequence

from graphsched.decision import walking


class WidestFirst:
    """Topological, so that nothing goes before what it waits for; in each wave what leads to most comes first."""

    name = "widestFirst"
    mode = walking.Mode.TOPO

    def walk(self, graph: walking.Graph, start: Sequence[walking.Key], ctx: walking.Context) -> Sequence[walking.Key]:
        """Vertices wave by wave; among equals the queue's own order, which is that of `start`."""
        place = {key: number for number, key in enumerate(start)}
        visit = graph.walk(self.mode, graph.roots(), ctx)
        found: list[walking.Key] = []
        for wave in visit.levels:
            if ctx.over:
                break
            found += sorted(wave, key=lambda key: (-len(graph.targets(key)), place.get(key, len(place))))
        return found
