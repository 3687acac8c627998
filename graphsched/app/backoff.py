"""How long a pod that was turned away waits before its next try.

Comes in: how often a pod was refused or failed, and when it came back. Goes out: the moment its penalty ends. `backlog`
keeps the pods that wait. All of it is kube-scheduler's: the wait doubles from `initial_s` to `max_s`, refusals and
errors are counted apart, and an end is rounded down to a whole second, so that the pods of one second compete by
priority rather than by the order in which they happened to fail.
"""

from __future__ import annotations

import heapq
import math

import msgspec

from graphsched.base.values import keys

WINDOW_S = 1.0
"""Ends are aligned to this; within one window the queue's own order decides."""


class Policy(msgspec.Struct, frozen=True, gc=False):
    """The lengths of penalties, in seconds.

    Attributes:
        initial_s: After the first time.
        max_s: Never longer than this; 0 turns penalties off.
        refused_max_s: The longest after errors of a kind that a retry alone does not mend, such as an admission
            webhook that says no: each retry costs an API call, so they thin out further.
    """

    initial_s: float = 1.0
    max_s: float = 10.0
    refused_max_s: float = 300.0

    def duration_s(self, times: int, *, refused: bool = False) -> float:
        """The penalty after this many times in a row; 0.0 for none."""
        longest = max(self.refused_max_s, self.max_s) if refused else self.max_s
        if times < 1 or self.max_s <= 0:
            return 0.0
        # Beyond 2**62 the cap has won for any sensible setting, and the power would overflow a float in the end.
        return min(self.initial_s * 2.0 ** min(times - 1, 62), longest)

    def end(self, since: float, times: int, *, refused: bool = False) -> float:
        """When the penalty that began at `since` is over, rounded down to its window."""
        return align(since + self.duration_s(times, refused=refused))


def align(moment: float) -> float:
    """The start of the window that `moment` lies in."""
    return math.floor(moment / WINDOW_S) * WINDOW_S


Order = tuple[float, ...]
"""Sorts the queue: -priority, rank, since when it waits, a number that counts up; in one line all of them as long."""


class Waiting:
    """Pods by the end of their penalty, then in the queue's order.

    Taking a pod out leaves its entry in the heap, to be passed over later; more than half of them being such leftovers
    rebuilds the heap, so its length stays within twice the number of pods.
    """

    def __init__(self) -> None:
        self._ends: dict[keys.VertexKey, tuple[float, Order]] = {}
        self._heap: list[tuple[float, Order, keys.VertexKey]] = []

    def __len__(self) -> int:
        return len(self._ends)

    def __contains__(self, key: keys.VertexKey) -> bool:
        return key in self._ends

    def put(self, key: keys.VertexKey, *, end: float, order: Order) -> None:
        """Add a pod, or move it."""
        self._ends[key] = (end, order)
        heapq.heappush(self._heap, (end, order, key))
        self._tidy()

    def discard(self, key: keys.VertexKey) -> None:
        """Take the pod out if it is here."""
        if self._ends.pop(key, None) is not None:
            self._tidy()

    def first_end(self) -> float | None:
        """When the next penalty ends; None without any pod."""
        self._drop_leftovers()
        return self._heap[0][0] if self._heap else None

    def take_due(self, now: float) -> list[keys.VertexKey]:
        """Take out every pod whose penalty is over, in order. A penalty lasts to the close of the window it ends in."""
        due: list[keys.VertexKey] = []
        window = align(now)
        while (end := self.first_end()) is not None and end < window:
            due.append(self._take())
        return due

    def take(self) -> keys.VertexKey | None:
        """Take out the first pod whether or not its penalty is over; None when empty."""
        return None if self.first_end() is None else self._take()

    def _take(self) -> keys.VertexKey:
        key = heapq.heappop(self._heap)[2]
        del self._ends[key]
        return key

    def _drop_leftovers(self) -> None:
        while self._heap and self._ends.get(self._heap[0][2]) != self._heap[0][:2]:
            heapq.heappop(self._heap)

    def _tidy(self) -> None:
        if len(self._heap) > 2 * len(self._ends) + 16:
            self._heap = [(end, order, key) for key, (end, order) in self._ends.items()]
            heapq.heapify(self._heap)


class Line:
    """Pods in the queue's order, with the same treatment of leftovers as `Waiting`."""

    def __init__(self) -> None:
        self._orders: dict[keys.VertexKey, Order] = {}
        self._heap: list[tuple[Order, keys.VertexKey]] = []

    def __len__(self) -> int:
        return len(self._orders)

    def __contains__(self, key: keys.VertexKey) -> bool:
        return key in self._orders

    def put(self, key: keys.VertexKey, order: Order) -> None:
        """Add a pod, or move it."""
        self._orders[key] = order
        heapq.heappush(self._heap, (order, key))
        self._tidy()

    def discard(self, key: keys.VertexKey) -> None:
        """Take the pod out if it is here."""
        if self._orders.pop(key, None) is not None:
            self._tidy()

    def first(self) -> keys.VertexKey | None:
        """The first pod, which stays; None when empty."""
        while self._heap:
            order, key = self._heap[0]
            if self._orders.get(key) == order:
                return key
            heapq.heappop(self._heap)
        return None

    def take(self) -> keys.VertexKey | None:
        """Take out the first pod; None when empty."""
        key = self.first()
        if key is not None:
            heapq.heappop(self._heap)
            del self._orders[key]
        return key

    def _tidy(self) -> None:
        if len(self._heap) > 2 * len(self._orders) + 16:
            self._heap = [(order, key) for key, order in self._orders.items()]
            heapq.heapify(self._heap)
