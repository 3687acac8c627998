"""Tells when nodes cross the watermarks that an operator set: a number, and one event on the node.

Comes in: the graph, looked at once a second at most while it changes. Goes out: metrics, on every replica; events and a
line of the log, from the one that leads. What is above at the first look has not crossed anything: it shows in the
metric alone, so that a restart tells nobody anew.
"""

from __future__ import annotations

import collections
import logging
import typing
from collections.abc import Mapping

import msgspec

from graphsched.app import strategies
from graphsched.app.groups import Group
from graphsched.base.values import nodes, quantities
from graphsched.graph import store as stores, watermarks
from graphsched.observe import metrics as meters

_log = logging.getLogger(__name__)

EVERY_S = 1.0
EVENTS_A_LOOK = 50
"""More nodes that rise at once are one cause: the log says how many, the metric has them all."""
AGAIN_S = 300.0
"""A node that crosses the same mark again within this time was told of already."""
TOLD_MAX = 4096
"""Nodes and resources remembered for that."""
REASON = "AboveWatermark"


class MarkSettings(Group, frozen=True):
    """The marks of one resource, in percent of what may be used.

    Attributes:
        high_percent: From here on a node is above.
        low_percent: Below this it is not any more; less than `highPercent`.
    """

    high_percent: typing.Annotated[float, msgspec.Meta(gt=0, le=1000)]
    low_percent: typing.Annotated[float, msgspec.Meta(ge=0, le=1000)]

    @property
    def marks(self) -> watermarks.Marks:
        """As the graph looks at them."""
        return watermarks.Marks(self.high_percent, self.low_percent)


class Fullness:
    """Watches how full nodes are."""

    def __init__(
        self,
        store: stores.Store,
        marks: Mapping[str, MarkSettings],
        *,
        events: strategies.Events,
        metrics: meters.Metrics,
    ) -> None:
        self._store = store
        self._watermarks = watermarks.Watermarks({name: mark.marks for name, mark in sorted(marks.items())})
        self._marks = marks
        self._events = events
        self._meters = metrics
        self._generation = -1
        self._looked = 0.0
        self._told: collections.OrderedDict[tuple[str, str], float] = collections.OrderedDict()

    @property
    def above(self) -> dict[str, int]:
        """Resource → number of nodes above its high mark."""
        return self._watermarks.above

    def look(self, now: float, *, leads: bool) -> None:
        """See what crossed a mark, if it is time; only a replica that leads writes events."""
        if not self._marks or self._store.generation == self._generation:
            return
        first = self._generation < 0
        if not first and now - self._looked < EVERY_S:
            return
        self._generation, self._looked = self._store.generation, now
        crossings = self._watermarks.look(self._store.columns, self._store.budgets)
        if first:
            return
        for each in crossings:
            self._meters.layers.crossing(each.resource, up=each.up)
        if leads:
            self._tell([each for each in crossings if each.up], now)

    def _tell(self, risen: list[watermarks.Crossing], now: float) -> None:
        news = [each for each in risen if now - self._told.get((each.node, each.resource), -AGAIN_S) >= AGAIN_S]
        for each in news[:EVENTS_A_LOOK]:
            topic = (each.node, each.resource)
            self._told[topic] = now
            self._told.move_to_end(topic)
            node = self._store.node(each.node)
            if node is not None:
                self._events.about(node, reason=REASON, note=self._note(each))
        while len(self._told) > TOLD_MAX:
            self._told.popitem(last=False)
        if len(news) > EVENTS_A_LOOK:
            _log.warning("%d nodes rose above a watermark at once, %d were told of", len(news), EVENTS_A_LOOK)

    def _note(self, crossing: watermarks.Crossing) -> str:
        used, usable = (_amount(crossing.resource, amount) for amount in (crossing.used, crossing.usable))
        share, mark = 100 * crossing.used / crossing.usable, self._marks[crossing.resource].high_percent
        what = "there are" if crossing.resource == nodes.PODS else "pods request"
        return f"{crossing.resource}: {what} {used} of {usable} ({share:.0f}%), the watermark is at {mark:g}%"


def _amount(resource: str, amount: int) -> str:
    if resource == nodes.CPU:
        return quantities.format_milli(amount)
    return quantities.format_bytes(amount) if resource in {nodes.MEMORY, nodes.EPHEMERAL_STORAGE} else str(amount)
