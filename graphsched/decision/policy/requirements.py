"""What falls short of each requirement, kept until a node or the network changes.

Rules ask for ways, and a way may have to be searched for: `prepare` does that piece by piece within the time of a turn,
so that the decision after it reads masks and searches for nothing. Whoever has all the time asks for `shortfalls` right
away. What is kept is by requirement, not by pod: rules and kinds of pods that ask for the same way share it, and it
stays when the searches behind it make room for others.
"""

from __future__ import annotations

import msgspec

from graphsched.base.values import policies
from graphsched.decision import context as contexts, trace
from graphsched.decision.policy import reachability
from graphsched.graph import distances, view

Shortfalls = tuple[tuple[str, trace.Mask], ...]
"""What is in the way, and bool a row of the nodes for which it is."""


class _Kept(msgspec.Struct, frozen=True, gc=False):
    nodes: int
    network: int
    found: Shortfalls


class Requirements:
    """Shortfalls by requirement."""

    def __init__(self) -> None:
        self._kept: dict[policies.Path, _Kept] = {}

    def prepare(
        self, graph: view.View, path: policies.Path, nodes: int, expired: distances.Expired = contexts.never
    ) -> bool:
        """Find out what falls short, until `expired`; whether it is known. What was searched is kept.

        Args:
            graph: The view.
            path: The requirement.
            nodes: Counts up with every change of a node.
            expired: Asked between pieces of a search.
        """
        kept = self._kept.get(path)
        if kept is not None and (kept.nodes, kept.network) == (nodes, graph.topology.version):
            return True
        if expired() or not reachability.prepare(graph, path, expired):
            return False
        found = tuple(reachability.shortfalls(graph, path))
        self._kept[path] = _Kept(nodes, graph.topology.version, found)
        return True

    def shortfalls(self, graph: view.View, path: policies.Path, nodes: int) -> Shortfalls:
        """What falls short now, whatever it takes to find out."""
        self.prepare(graph, path, nodes)
        return self._kept[path].found

    def keep(self, paths: set[policies.Path]) -> None:
        """Forget all requirements but these."""
        self._kept = {path: kept for path, kept in self._kept.items() if path in paths}
