"""Follows one kind of object of the API server, and says so in patches.

A list, then a watch from the version it showed, for as long as the program runs. Objects come in, decoded by
`base.kube`; patches go to the `inbox`, in the stream `watch/<kind>` whose epoch is one list and what followed it. The
store applies them; nobody else needs to know that lists and watches exist. The patch with sequence 1 says hello:
whoever applies it opens the epoch first.

Between lists the watch is resumed where it ended, after every kind of end. A list is made anew only when the server
no longer holds that place (410, as a status or as an event), when it refuses the place or is silent there, when its
versions have gone back behind that place (a database restored from a backup), or when `resync` or `refresh` asks.

Invariants: an object that went away unseen is removed after the next list, so no delete is lost; a deletion of an
earlier object does not remove its successor of the same name; an object that can not be read is counted, logged once
and skipped, and what was known of it stays; no patch has more than `ROWS_MAX` rows; `known` and `sent` always tell of
the same moment.
"""

from __future__ import annotations

import asyncio
import random
import typing
from collections.abc import Sequence

import msgspec

from graphsched.base.kit import backoff, clock as clocks, tasks
from graphsched.base.kube import answers, client as clients, lists, streams, versions, wire
from graphsched.base.values import descriptions, errors, keys
from graphsched.graph import delta
from graphsched.sources import collection, inbox as inboxes, progress, surveying, surveys

ROWS_MAX = 250
"""Rows of one patch: decoding and applying it keeps the loop for some 10 ms."""
WATCH_S = (300.0, 600.0)
"""How long the server is to hold a watch; at random, so that not all end together."""
BACKOFF_S = (0.5, 10.0)
"""First and greatest wait between attempts. Short, since pods wait as well."""
RESYNC_S = (1.0, 60.0)
"""First and greatest wait between lists that were asked for: who asks for one after another has a lasting problem."""
SILENT_STALLS = 2
"""A watch that stalls is opened anew; when the next one stalls as well, what is known is not to be trusted any more."""
REFUSALS_MAX = 3
"""So many refusals in a row to resume, and the place is given up."""
DESCRIBED_MAX = 20
"""Descriptions of one patch: each may be of a thousand rows."""
ABSENT_S = (2.0, 180.0)
"""First and greatest wait before it is looked again whether a kind of objects has been installed."""
ABSENT_SURE = 2
"""So many looks in a row, and a kind that was there is taken to be gone with all its objects."""
_TRANSIENT = frozenset({0, 401, 403, 429, 502, 503})
"""HTTP status of failures that have nothing to do with the place; 0 is no answer."""


class Known(msgspec.Struct, frozen=True, gc=False):
    """What is kept of an object that the store has: enough to see a change, and who a deletion is meant for."""

    uid: str
    version: str


