"""
A fake API server over real HTTP on loopback, in the test's own loop, for what the real one can not be made to do.

`serving` says what it answers; here are the sockets. Comes in: HTTP requests. Goes out: HTTP responses, and broken
connections.

    async with apiserver.FakeApiServer() as server:
        server.create("/api/v1/nodes", objects.node("n1"))
        async with server.client() as client:
            ...
"""

import asyncio
import types
from typing import Self

import msgspec
from aiohttp import web

from graphsched.base.kube import client as clients, credentials
from tests.fakes import serving, virtual

NODES = serving.NODES
PODS = serving.PODS
NAMESPACES = serving.NAMESPACES
PRIORITY_CLASSES = serving.PRIORITY_CLASSES
EVENTS = serving.EVENTS
Request = serving.Request


class FakeApiServer(serving.Server):
    """The server; an async context manager."""

    def __init__(self) -> None:
        super().__init__()
        self._runner: web.ServerRunner | None = None
        self._server: web.Server | None = None
        self._port = 0

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
        self._server = web.Server(self._speak)
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

    async def _speak(self, http: web.BaseRequest) -> web.StreamResponse:
        raw = await http.read()
        request = Request(
            method=http.method,
            path=http.path,
            query=dict(http.query),
            headers=http.headers,
            body=msgspec.json.decode(raw) if raw else None,
            at_s=virtual.now(),
        )
        response = web.StreamResponse(headers={"Content-Type": "application/json"})

        async def begin() -> _Pipe:
            await response.prepare(http)
            return _Pipe(response, http.transport)

        try:
            answer = await self.serve(request, begin)
        except serving.Broken:
            if http.transport is not None:
                http.transport.abort()
            return web.Response()
        if answer is None:
            return response
        return web.Response(status=answer.status, body=answer.body, headers=answer.headers)


class _Pipe:
    """Where a watch writes to."""

    def __init__(self, response: web.StreamResponse, transport: asyncio.Transport | None) -> None:
        self._response = response
        self._transport = transport

    async def write(self, data: bytes) -> None:
        """Send bytes."""
        await self._response.write(data)

    def abort(self) -> None:
        """Break the connection."""
        if self._transport is not None:
            self._transport.abort()
