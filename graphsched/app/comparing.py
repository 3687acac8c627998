"""The graph beside a fresh list of what the API server has, while both go on changing.

Comes in: a reflector, whose resource is listed anew, page by page. Goes out: the objects that the graph has wrong
although the watch has had its say. What differs at first sight is only suspected, since the list is older than what
the watch has told since, or the watch is a moment behind the list. Suspects are read again, and judged only when the
graph holds all that the reflector has sent and the watch has come as far as the reading: then the versions tell who is
newer. So churn raises no false alarm, and a wrong object can not hide behind it.

Invariants: nothing is changed here; a page at a time is held; between two slices of work everybody else gets a turn.
"""

from __future__ import annotations

import asyncio
import enum
import typing
from collections.abc import AsyncIterator, Callable, Collection, Mapping

import msgspec

from graphsched.app import findings
from graphsched.base.kit import clock as clocks
from graphsched.base.kube import client as clients, lists, versions, wire
from graphsched.base.values import descriptions, errors, keys
from graphsched.graph import admission, audit, delta, store as stores
from graphsched.sources import reflector

Source = reflector.Reflector[typing.Any]
Held = delta.Vertex | descriptions.Description
"""What is kept of one object: a vertex in the graph, or what it describes, which is turned into rows by the survey."""

PAGE_ITEMS = 200
"""Objects a page. There is no hurry here as there is at the start, and what a page takes is there while others settle
beside it: with 15,000 pods pages of 500 made an audit take 2.2 MB, those of 200 take 1.3."""
SLICE = 50
"""Objects decoded, converted and compared at a stretch: some 2 ms, of which the loop would take 50."""
PAUSE_S = 0.002
"""After each stretch, so that an audit takes half of one core at most."""
SUSPECTS_MAX = 5000
"""Suspects remembered of one list; if there are more, the first tell enough."""
SINGLY_MAX = 20
"""So many suspects are read one by one; more are picked from another list."""
LOOKS_MAX = 3
"""How often a suspect is read again when neither reading nor watch can tell."""
LOOK_S = 2.0
"""Before each reading: most of what differs is on its way."""
SAY_S = 90.0
"""How long the watch may take to come as far as a reading: without events a bookmark a minute moves it."""
_POLL_S = 0.25


class Sight(msgspec.Struct, frozen=True, gc=False):
    """An object as a fresh reading shows it.

    Attributes:
        at: resourceVersion of the list that showed it.
        uid: Its UID.
        version: Its resourceVersion.
        vertex: What the graph should hold, or the survey of what is described; None when it is not in the cluster.
    """

    at: str
    uid: str = ""
    version: str = ""
    vertex: Held | None = None


class Verdict(enum.Enum):
    """What is to be thought of a suspect."""

    FINE = enum.auto()
    WRONG = enum.auto()
    EARLY = enum.auto()
    """The watch has not come so far."""
    UNSURE = enum.auto()
    """It may have gone since it was read: read it again."""


def judge(sight: Sight, have: Held | None, known: reflector.Known | None, place: str) -> Verdict:
    """Whether the graph is wrong about an object.

    Args:
        sight: The object as it was read.
        have: What the graph holds, with all that was sent applied.
        known: What the reflector sent last of it.
        place: How far the watch has come.
    """
    if have == sight.vertex:
        return Verdict.FINE
    if known is not None and not known.version:
        return Verdict.EARLY
    if known is not None and versions.earlier(sight.at, known.version):
        # The watch told of it after the reading; the graph may well know better.
        return Verdict.FINE
    if sight.vertex is None:
        # What the reflector does not know no event will ever remove.
        return Verdict.EARLY if known is not None and versions.earlier(place, sight.at) else Verdict.WRONG
    if known is not None and (known.uid, known.version) == (sight.uid, sight.version):
        return Verdict.WRONG
    if versions.earlier(place, sight.version):
        return Verdict.EARLY
    # The watch has been where it should have told. Unless the object has gone since, it did not; and a version that is
    # later than the object's, and yet not later than the reading, is of another history.
    return Verdict.UNSURE if known is None else Verdict.WRONG


def in_step(store: stores.Store, source: Source) -> bool:
    """Whether the graph holds all that the reflector has sent."""
    sent, position = source.sent, store.streams.position(source.sent.source)
    if not sent.sequence:
        return True
    return position is not None and (position.epoch, position.sequence) == (sent.epoch, sent.sequence)


