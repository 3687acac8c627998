"""The HTTP side of looking on: metrics, health, recent decisions, an explanation on request.

Comes in: what the loop keeps anyway (`metrics`, `health`, a history of decisions), a callback that explains one pod
against the live graph, and who may see what. Goes out: answers to GET requests. Serving runs on the loop that also
decides, so every answer is bounded: in entries, in requests at a time, in seconds, in bytes read.

The health endpoints answer everybody, at once and whatever else goes on: a kubelet has no token, and a probe that waits
restarts a healthy scheduler. The others go by the door they are behind. With a guard (delegated authentication and
authorization, on TLS) each path is for those who may get it. Without one the server listens on loopback only, which is
also where `kubectl port-forward` and `kubectl exec` come from; what names pods then asks for a local name, too.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import typing
from collections.abc import Awaitable, Callable, Sequence

import msgspec
from aiohttp import http_exceptions, web

from graphsched.observe import access, feeds, health as healths, listener as listeners, metrics as meters, tls

_log = logging.getLogger(__name__)
_http_log = logging.getLogger(f"{__name__}.http")

DECISIONS_DEFAULT = 20
DECISIONS_MAX = 1000
REQUESTS_MAX = 32
"""Requests served at a time; more are told to come back."""
EXPLANATIONS_MAX = 2
"""Explanations at a time: each evaluates every node."""
GRAPH_S_MAX = 60.0
"""How long sending the graph may take: it is handed out to one caller at a time."""
ANSWER_S_MAX = 90.0
"""How long any answer may take, with all that is sent of it."""
HEADER_S_MAX = 30.0
"""How long a request may take to come in whole, and a connection may wait for the next one."""
GENERATION_HEADER = "X-Graphsched-Generation"
"""Of an answer that holds the graph: its generation."""
_GRAPH_CHUNK_BYTES = 256 << 10
_HEADER_BYTES_MAX = 8190
"""For the request line, and for each header: a token has 1 to 4 kB."""
_HEADERS_MAX = 64
_BUSY = 503
_OPEN = ("/healthz", "/readyz", "/livez")

_INDEX = """graphsched

/metrics            Prometheus metrics
/healthz /readyz    may it be trusted with work (?verbose lists the checks)
/livez              does only a restart help
/configz            the configuration in effect
/debug/decisions    the last decisions with scores and refusals (?pod=namespace/name, ?limit=20)
/debug/conflicts    the last races with other schedulers: who, where, when it was seen (?limit=20)
/debug/explain      why a pod is where it is, or why it is pending (?pod=namespace/name)
/debug/queue        who waits, where, and refused by whom
/debug/graph        the whole graph, to replay it: graphsched snapshot --from-scheduler; or to copy it and keep the
                    copy up to date: ?follow, then ?after=GENERATION&epoch=EPOCH (&wait=SECONDS)
