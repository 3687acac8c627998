"""
A server between a scheduler and the API server that can hold a binding, lose its answer or answer it wrongly.

Comes in: all requests of one scheduler, over plain HTTP. Goes out: the same requests with all rights, and the answers
as they come, watches included. A test holds the binding of a pod, does what it likes in the meantime, and says how the
request goes on.

Invariants: what is not held passes unchanged; every binding and its answer's status are on record, in order. It runs in
a thread of its own, as the main thread waits for processes that need it.
"""

import asyncio
import concurrent.futures
import contextlib
import enum
import queue
import re
import threading
import types
from typing import Self

import aiohttp
import yarl
from aiohttp import web

from tests.controlplane import cluster as clusters, processes

DEADLINE_S = 30.0

_BINDING = re.compile(r"/api/v1/namespaces/[^/]+/pods/([^/]+)/binding")
_HOP = frozenset({"host", "connection", "content-length", "transfer-encoding"})
_BODY_BYTES_MAX = 8 << 20


class Onward(enum.Enum):
    """How a held binding goes on."""

    PASSES = enum.auto()
    #: The API server never sees it; the answer is 500.
    FAILS = enum.auto()
    #: The API server carries it out; the connection is closed instead of an answer.
    LOSES_ANSWER = enum.auto()


class Held:
    """A binding that waits; the request's sender waits with it."""

    def __init__(self, pod: str) -> None:
        self.pod = pod
        self._onward: concurrent.futures.Future[Onward] = concurrent.futures.Future()
        self._status: concurrent.futures.Future[int] = concurrent.futures.Future()

    def let_go(self, onward: Onward = Onward.PASSES) -> int:
        """Let it go on; return the status it met at the API server, or 500."""
        self._onward.set_result(onward)
        return self._status.result(timeout=DEADLINE_S)

    async def _told(self) -> Onward:
        return await asyncio.wrap_future(self._onward)


class Middleman:
    """The server; a context manager. `url` is where the scheduler goes."""

    def __init__(self, cluster: clusters.Cluster) -> None:
        self._cluster = cluster
        self._held: queue.Queue[Held] = queue.Queue()
        self._to_hold: set[str] = set()
        self._ready: concurrent.futures.Future[str] = concurrent.futures.Future()
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="middleman", daemon=True)
        self._session: aiohttp.ClientSession | None = None
        self._bindings: list[tuple[str, int]] = []
        self._under_way = 0

    def __enter__(self) -> Self:
        self._thread.start()
        self._ready.result(timeout=DEADLINE_S)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(timeout=DEADLINE_S)

    @property
    def url(self) -> str:
        """Where it listens."""
        return self._ready.result(timeout=DEADLINE_S)

    def hold(self, pod: str) -> None:
        """Hold the next binding of `pod`."""
        self._to_hold.add(pod)

    def arrived(self) -> Held:
        """Wait for the binding that is to be held."""
        return self._held.get(timeout=DEADLINE_S)

    def bindings(self) -> list[tuple[str, int]]:
        """All that was asked for so far, (pod, status), once none is under way: a pod is seen bound before that."""
        processes.wait_until(lambda: self._under_way == 0, what="no binding is under way", timeout_s=DEADLINE_S)
        return list(self._bindings)

    # ------------------------------------------------------------------ in its own thread

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        connector = aiohttp.TCPConnector(ssl=self._cluster.ssl, limit=0)
        # Compressed bodies pass as they are.
        unlimited = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(
            connector=connector, timeout=unlimited, auto_decompress=False
        ) as self._session:
            server = web.Application(client_max_size=_BODY_BYTES_MAX)
            server.router.add_route("*", "/{path:.*}", self._handle)
            runner = web.AppRunner(server, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
            await runner.setup()
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            self._ready.set_result(f"http://127.0.0.1:{runner.addresses[0][1]}")
            await self._over.wait()
            await runner.cleanup()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        binding = _BINDING.fullmatch(request.path) if request.method == "POST" else None
        if binding is None:
            return (await self._pass(request, lose=False))[1]
        self._under_way += 1
        try:
            return await self._bind(request, binding[1])
        finally:
            self._under_way -= 1

    async def _bind(self, request: web.Request, pod: str) -> web.StreamResponse:
        held, onward = None, Onward.PASSES
        if pod in self._to_hold:
            self._to_hold.discard(pod)
            held = Held(pod)
            self._held.put(held)
            onward = await held._told()
        if onward is Onward.FAILS:
            answer: web.StreamResponse = web.json_response(_FAILURE, status=_FAILURE_CODE)
            status = _FAILURE_CODE
        else:
            status, answer = await self._pass(request, lose=onward is Onward.LOSES_ANSWER)
        self._bindings.append((pod, status))
        if held:
            held._status.set_result(status)
        return answer

    async def _pass(self, request: web.Request, *, lose: bool) -> tuple[int, web.StreamResponse]:
        assert self._session is not None
        target = yarl.URL(f"{self._cluster.server}{request.raw_path}", encoded=True)
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
        body = await request.read()
        async with self._session.request(request.method, target, headers=headers, data=body or None) as answer:
            kept = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP}
            response = web.StreamResponse(status=answer.status, headers=kept)
            if lose:
                await answer.read()
                assert request.transport is not None
                request.transport.abort()
                return answer.status, response
            try:
                with contextlib.suppress(ConnectionError):
                    await response.prepare(request)
                    async for chunk in answer.content.iter_any():
                        await response.write(chunk)
                    await response.write_eof()
            finally:
                # A watch that is left: an orderly farewell would outlive the loop.
                if answer.connection is not None and answer.connection.transport is not None:
                    answer.connection.transport.abort()
            return answer.status, response


_FAILURE_CODE = 500
_FAILURE = {
    "apiVersion": "v1",
    "kind": "Status",
    "status": "Failure",
    "message": "made to fail by the test",
    "reason": "InternalError",
    "code": _FAILURE_CODE,
}
