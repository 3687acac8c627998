"""Who else is in a pool of our own: leaks of mode `exclusive`, counted and told.

Comes in: what the watches say of nodes and pods, from `intake`. Goes out: two numbers for the metrics, and one line in
the log for each node that leaks. A pool is closed by a taint with the key and value of its label; a node of the pool
without it takes anybody's pods, and those race with ours. Nothing here is acted on: the graph counts all pods anyway.

Pods that belong to their node are no leak: those of DaemonSets, which name it in their affinity, and static pods, which
have its name as the end of theirs.
"""

from __future__ import annotations

import logging

from graphsched.base.values import keys, nodes, pods
from graphsched.decision.constraints import identity
from graphsched.graph import store as stores

_log = logging.getLogger(__name__)

EFFECTS = frozenset({"NoSchedule", "NoExecute"})


class Pool:
    """Watches over the pool with one label.

    Attributes:
        open_nodes: Names of the nodes of the pool that lack the taint.
        guests: Key of a pod of others on the pool → name of its node.
    """

    def __init__(self, label: tuple[str, str], *, scheduler: str, store: stores.Store) -> None:
        self._key, self._value = label
        self._scheduler = scheduler
        self._store = store
        self._told: set[str] = set()
        self.open_nodes: set[str] = set()
        self.guests: dict[keys.VertexKey, str] = {}

    def node(self, before: nodes.Node | None, after: nodes.Node | None) -> None:
        """A node came, changed or went."""
        if after is None:
            if before is not None:
                self._leave(before.name)
                self._told.discard(before.name)
            return
        if before is not None and (before.labels, before.taints) == (after.labels, after.taints):
            return
        if not self._holds(after):
            self._leave(after.name)
            return
        closed = any(
            (taint.key, taint.value) == (self._key, self._value) and taint.effect in EFFECTS for taint in after.taints
        )
        if closed:
            self.open_nodes.discard(after.name)
        else:
            self.open_nodes.add(after.name)
            self._tell(after.name, "has no taint that keeps other pods away")
        for key, placement in self._store.on_node(after.name).items():
            self._look(key, placement.pod, after.name)

    def pod(self, before: pods.Pod | None, after: pods.Pod | None) -> None:
        """A pod came, changed or went."""
        if after is None or not after.node:
            if before is not None:
                self.guests.pop(before.key, None)
            return
        if not pods.came(before, after):
            return
        self.guests.pop(after.key, None)
        node = self._store.node(after.node)
        if node is not None and self._holds(node):
            self._look(after.key, after, after.node)

    def _holds(self, node: nodes.Node) -> bool:
        return (self._key, self._value) in node.labels

    def _look(self, key: keys.VertexKey, pod: pods.Pod, node: str) -> None:
        if pod.scheduler == self._scheduler or _at_home(pod, node):
            return
        self.guests[key] = node
        self._tell(node, f"runs {pod.full_name} of {pod.scheduler}")

    def _leave(self, node: str) -> None:
        """The node is none of the pool any more."""
        self.open_nodes.discard(node)
        for key in [key for key, at in self.guests.items() if at == node]:
            del self.guests[key]

    def _tell(self, node: str, what: str) -> None:
        if node not in self._told:
            self._told.add(node)
            _log.warning(
                "%s of the pool %s=%s %s; the taint %s=%s:NoSchedule closes it",
                *(node, self._key, self._value, what, self._key, self._value),
            )


def _at_home(pod: pods.Pod, node: str) -> bool:
    return identity.pinned_names(pod.spec.affinity) == frozenset({node}) or pod.name.endswith(f"-{node}")