/debug/affinity     which rule of a pod reaches which node, as columns to copy, likewise
/debug/shadow       mode shadow: how another scheduler's choices compare with ours (?limit=20)
"""

Decisions = Callable[[int, str], Sequence[object]]
"""(limit, `namespace/name` or an empty text for all pods) → the newest entries first, each msgspec can encode."""
Conflicts = Callable[[int], Sequence[object]]
"""A limit → the newest entries first, each msgspec can encode."""
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_REASONS = {
    access.UNAUTHENTICATED: "unauthenticated",
    access.FORBIDDEN: "forbidden",
    access.UNAVAILABLE: "unchecked",
}
Explain = Callable[[str], Awaitable[object | None]]
"""`namespace/name` → an answer msgspec can encode, or None for a pod nobody knows."""


class Sights(msgspec.Struct, frozen=True):
    """What there is to see.

    Attributes:
        metrics: All metrics.
        health: All checks.
        decisions: Recent decisions.
        conflicts: Recent conflicts with other schedulers.
        explain: Explains one pod.
        graph: Hands out the whole graph.
        feed: Hands it out to those who copy it, and what changed since.
        affinity: Likewise the affinity graph.
        standby: Why another replica is to be asked about decisions; empty when this one makes them.
        queue: Shows who waits; anything msgspec can encode.
        config: The configuration in effect, without secrets; anything msgspec can encode.
        shadow: A limit of disagreements → a report msgspec can encode; None where nothing is compared.
    """

    metrics: meters.Metrics
    health: healths.Health
    decisions: Decisions
    conflicts: Conflicts
    explain: Explain
    graph: Callable[[], Awaitable[feeds.Graph]]
    feed: feeds.Feed
    affinity: feeds.Feed
    queue: Callable[[], object]
    config: object
    standby: Callable[[], str] = str
    shadow: Callable[[int], object] | None = None


class Door(msgspec.Struct, frozen=True):
    """Who is let in.

    Attributes:
        guard: Says who may get what; None for callers on this host only.
        certificate: What is shown on TLS; None to speak plain HTTP.
    """

    guard: access.Guard | None = None
    certificate: tls.Certificate | None = None


class Server:
    """Serves `sights` until stopped."""

    def __init__(self, sights: Sights, door: Door) -> None:
        self._sights = sights
        self.door = door
        self._requests = 0
        self._explanations = 0
        self._giving = False
        self._stopping = asyncio.Event()
        self._feeding = feeds.Feeding(sights.feed, sights.metrics, stopping=self._stopping)
        self._affinity_feeding = feeds.Feeding(sights.affinity, sights.metrics, stopping=self._stopping)
        self._encoder = msgspec.json.Encoder(enc_hook=str)
        self._runner: web.AppRunner | None = None
        self._listener: listeners.Listener | None = None
        self.port = 0

    async def start(self, *, host: str, port: int) -> None:
        """Listen on `host`; port 0 picks a free one. `self.port` tells which.

        Raises:
            OSError: The address is taken or is none of this host's.
        """
        app = web.Application(middlewares=[self._bounded])
        app.add_routes(
            [
                web.get("/", self._index),
                web.get("/metrics", self._metrics),
                *(web.get(path, self._health) for path in _OPEN),
                web.get("/configz", self._config),
                web.get("/debug/decisions", self._decisions),
                web.get("/debug/conflicts", self._conflicts),
                web.get("/debug/explain", self._explain),
                web.get("/debug/queue", self._queue),
                web.get("/debug/graph", self._graph, allow_head=False),
                web.get("/debug/affinity", self._affinity, allow_head=False),
                web.get("/debug/shadow", self._shadow),
            ]
        )
        runner = web.AppRunner(
            app,
            access_log=None,
            logger=_http_log,
            keepalive_timeout=HEADER_S_MAX,
            # A body is never read: its connection is closed with the answer.
            lingering_time=0.0,
            max_headers=_HEADERS_MAX,
            max_line_size=_HEADER_BYTES_MAX,
            max_field_size=_HEADER_BYTES_MAX,
            # A scrape under way may end; a client that holds its connection open may not hold up the shutdown.
            shutdown_timeout=1.0,
        )
        await runner.setup()
        certificate = self.door.certificate
        context = None if certificate is None else certificate.context
        listener = listeners.Listener(typing.cast("web.Server", runner.server), tls=context)
        try:
            self.port = await listener.start(host, port)
        except BaseException:
            await runner.cleanup()
            raise
        self._runner, self._listener = runner, listener

    async def stop(self) -> None:
        """Stop listening and close all connections; harmless when not started."""
        self._stopping.set()
        if self._listener is not None:
            listener, self._listener = self._listener, None
            await listener.stop()
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()

    @web.middleware
    async def _bounded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer within the limits, and have it sent within them."""
        busy: set[listeners.Protocol] = self._listener.busy if self._listener is not None else set()
        busy.add(request.protocol)
        try:
            async with asyncio.timeout(ANSWER_S_MAX):
                response = await self._admitted(request, handler)
                await response.prepare(request)
                await response.write_eof()
        except TimeoutError:
            _log.warning(
                "%s was not answered within %.0f s: the connection is closed", request.path[:100], ANSWER_S_MAX
            )
            _abort(request)
            return web.Response(status=503)
        except ConnectionError:
            # Whoever asked has gone, which is theirs to do and nothing to log; there is nobody to read this answer.
            _abort(request)
            return web.Response(status=503)
        finally:
            busy.discard(request.protocol)
        return response

    async def _admitted(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.body_exists:
            response = self._refused("body", 413, "no request here has a body")
            response.force_close()
            return response
        if request.path in _OPEN:
            return await handler(request)
        if self.door.guard is not None:
            # What is asked for is the route that was found: no other spelling of its path is another right.
            resource = request.match_info.route.resource
            path = request.path if resource is None else resource.canonical
            verdict = await self.door.guard(access.bearer(request.headers.get("Authorization", "")), path)
            if verdict.status != access.ALLOWED:
                return self._refused(_REASONS[verdict.status], verdict.status, verdict.text)
        if self._requests >= REQUESTS_MAX:
            return self._refused("busy", 503, f"{REQUESTS_MAX} requests are being served, try again")
        self._requests += 1
        try:
            return await handler(request)
        finally:
            self._requests -= 1

    def _refused(self, reason: str, status: int, text: str) -> web.Response:
        self._sights.metrics.http_refused[reason,].inc()
        return _problem(status, text, retry=status == access.UNAVAILABLE)

    async def _index(self, _request: web.Request) -> web.Response:
        return web.Response(text=_INDEX)

    async def _metrics(self, _request: web.Request) -> web.Response:
        return web.Response(body=self._sights.metrics.render(), headers={"Content-Type": meters.CONTENT_TYPE})

    async def _health(self, request: web.Request) -> web.Response:
        report = self._sights.health.report(request.path[1:], exclude=request.query.getall("exclude", []))
        return web.Response(text=report.text(verbose="verbose" in request.query), status=200 if report.ok else 500)

    async def _config(self, request: web.Request) -> web.Response:
        return self._closed(request) or self._json(self._sights.config)

    async def _decisions(self, request: web.Request) -> web.Response:
        if closed := self._closed(request):
            return closed
        limit = _limit(request)
        if isinstance(limit, web.Response):
            return limit
        return self._json(self._sights.decisions(limit, request.query.get("pod", "")))

    async def _conflicts(self, request: web.Request) -> web.Response:
        if closed := self._closed(request):
            return closed
        limit = _limit(request)
        return limit if isinstance(limit, web.Response) else self._json(self._sights.conflicts(limit))

    async def _shadow(self, request: web.Request) -> web.Response:
        if closed := self._closed(request):
            return closed
        if self._sights.shadow is None:
            return _problem(404, "this scheduler compares with no other: run it with --mode shadow")
        limit = _limit(request)
        return limit if isinstance(limit, web.Response) else self._json(self._sights.shadow(limit))

    async def _explain(self, request: web.Request) -> web.Response:
        if closed := self._closed(request):
            return closed
        pod = request.query.get("pod", "")
        namespace, _, name = pod.partition("/")
        if not namespace or not name:
            return _problem(400, "name the pod: /debug/explain?pod=namespace/name")
        if told := self._sights.standby():
            return _problem(409, f"this replica decides nothing ({told}): ask the one that leads")
        if self._explanations >= EXPLANATIONS_MAX:
            return _problem(503, f"{EXPLANATIONS_MAX} explanations are under way, try again", retry=True)
        self._explanations += 1
        try:
            answer = await self._sights.explain(pod)
        finally:
            self._explanations -= 1
        return _problem(404, f"no pod {pod} is known here") if answer is None else self._json(answer)

    async def _queue(self, request: web.Request) -> web.Response:
        return self._closed(request) or self._json(self._sights.queue())

    async def _graph(self, request: web.Request) -> web.StreamResponse:
        if closed := self._closed(request):
            return closed
        if "after" in request.query:
            return await _fed(request, self._feeding)
        if "follow" in request.query:
            return await self._given(request, lambda: self._feeding.whole(request.query))
        return await self._given(request, self._sights.graph)

    async def _affinity(self, request: web.Request) -> web.StreamResponse:
        if closed := self._closed(request):
            return closed
        if "after" in request.query:
            return await _fed(request, self._affinity_feeding)
        return await self._given(request, lambda: self._affinity_feeding.whole(request.query))

    async def _given(self, request: web.Request, whole: Callable[[], Awaitable[feeds.Graph]]) -> web.StreamResponse:
        """Hand out something large, to one caller at a time."""
        if self._giving:
            return _problem(503, "the graph is being handed out to somebody else, try again", retry=True)
        self._giving = True
        try:
            return await _sent(request, await whole())
        finally:
            self._giving = False

    def _closed(self, request: web.Request) -> web.Response | None:
        # The name it was asked for by must be local too: a page of another site, whose name was made to mean this host,
        # reaches it from a browser here. A token, which no browser adds by itself, is proof enough.
        if self.door.guard is not None or (_is_local(request.remote) and _is_local_name(_asked_name(request))):
            return None
        return self._refused("forbidden", 403, "debug endpoints answer this host only: use kubectl port-forward")

    def _json(self, value: object) -> web.Response:
        return web.Response(body=self._encoder.encode(value) + b"\n", content_type="application/json")


def _limit(request: web.Request) -> int | web.Response:
    """How many entries are asked for, or what is wrong with that."""
    text = request.query.get("limit", str(DECISIONS_DEFAULT))
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= DECISIONS_MAX:
        return _problem(400, f"limit={text[:40]!r} is not a number from 1 to {DECISIONS_MAX}")
    return int(text)


async def _sent(request: web.Request, graph: feeds.Graph) -> web.StreamResponse:
    """Send the graph in parts, each as soon as the caller has read enough of those before."""
    response = web.StreamResponse(headers={GENERATION_HEADER: str(graph.generation)})
    response.content_type = "application/octet-stream"
    response.content_length = len(graph.data)
    data = memoryview(graph.data)
    try:
        async with asyncio.timeout(GRAPH_S_MAX):
            await response.prepare(request)
            for start in range(0, len(data), _GRAPH_CHUNK_BYTES):
                await response.write(data[start : start + _GRAPH_CHUNK_BYTES])
            await response.write_eof()
    except TimeoutError:
        _log.warning("the graph was not read within %.0f s: the connection is closed", GRAPH_S_MAX)
        _abort(request)
    return response


async def _fed(request: web.Request, feeding: feeds.Feeding) -> web.StreamResponse:
    answer = await feeding.answer(request.query)
    if not isinstance(answer, feeds.Refusal):
        return await _sent(request, answer)
    if not answer.text:
        return web.Response(status=answer.status)
    return _problem(answer.status, answer.text, retry=answer.status == _BUSY)


def _abort(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


def _is_local(address: str | None) -> bool:
    if not address:
        return False
    parsed = ipaddress.ip_address(address.partition("%")[0])
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return (mapped or parsed).is_loopback


def _asked_name(request: web.Request) -> str | None:
    """The name in the Host header; None for one that is no name, has a port that is none, or is no text."""
    try:
        return request.url.host
    except ValueError:
        return None


def _is_local_name(host: str | None) -> bool:
    try:
        return host == "localhost" or _is_local(host)
    except ValueError:
        return False


class _Unreadable(logging.Filter):
    """Leaves out what a caller that speaks no HTTP makes the library log: a port scan is no error of ours."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log it."""
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, http_exceptions.HttpProcessingError)


_http_log.addFilter(_Unreadable())


def _problem(status: int, text: str, *, retry: bool = False) -> web.Response:
    headers = {"Retry-After": "1"} if retry else {}
    if status == access.UNAUTHENTICATED:
        headers["WWW-Authenticate"] = 'Bearer realm="graphsched"'
    return web.json_response({"error": text}, status=status, headers=headers)
