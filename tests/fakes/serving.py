"""
A fake API server without a transport: what it answers, and what goes wrong on the way.

Comes in: requests as values, and from the test objects (`storage`), faults (`faults`) and commands to open watches.
Goes out: answers as values, watches that write into a pipe, and a record of the `requests`. It lists in pages, watches
with bookmarks and field selectors, creates, replaces, patches (also status), binds and deletes, and records events, all
as the contract suite finds the real one does. `apiserver` brings it to sockets, `tests/simulation/memory` to a client
in the same process.

Invariant: deterministic: the same script gives the same answers, versions and uids.
"""

import asyncio
import base64
import dataclasses
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from tests.fakes import faults, reviews, storage, watching

NODES = storage.NODES
PODS = storage.PODS
NAMESPACES = "/api/v1/namespaces"
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
EVENTS = "/apis/events.k8s.io/v1/events"

_PATH = re.compile(
    r"(?P<group>/api/v1|/apis/[^/]+/[^/]+)(?:/namespaces/(?P<namespace>[^/]+)(?=/))?"
    r"/(?P<resource>[a-z]+)(?:/(?P<name>[^/]+)(?:/(?P<part>[a-z]+))?)?",
)
#: API groups that every server has; of any other it knows what was installed.
_BUILT_IN = re.compile(
    r"/api/v1/|/apis/(?:apps|batch|(?:events|scheduling|coordination|node|authentication|authorization)\.k8s\.io)/"
)
_PATCHES = {"application/merge-patch+json": False, "application/strategic-merge-patch+json": True}
_BOUND = {"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201}


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """What a client asked."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any
    #: Loop time at which it had arrived whole.
    at_s: float
    #: Who sent it, where several clients are told apart.
    sender: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Answer:
    """What the server says to all but a watch."""

    status: int
    body: bytes
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)


class Broken(Exception):  # noqa: N818  an end, not an error of the test
    """The connection breaks, and no answer comes."""


#: Begins an answer that goes on: a watch is let in.
Begin = Callable[[], Awaitable[watching.Pipe]]


@dataclasses.dataclass(frozen=True, slots=True)
class _Target:
    collection: str
    namespace: str
    name: str
    part: str

    @property
    def key(self) -> storage.Key:
        return storage.Key(self.collection, self.namespace, self.name)


class Server:
    """Answers requests."""

    def __init__(self) -> None:
        self.storage = storage.Storage()
        self.storage.on_change = self._changed
        self.faults = faults.Faults()
        self.requests: list[Request] = []
        self.watches: list[watching.Watch] = []
        #: Accepted bearer tokens; None lets everyone in.
        self.tokens: set[str] | None = None
        self.reviews = reviews.Reviews()
        #: Whether an expired watch is told by an event, as the real server mostly does, or by the HTTP status.
        self.expired_by_event = True
        #: Collections of custom resources that are installed; empty for none.
        self.installed: set[str] = set()
        #: Whether watches that are opened from now on begin and say nothing.
        self.mute = False
        self._pages: dict[str, tuple[int, list[storage.Object]]] = {}
        self._pulse = asyncio.Event()
        self._stopping = asyncio.Event()

    # ---------------------------------------------------------------------- for the test

    def lose_data(self) -> None:
        """Go on with an empty database that counts from the beginning, as after a restored backup."""
        self.restore(storage.Storage())

    def restore(self, backup: storage.Storage) -> None:
        """Go on with another database, mostly one that `Storage.backup` made. Open watches hear nothing any more."""
        self.storage = backup
        self.storage.on_change = self._changed

    def create(self, collection: str, body: storage.Object, *, namespace: str = "") -> storage.Object:
        """Add an object; pods go to the namespace `default` unless another one is named."""
        namespaced = collection in {PODS, EVENTS}
        return self.storage.create(collection, body, namespace=namespace or ("default" if namespaced else ""))

    def install(self, collection: str) -> None:
        """Install a kind of custom resources."""
        self.installed.add(collection)

    def uninstall(self, collection: str) -> None:
        """Take it away with all its objects, as the real server does: watches hear of each, and end."""
        for item in self.storage.items(collection):
            metadata = item["metadata"]
            self.storage.delete(storage.Key(collection, metadata.get("namespace", ""), metadata["name"]), None)
        self.installed.discard(collection)
        for watch in list(self.watches):
            if watch.path == collection:
                watch.end()

    def pod(self, name: str, namespace: str = "default") -> storage.Object:
        """Return a pod as it is now."""
        return self.storage.get(storage.Key(PODS, namespace, name))

    def asked(self, method: str, path: str = ".*", **query: str) -> list[Request]:
        """Return the requests so far of this method, path (a regular expression) and query (`*` for any value)."""
        wanted = faults.Fault(faults.Kind.HANG, method, re.compile(path), query, 1)
        return [request for request in self.requests if wanted.is_for(request.method, request.path, request.query)]

    async def until(self, happened: Callable[[], bool], *, within_s: float = 3600.0) -> None:
        """Wait until something is true that a request, a change or the coming or going of a watch can make true."""
        async with asyncio.timeout(within_s):
            while not happened():
                self._pulse.clear()
                await self._pulse.wait()

    async def watching(self, collection: str, *, after: watching.Watch | None = None) -> watching.Watch:
        """Wait for an open watch of the collection other than the one that came before, and return it."""

        def found() -> list[watching.Watch]:
            return [watch for watch in self.watches if watch.path == collection and watch is not after]

        await self.until(lambda: bool(found()))
        return found()[-1]

    # --------------------------------------------------------------------------- requests

    async def serve(self, request: Request, begin: Begin) -> Answer | None:
        """Answer; None after a watch, which was let in by `begin` and has ended.

        Raises:
            Broken: A fault says so.
        """
        self.requests.append(request)
        self._pulse.set()
        fault = self.faults.take(request.method, request.path, request.query)
        try:
            if fault is not None and (answer := await self._fail(fault)) is not None:
                return answer
            if self.tokens is not None and request.headers.get("Authorization", "")[7:] not in self.tokens:
                raise storage.Refusal(401, "Unauthorized", "Unauthorized")
            if any(each.rpartition("/")[0] == request.path for each in self.installed):
                return _found({"kind": "APIResourceList", "groupVersion": request.path.removeprefix("/apis/")})
            if not _BUILT_IN.match(request.path) and _target(request.path).collection not in self.installed:
                return Answer(404, b"404 page not found\n", {"Content-Type": "text/plain; charset=utf-8"})
            if request.method == "GET" and request.query.get("watch") in {"true", "1"}:
                await self._watch(_target(request.path), request.query, begin)
                return None
            answer = self._answer(request)
        except storage.Refusal as refusal:
            headers = {} if refusal.retry_after_s is None else {"Retry-After": str(refusal.retry_after_s)}
            return Answer(refusal.status, msgspec.json.encode(refusal.body), headers)
        if fault is not None and fault.kind is faults.Kind.LOSE:
            raise Broken
        return answer

    async def _fail(self, fault: faults.Fault) -> Answer | None:
        match fault.kind:
            case faults.Kind.REFUSE:
                assert fault.refusal is not None
                raise fault.refusal
            case faults.Kind.DELAY:
                await asyncio.sleep(fault.seconds)
            case faults.Kind.HANG:
                await self._stopping.wait()
                raise Broken
            case faults.Kind.DROP:
                raise Broken
            case faults.Kind.GARBLE:
                return Answer(200, fault.text, {"Content-Type": "text/html"})
            case faults.Kind.LOSE:
                pass
        return None

    def _answer(self, request: Request) -> Answer:
        target = _target(request.path)
        content = request.headers.get("Content-Type", "").partition(";")[0]
        if request.method == "GET" and not target.name:
            return _found(self._list(target, request.query))
        if request.method == "POST" and target.part == "binding":
            self.storage.bind(target.key, request.body)
            return _found(_BOUND, status=201)
        if request.method == "POST" and (reviewed := self.reviews.answer(request.path, request.body)) is not None:
            return _found(reviewed, status=201)
        if request.method == "POST" and not target.name:
            made = self.storage.create(target.collection, request.body, namespace=target.namespace)
            return _found(made, status=201)
        if request.method == "GET":
            return _found(self.storage.get(target.key))
        if request.method == "PUT":
            return _found(self.storage.replace(target.key, request.body))
        if request.method == "PATCH" and content in _PATCHES:
            strategic = _PATCHES[content]
            return _found(self.storage.patch(target.key, request.body, strategic=strategic, part=target.part))
        if request.method == "DELETE":
            return _found(self.storage.delete(target.key, request.body))
        raise storage.Refusal(405, "MethodNotAllowed", f"{request.method} {request.path} ({content})")

    def _changed(self) -> None:
        self._pulse.set()
        for watch in self.watches:
            watch.wake()

    def _list(self, target: _Target, query: Mapping[str, str]) -> storage.Object:
        token = query.get("continue", "")
        if token:
            version, items = self._pages.get(token, (-1, []))
            if version < self.storage.compacted:
                raise storage.Refusal(410, "Expired", "The provided continue parameter is too old")
        else:
            selector = watching.Selector(query.get("fieldSelector", ""))
            version = self.storage.version
            items = [item for item in self.storage.items(target.collection, target.namespace) if selector.matches(item)]
        limit = int(query.get("limit") or len(items) or 1)
        metadata: storage.Object = {"resourceVersion": str(version)}
        if len(items) > limit:
            metadata["continue"] = base64.b64encode(f"{version}/{len(self._pages)}".encode()).decode()
            metadata["remainingItemCount"] = len(items) - limit
            self._pages[metadata["continue"]] = (version, items[limit:])
        return {"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": items[:limit]}

    async def _watch(self, target: _Target, query: Mapping[str, str], begin: Begin) -> None:
        since = int(query.get("resourceVersion") or 0)
        if 0 < since < self.storage.compacted and not self.expired_by_event:
            raise storage.Refusal(410, "Expired", f"too old resource version: {since} ({self.storage.compacted})")
        watch = watching.Watch(
            self.storage, await begin(), collection=target.collection, namespace=target.namespace, query=query
        )
        watch.live = not self.mute
        self.watches.append(watch)
        self._pulse.set()
        try:
            await watch.serve()
        except ConnectionError:
            # The client has gone, which is its right.
            watch.end()
        finally:
            self.watches.remove(watch)
            self._pulse.set()


def _found(item: storage.Object, *, status: int = 200) -> Answer:
    return Answer(status, msgspec.json.encode(item), {"Content-Type": "application/json"})


def _target(path: str) -> _Target:
    matched = _PATH.fullmatch(path)
    if matched is None:
        raise storage.Refusal(404, "NotFound", "the server could not find the requested resource")
    parts = matched.groupdict(default="")
    return _Target(f"{parts['group']}/{parts['resource']}", parts["namespace"], parts["name"], parts["part"])
