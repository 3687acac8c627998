"""Follows GraphPolicies for as long as there are such objects, and writes how their rules stand.

Comes in: the API server, by lists made here and by what kopf tells of. Goes out: rules in the graph, statuses and
events on the objects. Where the definition of GraphPolicy is not installed nothing is followed, and it is looked for
again later; kopf, which takes memory, begins when it is there. A list is taken from time to time in any case, since
kopf says nothing of objects that went away while it was not watching.

Invariants: nothing is decided before it is known that there are no policies, or which; only the leader writes.
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
STOP_S = 5.0


class Policing:
    """Keeps the policy layer. `run` and `report` are eternal tasks.

    Attributes:
        synced: Set once it is known which policies there are, or that none are followed.
        feed: What is known of them.
        look_s: How often everything is listed, and how often an absent definition is looked for.
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
        self._clock = clock
        self._said = ""
        self._hurry = asyncio.Event()

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
                await self._look()
                await tasks.pause(self.look_s if self.synced.is_set() else RETRY_S, until=self._hurry)
                self._hurry.clear()
        finally:
            await self._follower.stop(deadline_s=STOP_S)

    def resync(self, reason: str, *, epoch: int = 0) -> None:
        """Send everything again: the graph has lost track."""
        self.feed.resync(reason, epoch=epoch)
        self._hurry.set()

    async def _look(self) -> None:
        """Bring the feed to what a fresh list shows, and have kopf follow."""
        try:
            await self._client.get(f"/apis/{kube_policies.API_VERSION}")
            manifests, version = await self._listed()
        except errors.ForbiddenError as error:
            if self.feed.known:
                # A right may be gone for a moment, as in an upgrade; to drop a denial then would be to bind wrongly.
                self._say(f"GraphPolicies may not be read any more, and the rules that they had stay in force: {error}")
            else:
                await self._none(f"rules of GraphPolicies are not followed, as the right is missing: {error}")
            return
        except errors.ClusterError as error:
            if error.absent:
                await self._none("")
            else:
                self._say(f"GraphPolicies could not be listed: {error}")
            return
        self._said = ""
        await self.feed.listed(manifests, version)
        self._follower.start()
        self.synced.set()

    async def _listed(self) -> tuple[list[typing.Any], str]:
        manifests: list[typing.Any] = []
        version = ""
        async for page in lists.pages(self._client, kube_policies.PATH, {}):
            manifests += [msgspec.json.decode(raw) for raw in page.items or ()]
            version = page.metadata.resource_version
        return manifests, version

    async def _none(self, why: str) -> None:
        """There are no policies, or none that may be read."""
        self._say(why)
        if self._required and not self.synced.is_set():
            self._say(why or "waiting for the definition of GraphPolicy, as policies.enabled is always")
            return
        if self._follower.alive:
            await self._follower.stop(deadline_s=STOP_S)
        await self.feed.empty()
        self.synced.set()

    def _say(self, text: str) -> None:
        """Once, until it is something else."""
        if text and text != self._said:
            _log.warning("%s", text)
        self._said = text

    async def report(self, notes: notices.Notices) -> None:
        """Write how rules stand, until cancelled; a standby writes nothing."""
        while True:
            await asyncio.sleep(REPORT_S)
            if self.feed.known and self._leading():
                self._report(notes)

    def counts(self) -> dict[str, int]:
        """State → number of rules in it."""
        view = self._store.view()
        book = books.of(view)
        # Without time it compiles, which nobody else may have had reason to.
        book.refresh(view, lambda: True)
        unread = sum(len(known.read.problems) for known in self.feed.known.values())
        failing = sum(bool(column.failure) for column in book.columns)
        ready = len(book.columns) - failing
        return {"ready": ready, "failing": failing, "broken": unread + len(book.broken)}

    def _report(self, notes: notices.Notices) -> None:
        view = self._store.view()
        book = books.of(view)
        if not book.refresh(view, lambda: True):
            # Their nodes are being asked; the loop goes on with that.
            return
        moment = dt.datetime.fromtimestamp(self._clock.wall(), dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        for name, known in self.feed.known.items():
            if any(self._store.vertex(rule.key) != rule for rule in known.read.rules):
                # What was sent is still on its way into the graph, and nothing is known of how it stands.
                continue
            wanted, have = standing.status(known, book, moment=moment), known.body.status
            if standing.differs(have, wanted):
                about = happenings.Subject(kube_policies.API_VERSION, kube_policies.KIND, name, known.body.metadata.uid)
                for note in standing.complaints(have, wanted):
                    notes.warn(about, "RuleBroken", note)
                notes.state(about, standing.path(name), wanted)


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
        clock=clock,
    )
    meters.refresh_with(lambda: meters.policies.set_rules(made.counts()))
    return made
