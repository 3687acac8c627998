"""Stands between one scheduler and the real API server, and lets go wrong what a test says.

Comes in: all requests of one scheduler over plain HTTP, and orders from the test: rules for calls (`strike`), ailments
for open watches (`afflict`), calls to hold (`hold`). Goes out: the same requests to the API server, with all rights,
and its answers; and the record of every call with what became of it on either side.

With a selector, lists and watches are narrowed to the objects that carry it: many schedulers share one API server
and each has a cluster of its own.

Invariants: what nothing is said about passes unchanged; a rule that has served its times is gone; what the API server
answered is on record even where the scheduler never heard of it.
"""

import asyncio
import contextlib
import dataclasses
import enum
import json
import ssl
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Self

import aiohttp
import yarl
from aiohttp import web

from tests.fakes import faults, storage
from tests.faults import calls

_HOP = frozenset({"host", "connection", "content-length", "transfer-encoding"})
_BODY_BYTES_MAX = 8 << 20
_PASSED = 200
_UNAUTHORIZED = storage.Refusal(401, "Unauthorized", "Unauthorized")
_EXPIRED = storage.Refusal(410, "Expired", "too old resource version: 1 (2)")


class Ailment(enum.Enum):
    """What befalls a watch."""

    CUT = enum.auto()
    """The connection breaks in the middle of the next line."""
    BREAK = enum.auto()
    """The connection breaks at once, between lines."""
    STALL = enum.auto()
    """Nothing is passed on any more, and nothing closed."""
    END = enum.auto()
    """The next line is withheld and the watch ended in order, as for a client that reads too slowly."""
    EXPIRE = enum.auto()
    """An ERROR event with 410 is the last word."""
    DEAF = enum.auto()
    """No bookmark comes any more."""


@dataclasses.dataclass(slots=True)
class Done:
    """One call on record.

    Attributes:
        call: What it was for.
        at: When it came, monotonic seconds.
        fault: What was done to it.
        status: What the API server answered; 0 where it was not asked or has not answered.
        uid: In a binding, the pod's.
        node: In a binding, where to.
        over: When the last of the answer was passed on; None while it is under way, or where nothing was.
    """

    call: calls.Call
    at: float
    fault: faults.Kind | None = None
    status: int = 0
    uid: str = ""
    node: str = ""
    over: float | None = None


class Held:
    """A call that waits to go on; the scheduler waits with it."""

    def __init__(self, done: Done) -> None:
        self.done = done
        self._go = asyncio.Event()

    def let_go(self) -> None:
        """Let it go on."""
        self._go.set()

    async def wait(self) -> None:
        """Until it may go on."""
        await self._go.wait()


@dataclasses.dataclass(slots=True)
class Rule:
    """One way in which calls of a name go wrong, so many times, or until it is lifted."""

    call: str
    kind: faults.Kind
    times: float = float("inf")
    refusal: storage.Refusal | None = None
    seconds: float = 0.0
    text: bytes = b""
    struck: int = 0


class _Stream:
    """An open watch."""

    def __init__(self, response: web.StreamResponse, transport: asyncio.Transport | None) -> None:
        self.response = response
        self.transport = transport
        self.ailments: set[Ailment] = set()
        self.over = asyncio.Event()
        self.last = b""

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()
        self.over.set()

    def finish(self, last: bytes = b"") -> None:
        self.last = last
        self.over.set()


