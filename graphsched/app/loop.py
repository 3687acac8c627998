"""The live loop: see what changed, decide, have it carried out, and again.

Comes in: the inbox, filled by the watches, and the outcomes of bindings. Goes out: promises in the graph, orders to the
dispatcher, and words for pods that found no node. One turn is synchronous and bounded, so that no await lies between
the graph a decision reads and the promise it makes; between turns everything else gets its share of the loop.

    absorb patches → settle outcomes → wake who may be helped → decide for some milliseconds → (yield) → absorb …

A replica that does not lead does all of it but deciding, so that it may begin at once when it has to.

Invariants: nothing is decided before every watch has delivered its first list and it is in the graph; no more orders
are out than the dispatcher has places, so a server that does not answer stops decisions instead of piling them up; a
pod whose binding is out is not decided again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import msgspec

from graphsched.action import bind, conditions
from graphsched.app import hints, intake, parking, races, readiness, rechecks, rooms, tidings
from graphsched.base.kit import clock as clocks, tasks
from graphsched.base.values import keys, status
from graphsched.decision import context as contexts, cycle, names, trace
from graphsched.decision.policy import words
from graphsched.explain import history, refusals
from graphsched.observe import metrics as meters

_log = logging.getLogger(__name__)

DECIDE_S = 0.010
"""A turn decides for so long at most: others wait for the loop meanwhile."""
DECISIONS_A_TURN = 256
DECISION_S = 0.005
"""Work on the graph that one decision asks for, such as finding routes, is cut off after so long."""
IDLE_S_MAX = 10.0
"""The loop turns at least so often, so that a stuck one can be told from an idle one."""
FRESH_ROWS = 250
"""Just before a binding so many changes at most are taken in at once: as many as one patch has."""
STARTING_S = 0.05
"""How often it looks whether the lists are complete: an empty one arrives without a patch."""


class Loop:
    """Decides, turn by turn.

    Attributes:
        started: Whether decisions are being made.
        turned: When the last turn ended.
        decisions: Made so far.
        intake: Takes in what the watches say.
    """

    def __init__(
        self,
        parts: intake.Parts,
        decider: cycle.Decider,
        past: history.History,
        *,
        clock: clocks.Clock,
        synced: Callable[[], bool],
        leading: Callable[[], bool] = lambda: True,
        on_start: Callable[[], None] = lambda: None,
        arrange: Callable[[float], None] = lambda _: None,
        at_rest: Callable[[float], None] = lambda _: None,
    ) -> None:
        """Prepare.

        Args:
            parts: What it works with.
            decider: Decides.
            past: Where decisions are kept for those who ask.
            clock: Its time is the queue's.
            synced: Whether every watch has delivered its first list.
            leading: Whether this replica may decide; others follow the cluster, keep their queue, and wait.
            on_start: Called once, when the first lists are in the graph.
            arrange: Called with the time before decisions are made, to put the queue in order.
            at_rest: Called with the time at the end of each turn that leaves nothing to do at once.
        """
        self._parts = parts
        self._decider = decider
        self._past = past
        self._clock = clock
        self._synced = synced
        self._leading = leading
        self._leads = False
        self._stood_down = False
        self._on_start = on_start
        self._arrange = arrange
        self._at_rest = at_rest
        self.intake = intake.Intake(parts)
        self._room = rooms.Rooms(parts.store, decider.settings)
        self._tries: dict[keys.VertexKey, rechecks.Try] = {}
        self._stopping = False
        self._decision_due = float("inf")
        self._readiness = readiness.Readiness(parts.store, parts.backlog, decider, clock=clock)
        self.started = False
        self.turned = clock.monotonic()
        self.decisions = 0

    # ── turns ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def run(self) -> None:
        """Turn until told to stop, and after that until no order is out any more."""
        wake = self._parts.inbox.ready
        while not self._over():
            if self.turn():
                await asyncio.sleep(0)
            elif not self._over():
                # No await lies between the last look at inbox and outcomes and this. Nobody wakes a loop that is over.
                wake.clear()
                await tasks.pause(self._idle_s(), until=wake)

    def _over(self) -> bool:
        return self._stopping and not len(self._parts.dispatcher)

    def _idle_s(self) -> float:
        if not self.started:
            return STARTING_S
        if self._stopping:
            # Nobody is taken out of the queue any more, however long due: only an outcome is waited for.
            return IDLE_S_MAX
        due = self._parts.backlog.next_due()
        return IDLE_S_MAX if due is None else min(IDLE_S_MAX, max(0.0, due - self._clock.monotonic()))

    def stop(self) -> None:
        """Make no more decisions."""
        self._stopping = True
        self._parts.inbox.ready.set()

    async def abandon(self) -> int:
        """Cut short the orders that are out; returns how many of them have an unknown end."""
        unknown = list(await self._parts.dispatcher.close(grace_s=0.0))
        self.settle(self._clock.monotonic())
        for order in unknown:
            _log.warning("whether %s was bound to %s is not known", order.pod.full_name, order.node)
        return len(unknown)

    def turn(self) -> bool:
        """One round of everything; returns whether there is more to do at once."""
        now = self._clock.monotonic()
        backlog = self._parts.backlog
        self.intake.absorb(now)
        self.settle(now)
        self._stand(now)
        self._parts.rejections.settle(now)
        if not self.started and self._synced() and not len(self._parts.inbox):
            self.started = True
            self._on_start()
        more = False
        if self.started and not self._stopping:
            backlog.tick(now)
            more = backlog.ask(now, self._room)
            more = (self._leads and self.decide()) or more
        if self.started:
            self._parts.fullness.look(now, leads=self._leads)
        for (queue, event), count in backlog.moves.items():
            self._parts.meters.queue_incoming(queue, event.value, count)
        backlog.moves.clear()
        more = more or bool(len(self._parts.inbox))
        if self.started and not more:
            self._at_rest(now)
        self.turned = self._clock.monotonic()
        return more

    def _stand(self, now: float) -> None:
        """See whether this replica leads; one that does no more gives up what it has not finished."""
        leads = self._leading()
        if self._leads and not leads:
            self._stand_down(now)
        # What was written before the term began must be in the graph before the first decision.
        began = leads and not self._leads and not len(self._parts.inbox)
        self._leads = leads and (self._leads or began)
        if began and self._stood_down:
            # What was to be said of them when the last term ended was not, and others may have said something else.
            self._parts.backlog.reconsider(now)

    def _stand_down(self, now: float) -> None:
        """Drop what is assumed and what waits to be written: from now on somebody else decides.

        Whether the orders that are out still take effect is not known, and need not be: before this replica decides
        again it reads every pod. What the API server has confirmed is no assumption, and ends when the watch shows it.
        """
        self._stood_down = True
        parts, news = self._parts, tidings.News()
        orders = parts.dispatcher.abandon()
        for order in orders:
            tried = self._tries.pop(order.pod.key)
            parts.promises.end((tried.promise,))
            news.left(order.pod, order.node)
            parts.meters.bind("abandoned", now - order.asked)
            parts.backlog.failed(tried.entry, now)
        parts.backlog.tell(news)
        parts.conditions.clear()
        parts.events.clear()
        _log.info("standing by: %d bindings were given up", len(orders))

    # ── deciding ───────────────────────────────────────────────────────────────────────────────────────────────────

    def decide(self) -> bool:
        """Decide for a while; returns whether there is more to decide and a place to send it."""
        backlog, dispatcher = self._parts.backlog, self._parts.dispatcher
        self._readiness.work(self._clock.monotonic())
        begun = self._clock.monotonic()
        self._arrange(begun)
        end, learned = begun + DECIDE_S, self._parts.rejections.context(begun)
        context = msgspec.structs.replace(learned, now=self._clock.wall(), expired=self._decision_expired)
        for _ in range(DECISIONS_A_TURN):
            entry = backlog.pop() if dispatcher.free > 0 else None
            if entry is None:
                break
            answer = self._readiness.ask(entry)
            if answer is not readiness.Answer.NOT_YET:
                self._decide(entry, context, hasty=answer is readiness.Answer.HASTY)
            if self._clock.monotonic() >= end:
                break
        return self._readiness.waiting or (backlog.ready and dispatcher.free > 0)

    def _decide(self, entry: parking.Entry, context: contexts.Context, *, hasty: bool) -> None:
        began = self._clock.monotonic()
        if self._parts.dispatcher.get(entry.pod.key) is not None:
            # An order for a deleted pod of the same name is still out.
            self._parts.backlog.failed(entry, began)
            return
        self._decision_due = began + DECISION_S
        decision = self._decider.decide(self._parts.store.view(), entry.pod, context)
        now = self._clock.monotonic()
        self.decisions += 1
        self._parts.meters.decision(now - began)
        message = ""
        if decision.diagnosis is None:
            self._place(entry, decision, began, hasty=hasty)
        else:
            message = self._turn_away(entry, decision.diagnosis, began, hasty=hasty)
        self._past.add(decision, time=self._clock.wall(), seconds=now - began, message=message, attempt=entry.attempts)

    def _decision_expired(self) -> bool:
        return self._clock.monotonic() >= self._decision_due

    def _place(self, entry: parking.Entry, decision: trace.Decision, began: float, *, hasty: bool) -> None:
        parts, pod = self._parts, entry.pod
        parts.promises.make(pod, decision.node, decision.devices)
        promise = parts.promises.get(pod.key, pod.uid)
        assert promise is not None  # noqa: S101  just made
        self._tries[pod.key] = rechecks.Try(entry, began, decision, promise, parts.store.generation, hasty)
        parts.races.decided(decision)
        parts.backlog.placed(entry, began)
        if pod.nominated not in {"", decision.node}:
            # The room that was kept for it is for others now; the watch, later on, shows no more than the promise kept.
            news = tidings.News()
            news.left(pod, pod.nominated)
            parts.backlog.tell(news)
        after = parts.conditions.hold(pod.key)
        parts.dispatcher.submit(bind.Order(pod, decision.node, asked=began, after=after, look=self._look_again))

    def _look_again(self, order: bind.Order, *, pinned: bool) -> bool:
        """Whether to make the call that is about to go out, to the node that the order then names."""
        parts, key = self._parts, order.pod.key
        if 0 < parts.inbox.rows <= FRESH_ROWS:
            self.intake.absorb(self._clock.monotonic())
            parts.inbox.ready.set()
        if order.seen is not None:
            return True
        tried = self._tries[key]
        self._decision_due = self._clock.monotonic() + DECISION_S
        found = parts.last_look(tried, pinned=pinned, expired=self._decision_expired)
        if found.tried is not None:
            self._tries[key] = found.tried
        if found.moved.ok:
            return True
        then = "" if found.tried is None else found.tried.promise.node
        parts.races.moved(order.pod, order.node, found.moved, then)
        if not then:
            return False
        news = tidings.News()
        news.left(order.pod, order.node)
        parts.backlog.tell(news)
        order.node = then
        parts.inbox.ready.set()
        return True

    def _turn_away(self, entry: parking.Entry, diagnosis: trace.Diagnosis, began: float, *, hasty: bool) -> str:
        parts, message = self._parts, refusals.text(diagnosis)
        plugins = diagnosis.plugins or ((hints.NO_NODES,) if not diagnosis.nodes else ())
        broken = diagnosis.prefilter is not None and diagnosis.prefilter.code is status.Code.ERROR
        if broken or not plugins:
            self._fail(entry, message, began)
            return message
        pending = diagnosis.prefilter is not None and diagnosis.prefilter.code is status.Code.PENDING
        if hasty and names.GRAPH_PATH in plugins:
            # Perhaps since ways were not known, and nothing will tell when they are.
            parts.backlog.failed(entry, began)
        else:
            parts.backlog.refused(entry, plugins, began, pending=pending, room=self._room)
        parts.conditions.say(entry.pod, reason=conditions.UNSCHEDULABLE, message=message)
        parts.events.failed(entry.pod, message)
        parts.meters.attempt(meters.Result.UNSCHEDULABLE, self._clock.monotonic() - began)
        if names.GRAPH_POLICY in plugins:
            told = filter(None, (words.told(reason) for reason, _ in diagnosis.reasons))
            for policy in sorted({each.policy for each in told}):
                parts.meters.policies.refused(policy)
        return message

    def _fail(
        self, entry: parking.Entry, message: str, began: float, *, refused: bool = False, at_least_s: float = 0.0
    ) -> None:
        parts = self._parts
        parts.backlog.failed(entry, self._clock.monotonic(), refused=refused, at_least_s=at_least_s)
        parts.conditions.say(entry.pod, reason=conditions.SCHEDULER_ERROR, message=message)
        parts.events.failed(entry.pod, message)
        parts.meters.attempt(meters.Result.ERROR, self._clock.monotonic() - began)

    # ── outcomes ───────────────────────────────────────────────────────────────────────────────────────────────────

    def settle(self, now: float) -> None:
        """Act on the outcomes that have become known."""
        news = tidings.News()
        for outcome in self._parts.dispatcher.fetch():
            order = outcome.order
            tried = self._tries.pop(order.pod.key)
            self._parts.meters.bind(outcome.end.value, now - order.asked)
            if outcome.end in bind.PLACED:
                self._done(tried, outcome, now)
                continue
            # First of all its room is free again, whatever else is to be said.
            self._parts.promises.end((tried.promise,))
            news.left(order.pod, order.node)
            self._not_bound(tried, outcome, now)
        self._parts.backlog.tell(news)

    def _done(self, tried: rechecks.Try, outcome: bind.Outcome, now: float) -> None:
        parts, entry = self._parts, tried.entry
        self._dismiss(entry, now)
        parts.strategy.placed(outcome, now)
        parts.meters.attempt(meters.Result.SCHEDULED, now - tried.began)
        parts.meters.scheduled(attempts=entry.attempts, waited_s=now - entry.added)

    def _not_bound(self, tried: rechecks.Try, outcome: bind.Outcome, now: float) -> None:
        parts, entry, end = self._parts, tried.entry, outcome.end
        if end is bind.End.MOVED:
            parts.meters.attempt(meters.Result.ERROR, now - tried.began)
            parts.backlog.lost(entry, now)
            return
        if end is bind.End.GONE or (end is bind.End.CONFLICT and outcome.node):
            # The watch will say, or has said, the same: there is nothing left to do for this pod.
            if end is bind.End.CONFLICT:
                parts.races.beaten(entry.pod, outcome.order.node, races.Kind.BOUND, outcome.detail)
                _log.info("%s: %s", entry.pod.full_name, outcome.detail)
            parts.meters.attempt(meters.Result.ERROR, now - tried.began)
            self._dismiss(entry, now)
            return
        if end is bind.End.CONFLICT:
            parts.races.beaten(entry.pod, outcome.order.node, races.Kind.CHANGED, outcome.detail)
            parts.meters.attempt(meters.Result.ERROR, now - tried.began)
            parts.backlog.failed(entry, now)
            return
        _log.warning("%s was not bound to %s: %s", entry.pod.full_name, outcome.order.node, outcome.detail)
        if parts.backlog.get(entry.pod.key) is entry:
            refused = end is bind.End.REFUSED
            message = f"binding rejected: {outcome.detail}"
            self._fail(entry, message, tried.began, refused=refused, at_least_s=outcome.retry_after_s)

    def _dismiss(self, entry: parking.Entry, now: float) -> None:
        if self._parts.backlog.get(entry.pod.key) is entry:
            self._parts.backlog.remove(entry.pod.key, now)
            self._parts.conditions.forget(entry.pod.key)
