"""Who of the waiting pods waits for whom: the graph that orders of the queue walk.

Comes in: pods that enter and leave the queue, and AppGroups. Goes out: a graph with two sorts of vertices, pods and
what pods wait for: a name (`awaited/namespace/name`) or a workload of a group (`awaited/namespace/group/workload`). An
edge leads from a pod that bears the name, or belongs to the workload, to that vertex, and from there to each pod that
depends on it. So a thousand pods that wait for a thousand others are two thousand edges, not a million.

A pod bears its own name, that of its controller, and the values of its labels `app.kubernetes.io/name` and `app`. Only
pods that something waits for, or that wait, are vertices; a pod that is placed leaves, and nobody waits for it longer.

Invariant: the graph is what the pods and groups that are here make of it, whatever came and went before.
"""

from __future__ import annotations

import collections

import msgspec

from graphsched.base.values import groups, keys, pods
from graphsched.decision import walking
from graphsched.graph import adjacency, walks

NAMING_LABELS = frozenset({"app.kubernetes.io/name", "app"})
"""Labels whose values are names that a pod bears."""


class _Ties(msgspec.Struct, frozen=True, gc=False):
    """What a pod bears, and what it waits for."""

    pod: pods.Pod
    bears: frozenset[keys.VertexKey]
    wants: frozenset[keys.VertexKey]


class Dependencies:
    """The graph, kept in step.

    Attributes:
        version: Counts up with every change of the graph.
    """

    def __init__(self) -> None:
        self._ties: dict[keys.VertexKey, _Ties] = {}
        self._bearers: dict[keys.VertexKey, dict[keys.VertexKey, None]] = {}
        self._waiters: dict[keys.VertexKey, dict[keys.VertexKey, None]] = {}
        self._degrees: collections.Counter[keys.VertexKey] = collections.Counter()
        self._groups: dict[str, dict[keys.VertexKey, groups.Group]] = {}
        self._writer: adjacency.Writer[keys.VertexKey] = adjacency.Writer()
        self._space = walks.Space()
        self.version = 0

    def __len__(self) -> int:
        """Number of vertices."""
        return len(self._writer)

    def graph(self) -> walking.Graph:
        """The graph as it is now."""
        return walking.Graph(self._writer.picture(), self._space)

    def before(self, key: keys.VertexKey) -> tuple[keys.VertexKey, ...]:
        """The pods here that this one waits for itself, by name."""
        ties = self._ties.get(key)
        if ties is None:
            return ()
        return tuple(sorted({bearer for awaited in ties.wants for bearer in self._bearers.get(awaited, ())}))

    def set_group(self, before: groups.Group | None, after: groups.Group | None) -> None:
        """A group came, changed or went."""
        sample = after if after is not None else before
        if sample is None or before == after:
            return
        known = self._groups.setdefault(sample.namespace, {})
        if after is None:
            known.pop(sample.key, None)
        else:
            known[after.key] = after
        for ties in [ties for ties in self._ties.values() if ties.pod.namespace == sample.namespace]:
            self.leave(ties.pod.key)
            self.enter(ties.pod)

    def enter(self, pod: pods.Pod) -> None:
        """A pod waits, or changed while it does."""
        before = self._ties.get(pod.key)
        if before is not None and before.pod is pod:
            return
        ties = self._tied(pod)
        if before is not None:
            if (before.bears, before.wants) == (ties.bears, ties.wants):
                self._ties[pod.key] = ties
                return
            self.leave(pod.key)
        self._ties[pod.key] = ties
        for awaited in sorted(ties.bears):
            self._bearers.setdefault(awaited, {})[pod.key] = None
            if awaited in self._waiters:
                self._join(pod.key, awaited)
        for awaited in sorted(ties.wants):
            waiters = self._waiters.setdefault(awaited, {})
            if not waiters:
                for bearer in self._bearers.get(awaited, ()):
                    self._join(bearer, awaited)
            waiters[pod.key] = None
            self._join(awaited, pod.key)

    def leave(self, key: keys.VertexKey) -> None:
        """A pod waits no more; nothing happens for one that is not here."""
        ties = self._ties.pop(key, None)
        if ties is None:
            return
        for awaited in sorted(ties.wants):
            self._part(awaited, key)
            waiters = self._waiters[awaited]
            del waiters[key]
            if not waiters:
                del self._waiters[awaited]
                for bearer in self._bearers.get(awaited, ()):
                    self._part(bearer, awaited)
        for awaited in sorted(ties.bears):
            if awaited in self._waiters:
                self._part(key, awaited)
            bearers = self._bearers[awaited]
            del bearers[key]
            if not bearers:
                del self._bearers[awaited]

    def _tied(self, pod: pods.Pod) -> _Ties:
        namespace = pod.namespace
        names = {pod.name, *(value for label, value in pod.labels if label in NAMING_LABELS and value)}
        if pod.owner:
            names.add(pod.owner.rpartition("/")[2])
        bears = {_awaited(namespace, name) for name in names}
        wants = {_awaited(*_split(name, namespace)) for name in _declared(pod)}
        for group in self._groups.get(namespace, {}).values():
            for workload in group.workloads:
                if workload.selector is not None and workload.selector.matches(pod.labels):
                    bears.add(_awaited(namespace, group.name, workload.name))
                    wants |= {_awaited(namespace, group.name, each.workload) for each in workload.dependencies}
        # Nobody waits for oneself, nor for one's siblings.
        return _Ties(pod, frozenset(bears), frozenset(wants - bears))

    def _join(self, source: keys.VertexKey, target: keys.VertexKey) -> None:
        for end in (source, target):
            self._degrees[end] += 1
            self._writer.add(end)
        self._writer.set(source, target)
        self.version += 1

    def _part(self, source: keys.VertexKey, target: keys.VertexKey) -> None:
        self._writer.cut(source, target)
        for end in (source, target):
            self._degrees[end] -= 1
            if not self._degrees[end]:
                del self._degrees[end]
                self._writer.remove(end)
        self.version += 1


def _awaited(*names: str) -> keys.VertexKey:
    return keys.VertexKey("/".join(("awaited", *names)))


def _split(name: str, namespace: str) -> tuple[str, str]:
    """Namespace and name; that of the pod where the name brings none."""
    before, slash, after = name.partition("/")
    return (before, after) if slash else (namespace, name)


def _declared(pod: pods.Pod) -> tuple[str, ...]:
    """What the annotation `graphsched.io/depends-on` names."""
    return () if pod.spec.graph is None else pod.spec.graph.depends_on
