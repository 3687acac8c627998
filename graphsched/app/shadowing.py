"""Mode `shadow`: decide as if the other scheduler's pods were ours, write nothing, and compare with what it did.

Comes in: the pods of the other scheduler as the watch shows them, and the graph as it is before each change. Goes out:
a `shadow.Tally`, nothing else. A decision is made when a pod waits; until the watch shows where the other scheduler
put it, it counts on the node chosen here, so that the next decision knows of it, as it would if we had bound it.

What is compared is fair to both only on the graph that the other scheduler decided on, as nearly as it can be known.
So when a pod is seen to be bound it is weighed once more, on the graph without this very binding and without the pods
that were decided here after it. Pods decided before it and not seen to be bound yet are in the other scheduler's hands
at that moment. They count where we would have put them; if that finds a difference, the pod is weighed without them as
well, and the better of the two is believed.

Decisions do not run ahead of the other scheduler by more than `places` pods, so little has to be taken back each time.
A pod that still waits `settle_s` after its decision is taken for one that the other scheduler leaves pending; then its
room counts no longer, and its place is for others.

Invariant: nothing leaves this process. There is no client here, and orders end by being remembered.
"""

from __future__ import annotations

import asyncio
import typing
from collections.abc import Iterable

import msgspec

from graphsched.action import bind
from graphsched.app import backlog, promises, shadow, strategies, tidings
from graphsched.base.kit import clock as clocks
from graphsched.base.values import keys, pods
from graphsched.decision import cycle
from graphsched.explain import why
from graphsched.graph import store as stores

CHECK_S = 1.0
"""How often pods that have waited long are looked for."""


class _Watched(msgspec.Struct, gc=False):
    """A pod that waits, or did until a moment ago.

    Attributes:
        pod: As it was when it was first seen waiting.
        since: When that was, on the loop's clock.
        decided: When it was last decided on; None while it was not.
        number: Its place among the decisions; 0 while it was not placed.
        node: What was chosen for it; empty where nothing was.
        message: Why nothing was.
        left: Whether it was taken for one that the other scheduler leaves pending, so that its room is free again.
    """

    pod: pods.Pod
    since: float
    decided: float | None = None
    number: int = 0
    node: str = ""
    message: str = ""
    left: bool = False


