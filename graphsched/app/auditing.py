"""The audit: now and then, and when asked, is what the scheduler believes what there is?

Own decisions are assumed without a time after which they lapse, and the graph lives by events alone. Both are right as
long as nothing goes wrong that nobody thought of: a database restored from a backup, an event that never came, a bug.
So the whole graph is compared with fresh lists (`comparing`), what is derived with a recount (`graph.audit`,
`checkups`), queue and promises with both (`bookkeeping`). Each difference is logged, counted and mended.

    periodically ┐
    SIGUSR2      ├──▶ derived → selectors → queue and promises → each resource → survey ──▶ Report ──▶ log, metric, dump
    API server   ┘
    back again

Comes in: time, and being asked. Goes out: corrections, the last `Report`, a dump where somebody asked for one.
Invariants: one audit at a time; it works in slices of a few milliseconds; what the watch may still tell is no
difference; after an audit that mended something another one follows soon.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence

from graphsched.app import bookkeeping, checkups, comparing, findings, intake, promises, resurvey
from graphsched.base.kernel import memory
from graphsched.base.kit import clock as clocks, tasks
from graphsched.base.values import errors, keys, pods
from graphsched.graph import audit, delta
from graphsched.sources import surveying

_log = logging.getLogger(__name__)

SIGNAL = "SIGUSR2"
AUDIT_S = 900.0
"""The longest an audit may take; one of 50,000 pods takes some ten seconds, most of them waiting."""
AGAIN_S = 60.0
"""After an audit that found something the next one comes as soon as this."""
BACK_S = (10.0, 60.0)
"""So long after the API server is back, at random: it may be another one, with an older database."""
WENT_BACK_S = (1.0, 5.0)
"""So long after it was seen to have gone back, at random: bindings may be undone."""
BACK_EVERY_S = 120.0
"""A flapping connection causes no more audits than one in so long."""
SETTLE_S = 150.0
"""How long a list may take that an audit asked for; lists in a row wait a minute for each other."""
NODES_A_SLICE = 10
PODS_A_SLICE = 200
MATCHERS_EACH = 32
"""Selectors recounted by lot in each audit, a few milliseconds each at most."""
LOGGED_MAX = 50
"""Lines about single differences in one audit."""
_NEVER = float("inf")
_PERIODIC = "periodic"
_NAP_S = 3600.0
_POLL_S = 0.25


class Auditor:
    """Audits one scheduler.

    Attributes:
        last: The last audit; None before the first.
        ended: When it ended, on the clock's monotonic time; when this was made before the first.
    """

    def __init__(
        self,
        parts: intake.Parts,
        absorber: intake.Intake,
        sources: Sequence[comparing.Source],
        comparer: comparing.Comparer,
        checkup: checkups.Checkup,
        surveyor: surveying.Surveyor,
        *,
        started: Callable[[], bool],
        dump: Callable[[findings.Report], Awaitable[None]],
        every_s: float,
        clock: clocks.Clock,
        rng: random.Random,
    ) -> None:
        """Prepare.

        Args:
            parts: What the loop works with.
            absorber: Takes corrections in.
            sources: The reflectors.
            comparer: Compares with fresh lists.
            checkup: Audits selectors by lot.
            surveyor: Knows what is described of the network.
            started: Whether the first lists are in the graph.
            dump: Writes down what a report and the queue hold; never fails.
            every_s: Time between audits, on average; 0 for none but those that something gives cause for.
            clock: The loop's.
            rng: For jitter.
        """
        self._parts = parts
        self._intake = absorber
        self._sources = sources
        self._comparer = comparer
        self._checkup = checkup
        self._surveyor = surveyor
        self._books = bookkeeping.Books(parts)
        self._started = started
        self._dump = dump
        self._every_s = every_s
        self._clock = clock
        self._rng = rng
        self._wake = asyncio.Event()
        self._asked = False
        self._due = _NEVER
        self._reason = _PERIODIC
        self._back_at = -_NEVER
        self.last: findings.Report | None = None
        self.ended = clock.monotonic()

    # ── when ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def ask(self) -> None:
        """Audit at once, and dump what there is."""
        self._asked = True
        self._wake.set()

    def doubt(self, reason: str) -> None:
        """The API server was away, or `went back`; see `progress.Progress`."""
        now = self._clock.monotonic()
        if reason == "went back":
            within_s = WENT_BACK_S
        elif now - self._back_at >= BACK_EVERY_S:
            within_s = BACK_S
        else:
            return
        self._back_at = now
        self._hasten(now + self._rng.uniform(*within_s), f"the API server {reason}")

    async def run(self) -> None:
        """Audit whenever it is time, until cancelled."""
        self._hasten(self._in(self._every_s), _PERIODIC)
        while True:
            wait_s = self._due - self._clock.monotonic()
            if not self._asked and wait_s > 0:
                await tasks.pause(min(wait_s, _NAP_S), until=self._wake)
                self._wake.clear()
                continue
            dumped, self._asked = self._asked, False
            reason = SIGNAL if dumped else self._reason
            # What gives cause for an audit from here on comes too late for this one.
            self._due, self._reason = self._in(self._every_s), _PERIODIC
            if self._started():
                report = await self.once(reason)
                if report.total:
                    self._hasten(self._in(min(self._every_s or AGAIN_S, AGAIN_S)), _PERIODIC)
            else:
                report = findings.Report(reason=reason, began=self._clock.wall(), result=findings.Result.FAILED)
                report.problem = "the first lists are not in the graph yet"
                _log.info("audit (%s): %s", reason, report.summary)
            if dumped:
                await self._dump(report)

    def _in(self, after_s: float) -> float:
        """When it is so much later, give or take a tenth; never for 0."""
        return self._clock.monotonic() + after_s * self._rng.uniform(0.9, 1.1) if after_s else _NEVER

    def _hasten(self, due: float, reason: str) -> None:
        """Have the next audit at this time, unless it is due before."""
        if due < self._due:
            self._due, self._reason = due, reason
            self._wake.set()

    # ── what ───────────────────────────────────────────────────────────────────────────────────────────────────────

    async def once(self, reason: str) -> findings.Report:
        """Make one audit and mend what it finds; a failure of the API server is part of the report."""
        began = self._clock.monotonic()
        report = findings.Report(reason=reason, began=self._clock.wall())
        self._comparer.objects = 0
        try:
            async with asyncio.timeout(AUDIT_S):
                await self._derived(report)
                await self._selectors(report)
                async for found in self._books.inspect(self._clock.monotonic):
                    self._tell(report, found)
                for source in self._sources:
                    await self._resource(source, report)
                await self._described(report)
        except TimeoutError:
            report.problem = f"it takes longer than {AUDIT_S:.0f} s"
        # It reads the whole cluster, and what it took is scattered over the heap: 1.4 of 29 MB stayed (measured).
        memory.give_back()
        self.ended = self._clock.monotonic()
        report.seconds, report.generation = self.ended - began, self._parts.store.generation
        report.objects = self._comparer.objects
        if report.problem:
            report.result = findings.Result.FAILED
        elif report.total:
            report.result = findings.Result.MENDED
        self._conclude(report)
        return report

    def _conclude(self, report: findings.Report) -> None:
        self.last = report
        self._parts.meters.audits.ended(report.result.value)
        if report.total > LOGGED_MAX:
            _log.error("audit: %d more differences were mended", report.total - LOGGED_MAX)
        text = "audit (%s): %d objects compared in %.1f s: %s"
        _log.info(text, report.reason, report.objects, report.seconds, report.summary)
        if report.total:
            # Whoever was put into the queue is to be looked at now.
            self._parts.inbox.ready.set()

    def _tell(self, report: findings.Report, found: findings.Difference) -> None:
        report.add(found)
        self._parts.meters.audits.found(found.kind.value)
        if report.total <= LOGGED_MAX:
            _log.error("audit: %s %s (%s): mended", found.key, found.detail, found.kind)

    # ── what is derived ────────────────────────────────────────────────────────────────────────────────────────────

    async def _derived(self, report: findings.Report) -> None:
        store = self._parts.store
        names = [keys.name_of(key) for key in store.vertex_keys(f"{keys.Kind.NODE.value}/")]
        for start in range(0, len(names), NODES_A_SLICE):
            for one in audit.of_nodes(store, names[start : start + NODES_A_SLICE]):
                self._rederive(one, report)
            await asyncio.sleep(comparing.PAUSE_S)
        pod_keys = store.vertex_keys(f"{keys.Kind.POD.value}/")
        for start in range(0, len(pod_keys), PODS_A_SLICE):
            for one in audit.of_pods(store, pod_keys[start : start + PODS_A_SLICE]):
                self._rederive(one, report)
            await asyncio.sleep(comparing.PAUSE_S)

    def _rederive(self, found: audit.Derived, report: findings.Report) -> None:
        audit.rederive(self._parts.store, found.key)
        self._tell(report, findings.Difference(findings.Kind.DERIVED, found.key, found.detail))

    async def _selectors(self, report: findings.Report) -> None:
        for _ in range(MATCHERS_EACH):
            for sentence in self._checkup.examine():
                report.add(findings.Difference(findings.Kind.TERMS, "selectors", sentence))
            await asyncio.sleep(comparing.PAUSE_S)

    # ── what the cluster has ───────────────────────────────────────────────────────────────────────────────────────

    async def _resource(self, source: comparing.Source, report: findings.Report) -> None:
        """Compare one resource and mend it. One that can not be listed does not keep the others from being compared."""
        state = source.progress.state
        if source.resource.custom and (state.absent or state.waived):
            # There is nothing to compare with, and nothing of it in the graph.
            return
        watcher = _Watcher(self._parts, {}, {})
        if source.resource.prefix == f"{keys.Kind.POD.value}/":
            watcher = _Watcher(self._parts, self._books.quiet(), await self._books.stray())
        try:
            wrong = await self._comparer.compare(source, each=watcher.saw)
            if watcher.waiting:
                await self._waiting(source, watcher, report)
        except comparing.WentBackError as error:
            self._tell(report, findings.Difference(findings.Kind.HISTORY, source.resource.name, str(error)))
            self.doubt("went back")
            await self._list_again(source, str(error), report)
            return
        except errors.ClusterError as error:
            report.problem = report.problem or f"{source.resource.name}: {error}"
            return
        ghosts, ghostly = delta.Patch(), 0
        for found, _ in wrong:
            self._tell(report, found)
            key = keys.VertexKey(found.key)
            if found.kind is not findings.Kind.EXTRA or source.known(key) is not None:
                continue
            if source.resource.described:
                self._surveyor.forget(key)
            else:
                ghosts.remove(key)
            ghostly += 1
        if len(ghosts):
            # No event will ever tell of these, so that none can contradict.
            self._intake.correct(ghosts, self._clock.monotonic())
        if len(wrong) > ghostly:
            # Through its own stream, in order with all that the watch sends: nothing older can come after it.
            await self._list_again(source, f"the audit found {len(wrong)} differences", report)

    async def _described(self, report: findings.Report) -> None:
        """Whether the graph holds what all descriptions together come to."""
        wrong = []
        for found, row in await resurvey.differences(self._parts.store, self._parts.inbox, self._surveyor):
            self._tell(report, found)
            wrong.append(row)
        if wrong:
            self._intake.correct(resurvey.mend(self._surveyor, wrong), self._clock.monotonic())

    async def _waiting(self, source: comparing.Source, watcher: _Watcher, report: findings.Report) -> None:
        """Act on pods that the cluster shows waiting, and of which nobody here thinks so."""
        sights = await self._comparer.look(source, watcher.waiting)
        now = self._clock.monotonic()
        for key, uid in watcher.waiting.items():
            if key not in sights or not watcher.waits(sights[key].vertex, uid):
                continue
            promise = watcher.quiet.get(key)
            found = self._books.lost(key, uid, now) if promise is None else self._books.undone(promise, now)
            if found is not None:
                self._tell(report, found)

    async def _list_again(self, source: comparing.Source, reason: str, report: findings.Report) -> None:
        """Have a resource listed and sent anew, and wait until the graph holds it."""
        source.resync(reason)
        end = self._clock.monotonic() + SETTLE_S
        while not (source.settled and comparing.in_step(self._parts.store, source)):
            if self._clock.monotonic() >= end:
                report.problem = report.problem or f"{source.resource.name}: not listed anew within {SETTLE_S:.0f} s"
                return
            await asyncio.sleep(_POLL_S)


class _Watcher:
    """Notes which pods of a list wait, of those that nobody here thinks do."""

    def __init__(
        self, parts: intake.Parts, quiet: dict[keys.VertexKey, promises.Promise], stray: dict[keys.VertexKey, str]
    ) -> None:
        self.quiet = quiet
        self.waiting: dict[keys.VertexKey, str] = {}
        self._parts = parts
        self._uids = {**{key: promise.pod.uid for key, promise in quiet.items()}, **stray}

    def saw(self, vertex: delta.Vertex) -> None:
        """The list shows this object."""
        uid = self._uids.get(vertex.key)
        if uid is not None and self.waits(vertex, uid):
            self.waiting[vertex.key] = uid

    def waits(self, vertex: comparing.Held | None, uid: str) -> bool:
        """Whether this is the pod of this UID, and one to decide on."""
        return isinstance(vertex, pods.Pod) and vertex.uid == uid and intake.waits(self._parts, vertex)