class WentBackError(errors.GraphschedError):
    """The API server's list is of a version before the watch's place: its database is an older one."""


class Comparer:
    """Compares one resource at a time."""

    def __init__(self, store: stores.Store, client: clients.Client, *, clock: clocks.Clock) -> None:
        self._store = store
        self._client = client
        self._clock = clock
        self.objects = 0
        """Objects of the cluster compared so far."""

    async def compare(
        self, source: Source, *, each: Callable[[delta.Vertex], None] = lambda _: None
    ) -> list[tuple[findings.Difference, Sight]]:
        """What the graph has wrong of this resource.

        Args:
            source: Its reflector.
            each: Shown every object of the list that can be read.

        Raises:
            WentBackError: All of it is in doubt.
            ClusterError: The API server did not answer, or the watch is broken.
        """
        suspects = await self._first_sight(source, each)
        wrong: dict[keys.VertexKey, Sight] = {}
        for look in range(LOOKS_MAX):
            if not suspects:
                break
            await asyncio.sleep(LOOK_S)
            sights = await self.look(source, suspects, doubtful=True)
            unsure = await self._sentence(source, sights, wrong)
            if look:
                # Whoever was here before under another UID is somebody else.
                unsure = {key: sight for key, sight in unsure.items() if sight.uid == suspects[key].uid}
            suspects = unsure
        wrong.update(suspects)
        return [(self._difference(source, key, sight), sight) for key, sight in wrong.items()]

    async def look(
        self, source: Source, wanted: Collection[keys.VertexKey], *, doubtful: bool = False
    ) -> dict[keys.VertexKey, Sight]:
        """Read these objects; those that can not be read are left out, and where only what is `doubtful` is of interest
        most of those that the graph has right by now.

        Raises:
            ClusterError: The API server did not answer.
        """
        if len(wanted) > SINGLY_MAX:
            found: dict[keys.VertexKey, Sight] = {}
            passed: set[keys.VertexKey] = set()
            at = ""
            async for page, slices in self._pages(source.path, _query(source)):
                at = page.metadata.resource_version
                async for raws in slices:
                    for raw in raws:
                        key, sight = _read(source, raw, at)
                        if key is None or key not in wanted:
                            continue
                        if sight is None or (doubtful and self._verdict(source, key, sight) is Verdict.FINE):
                            passed.add(key)
                        else:
                            found[key] = sight
            return {key: found.get(key, Sight(at)) for key in wanted if key not in passed}
        read = {key: await self._look_at(source, key) for key in wanted}
        return {key: sight for key, sight in read.items() if sight is not None}

    async def _first_sight(self, source: Source, each: Callable[[delta.Vertex], None]) -> dict[keys.VertexKey, Sight]:
        place, at = source.version, ""
        # What comes while the list is read, the watch has just told of. These keys are the graph's own, no new texts.
        unseen = set(self._keys(source))
        suspects: dict[keys.VertexKey, Sight] = {}
        async for page, slices in self._pages(source.path, _query(source)):
            at = page.metadata.resource_version
            if versions.earlier(at, place):
                raise WentBackError(f"{source.resource.name}: listed at version {at}, and {place} had been seen")
            async for raws in slices:
                for raw in raws:
                    key, sight = _read(source, raw, at)
                    if key is None:
                        continue
                    unseen.discard(key)
                    self.objects += 1
                    if sight is None or sight.vertex is None:
                        continue
                    if not isinstance(sight.vertex, descriptions.Description):
                        each(sight.vertex)
                    self._suspect(source, key, sight, suspects)
        absent = Sight(at)
        for key in sorted(unseen):
            self._suspect(source, key, absent, suspects)
        return suspects

    def _suspect(
        self, source: Source, key: keys.VertexKey, sight: Sight, suspects: dict[keys.VertexKey, Sight]
    ) -> None:
        if self._verdict(source, key, sight) is not Verdict.FINE and len(suspects) < SUSPECTS_MAX:
            # What it looked like is not asked for again: it will be read anew, and there may be thousands.
            suspects[key] = Sight(sight.at, sight.uid, sight.version)

    def _verdict(self, source: Source, key: keys.VertexKey, sight: Sight) -> Verdict:
        return judge(sight, self._held(source, key), source.known(key), source.version)

    async def _sentence(
        self, source: Source, sights: Mapping[keys.VertexKey, Sight], wrong: dict[keys.VertexKey, Sight]
    ) -> dict[keys.VertexKey, Sight]:
        """Judge them as soon as that can be done; adds to `wrong` and returns those to be read again."""
        waiting, unsure = dict(sights), {}
        end = self._clock.monotonic() + SAY_S
        while waiting:
            if in_step(self._store, source):
                for key, sight in list(waiting.items()):
                    verdict = self._verdict(source, key, sight)
                    if verdict is Verdict.EARLY:
                        continue
                    del waiting[key]
                    if verdict is Verdict.WRONG:
                        wrong[key] = sight
                    elif verdict is Verdict.UNSURE:
                        unsure[key] = sight
            if not waiting:
                break
            failing = source.progress.state.failing
            if failing:
                raise errors.UnreachableError(f"the watch of {source.resource.name} is broken: {failing}")
            if self._clock.monotonic() >= end:
                # A watch that is open and has said nothing for so long will not say it any more.
                wrong.update(waiting)
                break
            await asyncio.sleep(_POLL_S)
        return unsure

    async def _look_at(self, source: Source, key: keys.VertexKey) -> Sight | None:
        """Read one object, by a list that holds nothing else: the right to list is the one we have."""
        *namespace, name = key.removeprefix(source.resource.prefix).split("/")
        path = source.path
        if namespace:
            folder, _, plural = path.rpartition("/")
            path = f"{folder}/namespaces/{namespace[0]}/{plural}"
        selector = ",".join(filter(None, (f"metadata.name={name}", source.resource.fields)))
        at = ""
        async for page in lists.pages(self._client, path, {"fieldSelector": selector}):
            at = page.metadata.resource_version
            for raw in page.items or ():
                found, sight = _read(source, raw, at)
                if found == key:
                    return sight
        return Sight(at)

    def _held(self, source: Source, key: keys.VertexKey) -> Held | None:
        """What is kept of the object."""
        survey = source.descriptions
        return self._store.vertex(key) if survey is None else survey.description(key)

    def _keys(self, source: Source) -> list[keys.VertexKey]:
        """The objects of which something is kept."""
        survey, prefix = source.descriptions, source.resource.prefix
        return self._store.vertex_keys(prefix) if survey is None else survey.described(prefix)

    async def _pages(
        self, path: str, query: clients.Query
    ) -> AsyncIterator[tuple[wire.Page, AsyncIterator[list[msgspec.Raw]]]]:
        async for page in lists.pages(self._client, path, query, items_max=PAGE_ITEMS):
            yield page, _slices(page.items or [])

    def _difference(self, source: Source, key: keys.VertexKey, sight: Sight) -> findings.Difference:
        have = self._held(source, key)
        if have is None:
            kind = findings.Kind.MISSING
        else:
            kind = findings.Kind.EXTRA if sight.vertex is None else findings.Kind.STALE
        return findings.Difference(kind, key, audit.fields(have, sight.vertex))


def _query(source: Source) -> clients.Query:
    return {"fieldSelector": source.resource.fields} if source.resource.fields else {}


async def _slices(items: list[msgspec.Raw]) -> AsyncIterator[list[msgspec.Raw]]:
    for start in range(0, len(items), SLICE):
        yield items[start : start + SLICE]
        await asyncio.sleep(PAUSE_S)


def _read(source: Source, raw: msgspec.Raw, at: str) -> tuple[keys.VertexKey | None, Sight | None]:
    """The object's key, and the object unless it is one that the graph can not hold; the watch leaves those out too."""
    try:
        body = source.resource.decode(raw)
        metadata = body.metadata
        vertex = source.resource.convert(body)
    except errors.InputError:
        try:
            metadata = wire.BOOKMARK.decode(raw).metadata
        except errors.InputError:
            return None, None
        return (source.resource.key(metadata) if metadata.name else None), None
    key = source.resource.key(metadata)
    if not isinstance(vertex, descriptions.Description) and admission.of_vertex(vertex) is not None:
        return key, None
    return key, Sight(at, metadata.uid, metadata.resource_version, vertex)