class Proxy:
    """The server; an async context manager. `url` is where the scheduler goes.

    Attributes:
        record: All calls so far, in order.
        heard: Resource → when anything of it was last passed on, monotonic seconds.
        listed: Resources of which a list was passed on whole since `forget`.
        token: The bearer token that is let in; None for everybody.
        struck: (name of the call, kind of fault or ailment) → how often.
    """

    def __init__(self, server: str, tls: ssl.SSLContext, session: aiohttp.ClientSession, *, selector: str = "") -> None:
        self._server = server
        self._tls = tls
        self._session = session
        self._selector = f"labelSelector={yarl.URL.build(query_string=selector).raw_query_string}" if selector else ""
        self._rules: list[Rule] = []
        self._pending: dict[str, list[Ailment]] = defaultdict(list)
        self._streams: dict[str, set[_Stream]] = defaultdict(set)
        self._to_hold: list[tuple[Callable[[calls.Call], bool], asyncio.Future[Held]]] = []
        self._runner: web.AppRunner | None = None
        self._changed = asyncio.Event()
        self.record: list[Done] = []
        self.heard: dict[str, float] = {}
        self.listed: set[str] = set()
        self.struck: dict[tuple[str, faults.Kind | Ailment], int] = defaultdict(int)
        self.token: str | None = None
        self.url = ""

    async def __aenter__(self) -> Self:
        application = web.Application(client_max_size=_BODY_BYTES_MAX)
        application.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._runner is not None
        for streams in self._streams.values():
            for stream in list(streams):
                stream.abort()
        await self._runner.cleanup()

    # ------------------------------------------------------------------------------ orders

    def strike(
        self,
        call: str,
        kind: faults.Kind,
        *,
        times: float = float("inf"),
        status: int = 0,
        retry_after_s: int | None = None,
        seconds: float = 0.0,
        text: bytes = b"<html>log in</html>",
    ) -> Rule:
        """Let so many of the calls of that name go wrong; return the rule, which counts."""
        reason = _REASONS.get(status, "")
        message = f"made to fail by the test: {call}"
        refusal = storage.Refusal(status, reason, message, retry_after_s=retry_after_s) if status else None
        rule = Rule(call, kind, times, refusal, seconds, text)
        self._rules.append(rule)
        return rule

    def lift(self) -> None:
        """From now on all goes well."""
        self._rules.clear()
        self._pending.clear()
        for streams in self._streams.values():
            for stream in streams:
                stream.ailments.clear()

    def afflict(self, resource: str, ailment: Ailment) -> None:
        """Let it befall the open watch of a resource, or the next one that is opened when none is."""
        streams = list(self._streams[resource])
        if not streams:
            self._pending[resource].append(ailment)
        for stream in streams:
            self._befall(resource, stream, ailment)

    def hold(self, matches: Callable[[calls.Call], bool]) -> asyncio.Future[Held]:
        """Hold the next call for which `matches` is true; await the result for it."""
        future: asyncio.Future[Held] = asyncio.get_running_loop().create_future()
        self._to_hold.append((matches, future))
        return future

    def forget(self) -> None:
        """A new scheduler starts: what the old one has heard is nothing to it."""
        self.listed.clear()
        self.heard.clear()

    # ------------------------------------------------------------------------------- looks

    def made(self, call: str) -> list[Done]:
        """The calls of that name so far."""
        return [done for done in self.record if done.call.name == call]

    def opened(self, resource: str) -> bool:
        """Whether a watch of it is open, whatever befalls it."""
        return bool(self._streams[resource])

    def watched(self, resource: str) -> bool:
        """Whether a watch of it is open and well."""
        return any(not stream.ailments - {Ailment.DEAF} for stream in self._streams[resource])

    async def until(self, happened: Callable[[], bool], *, what: str, within_s: float = 30.0) -> None:
        """Wait until something is true that a call or a watch can make true. Raises `AssertionError` naming `what`."""
        try:
            async with asyncio.timeout(within_s):
                while not happened():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"not within {within_s:.0f} s: {what}") from None

    # ---------------------------------------------------------------------------- requests

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        call = calls.of(request.method, request.path, request.query, request.headers.get("User-Agent", ""))
        body = await request.read()
        done = Done(call, time.monotonic())
        if call.name == calls.BIND:
            binding = json.loads(body)
            done.uid, done.node = binding["metadata"]["uid"], binding["target"]["name"]
        self.record.append(done)
        self._changed.set()
        if self.token is not None and request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.json_response(_UNAUTHORIZED.body, status=_UNAUTHORIZED.status)
        await self._wait_if_held(done)
        rule = self._rule(call.name)
        if rule is not None:
            done.fault = rule.kind
            self.struck[call.name, rule.kind] += 1
            if (answer := await _fail(request, rule)) is not None:
                return answer
        try:
            return await self._pass(request, body, done, lose=rule is not None and rule.kind is faults.Kind.LOSE)
        except (aiohttp.ClientError, OSError):
            # The API server is away; the scheduler sees what it would see without us.
            _abort(request)
            return web.Response()
        finally:
            self._changed.set()

    async def _wait_if_held(self, done: Done) -> None:
        for each in self._to_hold:
            matches, future = each
            if matches(done.call) and not future.done():
                self._to_hold.remove(each)
                held = Held(done)
                future.set_result(held)
                await held.wait()
                return

    def _rule(self, name: str) -> Rule | None:
        for rule in self._rules:
            if rule.call == name:
                rule.times -= 1
                rule.struck += 1
                if rule.times <= 0:
                    self._rules.remove(rule)
                return rule
        return None

    async def _pass(self, request: web.Request, body: bytes, done: Done, *, lose: bool) -> web.StreamResponse:
        path, collection = request.raw_path, done.call.name.partition(" ")[0] in {"list", "watch"}
        if collection and self._selector:
            path = f"{path}{'&' if '?' in path else '?'}{self._selector}"
        # The API server is to know us by the certificate, whatever the scheduler calls itself.
        mine = _HOP | {"authorization"}
        headers = {name: value for name, value in request.headers.items() if name.lower() not in mine}
        target = yarl.URL(self._server + path, encoded=True)
        async with self._session.request(
            request.method, target, headers=headers, data=body or None, ssl=self._tls
        ) as answer:
            done.status = answer.status
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP}
            watch = collection and "watch" in request.query and answer.status == _PASSED
            # Read whole, so that what the API server did is done before anybody is told.
            content = b"" if watch else await answer.read()
            if lose:
                _abort(request)
                return web.Response()
            if not watch:
                self._told(done)
                return web.Response(status=answer.status, headers=kept, body=content)
            try:
                return await self._stream(request, answer, kept, done)
            finally:
                # A watch that is left: an orderly farewell would outlive the loop.
                if answer.connection is not None and answer.connection.transport is not None:
                    answer.connection.transport.abort()

    def _told(self, done: Done) -> None:
        done.over = time.monotonic()
        if done.status == _PASSED and done.call.name.startswith("list "):
            self.heard[done.call.resource] = done.over
            self.listed.add(done.call.resource)

    # ----------------------------------------------------------------------------- watches

    async def _stream(
        self, request: web.Request, answer: aiohttp.ClientResponse, headers: dict[str, str], done: Done
    ) -> web.StreamResponse:
        response = web.StreamResponse(status=answer.status, headers=headers)
        transport = request.transport
        stream = _Stream(response, transport if isinstance(transport, asyncio.Transport) else None)
        resource = done.call.resource
        with contextlib.suppress(ConnectionError):
            await response.prepare(request)
            self.heard[resource] = time.monotonic()
            with self._open(resource, stream):
                pump = asyncio.create_task(self._pump(answer, stream, resource))
                over = asyncio.create_task(stream.over.wait())
                try:
                    await asyncio.wait((pump, over), return_when=asyncio.FIRST_COMPLETED)
                    if pump.done():
                        await pump
                finally:
                    pump.cancel()
                    over.cancel()
                    await asyncio.wait((pump, over))
            if stream.last:
                await response.write(stream.last)
            await response.write_eof()
        return response

    @contextlib.contextmanager
    def _open(self, resource: str, stream: _Stream) -> Iterator[None]:
        self._streams[resource].add(stream)
        for ailment in self._pending.pop(resource, []):
            self._befall(resource, stream, ailment)
        self._changed.set()
        try:
            yield
        finally:
            self._streams[resource].discard(stream)
            if Ailment.DEAF in stream.ailments:
                # It strikes when the scheduler has had enough of hearing nothing.
                self._count(resource, Ailment.DEAF)
            self._changed.set()

    def _befall(self, resource: str, stream: _Stream, ailment: Ailment) -> None:
        match ailment:
            case Ailment.BREAK:
                self._count(resource, ailment)
                stream.abort()
            case Ailment.EXPIRE:
                self._count(resource, ailment)
                event = {"type": "ERROR", "object": _EXPIRED.body}
                stream.finish(json.dumps(event).encode() + b"\n")
            case Ailment.STALL:
                self._count(resource, ailment)
                stream.ailments.add(ailment)
            case _:
                stream.ailments.add(ailment)

    def _count(self, resource: str, ailment: Ailment) -> None:
        self.struck[f"watch {resource}", ailment] += 1
        self._changed.set()

    async def _pump(self, answer: aiohttp.ClientResponse, stream: _Stream, resource: str) -> None:
        """Pass on line by line, as far as nothing befalls the watch."""
        async for line in _lines(answer):
            ailments = stream.ailments
            if Ailment.STALL in ailments:
                continue
            if Ailment.CUT in ailments:
                self._count(resource, Ailment.CUT)
                await stream.response.write(line[: len(line) // 2])
                stream.abort()
                return
            if Ailment.END in ailments:
                self._count(resource, Ailment.END)
                return
            if Ailment.DEAF in ailments and line.startswith(b'{"type":"BOOKMARK"'):
                continue
            self.heard[resource] = time.monotonic()
            await stream.response.write(line)


_REASONS = {401: "Unauthorized", 403: "Forbidden", 410: "Expired", 429: "TooManyRequests", 500: "InternalError"}


async def _fail(request: web.Request, rule: Rule) -> web.StreamResponse | None:
    """The answer of a call that never reaches the API server; None for one that does."""
    match rule.kind:
        case faults.Kind.REFUSE:
            refusal = rule.refusal
            assert refusal is not None
            headers = {} if refusal.retry_after_s is None else {"Retry-After": str(refusal.retry_after_s)}
            return web.json_response(refusal.body, status=refusal.status, headers=headers)
        case faults.Kind.DELAY:
            await asyncio.sleep(rule.seconds)
        case faults.Kind.HANG:
            # Ends when the scheduler gives up: its connection closes and this handler is cancelled.
            await asyncio.Event().wait()
        case faults.Kind.DROP:
            _abort(request)
            return web.Response()
        case faults.Kind.GARBLE:
            return web.Response(body=rule.text, content_type="text/html")
        case faults.Kind.LOSE:
            pass
    return None


async def _lines(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The lines of a watch, newlines included."""
    rest = b""
    async for chunk in answer.content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line + b"\n"


def _abort(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()
