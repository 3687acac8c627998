"""Which of several replicas decides: one Lease, a term on the monotonic clock, and what must be seen before deciding.

Comes in: the lease as the API server has it. Goes out: `left_s`, for how long this replica may still write (the fence
asks before every write), and `leading`, which the loop asks every turn. A replica that does not lead follows the
cluster and waits; one that loses the lease goes on as such a standby and may lead again.

The rules are those of client-go, kept by clocks that nobody has to set right:

- A term begins when the request that took or renewed the lease was *sent* and ends `renewSeconds` later, whatever
  happened to this process or this machine meanwhile; it needs no code to run in order to end.
- Others leave the lease alone until it has not changed for the duration named in it, counted by their own monotonic
  clock from when they *saw* it change. Since that is after it was sent and the duration is longer than `renewSeconds`,
  two terms never overlap; how much longer is the margin for clocks that run unequally fast and for calls that are late.
- Every write follows one resourceVersion, so of two that want the lease one gets it. An answer that was lost counts as
  a refusal until the lease shows otherwise.
- A lease is ours if it holds what this process wrote, not if it names our identity: two replicas that were given the
  same one do not both lead.

Not covered: a lease deleted by hand while it is held, together with a replica that starts just then and has not seen
it; and a virtual machine that is stopped by its host with all its clocks, for which the fence is too late and the
preconditions of the calls must do (see `action.fence`).
"""

from __future__ import annotations

import asyncio
import collections
import logging
import random
import typing
from collections.abc import Callable, Sequence

from graphsched.app import election
from graphsched.base.kit import clock as clocks
from graphsched.base.kube import leases
from graphsched.base.values import errors

_log = logging.getLogger(__name__)

SENT_MAX = 32
"""Attempts to write whose answer was lost and that are still told from those of others."""
LATE_S = 20.0
"""So long after its lease has run out a leader that does not know is stuck; as Kubernetes' own components have it."""
RELEASED_S = 1
"""The duration of a lease that was given up: others take it at once."""


class Observer(typing.Protocol):
    """Who counts."""

    def stands(self, name: str) -> None:
        """This replica takes part in the election for the lease of this name, and does not lead."""
        ...

    def leads(self, name: str, *, now: bool) -> None:
        """This replica begins or ceases to lead."""
        ...

    def failed(self) -> None:
        """An attempt to read, take or renew the lease ended by an error."""
        ...


