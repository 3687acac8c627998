"""What was decided and is not yet seen to be so: pods that count on a node by our word alone.

Comes in: decisions, and what became of them. Goes out: `runs` edges in the graph, added and cut. A promise is made the
moment a node is chosen, so that the next decision knows of it. It ends when the watch shows the pod bound, when the pod
is gone, or when its binding came to nothing; there is no time after which it lapses, as a late success would then be
counted nowhere. That the node is deleted does not end it: it may be back under its name before the binding is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator

import msgspec

from graphsched.base.values import errors, keys, pods, relations
from graphsched.graph import delta, store as stores


class Promise(msgspec.Struct, frozen=True, gc=False):
    """A pod on its way to a node.

    Attributes:
        pod: As it was decided on.
        node: Name of the node.
        devices: Indices of the shareable GPUs it gets there.
    """

    pod: pods.Pod
    node: str
    devices: tuple[int, ...]

    @property
    def edge(self) -> keys.EdgeID:
        """The edge that says so in the graph."""
        return keys.EdgeID(self.pod.key, keys.node_key(self.node), keys.EdgeKind.RUNS)

    @property
    def runs(self) -> relations.Runs:
        """What the edge carries."""
        return relations.Runs(self.pod.uid, self.devices)


class Promises:
    """Keeps the promises and their edges together."""

    def __init__(self, store: stores.Store) -> None:
        self._store = store
        self._promises: dict[keys.VertexKey, Promise] = {}

    def __len__(self) -> int:
        return len(self._promises)

    def get(self, key: keys.VertexKey, uid: str) -> Promise | None:
        """The promise made for this very pod."""
        found = self._promises.get(key)
        return found if found is not None and found.pod.uid == uid else None

    def all(self) -> list[Promise]:
        """Every promise, in no particular order."""
        return list(self._promises.values())

    def make(self, pod: pods.Pod, node: str, devices: tuple[int, ...]) -> None:
        """The pod is to run on the node, with these devices.

        Raises:
            GraphschedError: The graph does not take it: a bug.
        """
        promise = Promise(pod, node, devices)
        self._apply(delta.Patch(edges={promise.edge: promise.runs}))
        self._promises[pod.key] = promise

    def move(self, promise: Promise, node: str, devices: tuple[int, ...]) -> Promise:
        """The pod is to run on another node instead; returns the promise that stands now. Nobody sees it on both, nor
        on none.

        Raises:
            GraphschedError: The graph does not take it: a bug.
        """
        moved = Promise(promise.pod, node, devices)
        cut = {promise.edge} if self._store.edge(promise.edge) is not None else set()
        self._apply(delta.Patch(cut=cut, edges={moved.edge: moved.runs}))
        self._promises[promise.pod.key] = moved
        return moved

    def keep(self, gone: Collection[keys.VertexKey]) -> None:
        """These nodes have left the graph, and took the edges to them along. The bindings go on, so what was promised
        there still counts: the next node of that name must not be given away as if it were empty.
        """
        lost: dict[keys.EdgeID, relations.Edge] = {
            promise.edge: promise.runs
            for promise in self._promises.values()
            if promise.edge.target in gone and self._store.edge(promise.edge) is None
        }
        if lost:
            self._apply(delta.Patch(edges=lost))

    def end(self, promises: Iterable[Promise]) -> None:
        """These are over, for whatever reason; those that are over already are passed over."""
        cut = set()
        for promise in promises:
            if self._promises.get(promise.pod.key) is promise:
                del self._promises[promise.pod.key]
                if self._store.edge(promise.edge) is not None:
                    cut.add(promise.edge)
        if cut:
            self._apply(delta.Patch(cut=cut))

    @contextlib.contextmanager
    def without(self, promises: Iterable[Promise]) -> Iterator[None]:
        """While the block lasts the graph is as if these had never been made."""
        edges: dict[keys.EdgeID, relations.Edge] = {
            promise.edge: promise.runs
            for promise in promises
            if self._promises.get(promise.pod.key) is promise and self._store.edge(promise.edge) is not None
        }
        if not edges:
            yield
            return
        self._apply(delta.Patch(cut=set(edges)))
        try:
            yield
        finally:
            self._apply(delta.Patch(edges=edges))

    def _apply(self, patch: delta.Patch) -> None:
        applied = self._store.apply(patch)
        if isinstance(applied, delta.Refused):
            raise errors.GraphschedError(f"the graph refused a promise: {applied.detail}")
