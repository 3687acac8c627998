"""
A fake API server over real HTTP on loopback, in the test's own loop, for what the real one can not be made to do.

Comes in: HTTP requests, and from the test objects (`storage`), faults (`faults`) and commands to open watches. Goes
out: answers, and a record of the `requests`. It lists in pages, watches with bookmarks and field selectors, creates,
replaces, patches (also status), binds and deletes, and records events, all as the contract suite finds the real one
does.

Invariant: deterministic: the same script gives the same answers, versions and uids.

    async with apiserver.FakeApiServer() as server:
        server.create("/api/v1/nodes", objects.node("n1"))
        async with server.client() as client:
            ...
"""

import asyncio
import base64
import dataclasses
import json
import re
import types
from collections.abc import Callable, Mapping
from typing import Any, Self

from aiohttp import web

from graphsched.base.kube import client as clients, credentials
from tests.fakes import faults, storage, virtual, watching

NODES = storage.NODES
PODS = storage.PODS
NAMESPACES = "/api/v1/namespaces"
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
EVENTS = "/apis/events.k8s.io/v1/events"

_PATH = re.compile(
    r"(?P<group>/api/v1|/apis/[^/]+/[^/]+)(?:/namespaces/(?P<namespace>[^/]+)(?=/))?"
    r"/(?P<resource>[a-z]+)(?:/(?P<name>[^/]+)(?:/(?P<part>[a-z]+))?)?",
)
_PATCHES = {"application/merge-patch+json": False, "application/strategic-merge-patch+json": True}


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


@dataclasses.dataclass(frozen=True, slots=True)
class _Target:
    collection: str
    namespace: str
    name: str
    part: str

    @property
    def key(self) -> storage.Key:
        return storage.Key(self.collection, self.namespace, self.name)