class Elector:
    """Takes part in the election. `run` is an eternal task.

    Attributes:
        identity: This replica, as the lease names it.
        term: Number of the present or last term of this process; 0 before the first.
        tried: Set once the first attempt is over, however it ended.
    """

    def __init__(
        self,
        registry: leases.Registry,
        options: election.LeaderElectionSettings,
        *,
        name: str,
        identity: str,
        clock: clocks.Clock,
        rng: random.Random,
        observer: Observer,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        """Prepare; nothing is read before `run`.

        Args:
            registry: Keeps the lease.
            options: The times.
            name: The lease's, for the log.
            identity: Must differ from that of every other replica.
            clock: Its monotonic time must go on while the process is stopped.
            rng: For the jitter of a standby's pauses.
            observer: Hears of changes and failures.
            on_change: Called when a term begins or ends.
        """
        self.identity = identity
        self.term = 0
        self.tried = asyncio.Event()
        self._registry = registry
        self._options = options
        self._name = name
        self._clock = clock
        self._rng = rng
        self._observer = observer
        self._on_change = on_change
        self._until = float("-inf")
        self._leads = False
        """What was told; the truth is `left_s`."""
        self._renewed_at = float("-inf")
        self._lease: leases.Lease | None = None
        """As last read or written; None where there was none."""
        self._seen: leases.Spec | None = None
        self._seen_at = float("-inf")
        self._sent: collections.deque[leases.Spec] = collections.deque(maxlen=SENT_MAX)
        self._moment = ""
        self._failing = ""
        self._forbidden = ""
        self._followed: str | None = None
        observer.stands(name)

    # ── what others ask ────────────────────────────────────────────────────────────────────────────────────────────

    def left_s(self) -> float:
        """For how many seconds this replica may still write; 0 or less when it may not."""
        return self._until - self._clock.monotonic()

    @property
    def leading(self) -> bool:
        """Whether it may write now."""
        return self.left_s() > 0.0

    @property
    def stance(self) -> str:
        """Leader or standby, in words."""
        if self.leading:
            return f"leader, {self.identity}"
        holder = "" if self._seen is None or self._is_mine(self._seen) else self._seen.holder_identity
        return f"standby of {holder}" if holder else "standby, nobody leads"

    def overdue(self) -> str:
        """What is wrong with a leader whose lease ran out long ago without its noticing; empty when nothing is."""
        late_s = self._clock.monotonic() - self._renewed_at - self._options.lease_seconds
        if not self._leads or late_s <= LATE_S:
            return ""
        return f"the lease ran out {late_s:.0f} s ago and was not given up"

    def hindrance(self) -> str:
        """Why it can not take part in the election at all; empty when it can."""
        return self._forbidden

    # ── the election ───────────────────────────────────────────────────────────────────────────────────────────────

    async def run(self) -> typing.NoReturn:
        """Take the lease whenever it is free and renew it while it is ours, until cancelled."""
        while True:
            began = self._clock.monotonic()
            await self.step()
            self.tried.set()
            await asyncio.sleep(max(0.0, began + self._pause_s(began) - self._clock.monotonic()))
            self._end_if_over()

    async def step(self) -> None:
        """One attempt to take or to renew the lease."""
        self._end_if_over()
        try:
            if self._leads and self._lease is not None:
                try:
                    await self._write(self._lease)
                except errors.ConflictError:
                    await self._campaign()
            else:
                await self._campaign()
        except (errors.ClusterError, errors.InputError) as error:
            self._failed(error)
        else:
            self._worked()
        self._end_if_over()

    async def release(self, *, deadline_s: float) -> None:
        """Stop leading and let the others know, so that they need not wait; called after the last write."""
        if not self._leads and not (self._seen is not None and self._is_mine(self._seen)):
            return
        self._end("released")
        try:
            async with asyncio.timeout(deadline_s):
                while not await self._give_up(self._lease):
                    await self._read()
        except (errors.ClusterError, errors.InputError, TimeoutError) as error:
            told = str(error) or f"no answer within {deadline_s:.0f} s"
            _log.warning("the lease %s was not released and has to run out: %s", self._name, told)

    async def _give_up(self, lease: leases.Lease | None) -> bool:
        """Whether the lease is not ours any more."""
        if lease is None or not self._is_mine(lease.spec):
            return True
        now = self._now_text()
        spec = leases.Spec("", RELEASED_S, now, now, lease.spec.lease_transitions)
        try:
            await self._registry.update(lease, spec, deadline_s=self._options.renew_seconds)
        except errors.ConflictError:
            return False
        _log.info("released the lease %s", self._name)
        return True

    async def _campaign(self) -> None:
        """Look at the lease, and take it if it is free or ours."""
        lease = await self._read()
        now = self._clock.monotonic()
        if lease is not None and self._leads and not self._is_mine(lease.spec):
            self._end(f"{lease.spec.holder_identity or 'somebody'} has it")
        if self._leads or self._is_free(now):
            try:
                await self._write(lease)
            except errors.ConflictError:
                # Somebody else was faster: the next look tells who.
                return
        self._follow()

    async def _read(self) -> leases.Lease | None:
        try:
            self._lease = await self._registry.get(deadline_s=self._deadline_s())
        except errors.NotFoundError:
            # What was seen still counts: whoever held it may not have noticed that it is gone.
            self._lease = None
            return None
        self._saw(self._lease.spec)
        return self._lease

    async def _write(self, lease: leases.Lease | None) -> None:
        """Take or renew the lease as it was read, or make it."""
        spec = self._claim(lease)
        deadline_s = self._deadline_s()
        self._sent.append(spec)
        sent_at = self._clock.monotonic()
        if lease is None:
            written = await self._registry.create(spec, deadline_s=deadline_s)
        else:
            written = await self._registry.update(lease, spec, deadline_s=deadline_s)
        # A term that ended while the answer was on its way has ended, for orders were given up; this is another one.
        self._end_if_over()
        self._lease = written
        self._sent.clear()
        self._sent.append(written.spec)
        self._saw(written.spec)
        self._renewed_at = sent_at
        self._until = sent_at + self._options.renew_seconds
        if not self._leads and self.leading:
            self._begin()

    def _claim(self, lease: leases.Lease | None) -> leases.Spec:
        """What to write: ours continued, or anybody's taken over."""
        now, length = self._now_text(), self._options.lease_seconds
        if lease is None:
            return leases.Spec(self.identity, length, now, now, 0)
        before = lease.spec
        if self._is_mine(before):
            return leases.Spec(self.identity, length, before.acquire_time, now, before.lease_transitions)
        return leases.Spec(self.identity, length, now, now, before.lease_transitions + 1)

    # ── what the lease says ────────────────────────────────────────────────────────────────────────────────────────

    def _saw(self, spec: leases.Spec) -> None:
        if spec != self._seen:
            self._seen, self._seen_at = spec, self._clock.monotonic()

    def _is_mine(self, spec: leases.Spec) -> bool:
        return bool(spec.holder_identity) and spec in self._sent

    def _free_at(self) -> float:
        """When nobody else may count on the lease any more, as far as was seen."""
        seen = self._seen
        if seen is None or not seen.holder_identity or self._is_mine(seen):
            return float("-inf")
        return self._seen_at + (seen.lease_duration_seconds or self._options.lease_seconds)

    def _is_free(self, now: float) -> bool:
        return now >= self._free_at()

    def _now_text(self) -> str:
        """The time for people; no two of ours are the same, so that every renewal is seen to be one."""
        wall = self._clock.wall()
        while (text := leases.moment(wall)) == self._moment:
            wall += 1e-6
        self._moment = text
        return text

    # ── times ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _deadline_s(self) -> float:
        """For one call: half of the time to renew leaves room for another; what comes after the term is of no use."""
        half_s = self._options.renew_seconds / 2
        return min(half_s, max(self.left_s(), 0.001)) if self._leads else half_s

    def _pause_s(self, began: float) -> float:
        """From the beginning of this attempt to that of the next."""
        retry_s = self._options.retry_seconds
        if self._leads:
            return min(retry_s, max(0.0, self._until - began))
        retry_s *= 1.0 + (election.RETRY_FACTOR - 1.0) * self._rng.random()
        free_s = self._free_at() - began
        return min(retry_s, free_s) if free_s > 0.0 else retry_s

    # ── terms ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def _begin(self) -> None:
        self._leads = True
        self._followed = None
        self.term += 1
        _log.info("leading: %s took the lease %s", self.identity, self._name)
        self._observer.leads(self._name, now=True)
        self._on_change()

    def _end_if_over(self) -> None:
        if self._leads and not self.leading:
            self._end("it was not renewed in time" + (f": {self._failing}" if self._failing else ""))

    def _end(self, why: str) -> None:
        self._until = float("-inf")
        if not self._leads:
            return
        self._leads = False
        _log.info("not leading any more, %s: %s", self._name, why)
        self._observer.leads(self._name, now=False)
        self._on_change()

    def _follow(self) -> None:
        """Say whose standby this is, when that is news."""
        seen = self._seen
        if self._leads or seen is None or self._is_mine(seen) or seen.holder_identity == self._followed:
            return
        self._followed = seen.holder_identity
        if seen.holder_identity == self.identity:
            _log.warning(
                "the lease %s names this replica's own identity %s, but another process wrote it: it has to run out "
                "(leaderElection.identity must differ between replicas)",
                self._name,
                self.identity,
            )
        elif seen.holder_identity:
            _log.info("standby of %s, which holds the lease %s", seen.holder_identity, self._name)

    # ── failures ───────────────────────────────────────────────────────────────────────────────────────────────────

    def _failed(self, error: errors.ClusterError | errors.InputError) -> None:
        told = str(error)
        self._observer.failed()
        self._forbidden = ""
        namespace = self._name.partition("/")[0]
        if isinstance(error, errors.ForbiddenError) and error.status == 403:
            told += (
                f" (needed: get, create and update on leases of coordination.k8s.io in namespace {namespace}; grant "
                "them with a Role, or run one replica with --no-leader-elect)"
            )
            self._forbidden = told
        elif isinstance(error, errors.NotFoundError):
            told += f" (create the namespace {namespace}, or set leaderElection.namespace to one that exists)"
            self._forbidden = told
        if told != self._failing:
            _log.warning("the lease %s can not be %s: %s", self._name, "renewed" if self._leads else "taken", told)
        self._failing = told

    def _worked(self) -> None:
        if self._failing:
            _log.info("the lease %s can be read and written again", self._name)
        self._failing = self._forbidden = ""


class Source(typing.Protocol):
    """What can be asked for a list that begins now; a reflector is one, and who follows GraphPolicies."""

    @property
    def whole(self) -> int:
        """Number of the last list that was taken to its end."""
        ...

    def refresh(self) -> int:
        """Begin a list; returns its number."""
        ...


class Mandate:
    """Whether this replica may decide: it leads, and has seen all that was written before its term began.

    The watches do not tell how far they are behind, as one without events says nothing for a minute; a fresh list does.
    Pods, for the bindings of whoever led before; nodes and rules, since a replica that was stopped itself would judge
    by old ones. What has not changed is compared and left alone: 5,000 pods take some 0.1 s.
    """

    def __init__(self, elector: Elector, sources: Sequence[Source]) -> None:
        self._elector = elector
        self._sources = sources
        self._term = 0
        self._awaited: list[tuple[Source, int]] = []

    def __call__(self) -> bool:
        """Whether to decide now; asked before every decision."""
        if not self._elector.leading:
            return False
        if self._elector.term != self._term:
            self._term = self._elector.term
            self._awaited = [(source, source.refresh()) for source in self._sources]
        self._awaited = [(source, number) for source, number in self._awaited if source.whole < number]
        return not self._awaited