class Reflector(typing.Generic[collection.Body]):
    """Follows one resource. `run` is an eternal task."""

    def __init__(
        self,
        resource: collection.Resource[collection.Body],
        *,
        client: clients.Client,
        inbox: inboxes.Inbox,
        clock: clocks.Clock,
        observer: progress.Observer,
        rng: random.Random,
        surveyor: surveying.Surveyor,
        events_a_patch: int = ROWS_MAX,
    ) -> None:
        """Prepare; nothing is read before `run`.

        With one of a watch's events a patch, no state that it told of is passed over.
        """
        self.resource = resource
        self.path = resource.path
        """Of the collection, in the version of its API that is there."""
        self._surveyor = surveyor
        self._items_a_patch = DESCRIBED_MAX if resource.described else ROWS_MAX
        self._events_a_patch = min(events_a_patch, self._items_a_patch)
        self._absence = backoff.Backoff(first_s=ABSENT_S[0], most_s=ABSENT_S[1], rng=rng)
        self.progress = progress.Progress(
            resource.name, clock=clock, observer=observer, silent_max_s=SILENT_STALLS * client.patience.stall_s
        )
        self._client = client
        self._inbox = inbox
        self._clock = clock
        self._rng = rng
        self._backoff = backoff.Backoff(first_s=BACKOFF_S[0], most_s=BACKOFF_S[1], rng=rng)
        self._query = {"fieldSelector": resource.fields} if resource.fields else {}
        self._known: dict[keys.VertexKey, Known] = {}
        self._news = 0
        """Objects taken so far that were new or had changed."""
        self._blamed: set[keys.VertexKey] = set()
        self._version = ""
        self._fresh = False
        """Whether the place comes from a list that has just been taken."""
        self._epoch = 0
        self._sequence = 0
        self._relist = "start"
        """Why the next step is a list, in the words of `Observer.relist`; empty when it is a watch."""
        self._refusals = 0
        self._watch: streams.Watch | None = None
        self._begun = False
        """Whether the watch of this step was let in."""
        self._word_at = 0.0
        """When the server last told anything of the objects; bookmarks count, an open watch does not."""
        self._resyncs = backoff.Backoff(first_s=RESYNC_S[0], most_s=RESYNC_S[1], rng=rng)
        self._resynced_at = float("-inf")
        self._refresh = False
        """Whether a list was asked for that begins after this moment."""
        self._awaited = 0
        """Epoch of that list, until it is in the inbox; 0 when none is waited for."""
        self.whole = 0
        """Epoch of the last list that is in the inbox to its end."""
        self._asked = ""
        """Why somebody asked for a list; empty when nobody did."""
        self._hurry = asyncio.Event()

    @property
    def synced(self) -> asyncio.Event:
        """Set once a whole list is in the inbox."""
        return self.progress.synced

    async def run(self) -> typing.NoReturn:
        """Follow the resource until cancelled."""
        while True:
            await self.step()

    @property
    def epoch(self) -> int:
        """Number of the present list and of what followed it."""
        return self._epoch

    @property
    def version(self) -> str:
        """The resourceVersion up to which everything has been seen."""
        return self._version

    @property
    def settled(self) -> bool:
        """Whether it has listed since it was last asked to, or had reason to."""
        return not self._relist and not self._asked

    @property
    def sent(self) -> delta.Stream:
        """The place of the last patch in the stream; sequence 0 before the first of an epoch."""
        return delta.Stream(f"watch/{self.resource.name}", self._epoch, self._sequence)

    @property
    def descriptions(self) -> surveys.Survey | None:
        """Where what was sent is to be found instead of in the graph: None unless it is described."""
        return self._surveyor.survey if self.resource.described else None

    def known(self, key: keys.VertexKey) -> Known | None:
        """What was last sent of the object; its version is empty while it is to be sent again."""
        return self._known.get(key)

    def resync(self, reason: str, *, epoch: int = 0) -> None:
        """List again and send everything: who applies the patches has lost track in this epoch (0: the present one).

        At once if it is the first time in a while. Asking for an epoch that is over changes nothing, so that every
        refused patch may ask.
        """
        if epoch not in {0, self._epoch}:
            return
        self._asked = reason
        self._hurry.set()
        if self._watch is not None:
            self._watch.close()

    def refresh(self) -> int:
        """List again, so that all that was written before this call is seen; what the store has is not sent anew.

        Returns the epoch of that list: everything is in the inbox once `whole` has come so far.
        """
        self._refresh = True
        self._hurry.set()
        if self._watch is not None:
            self._watch.close()
        self._awaited = self._epoch + 1
        return self._awaited

    async def step(self) -> None:
        """One list or one watch, and the wait after it when it failed."""
        self._hurry.clear()
        self._begun = False
        detail = await self._doubt() if self._asked else ""
        if self._refresh:
            self._refresh, self._relist = False, self._relist or "refresh"
        try:
            if self._relist:
                await self._list(self._relist, detail)
            else:
                await self._follow()
        except errors.ClusterError as error:
            if self.resource.custom and error.absent:
                await self._look_again()
            else:
                await self._rest(error)

    async def _look_again(self) -> None:
        """There is no such kind of objects, or not in this version: look again, at other versions first."""
        paths = (self.resource.path, *self.resource.others)
        self.path = paths[(paths.index(self.path) + 1) % len(paths)]
        self._relist = self._relist or "start"
        if self.path != self.resource.path:
            return
        self.progress.missed()
        if self._absence.failures + 1 >= ABSENT_SURE and self._known:
            self._epoch += 1
            self._sequence = 0
            await self._forget_all(list(self._known))
        await tasks.pause(self._absence.next(), until=self._hurry)

    async def _doubt(self) -> str:
        """Take nothing to be in the store any more; what is gone must still be removed from it. Return why."""
        now = self._clock.monotonic()
        if now - self._resynced_at > 2 * RESYNC_S[1]:
            self._resyncs.reset()
        else:
            await asyncio.sleep(self._resyncs.next())
        self._resynced_at = self._clock.monotonic()
        self._doubt_all()
        self._relist, asked, self._asked = "resync", self._asked, ""
        return asked

    def _doubt_all(self) -> None:
        self._known = {key: Known(known.uid, "") for key, known in self._known.items()}

    async def _rest(self, error: errors.ClusterError) -> None:
        """Wait for as long as it takes, and decide whether to go on where the watch was."""
        if self._asked or self._refresh:
            return
        if isinstance(error, errors.ExpiredError):
            self._relist = "expired"
        elif self._begun and self._clock.monotonic() - self._word_at >= self._client.patience.stall_s:
            # A watch that begins and says nothing for so long may never say anything: after a restored backup our
            # place lies in the future, and the server waits there without a word (seen on 1.36).
            self._relist = "silent"
        elif error.reason == streams.TOO_LONG:
            self._relist = "refused"
        elif error.status not in _TRANSIENT:
            self._refusals += 1
            if self._refusals >= REFUSALS_MAX:
                self._relist = self._relist or "refused"
        self.progress.failed(error)
        if self.resource.optional and error.status == 403:
            self.progress.waive()
        await tasks.pause(self._backoff.next(at_least_s=error.retry_after_s), until=self._hurry)

    # ------------------------------------------------------------------------------------ list

    async def _list(self, reason: str, detail: str) -> None:
        """Bring the store to what a fresh list shows."""
        self._epoch += 1
        self._sequence = 0
        try:
            seen, changed = await self._pages(lists.PAGE_ITEMS)
        except errors.ExpiredError:
            # Too slow for the server's memory: one page has nothing that can expire.
            seen, changed = await self._pages(None)
        gone = [key for key in self._known if key not in seen]
        await self._forget_all(gone)
        self._absence.reset()
        self._blamed &= seen
        self._relist = ""
        self._fresh = True
        self._refusals = 0
        self.whole = self._epoch
        if 0 < self._awaited <= self.whole:
            # One that brought nothing new is waited for as well.
            self._awaited = 0
            self._inbox.ready.set()
        self.progress.listed(reason, detail, objects=len(self._known), changed=changed + len(gone))

    async def _forget_all(self, gone: Sequence[keys.VertexKey]) -> None:
        for start in range(0, len(gone), self._items_a_patch):
            patch = delta.Patch()
            for key in gone[start : start + self._items_a_patch]:
                self._forget(patch, key)
            await self._send(patch)

    async def _pages(self, items_max: int | None) -> tuple[set[keys.VertexKey], int]:
        """Send what is new in every page; the keys of all objects, and how many were new."""
        seen: set[keys.VertexKey] = set()
        changed = 0
        before = self._version
        async for page in lists.pages(self._client, self.path, self._query, items_max=items_max):
            items = page.items or []
            if versions.earlier(page.metadata.resource_version, before):
                # Another history: an object may have a version that we know, and be another all the same.
                self._doubt_all()
                before = ""
            for start in range(0, len(items), self._items_a_patch):
                patch = delta.Patch()
                for raw in items[start : start + self._items_a_patch]:
                    was = self._news
                    key = self._take(patch, raw)
                    if key is not None:
                        seen.add(key)
                    changed += self._news != was
                await self._send(patch)
            self.progress.heard()
            self._word_at = self._clock.monotonic()
            self._version = page.metadata.resource_version
        return seen, changed

    # ----------------------------------------------------------------------------------- watch

    async def _follow(self) -> None:
        """Watch until the server ends it."""
        if not self._fresh and await self._went_back():
            self._relist = "went back"
            return
        self._fresh = False
        query: dict[str, str | int] = {
            **self._query,
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": round(self._rng.uniform(*WATCH_S)),
        }
        heard = False
        async with self._client.watch(self.path, query) as watch:
            if self._asked or self._refresh:
                # While it was being opened there was nothing to close.
                return
            self._watch, self._begun = watch, True
            try:
                self.progress.followed()
                while (lines := await watch.read()) is not None:
                    self._word_at = self._clock.monotonic()
                    for start in range(0, len(lines), self._events_a_patch):
                        await self._apply(lines[start : start + self._events_a_patch])
                    heard = True
                    self._refusals = 0
                    self._backoff.reset()
            finally:
                self._watch = None
        if not heard:
            # A server that ends every watch at once must not be asked a thousand times a second.
            raise errors.UnreachableError(f"watch {self.path}: ended without a word", reason=progress.ENDED)

    async def _went_back(self) -> bool:
        """Whether the server is at a version before our place, which in one history can not be.

        It would let a watch begin there and wait, without a word, until the new history has come as far as the old
        one, and then leave out what happened before. The smallest list tells: it is as new as the database.
        """
        body = await self._client.get(self.path, {**self._query, "limit": 1})
        try:
            page = wire.PAGE.decode(body)
        except errors.InputError as error:
            raise answers.unreachable(error, what=f"GET {self.path}", reason="Garbled") from error
        return versions.earlier(page.metadata.resource_version, self._version)

    async def _apply(self, lines: Sequence[bytes]) -> None:
        """Send what these events say; an ERROR among them is raised after what came before it was sent."""
        patch = delta.Patch()
        counts: dict[str, int] = {}
        failure: errors.ClusterError | None = None
        for line in lines:
            try:
                event = wire.EVENT.decode(line)
            except errors.InputError as error:
                failure = answers.unreachable(error, what=f"watch {self.path}", reason="Garbled")
                break
            counts[event.type] = counts.get(event.type, 0) + 1
            if event.type == "ERROR":
                status = wire.STATUS.decode(event.object)
                failure = answers.ended(status, what=f"watch {self.path}")
                break
            self._event(patch, event)
        self.progress.events(counts)
        await self._send(patch)
        if failure is not None:
            raise failure

    def _event(self, patch: delta.Patch, event: wire.Event) -> None:
        if event.type in {"ADDED", "MODIFIED"}:
            self._take(patch, event.object, follow=True)
            return
        try:
            metadata = wire.BOOKMARK.decode(event.object).metadata
        except errors.InputError as error:
            self._blame(None, error)
            return
        self._version = metadata.resource_version or self._version
        if event.type == "DELETED":
            key = self.resource.key(metadata)
            self._blamed.discard(key)
            known = self._known.get(key)
            if known is not None and known.uid == metadata.uid:
                self._forget(patch, key)

    # --------------------------------------------------------------------------------- objects

    def _take(self, patch: delta.Patch, raw: msgspec.Raw, *, follow: bool = False) -> keys.VertexKey | None:
        """Put an object into the patch unless the store has it; its key, None when it has no readable one.

        With `follow` the watch resumes after this object.
        """
        key: keys.VertexKey | None = None
        try:
            body = self.resource.decode(raw)
            metadata = body.metadata
            key = self.resource.key(metadata)
            if follow:
                self._version = metadata.resource_version
            known = self._known.get(key)
            if known is not None and known.version == metadata.resource_version and known.uid == metadata.uid:
                return key
            found = self.resource.convert(body)
        except errors.InputError as error:
            return self._skip(raw, error, follow=follow)
        if isinstance(found, descriptions.Description):
            self._surveyor.survey.describe(found, afresh=known is not None and not known.version)
        else:
            if known is not None and known.uid != metadata.uid:
                patch.remove(key)
            patch.set_vertex(found)
        self._news += 1
        self._known[key] = Known(metadata.uid, metadata.resource_version)
        self._blamed.discard(key)
        return key

    def _skip(self, raw: msgspec.Raw, error: errors.InputError, *, follow: bool) -> keys.VertexKey | None:
        """Leave an object that can not be read; its key where at least that can be."""
        try:
            metadata = wire.BOOKMARK.decode(raw).metadata
        except errors.InputError:
            self._blame(None, error)
            return None
        if follow:
            self._version = metadata.resource_version or self._version
        key = self.resource.key(metadata) if metadata.name else None
        self._blame(key, error)
        return key

    def _blame(self, key: keys.VertexKey | None, error: errors.InputError) -> None:
        first = key is None or key not in self._blamed
        if key is not None:
            self._blamed.add(key)
        self.progress.invalid(error, say=first)

    def _forget(self, patch: delta.Patch, key: keys.VertexKey) -> None:
        if self.resource.described:
            self._surveyor.survey.forget(key)
        else:
            patch.remove(key)
        del self._known[key]

    async def _send(self, patch: delta.Patch) -> None:
        """Put a patch that says anything into the inbox; wait there while it is full."""
        if self.resource.described:
            await self._surveyor.publish(patch, self._put)
        elif len(patch):
            await self._put(patch)

    async def _put(self, patch: delta.Patch) -> None:
        self._sequence += 1
        patch.stream = delta.Stream(f"watch/{self.resource.name}", self._epoch, self._sequence)
        await self._inbox.put(patch)
        # The other tasks get their turn, however fast the patches come.
        await asyncio.sleep(0)
