"""Follows GraphPolicies for as long as there are such objects, and writes how their rules stand.

Comes in: the API server, by lists made here and by what kopf tells of. Goes out: rules in the graph, statuses and
events on the objects. Where the definition of GraphPolicy is not installed nothing is followed, and it is looked for
again later; kopf, which takes memory, begins when it is there. A list is taken from time to time in any case, since
kopf says nothing of objects that went away while it was not watching.

A new leader has everything listed before its first decision and its first status: rules may have been written, and
statuses changed by the leader before it, without kopf's telling so far.

Invariants: nothing is decided before it is known that there are no policies, or which; only the leader writes, and only
after a list of its own term.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import logging
import typing
from collections.abc import Callable, Coroutine

import msgspec

from graphsched.action import happenings, notices, outlet
from graphsched.app import modes, operator, standing
from graphsched.base.kit import clock as clocks, tasks
from graphsched.base.kube import client as clients, credentials, lists, policies as kube_policies
from graphsched.base.values import errors
from graphsched.decision.policy import books
from graphsched.graph import store as stores
from graphsched.sources import policies as feeds

_log = logging.getLogger(__name__)

LOOK_S = 30.0
RETRY_S = 1.0
REPORT_S = 1.0
"""How often statuses are compared with how the rules stand."""
AGAIN_S = 10.0
"""So long a status that was handed over is waited for, until the watch shows it; then it is taken for lost."""
STOP_S = 5.0
SLICE_S = 0.005
"""Work on rules, such as compiling them, keeps the loop for so long at a time."""


class Policing:
    """Keeps the policy layer. `run` and `report` are eternal tasks.

    Attributes:
        synced: Set once it is known which policies there are, or that none are followed.
        feed: What is known of them.
        look_s: How often everything is listed, and how often an absent definition is looked for.
        whole: Number of the last list that was taken in, see `refresh`.
    """

    def __init__(
        self,
        client: clients.Client,
        feed: feeds.Feed,
        follower: operator.Operator,
        store: stores.Store,
        notes: notices.Notices | None,
        *,
        required: bool,
        leading: Callable[[], bool],
        listed: Callable[[], None] = lambda: None,
        clock: clocks.Clock,
    ) -> None:
        """Prepare.

        Args:
            client: Reads.
            feed: Takes what is read.
            follower: kopf.
            store: The graph with the rules.
            notes: Writes; None where nothing is to be written.
            required: Whether to wait for a definition, or a right, that is missing.
            leading: Whether this replica may write.
            listed: Called when a list that was asked for is taken in.
            clock: For times in statuses.
        """
        self.synced = asyncio.Event()
        self.feed = feed
        self.look_s = LOOK_S
        self._client = client
        self._follower = follower
        self._store = store
        self._notes = notes
        self._required = required
        self._leading = leading
        self._on_list = listed
        self._clock = clock
        self.whole = self._asked = 0
        self._said = ""
        self._hurry = asyncio.Event()
        self._written: dict[str, _Written] = {}

    def trouble(self) -> str:
        """Why nothing is to be decided yet; empty when it is known which policies there are."""
        if self.synced.is_set():
            return ""
        return f"GraphPolicies are not known yet{f': {self._said}' if self._said else ''}"

    def works(self) -> dict[str, Coroutine[typing.Any, typing.Any, object]]:
        """Name → work that goes on as long as the program."""
        found: dict[str, Coroutine[typing.Any, typing.Any, object]] = {"policies": self.run()}
        if self._notes is not None:
            found["policy reports"] = self.report(self._notes)
            found["notices"] = self._notes.run()
        return found

    async def run(self) -> None:
        """Follow until cancelled."""
        try:
            while True:
                self._hurry.clear()
                asked = self._asked
                if await self._look() and asked > self.whole:
                    self.whole = asked
                    self._on_list()
                done = self.synced.is_set() and self.whole == self._asked
                await tasks.pause(self.look_s if done else RETRY_S, until=self._hurry)
        finally:
            await self._follower.stop(deadline_s=STOP_S)

    def refresh(self) -> int:
        """List again, for a term that begins; returns the number of that list.

        All that was written before this call is in the inbox once `whole` has come so far.
        """
        self._asked += 1
        self._hurry.set()
        if self._notes is not None:
            # What was to be written when the last term ended may not have been.
            self._notes.clear()
        self._written.clear()
        return self._asked

    def resync(self, reason: str, *, epoch: int = 0) -> None:
        """Send everything again: the graph has lost track."""
        self.feed.resync(reason, epoch=epoch)
        self._hurry.set()

    async def _look(self) -> bool:
        """Bring the feed to what a fresh list shows, and have kopf follow; whether it is known what there is."""
        try:
            await self._client.get(f"/apis/{kube_policies.API_VERSION}")
            manifests, version = await self._listed()
        except errors.ClusterError as error:
            if error.absent:
                return await self._none("")
            if error.status == outlet.FORBIDDEN:
                return await self._forbidden(error)
            # With credentials that are not valid any more, too, nothing is known of what there is.
            self._say(f"GraphPolicies could not be listed: {error}")
            return False
        self._said = ""
        await self.feed.listed(manifests, version)
        self._follower.start()
        self.synced.set()
        return True

    async def _listed(self) -> tuple[list[typing.Any], str]:
        manifests: list[typing.Any] = []
        version = ""
        async for page in lists.pages(self._client, kube_policies.PATH, {}):
            manifests += [_decoded(raw) for raw in page.items or ()]
            version = page.metadata.resource_version
        return manifests, version

    async def _forbidden(self, error: errors.ClusterError) -> bool:
        """The right to read them is missing."""
        if self.feed.known:
            # It may be gone for a moment, as in an upgrade; to drop a denial then would be to bind wrongly.
            self._say(f"GraphPolicies may not be read any more, and the rules that they had stay in force: {error}")
            return True
        return await self._none(f"rules of GraphPolicies are not followed, as the right is missing: {error}")

    async def _none(self, why: str) -> bool:
        """There are no policies, or none that may be read; whether that is to be taken for granted."""
        self._say(why)
        if self._required and not self.synced.is_set():
            self._say(why or "waiting for the definition of GraphPolicy, as policies.enabled is always")
            return False
        if self._follower.alive:
            await self._follower.stop(deadline_s=STOP_S)
        await self.feed.empty()
        self.synced.set()
        return True

    def _say(self, text: str) -> None:
        """Once, until it is something else."""
        if text and text != self._said:
            _log.warning("%s", text)
        self._said = text

    async def report(self, notes: notices.Notices) -> None:
        """Write how rules stand, until cancelled; a standby writes nothing."""
        while True:
            await asyncio.sleep(REPORT_S)
            if self.feed.known and self._may_write():
                await self._report(notes)

    def counts(self) -> dict[str, int]:
        """State → number of rules in it."""
        view = self._store.view()
        book = books.of(view)
        # Some of what is to be done, which nobody else may have had reason to; the next one who asks goes on with it.
        book.refresh(view, self._slice())
        unread = sum(len(known.read.problems) for known in self.feed.known.values())
        failing = sum(bool(column.failure) for column in book.columns)
        ready = len(book.columns) - failing
        return {"ready": ready, "failing": failing, "broken": unread + len(book.broken)}

    def _may_write(self) -> bool:
        """Whether this replica leads and has listed since it does."""
        return self._leading() and self.whole == self._asked

    def _slice(self) -> Callable[[], bool]:
        """A deadline for work on the loop."""
        due = self._clock.monotonic() + SLICE_S
        return lambda: self._clock.monotonic() >= due

    async def _report(self, notes: notices.Notices) -> None:
        """Compare the status of each policy with how its rules stand; thousands of rules take more than one slice."""
        book = books.of(self._store.view())
        while not book.refresh(self._store.view(), self._slice()):  # noqa: ASYNC110  this is the work, not a wait
            await asyncio.sleep(0)
        expired, held = self._slice(), standing.by_policy(book)
        moment = dt.datetime.fromtimestamp(self._clock.wall(), dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        for name, known in list(self.feed.known.items()):
            if expired():
                await asyncio.sleep(0)
                expired = self._slice()
            if not self._may_write():
                return
            if self.feed.known.get(name) is not known:
                continue
            if any(self._store.vertex(rule.key) != rule for rule in known.read.rules):
                # What was sent is still on its way into the graph, and nothing is known of how it stands.
                continue
            wanted = standing.status(known, book, held.get(name, {}), moment=moment)
            have = known.body.status
            if standing.differs(have, wanted) and self._is_news(known, wanted):
                about = happenings.Subject(kube_policies.API_VERSION, kube_policies.KIND, name, known.body.metadata.uid)
                for note in standing.complaints(have, wanted):
                    notes.warn(about, "RuleBroken", note)
                notes.state(about, standing.path(name), wanted)

    def _is_news(self, known: feeds.Known, wanted: standing.Status) -> bool:
        """Whether this is to be written: it was not just now, or nobody has seen it written for long."""
        now = self._clock.monotonic()
        before = self._written.get(known.read.name)
        recent = before is not None and before.seen is known and now < before.at + AGAIN_S
        if before is not None and recent and not standing.differs(before.status, wanted):
            return False
        if len(self._written) > len(self.feed.known):
            self._written = {name: kept for name, kept in self._written.items() if name in self.feed.known}
        self._written[known.read.name] = _Written(known, wanted, now)
        return True


class _Written(typing.NamedTuple):
    """A status that was handed over to be written, of the policy as it was seen then."""

    seen: feeds.Known
    status: standing.Status
    at: float


def _decoded(raw: msgspec.Raw) -> typing.Any:
    """The object; an empty one for what is nested too deeply to be read."""
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return {}


def make(making: modes.Making, client: clients.Client, *, leading: Callable[[], bool]) -> Policing | None:
    """The policing that the settings name; None where it is switched off."""
    settings, clock, meters = making.settings, making.clock, making.meters
    if settings.policies.enabled == "never":
        return None
    feed = feeds.Feed(making.inbox)
    notes = None
    # Mode `shadow` writes nothing.
    if settings.mode != "shadow":
        notes = notices.Notices(
            making.writer,
            controller=settings.scheduler_name,
            instance=making.instance,
            rate=outlet.Rate(per_second=settings.conditions.per_second, burst=settings.conditions.burst),
            clock=clock,
            rng=making.rng,
            on_end=meters.policies.notice,
        )

    async def access(rejected: credentials.Access | None) -> credentials.Access:
        keeper = client.keeper
        return await (keeper.current() if rejected is None else keeper.renew(rejected))

    made = Policing(
        client,
        feed,
        operator.Operator(access, feed.told, patience=client.patience),
        making.store,
        notes,
        required=settings.policies.enabled == "always",
        leading=leading,
        listed=making.inbox.ready.set,
        clock=clock,
    )
    meters.refresh_with(lambda: meters.policies.set_rules(made.counts()))
    return made
