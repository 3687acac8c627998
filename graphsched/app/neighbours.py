"""Nodes that other schedulers are filling right now, and that are nearly full: there the next race would be lost.

Comes in: what the watches say of nodes and pods, from `intake`. Goes out: a refusal for the last look before a binding.

Others bind in bursts, to the node that their ranking puts first, and what they have decided shows here only a call and
a watch event later. The headroom takes one pod of theirs that was not seen; it does not take a burst. So where another
scheduler bound a pod a moment ago, nearly full nodes are left to it until that moment is over. Without headroom nothing
is refused: then placement is exactly kube-scheduler's.
"""

from __future__ import annotations

from graphsched.base.kit import clock as clocks
from graphsched.base.values import nodes, pods, status
from graphsched.decision import names
from graphsched.decision.constraints import sharing
from graphsched.graph import store as stores

QUIET_S = 0.5
"""So long ago another scheduler's last binding must be: bursts of kube-scheduler were 0.1 to 0.4 s long in the soak."""


class Neighbours:
    """Remembers when others last bound a pod to each node."""

    def __init__(self, store: stores.Store, *, scheduler: str, headroom: int, clock: clocks.Clock) -> None:
        """Prepare; `headroom` is the share in percent that our pods leave free, 0 for none."""
        self._store = store
        self._scheduler = scheduler
        self._headroom = headroom
        self._clock = clock
        self._bound: dict[str, float] = {}

    def node(self, before: nodes.Node | None, after: nodes.Node | None) -> None:
        """A node came, changed or went."""
        if after is None and before is not None:
            self._bound.pop(before.name, None)

    def pod(self, before: pods.Pod | None, after: pods.Pod | None) -> None:
        """A pod came, changed or went."""
        if not self._headroom or after is None or not after.node or after.scheduler == self._scheduler:
            return
        if pods.came(before, after) and self._row(after.node) is not None:
            self._bound[after.node] = self._clock.monotonic()

    def refusal(self, node: str) -> status.Status:
        """Whether a pod of ours that the graph already counts on a node had better go elsewhere."""
        seen = self._bound.get(node)
        if seen is None or self._clock.monotonic() - seen >= QUIET_S or not self._nearly_full(node):
            return status.SUCCESS
        reason = f"other schedulers bound pods there in the last {QUIET_S} s and it is nearly full"
        return status.Status(status.Code.UNSCHEDULABLE, (reason,), names.HEADROOM)

    def _nearly_full(self, node: str) -> bool:
        row, columns = self._row(node), self._store.columns
        if row is None:
            return False
        for name in sorted(sharing.DIVISIBLE & columns.allocatable.keys()):
            offered = int(columns.allocatable[name][row])
            requested = columns.pods if name == nodes.PODS else columns.requested.get(name)
            held = 0 if requested is None else int(requested[row])
            beside = offered - held - sharing.kept(offered, self._headroom)
            if beside < sharing.nearly_full(offered, self._headroom):
                return True
        return False

    def _row(self, node: str) -> int | None:
        return self._store.columns.rows.get(node)