class Shadowing:
    """The strategy, and at the same time who carries out its orders and who hears its refusals.

    Attributes:
        writes: Never: nothing is changed in the cluster.
        ready: Set when there are outcomes to fetch.
        tally: What was found.
    """

    def __init__(
        self,
        *,
        scheduler: str,
        settle_s: float,
        places: int,
        decider: cycle.Decider,
        store: stores.Store,
        kept: promises.Promises,
        queue: backlog.Backlog,
        tally: shadow.Tally,
        clock: clocks.Clock,
        ready: asyncio.Event,
    ) -> None:
        """Prepare.

        Args:
            scheduler: Whose pods.
            settle_s: A pod that waits for longer after its decision is left pending by the other.
            places: So many pods may be decided ahead of the other scheduler.
            decider: Weighs.
            store: The graph.
            kept: Where pods are counted that we would have bound.
            queue: Told when room is given back.
            tally: Where findings go.
            clock: Its time is the loop's.
            ready: Wakes the loop.
        """
        self.writes = False
        self._scheduler = scheduler
        self._settle_s = settle_s
        self._places = places
        self._decider = decider
        self._store = store
        self._promises = kept
        self._queue = queue
        self._clock = clock
        self._watched: dict[keys.VertexKey, _Watched] = {}
        self._ahead: dict[keys.VertexKey, _Watched] = {}
        self._orders: dict[keys.VertexKey, bind.Order] = {}
        self._number = 0
        self._begun = False
        self.ready = ready
        self.tally = tally

    def begin(self) -> None:
        """The graph is whole: what happens from now on is compared."""
        self._begun = True

    # ── the strategy ───────────────────────────────────────────────────────────────────────────────────────────────

    def ours(self, pod: pods.Pod) -> bool:
        """Those of the other scheduler, unless it was seen to leave them pending while we would not."""
        watched = self._of(pod)
        return pod.scheduler == self._scheduler and not pod.deleting and not (watched is not None and watched.left)

    def subject(self, pod: pods.Pod) -> pods.Pod:
        """As it is."""
        return pod

    def foresee(self, changes: Iterable[strategies.Change]) -> None:
        """Watch who waits; compare who is about to be bound; let go of who is about to vanish."""
        now = self._clock.monotonic()
        for key, before, after in changes:
            was = before if isinstance(before, pods.Pod) else None
            becomes = after if isinstance(after, pods.Pod) else None
            if was is not None or becomes is not None:
                self._foresee(key, was, becomes, now)

    def _foresee(self, key: keys.VertexKey, before: pods.Pod | None, after: pods.Pod | None, now: float) -> None:
        watched = self._watched.get(key)
        if watched is not None and (after is None or after.uid != watched.pod.uid):
            self._vanished(watched, now)
            watched = None
        if after is None or after.scheduler != self._scheduler:
            return
        if not after.node:
            if not after.gates and watched is None and not after.deleting:
                self._watched[key] = _Watched(after, now)
        elif watched is not None and before is not None:
            self._bound(watched, before, after.node)
        elif self._begun and (before is None or before.uid != after.uid):
            self.tally.not_compared("unseen")

    def passed_over(self, pod: pods.Pod) -> None:
        """Its room, if any is kept, is given back when it vanishes or is bound."""

    def placed(self, outcome: bind.Outcome, now: float) -> None:
        """It was remembered when it was submitted."""

    def told(self, pod: pods.Pod) -> why.Advised | None:  # noqa: ARG002
        """Nothing: the graph shows it."""
        return None

    async def run(self) -> None:
        """Look for pods that have waited long, until cancelled."""
        while True:
            await asyncio.sleep(CHECK_S)
            self.check(self._clock.monotonic())

    def check(self, now: float) -> None:
        """Take those for left pending that still wait, and free their room."""
        news = tidings.News()
        for key, watched in list(self._ahead.items()):
            if watched.decided is not None and now - watched.decided >= self._settle_s and key not in self._orders:
                watched.left = True
                self._release(key, watched, news)
        if news:
            self._queue.tell(news)
            self.ready.set()

    # ── in place of the dispatcher ─────────────────────────────────────────────────────────────────────────────────

    @property
    def free(self) -> int:
        """How many more pods may be decided before the other scheduler has bound some."""
        return self._places - len(self._ahead)

    def __len__(self) -> int:
        """Number of orders whose outcome was not fetched."""
        return len(self._orders)

    def get(self, key: keys.VertexKey) -> bind.Order | None:
        """The pod's order, while its outcome was not fetched."""
        return self._orders.get(key)

    def submit(self, order: bind.Order) -> None:
        """Remember what was chosen."""
        key, now = order.pod.key, self._clock.monotonic()
        watched = self._of(order.pod) or self._watched.setdefault(key, _Watched(order.pod, now))
        self._number += 1
        watched.decided, watched.number, watched.node, watched.message = now, self._number, order.node, ""
        self._ahead[key] = watched
        self._orders[key] = order
        # Not before the turn that decided is over: it clears what wakes the next one when it has nothing more to do.
        asyncio.get_running_loop().call_soon(self.ready.set)

    def fetch(self) -> list[bind.Outcome]:
        """All orders have ended: there was nothing to do."""
        orders, self._orders = self._orders, {}
        return [bind.Outcome(order, bind.End.NOTED, order.node) for order in orders.values()]

    def abandon(self) -> list[bind.Order]:
        """Nothing is ever under way."""
        return []

    async def close(self, *, grace_s: float) -> Iterable[bind.Order]:  # noqa: ARG002
        """Nothing is ever under way."""
        return ()

    # ── in place of the conditions ─────────────────────────────────────────────────────────────────────────────────

    def say(self, pod: pods.Pod, *, reason: str, message: str) -> None:  # noqa: ARG002
        """No node was found: remember why."""
        watched = self._of(pod)
        if watched is not None:
            watched.decided = watched.decided if watched.message else self._clock.monotonic()
            watched.node, watched.number, watched.message = "", 0, message

    # ── comparing ──────────────────────────────────────────────────────────────────────────────────────────────────

    def waiting(self, now: float) -> shadow.Waiting:
        """Pods that wait now, by what that says."""
        counts: shadow.Waiting = dict.fromkeys((None, *shadow.WAITING), 0)
        for watched in self._watched.values():
            counts[self._standing(watched, now)] += 1
        return counts

    def _of(self, pod: pods.Pod) -> _Watched | None:
        watched = self._watched.get(pod.key)
        return watched if watched is not None and watched.pod.uid == pod.uid else None

    def _standing(self, watched: _Watched, now: float) -> shadow.Result | None:
        if watched.decided is None or now - watched.decided < self._settle_s:
            return None
        return shadow.Result.PENDING if watched.node else shadow.Result.UNSCHEDULABLE

    def _vanished(self, watched: _Watched, now: float) -> None:
        """The pod goes while it waits: what may be said of it is said."""
        key = watched.pod.key
        del self._watched[key]
        self._ahead.pop(key, None)
        standing = self._standing(watched, now)
        if standing is None:
            self.tally.not_compared("gone")
            return
        self.tally.add(self._finding(watched, standing, theirs="", message=watched.message))

    def _bound(self, watched: _Watched, pod: pods.Pod, node: str) -> None:
        key = pod.key
        del self._watched[key]
        self._ahead.pop(key, None)
        if not self._begun:
            return
        if watched.node == node:
            self.tally.add(self._finding(watched, shadow.Result.SAME, theirs=node))
            return
        own = [watched] if watched.node and not watched.left else []
        later = [each for each in self._ahead.values() if watched.number and each.number > watched.number]
        before = [each for each in self._ahead.values() if each not in later]
        found = self._weighed(pod, node, own + later)
        if found.result not in shadow.AGREED:
            if before:
                again = self._weighed(pod, node, own + later + before)
                found = min(found, again, key=lambda each: (shadow.ORDER.index(each.result), each.gap))
            # Those that came no later and were not even decided on here may be on their way as well.
            unknown = [each for each in self._watched.values() if each.decided is None and each.since <= watched.since]
            found = msgspec.structs.replace(found, in_flight=len(before) + len(unknown))
        self.tally.add(found)

    def _weighed(self, pod: pods.Pod, node: str, without: list[_Watched]) -> shadow.Finding:
        held = (self._promises.get(each.pod.key, each.pod.uid) for each in without)
        with self._promises.without([promise for promise in held if promise is not None]):
            weighing = self._decider.weigh(self._store.view(), pod, node)
        return shadow.finding(weighing, pod, node, number=self.tally.next_number, time=self._clock.wall())

    def _finding(self, watched: _Watched, result: shadow.Result, *, theirs: str, message: str = "") -> shadow.Finding:
        return shadow.Finding(
            number=self.tally.next_number,
            pod=watched.pod.full_name,
            time=self._clock.wall(),
            result=result,
            ours=watched.node,
            theirs=theirs,
            reasons=(message,) if message else (),
        )

    def _release(self, key: keys.VertexKey, watched: _Watched, news: tidings.News) -> None:
        del self._ahead[key]
        promise = self._promises.get(key, watched.pod.uid)
        if promise is not None:
            news.left(promise.pod, promise.node)
            self._promises.end((promise,))


class Refusals(strategies.NoConditions):
    """In place of the conditions: what would have been written is told to `heard`, and to nobody else."""

    def __init__(self, heard: typing.Callable[..., None]) -> None:
        self._heard = heard

    def say(self, pod: pods.Pod, *, reason: str, message: str) -> None:
        """The pod would be said to wait, for this reason."""
        self._heard(pod, reason=reason, message=message)
