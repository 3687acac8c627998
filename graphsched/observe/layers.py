"""The metrics of the physical and the resource layer: how links are, and how full nodes are.

`metrics` makes them, with its own declaring functions, so that they stand in its list like all others.
"""

from __future__ import annotations

import bisect
import collections
from collections.abc import Callable, Iterable, Mapping

import prometheus_client

from graphsched.observe import series

BOUNDS = (0.2, 0.5, 1.0)
"""From which health on a link belongs to the next of `STATES`."""
STATES = ("failing", "bad", "worn", "well")
DIRECTIONS = UP, DOWN = ("up", "down")
"""How a node crosses a watermark."""


class Layers:
    """What is called to report on them."""

    def __init__(
        self,
        counter: Callable[..., prometheus_client.Counter],
        gauge: Callable[..., prometheus_client.Gauge],
    ) -> None:
        """Declare them by these functions."""
        links = gauge(
            "graphsched_links",
            "Links of the physical layer by health: well (1), worn (0.5 and more), bad (0.2 and more) or failing, "
            "which one that is down is as well. What is observed of a link lowers its health, time restores it.",
            "health",
        )
        self._links = {state: links.labels(state) for state in STATES}
        self._worst = gauge(
            "graphsched_link_health_worst", "Health of the worst link, above 0 and at most 1; 1 without any link."
        )
        self._cut_off = gauge(
            "graphsched_nodes_cut_off",
            "Nodes that have links, of which the best is down or has a health below `linkHealth.sickBelow`: pods are "
            "kept away from them, though Kubernetes may still call them ready.",
        )
        self.ways_cut = series.Total(
            counter(
                "graphsched_ways_cut_total",
                "How often the ways to a partner were asked for whose pods run at more places than are looked at: the "
                "score goes by those with most pods, and limits are taken for unknown.",
            )
        )
        self._above = series.Family(
            gauge(
                "graphsched_watermark_nodes",
                "Nodes that are above the high watermark of the resource and not yet back below the low one, by what "
                "their pods request of what may be used.",
                "resource",
            ),
            1,
        )
        self._crossings = series.Family(
            counter(
                "graphsched_watermark_crossings_total",
                "How often a node rose to the high watermark of a resource, or fell below the low one afterwards.",
                "resource",
                "direction",
            ),
            2,
        )

    def set_links(self, *, total: int, unwell: Iterable[float], cut_off: int) -> None:
        """Number of links, the healths of those that are not well, and how many nodes are cut off."""
        worst, counts = 1.0, collections.Counter[str]()
        for health in unwell:
            worst = min(worst, health)
            counts[STATES[bisect.bisect_right(BOUNDS, health)]] += 1
        counts["well"] = total - counts.total()
        for state, child in self._links.items():
            child.set(counts[state])
        self._worst.set(worst)
        self._cut_off.set(cut_off)

    def set_above(self, nodes: Mapping[str, int]) -> None:
        """Resource → nodes above its high watermark."""
        for resource, count in nodes.items():
            self._above[resource,].set(count)
            # There from the start: a rate sees no growth in a series that begins with its first crossing.
            for direction in DIRECTIONS:
                self._crossings[resource, direction].inc(0)

    def crossing(self, resource: str, *, up: bool) -> None:
        """A node crossed a watermark."""
        self._crossings[resource, UP if up else DOWN].inc()
