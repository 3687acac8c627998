"""Mode `advise`: we choose the nodes, another scheduler binds.

Comes in: pods that carry our scheduling gate, whatever their schedulerName. Goes out: for each, once no other gate is
left, a patch that ties it to the node chosen here and takes the gate away (`action.advise`); from then on it is the
other scheduler's. Nothing is bound here, so nothing can be over-committed here.

Advice is outstanding until the watch shows the pod bound or gone. So long it counts on its node, as a promise in the
graph, and no other decision takes that room. The other scheduler knows nothing of that: it may give the room away. Then
the pod is stuck, as the affinity of a pod that is not gated can not be changed any more. After `give_up_s` the room is
given back in the graph and that is said, in the log and by an event; if it comes to be bound all the same, the watch
shows it, and it is counted then. A pod counts at most once, whatever happens.

Advice outlives us: it is written in the pods. So any pod that waits, free of gates and tied to one node by name, is
counted there as if we had advised it: what we advised in an earlier life, and the pods of DaemonSets as well, which
the other scheduler will put there or nowhere.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

import msgspec

from graphsched.action import bind
from graphsched.app import backlog, promises, strategies, tidings
from graphsched.base.kit import clock as clocks
from graphsched.base.values import keys, pods
from graphsched.decision.constraints import identity
from graphsched.explain import why, wording
from graphsched.graph import store as stores
from graphsched.observe import metrics, modes as mode_metrics

_log = logging.getLogger(__name__)

CHECK_S = 1.0
"""How often outstanding advice is gone through."""
GIVEN_UP_MAX = 10_000
"""Of so many pods it is remembered that their room was given back; older ones may get it back once more."""


class Advice(msgspec.Struct, frozen=True, gc=False):
    """A pod that is tied to a node and not bound there yet.

    Attributes:
        pod: Which.
        node: Name of the node.
        since: When it was tied, or found to be, on the loop's clock.
        given: Whether we gave it, in this life; else it was found in the pod.
    """

    pod: pods.Pod
    node: str
    since: float
    given: bool


class Advising:
    """The strategy."""

    def __init__(
        self,
        *,
        gate: str,
        give_up_s: float,
        store: stores.Store,
        kept: promises.Promises,
        queue: backlog.Backlog,
        events: strategies.Events,
        meters: metrics.Metrics,
        clock: clocks.Clock,
        wake: asyncio.Event,
    ) -> None:
        """Prepare.

        Args:
            gate: Name of the gate that makes a pod ours.
            give_up_s: After so long the room of a pod that is not bound is given back.
            store: Where pods are looked up.
            kept: Where the room is kept.
            queue: Told when room is given back.
            events: Told when a pod is stuck.
            meters: Counts.
            clock: Its time is the loop's.
            wake: Wakes the loop.
        """
        self.writes = True
        self._gate = gate
        self._give_up_s = give_up_s
        self._store = store
        self._promises = kept
        self._queue = queue
        self._events = events
        self._meters: mode_metrics.Modes = meters.modes
        self._clock = clock
        self._wake = wake
        self._outstanding: dict[keys.VertexKey, Advice] = {}
        self._given_up: dict[keys.VertexKey, Advice] = {}
        meters.modes.expect_advice()
        meters.refresh_with(self._refresh)

    # ── the strategy ───────────────────────────────────────────────────────────────────────────────────────────────

    def ours(self, pod: pods.Pod) -> bool:
        """Those that our gate holds."""
        return self._gate in pod.gates and not pod.deleting

    def subject(self, pod: pods.Pod) -> pods.Pod:
        """The pod as it will be without our gate."""
        return msgspec.structs.replace(pod, gates=tuple(gate for gate in pod.gates if gate != self._gate))

    def foresee(self, changes: Iterable[strategies.Change]) -> None:
        """Nothing is made of what is yet to be."""

    def passed_over(self, pod: pods.Pod) -> None:
        """Keep the room of one that is tied to a node; give back that of one that will never get there."""
        promise = self._promises.get(pod.key, pod.uid)
        if pod.deleting:
            if promise is not None and pod.key in self._outstanding:
                self._free(promise)
            return
        last = self._given_up.get(pod.key)
        if promise is not None or pod.gates or (last is not None and last.pod.uid == pod.uid):
            return
        names = identity.pinned_names(pod.spec.affinity)
        if names is None or len(names) != 1:
            return
        (node,) = names
        # Which shareable GPUs it is to get nobody said.
        self._promises.make(pod, node, ())
        self._remember(Advice(pod, node, self._clock.monotonic(), given=False))

    def placed(self, outcome: bind.Outcome, now: float) -> None:
        """It is tied to its node, and not bound yet as far as is known."""
        self._remember(Advice(outcome.order.pod, outcome.node, now, given=True))

    async def run(self) -> None:
        """Look after what is outstanding, until cancelled."""
        while True:
            await asyncio.sleep(CHECK_S)
            self.check(self._clock.monotonic())

    # ── outstanding advice ─────────────────────────────────────────────────────────────────────────────────────────

    def check(self, now: float) -> None:
        """Forget what has come to an end, and give back the room of what will not."""
        for advice in list(self._outstanding.values()):
            promise = self._promises.get(advice.pod.key, advice.pod.uid)
            if promise is None:
                self._over(advice)
            elif now - advice.since >= self._give_up_s:
                self._give_up(advice, promise, now)
        for advice in list(self._given_up.values()):
            pod = self._store.pod(advice.pod.key)
            if pod is None or pod.uid != advice.pod.uid or pod.node:
                del self._given_up[advice.pod.key]

    def told(self, pod: pods.Pod) -> why.Advised | None:
        """What is to be said of this pod's advice; None without any."""
        for advices, given_up in ((self._outstanding, False), (self._given_up, True)):
            found = advices.get(pod.key)
            if found is not None and found.pod.uid == pod.uid and not pod.node:
                return why.Advised(found.node, self._clock.monotonic() - found.since, given_up=given_up)
        return None

    def _remember(self, advice: Advice) -> None:
        last = self._outstanding.get(advice.pod.key)
        if last is not None and last.pod.uid != advice.pod.uid:
            self._over(last)
        self._outstanding[advice.pod.key] = advice

    def _over(self, advice: Advice) -> None:
        del self._outstanding[advice.pod.key]
        if not advice.given:
            return
        pod = self._store.pod(advice.pod.key)
        if pod is None or pod.uid != advice.pod.uid or not pod.node:
            self._meters.advice("gone")
        else:
            self._meters.advice("bound" if pod.node == advice.node else "elsewhere")

    def _give_up(self, advice: Advice, promise: promises.Promise, now: float) -> None:
        del self._outstanding[advice.pod.key]
        self._given_up[advice.pod.key] = advice
        if len(self._given_up) > GIVEN_UP_MAX:
            del self._given_up[next(iter(self._given_up))]
        self._free(promise)
        if not advice.given:
            return
        self._meters.advice("given_up")
        note = (
            f"advised to {advice.node} and not bound there for {wording.duration(now - advice.since)}: its room is "
            "for others again. Its affinity can not be changed any more; delete it to have it placed anew"
        )
        _log.warning("%s was %s", advice.pod.full_name, note)
        self._events.failed(advice.pod, note, last=True)

    def _free(self, promise: promises.Promise) -> None:
        news = tidings.News()
        news.left(promise.pod, promise.node)
        self._promises.end((promise,))
        self._queue.tell(news)
        self._wake.set()

    def _refresh(self) -> None:
        now = self._clock.monotonic()
        ages = [now - advice.since for advice in self._outstanding.values() if advice.given]
        stuck = sum(advice.given for advice in self._given_up.values())
        self._meters.set_advice(outstanding=len(ages), given_up=stuck, oldest_s=max(ages, default=0.0))
