"""The last look before a binding: whether the node still takes the pod, and which other one does if not.

Comes in: a try whose call is about to go out, and the graph as it is now. Goes out: the try to carry out, on the same
node or on one of the decision's runners-up, its promise moved along in one patch; or none, and the pod is decided anew.
Everything is looked at again, not resources alone, and by the filters that decide.

All of it happens between two awaits. What it can not see is what others do while the call is on its way, and what their
watches have not told yet: that window is as long as one call and one watch event, and `races` records what falls into
it.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from graphsched.app import neighbours, parking, promises
from graphsched.base.values import pods, status
from graphsched.decision import context as contexts, cycle, names, trace
from graphsched.graph import store as stores, view


class Try(msgspec.Struct, frozen=True, gc=False):
    """A decision that is being carried out.

    Attributes:
        entry: The pod in the queue.
        began: When it was taken from the queue.
        decision: What was decided.
        promise: What the graph was told; its node may be another one by now.
        sound: Generation of the graph at which that node was last known to take the pod.
        hasty: Whether it was made without all that a decision takes, as waiting on was of no use (`readiness`).
    """

    entry: parking.Entry
    began: float
    decision: trace.Decision
    promise: promises.Promise
    sound: int
    hasty: bool = False


class Found(msgspec.Struct, frozen=True, gc=False):
    """What the last look came to.

    Attributes:
        tried: How to go on; None when no candidate takes the pod any more.
        moved: What refuses the node that was chosen; SUCCESS where nothing does.
    """

    tried: Try | None
    moved: status.Status = status.SUCCESS


_SEARCHING = status.Status(
    status.Code.PENDING, ("what rules require of the network is being searched for anew",), names.GRAPH_POLICY
)


class LastLook:
    """Looks at the node once more."""

    def __init__(
        self,
        store: stores.Store,
        kept: promises.Promises,
        decider: cycle.Decider,
        beside: neighbours.Neighbours,
        *,
        candidates: int,
    ) -> None:
        """Prepare; at most `candidates` nodes of a decision are tried, the chosen one included."""
        self._store = store
        self._promises = kept
        self._decider = decider
        self._beside = beside
        self._candidates = candidates

    def __call__(self, tried: Try, *, pinned: bool, expired: Callable[[], bool]) -> Found:
        """Look at the node of a try.

        Args:
            tried: What is about to be carried out.
            pinned: Whether an earlier call to this node may still take effect, so that no other node may be asked for.
            expired: Whether this has taken too long. What rules require of the network may have to be searched for, and
                then the pod is decided anew, once that is done; or, of a hasty decision, limits that are not known
                refuse the node.
        """
        crowded = status.SUCCESS if pinned else self._beside.refusal(tried.promise.node)
        if crowded.ok and tried.sound == self._store.generation:
            return Found(tried)
        graph, promise = self._store.view(), tried.promise
        pod = self._newest(promise.pod)
        if crowded.ok and self._untouched(graph, tried, pod):
            return Found(tried)
        if not self._decider.prepare(graph, pod, expired) and not tried.hasty:
            return Found(None, _SEARCHING)
        context = contexts.Context(expired=expired)
        beneath = graph.with_changes(removed=[pod.key])
        refused = crowded if not crowded.ok else self._decider.admits(beneath, pod, promise.node, context)
        if refused.ok:
            return Found(msgspec.structs.replace(tried, sound=graph.generation))
        others = (tried.decision.node, *tried.decision.runners_up)[: self._candidates]
        for name in () if pinned else others:
            if name != promise.node and self._takes(beneath, pod, name, context):
                moved = self._promises.move(promise, name, self._decider.devices(beneath, pod, name))
                return Found(msgspec.structs.replace(tried, promise=moved, sound=self._store.generation), refused)
        return Found(None, refused)

    def _takes(self, beneath: view.View, pod: pods.Pod, node: str, context: contexts.Context) -> bool:
        return self._beside.refusal(node).ok and self._decider.admits(beneath, pod, node, context).ok

    def _newest(self, pod: pods.Pod) -> pods.Pod:
        """The pod as it is now, or as it was decided on when it is gone or another has its name."""
        found = self._store.pod(pod.key)
        return found if found is not None and found.uid == pod.uid else pod

    def _untouched(self, graph: view.View, tried: Try, pod: pods.Pod) -> bool:
        """Whether nothing that the filters look at has changed."""
        node, columns = tried.promise.node, graph.columns
        row = columns.rows.get(node)
        return (
            row is not None
            and int(columns.changed[row]) <= tried.sound
            # Both are interned.
            and pod.spec is tried.promise.pod.spec
            and pod.labels is tried.promise.pod.labels
            and not graph.nominated.get(node)
            and not self._decider.keeps_company(graph, pod)
        )