class FakeApiServer:
    """The server; an async context manager."""

    def __init__(self) -> None:
        self.storage = storage.Storage()
        self.storage.on_change = self._changed
        self.faults = faults.Faults()
        self.requests: list[Request] = []
        self.watches: list[watching.Watch] = []
        #: Accepted bearer tokens; None lets everyone in.
        self.tokens: set[str] | None = None
        #: Whether an expired watch is told by an event, as the real server mostly does, or by the HTTP status.
        self.expired_by_event = True
        self._pages: dict[str, tuple[int, list[storage.Object]]] = {}
        self._runner: web.ServerRunner | None = None
        self._server: web.Server | None = None
        self._port = 0
        self._pulse = asyncio.Event()
        self._stopping = asyncio.Event()

    # ----------------------------------------------------------------------- start and stop

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen, on the same port as before after a stop."""
        self._stopping.clear()
        self._server = web.Server(self._serve)
        self._runner = web.ServerRunner(self._server, shutdown_timeout=0.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self._port, reuse_address=True)
        await site.start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Break all connections and stop listening; the objects stay."""
        if self._runner is None or self._server is None:
            return
        # Handlers are not cancelled by themselves when their client is gone.
        self._stopping.set()
        for watch in list(self.watches):
            watch.cut()
        for connection in self._server.connections:
            if connection.transport is not None:
                connection.transport.abort()
        await self._runner.cleanup()
        self._runner = self._server = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._port}"

    def client(self, token: str = "") -> clients.Client:
        """A client of this server, to be entered."""

        async def load() -> credentials.Credentials:
            return credentials.Credentials(
                origin="test", server=self.url, authorization=f"Bearer {token}" if token else ""
            )

        return clients.Client(credentials.Keeper(load, clock=virtual.LoopClock()))

    # ---------------------------------------------------------------------- for the test

    def lose_data(self) -> None:
        """Go on with an empty database that counts from the beginning, as after a restored backup."""
        self.storage = storage.Storage()
        self.storage.on_change = self._changed

    def create(self, collection: str, body: storage.Object, *, namespace: str = "") -> storage.Object:
        """Add an object; pods go to the namespace `default` unless another one is named."""
        namespaced = collection in {PODS, EVENTS}
        return self.storage.create(collection, body, namespace=namespace or ("default" if namespaced else ""))

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

    def _changed(self) -> None:
        self._pulse.set()
        for watch in self.watches:
            watch.wake()

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        raw = await request.read()
        seen = Request(
            method=request.method,
            path=request.path,
            query=dict(request.query),
            headers=request.headers,
            body=json.loads(raw) if raw else None,
            at_s=virtual.now(),
        )
        self.requests.append(seen)
        self._pulse.set()
        fault = self.faults.take(seen.method, seen.path, seen.query)
        try:
            if fault is not None and (answer := await self._fail(request, fault)) is not None:
                return answer
            if self.tokens is not None and request.headers.get("Authorization", "")[7:] not in self.tokens:
                raise storage.Refusal(401, "Unauthorized", "Unauthorized")
            answer = await self._answer(request, seen)
        except storage.Refusal as refusal:
            headers = {} if refusal.retry_after_s is None else {"Retry-After": str(refusal.retry_after_s)}
            return web.json_response(refusal.body, status=refusal.status, headers=headers)
        if fault is not None and fault.kind is faults.Kind.LOSE:
            _abort(request)
        return answer

    async def _fail(self, request: web.BaseRequest, fault: faults.Fault) -> web.StreamResponse | None:
        match fault.kind:
            case faults.Kind.REFUSE:
                assert fault.refusal is not None
                raise fault.refusal
            case faults.Kind.DELAY:
                await asyncio.sleep(fault.seconds)
            case faults.Kind.HANG:
                await self._stopping.wait()
                _abort(request)
                return web.Response()
            case faults.Kind.DROP:
                _abort(request)
                return web.Response()
            case faults.Kind.GARBLE:
                return web.Response(body=fault.text, content_type="text/html")
            case faults.Kind.LOSE:
                pass
        return None

    async def _answer(self, request: web.BaseRequest, seen: Request) -> web.StreamResponse:
        target = _target(seen.path)
        if seen.method == "GET" and not target.name:
            if seen.query.get("watch") in {"true", "1"}:
                return await self._watch(request, target, seen.query)
            return web.json_response(self._list(target, seen.query))
        if seen.method == "POST" and target.part == "binding":
            self.storage.bind(target.key, seen.body)
            return web.json_response(
                {"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201}, status=201
            )
        if seen.method == "POST" and not target.name:
            made = self.storage.create(target.collection, seen.body, namespace=target.namespace)
            return web.json_response(made, status=201)
        if seen.method == "GET":
            return web.json_response(self.storage.get(target.key))
        if seen.method == "PUT":
            return web.json_response(self.storage.replace(target.key, seen.body))
        if seen.method == "PATCH" and request.content_type in _PATCHES:
            strategic = _PATCHES[request.content_type]
            return web.json_response(self.storage.patch(target.key, seen.body, strategic=strategic, part=target.part))
        if seen.method == "DELETE":
            return web.json_response(self.storage.delete(target.key, seen.body))
        raise storage.Refusal(405, "MethodNotAllowed", f"{seen.method} {seen.path} ({request.content_type})")

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

    async def _watch(
        self,
        request: web.BaseRequest,
        target: _Target,
        query: Mapping[str, str],
    ) -> web.StreamResponse:
        since = int(query.get("resourceVersion") or 0)
        if 0 < since < self.storage.compacted and not self.expired_by_event:
            raise storage.Refusal(410, "Expired", f"too old resource version: {since} ({self.storage.compacted})")
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        watch = watching.Watch(
            self.storage,
            response,
            request.transport,
            collection=target.collection,
            namespace=target.namespace,
            query=query,
        )
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
        return response


def _target(path: str) -> _Target:
    matched = _PATH.fullmatch(path)
    if matched is None:
        raise storage.Refusal(404, "NotFound", "the server could not find the requested resource")
    parts = matched.groupdict(default="")
    return _Target(f"{parts['group']}/{parts['resource']}", parts["namespace"], parts["name"], parts["part"])


def _abort(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()
