"""The HTTP side of looking on: metrics, health, recent decisions, an explanation on request.

Comes in: what the loop keeps anyway (`metrics`, `health`, a history of decisions), and a callback that explains one
pod against the live graph. Goes out: answers to GET requests. Serving runs on the loop that also decides, so every
answer is bounded: in entries, in requests at a time, in bytes read.

`/metrics` and the health endpoints answer everybody. The debug endpoints name pods and nodes and cost work; unless
opened they answer only callers on this host, which is where `kubectl port-forward` and `kubectl exec` come from.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Sequence

import msgspec
from aiohttp import web

from graphsched.observe import health as healths, metrics as meters

DECISIONS_DEFAULT = 20
DECISIONS_MAX = 1000
REQUESTS_MAX = 32
"""Requests served at a time; more are told to come back."""
EXPLANATIONS_MAX = 2
"""Explanations at a time: each evaluates every node."""
_HEADER_BYTES_MAX = 8190

_INDEX = """graphsched

/metrics            Prometheus metrics
/healthz /readyz    may it be trusted with work (?verbose lists the checks)
/livez              does only a restart help
/configz            the configuration in effect
/debug/decisions    the last decisions with scores and refusals (?pod=namespace/name, ?limit=20)
/debug/explain      why a pod is where it is, or why it is pending (?pod=namespace/name)
"""

Decisions = Callable[[int, str], Sequence[object]]
"""(limit, `namespace/name` or an empty text for all pods) → the newest entries first, each msgspec can encode."""
Explain = Callable[[str], Awaitable[object | None]]
"""`namespace/name` → an answer msgspec can encode, or None for a pod nobody knows."""


class Sights(msgspec.Struct, frozen=True):
    """What there is to see.

    Attributes:
        metrics: All metrics.
        health: All checks.
        decisions: Recent decisions.
        explain: Explains one pod.
        config: The configuration in effect, without secrets; anything msgspec can encode.
        debug_open: Answer debug requests from other hosts too.
    """

    metrics: meters.Metrics
    health: healths.Health
    decisions: Decisions
    explain: Explain
    config: object
    debug_open: bool = False


class Server:
    """Serves `sights` until stopped."""

    def __init__(self, sights: Sights) -> None:
        self._sights = sights
        self._requests = 0
        self._explanations = 0
        self._encoder = msgspec.json.Encoder(enc_hook=str)
        self._runner: web.AppRunner | None = None
        self.port = 0

    async def start(self, *, host: str, port: int) -> None:
        """Listen on `host`; port 0 picks a free one. `self.port` tells which.

        Raises:
            OSError: The address is taken or is none of this host's.
        """
        app = web.Application(middlewares=[self._bounded], client_max_size=1024)
        app.add_routes(
            [
                web.get("/", self._index),
                web.get("/metrics", self._metrics),
                *(web.get(f"/{name}", self._health) for name in ("healthz", "readyz", "livez")),
                web.get("/configz", self._config),
                web.get("/debug/decisions", self._decisions),
                web.get("/debug/explain", self._explain),
            ]
        )
        runner = web.AppRunner(
            app,
            access_log=None,
            keepalive_timeout=30.0,
            max_line_size=_HEADER_BYTES_MAX,
            max_field_size=_HEADER_BYTES_MAX,
            # A scrape under way may end; a client that holds its connection open may not hold up the shutdown.
            shutdown_timeout=1.0,
        )
        await runner.setup()
        try:
            await web.TCPSite(runner, host, port).start()
        except BaseException:
            await runner.cleanup()
            raise
        self._runner = runner
        self.port = int(runner.addresses[0][1])

    async def stop(self) -> None:
        """Stop listening and close all connections; harmless when not started."""
        if self._runner is not None:
            runner, self._runner = self._runner, None
            await runner.cleanup()

    @web.middleware
    async def _bounded(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        if self._requests >= REQUESTS_MAX:
            return _problem(503, f"{REQUESTS_MAX} requests are being served, try again", retry=True)
        self._requests += 1
        try:
            return await handler(request)
        finally:
            self._requests -= 1

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
        text = request.query.get("limit", str(DECISIONS_DEFAULT))
        if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= DECISIONS_MAX:
            return _problem(400, f"limit={text[:40]!r} is not a number from 1 to {DECISIONS_MAX}")
        return self._json(self._sights.decisions(int(text), request.query.get("pod", "")))

    async def _explain(self, request: web.Request) -> web.Response:
        if closed := self._closed(request):
            return closed
        pod = request.query.get("pod", "")
        namespace, _, name = pod.partition("/")
        if not namespace or not name:
            return _problem(400, "name the pod: /debug/explain?pod=namespace/name")
        if self._explanations >= EXPLANATIONS_MAX:
            return _problem(503, f"{EXPLANATIONS_MAX} explanations are under way, try again", retry=True)
        self._explanations += 1
        try:
            answer = await self._sights.explain(pod)
        finally:
            self._explanations -= 1
        return _problem(404, f"no pod {pod} is known here") if answer is None else self._json(answer)

    def _closed(self, request: web.Request) -> web.Response | None:
        if self._sights.debug_open or _is_local(request.remote):
            return None
        return _problem(403, "debug endpoints answer this host only: use kubectl port-forward")

    def _json(self, value: object) -> web.Response:
        return web.Response(body=self._encoder.encode(value) + b"\n", content_type="application/json")


def _is_local(address: str | None) -> bool:
    if not address:
        return False
    parsed = ipaddress.ip_address(address.partition("%")[0])
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return (mapped or parsed).is_loopback


def _problem(status: int, text: str, *, retry: bool = False) -> web.Response:
    headers = {"Retry-After": "1"} if retry else None
    return web.json_response({"error": text}, status=status, headers=headers)
