"""What the HTTP server shows of a running scheduler: health, numbers, past decisions, explanations, the graph.

Comes in: the parts that `wiring` made. Goes out: probes, refreshers and callbacks for `observe`, which knows none of
those parts. Everything here reads and nothing steers; all but the encoding of the graph runs on the loop, when somebody
asks, searches for ways piece by piece.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec

from graphsched.app import auditing, dumping, intake, leadership, loop as loops, ordering, parking, policing
from graphsched.base.kit import clock as clocks
from graphsched.base.values import keys, pods
from graphsched.decision import cycle
from graphsched.explain import why
from graphsched.graph import codec, delta
from graphsched.observe import feeds, health
from graphsched.sources import progress

STUCK_S = 60.0
"""A loop that has not turned for so long is helped by a restart only; no turn takes a thousandth of it."""
SEARCHED_S = 2.0
"""An explanation waits so long at most for ways to be found; those that are not by then are unknown to it."""
PIECE_S = 0.005
"""One piece of that."""


class Sights:
    """Answers for one running scheduler."""

    def __init__(
        self,
        parts: intake.Parts,
        loop: loops.Loop,
        decider: cycle.Decider,
        sources: Sequence[progress.Progress],
        auditor: auditing.Auditor,
        *,
        clock: clocks.Clock,
        elector: leadership.Elector | None = None,
        policies: policing.Policing | None = None,
        order: Sequence[ordering.Ordering] = (),
    ) -> None:
        self._parts = parts
        self._loop = loop
        self._decider = decider
        self._sources = sources
        self._auditor = auditor
        self._clock = clock
        self._elector = elector
        self._policies = policies
        self._order = order
        self.stopping = False
        """Set when the program is told to end: it is not ready any more."""

    def health(self) -> health.Health:
        """All checks."""
        return health.Health(
            [
                *_election(self._elector),
                health.Check("loop", self._turning, live=True),
                health.Check("shutdown", lambda: "the program is ending" if self.stopping else ""),
                health.Check("audit", lambda: "", note=self._audited),
                *(health.Check(f"watch/{source.state.source}", _Following(source)) for source in self._sources),
                *([] if self._policies is None else [health.Check("policies", self._policies.trouble)]),
            ]
        )

    def standby(self) -> str:
        """Who is to be asked instead; empty when this replica decides."""
        return "" if self._elector is None or self._elector.leading else self._elector.stance

    def refresh(self) -> None:
        """Bring the metrics up to date that are only read when somebody asks."""
        parts, meters, counts = self._parts, self._parts.meters, self._parts.backlog.counts()
        meters.set_pending(
            {
                "active": counts[parking.Pool.ACTIVE] + counts[parking.Pool.ASIDE],
                "backoff": counts[parking.Pool.BACKOFF] + counts[parking.Pool.ERRORS],
                "unschedulable": counts[parking.Pool.UNSCHEDULABLE],
                "gated": counts[parking.Pool.GATED],
            }
        )
        meters.set_unschedulable(parts.backlog.refusals())
        vertices, assumed = self._loop.intake.counts, len(parts.promises)
        meters.set_cache(nodes=vertices["node"], pods=vertices["pod"], assumed=assumed)
        links = parts.store.links
        edges = {
            keys.EdgeKind.RUNS.value: assumed,
            keys.EdgeKind.LINK.value: links.total,
            keys.EdgeKind.CONTAINS.value: parts.store.topology.containments,
        }
        meters.set_graph(generation=parts.store.generation, vertices=dict(vertices), edges=edges)
        cut_off = links.cut_off(parts.store.routes.sick_below)
        meters.layers.set_links(total=links.total, unwell=links.unwell.values(), cut_off=cut_off)
        meters.layers.ways_cut.follow(parts.store.routes.statistics.cuts)
        meters.layers.set_above(parts.fullness.above)
        classes = self._decider.classes
        meters.set_classes(len(classes))
        meters.class_hits.follow(classes.statistics.hits)
        meters.class_rebuilds.follow(classes.statistics.builds)
        meters.class_dirty_rows.follow(classes.statistics.rows)
        meters.class_evictions.follow(classes.statistics.evictions)
        meters.predicate_calls.follow(classes.statistics.predicate_calls)
        meters.inbox_waits.follow(parts.inbox.waits)
        meters.set_inflight(len(parts.dispatcher))
        meters.set_inbox(parts.inbox.rows)
        meters.audits.set_age(self._clock.monotonic() - self._auditor.ended)
        for source in self._sources:
            state = source.state
            meters.watches.set_event_age(state.source, 0.0 if state.absent else state.silent_s)

    async def explain(self, pod: str) -> object | None:
        """Why the pod `namespace/name` is where it is, or waits; None when there is no such pod."""
        end = self._clock.monotonic() + SEARCHED_S
        while (found := self._subject(keys.VertexKey(f"pod/{pod}"))) is not None:
            piece = self._until(self._clock.monotonic() + PIECE_S)
            if self._decider.prepare(self._parts.store.view(), found, piece) or self._clock.monotonic() >= end:
                break
            await asyncio.sleep(0)
        if found is None:
            return None
        strategy, learned = self._parts.strategy, self._parts.rejections
        now = self._clock.monotonic()
        context = msgspec.structs.replace(
            learned.context(now), now=self._clock.wall(), expired=self._until(now + PIECE_S)
        )
        return why.explain(
            self._parts.store.view(),
            found,
            self._decider,
            waiting=self._waiting(found.key),
            advised=strategy.told(found),
            context=context,
            rejections=learned.told(now),
        )

    def _subject(self, key: keys.VertexKey) -> pods.Pod | None:
        """The pod as it would be decided on."""
        found, strategy = self._parts.store.pod(key), self._parts.strategy
        return strategy.subject(found) if found is not None and not found.node and strategy.ours(found) else found

    def _until(self, due: float) -> Callable[[], bool]:
        return lambda: self._clock.monotonic() >= due

    async def graph(self) -> feeds.Graph:
        """The whole graph with the promises in it, encoded.

        Only copying the tables is done on the loop; encoding goes on beside it, on values that never change.
        `python -m benchmarks.codec` measures how long the loop has to wait meanwhile.
        """
        store = self._parts.store
        generation = store.generation
        vertices, edges = store.content()
        patch = delta.Patch(vertices=vertices, edges=edges)
        data = await asyncio.to_thread(codec.encode, patch, base_generation=generation)
        return feeds.Graph(generation, data)

    def _waiting(self, key: keys.VertexKey) -> why.Waiting | None:
        entry = self._parts.backlog.get(key)
        if entry is None:
            return None
        now = self._clock.monotonic()
        penalised = entry.pool in {parking.Pool.BACKOFF, parking.Pool.ERRORS}
        return why.Waiting(
            seconds=now - entry.added,
            attempts=entry.attempts,
            next_try_s=max(0.0, entry.end - now) if penalised else None,
            order=next((each.told(key) for each in self._order), None),
            aside_s=None if entry.aside is None else now - entry.aside,
        )

    def queue(self) -> object:
        """Who waits, and for what."""
        return dumping.queue(self._parts, self._clock.monotonic())

    def _audited(self) -> str:
        last = self._auditor.last
        if last is None:
            return "none yet"
        return f"{self._clock.monotonic() - self._auditor.ended:.0f} s ago, {last.summary}"

    def _turning(self) -> str:
        idle_s = self._clock.monotonic() - self._loop.turned
        return f"the loop has not turned for {idle_s:.0f} s" if idle_s > STUCK_S else ""


def _election(elector: leadership.Elector | None) -> list[health.Check]:
    """A leader that does not notice the end of its term is stuck; one that can not have the lease is only unready."""
    if elector is None:
        return []
    return [
        health.Check("leader-election", elector.overdue, live=True, note=lambda: elector.stance),
        health.Check("lease", elector.hindrance),
    ]


class _Following:
    """Whether one watch may be relied on."""

    def __init__(self, source: progress.Progress) -> None:
        self._source = source

    def __call__(self) -> str:
        """Empty when it may."""
        state = self._source.state
        if not state.synced:
            return f"not listed yet{f': {state.failing}' if state.failing else ''}"
        if state.waived or state.absent:
            return ""
        if state.silent_s > state.silent_max_s:
            return f"silent for {state.silent_s:.0f} s{f': {state.failing}' if state.failing else ''}"
        return ""
