"""
What a caller can make the server hold, and for how long: sizes, bodies, connections, silence. By raw sockets.

Only the loop's clock is simulated: minutes pass as soon as nothing else can happen.
"""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from graphsched.observe import listener, server
from tests.fakes import virtual
from tests.observe import test_server, test_server_door

HEAD = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n"
PROBE = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
"""A whole request, whose connection stays open."""

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Callers:
    """Opens connections to one server, and closes them all in the end."""

    def __init__(self, serving: server.Server, world: test_server.World) -> None:
        self.serving = serving
        self.world = world
        self._open: list[asyncio.StreamWriter] = []

    async def call(self, data: bytes = b"") -> asyncio.StreamReader:
        """Open a connection and send so much."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.serving.port)
        self._open.append(writer)
        writer.write(data)
        return reader

    def close(self) -> None:
        """Close all of them."""
        for writer in self._open:
            writer.transport.abort()


@contextlib.asynccontextmanager
async def serving(*, tls: bool = False) -> AsyncIterator[Callers]:
    """A server with callers."""
    world = test_server.World()
    certificate = test_server_door.own_certificate() if tls else None
    serves = server.Server(test_server.sights_of(world), server.Door(None, certificate))
    await serves.start(host="127.0.0.1", port=0)
    callers = Callers(serves, world)
    try:
        yield callers
    finally:
        callers.close()
        await serves.stop()


async def status(reader: asyncio.StreamReader) -> int:
    """The status of the next answer, whose headers and body are read."""
    line = await reader.readline()
    headers = (await reader.readuntil(b"\r\n\r\n")).decode().lower().splitlines()
    length = next(int(text.partition(":")[2]) for text in headers if text.startswith("content-length:"))
    await reader.readexactly(length)
    return int(line.split()[1])


async def ended(reader: asyncio.StreamReader) -> bytes:
    """What came until the server closed the connection."""
    try:
        return await reader.read()
    except ConnectionResetError:
        return b""


@virtual.timed
@pytest.mark.parametrize(
    "request_bytes",
    [
        b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\n\r\n",
        HEAD + b"X: " + b"x" * 9000 + b"\r\n\r\n",
        HEAD + b"X: y\r\n" * 100 + b"\r\n",
        HEAD + b"X" * 9000 + b": y\r\n\r\n",
    ],
    ids=["line", "header", "headers", "name"],
)
async def test_a_request_that_is_too_big_is_refused(request_bytes: bytes) -> None:
    """400 and good-bye; nothing of it is kept."""
    async with serving() as callers:
        reader = await callers.call(request_bytes)
        answer = await ended(reader)

    assert answer.split()[1] == b"400"


@virtual.timed
@pytest.mark.parametrize(
    "rest",
    [
        b"Content-Length: 1000000000\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\nffff\r\n",
        b"Content-Length: 5\r\n\r\nhello",
        b"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n",
    ],
    ids=["huge", "chunked", "small", "expected"],
)
@pytest.mark.parametrize("first", [HEAD, HEAD.replace(b"GET", b"POST"), HEAD.replace(b"metrics", b"livez")])
async def test_a_body_is_refused_unread(first: bytes, rest: bytes) -> None:
    """Whatever its length and whomever it is for: 413, and the connection is closed without waiting for the rest."""
    async with serving() as callers:
        reader = await callers.call(first + rest)
        answer = await ended(reader)
        assert virtual.now() < 1.0

    assert b"HTTP/1.1 413" in answer
    assert b"no request here has a body" in answer


@virtual.timed
@pytest.mark.parametrize("sent", [b"", b"GET /met", HEAD, HEAD + b"X: y"], ids=["nothing", "line", "headers", "name"])
@pytest.mark.parametrize("before", [b"", PROBE], ids=["first", "second"])
async def test_a_request_that_does_not_come_in_whole_ends(sent: bytes, before: bytes) -> None:
    """Half a minute after the connection was made or the last answer given, whatever trickles in."""
    async with serving() as callers:
        reader = await callers.call(before)
        if before:
            assert 200 == await status(reader)
        callers._open[-1].write(sent)
        trickling = asyncio.create_task(_trickle(callers._open[-1], b"x" if sent else b"\r\n"))
        assert b"" == await ended(reader)
        trickling.cancel()
        assert server.HEADER_S_MAX == pytest.approx(virtual.now(), abs=1.5)


async def _trickle(writer: asyncio.StreamWriter, data: bytes) -> None:
    """A little each second keeps no connection."""
    while True:
        await asyncio.sleep(1.0)
        writer.write(data)


@virtual.timed
async def test_a_handshake_that_does_not_begin_ends() -> None:
    """A connection to the TLS port that says nothing."""
    async with serving(tls=True) as callers:
        reader = await callers.call()
        assert b"" == await ended(reader)
        assert listener.HANDSHAKE_S == pytest.approx(virtual.now(), abs=0.5)


@virtual.timed
@pytest.mark.parametrize("tls", [False, True])
async def test_who_only_holds_connections_keeps_nobody_out(monkeypatch: pytest.MonkeyPatch, *, tls: bool) -> None:
    """Where all places are taken, a newcomer gets that of the one that has been silent longest."""
    monkeypatch.setattr(listener, "CONNECTIONS_MAX", 4)
    async with serving(tls=tls) as callers:
        silent = [await callers.call() for _ in range(4)]
        await asyncio.sleep(0.1)
        context = test_server_door.unchecked() if tls else None
        reader, writer = await asyncio.open_connection("127.0.0.1", callers.serving.port, ssl=context)
        writer.write(PROBE)
        assert 200 == await status(reader)
        assert b"" == await ended(silent[0])
        assert [False] * 3 == [each.at_eof() for each in silent[1:]]
        assert virtual.now() < 1.0
        writer.transport.abort()


@virtual.timed
async def test_who_is_being_answered_keeps_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many newcomers there are."""
    monkeypatch.setattr(listener, "CONNECTIONS_MAX", 2)
    async with serving() as callers:
        callers.world.release = asyncio.Event()
        first = await callers.call(b"GET /debug/explain?pod=default/a HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await callers.world.busy.get()
        for _ in range(5):
            assert 200 == await status(await callers.call(PROBE))
        callers.world.release.set()
        assert 200 == await status(first)


@virtual.timed
async def test_a_probe_is_answered_while_all_others_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kubelet does not restart a scheduler because somebody asks much of it."""
    monkeypatch.setattr(server, "REQUESTS_MAX", 1)
    async with serving() as callers:
        callers.world.release = asyncio.Event()
        await callers.call(b"GET /debug/graph HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await callers.world.busy.get()
        assert 503 == await status(await callers.call(HEAD + b"\r\n"))
        assert 200 == await status(await callers.call(PROBE))


@virtual.timed
async def test_an_answer_that_takes_too_long_is_given_up() -> None:
    """Whatever holds it up, its place is free again after a minute and a half."""
    async with serving() as callers:
        callers.world.release = asyncio.Event()
        reader = await callers.call(b"GET /debug/explain?pod=default/a HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"" == await ended(reader)
        assert server.ANSWER_S_MAX == pytest.approx(virtual.now(), abs=0.5)
        assert 0 == callers.serving._explanations == callers.serving._requests


@virtual.timed
async def test_no_place_is_lost_when_callers_go_away() -> None:
    """In the middle of a request, of an answer, before anything."""
    async with serving() as callers:
        callers.world.release = asyncio.Event()
        callers.world.release.set()
        callers.world.data = bytes(8 << 20)
        for data in (b"", HEAD, PROBE, b"GET /debug/graph HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            await callers.call(data)
        await callers.world.busy.get()
        callers.close()
        await asyncio.sleep(1.0)
        held = callers.serving._listener
        assert held is not None
        assert (0, False, set(), []) == (
            callers.serving._requests,
            callers.serving._giving,
            held.busy,
            held._server.connections,
        )


@pytest.mark.parametrize(
    ("addresses", "listens"),
    [(["127.0.0.1", "127.0.0.2"], 2), (["192.0.2.1", "127.0.0.1"], 1), (["192.0.2.1"], 0)],
)
@virtual.timed
async def test_a_name_is_listened_to_at_the_addresses_this_host_has(addresses: list[str], listens: int) -> None:
    """All of them at one port; those of nobody here are left out, unless there is no other."""
    loop, held = asyncio.get_running_loop(), listener.Listener(web.Server(_unasked), tls=None)

    async def found(*_: object, **__: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, 0)) for each in addresses]

    loop.getaddrinfo = found  # type: ignore[method-assign, assignment]
    if listens:
        port = await held.start("somewhere", 0)
        assert [port] * listens == [each.getsockname()[1] for each in held._sockets]
    else:
        with pytest.raises(OSError, match="assign requested address"):
            await held.start("somewhere", 0)
    await held.stop()
    assert [] == held._sockets


async def _unasked(_request: web.BaseRequest) -> web.StreamResponse:
    """Serve nothing: nobody asks."""
    raise AssertionError


@virtual.timed
@pytest.mark.parametrize("host", [b"localhost:x", b"localhost:99999", b"\xff", b"xn--"])
async def test_a_host_that_is_none_is_refused(host: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """It is no local name; and whoever sends such things fills no log."""
    async with serving() as callers:
        reader = await callers.call(b"GET /debug/queue HTTP/1.1\r\nHost: " + host + b"\r\n\r\n")
        assert 403 == await status(reader)

    assert [] == [record for record in caplog.records if record.levelno >= logging.WARNING]


@virtual.timed
@pytest.mark.parametrize("path", [b"/metrics", b"/livez"])
async def test_who_hangs_up_before_the_answer_fills_no_log(path: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """Scrapers time out, and anybody may call the health endpoints: that is no error, and the next one is served."""
    async with serving() as callers:
        for _ in range(3):
            reader = await callers.call(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
            callers._open[-1].write_eof()
            await ended(reader)
        assert 200 == await status(await callers.call(PROBE))

    assert [] == [record for record in caplog.records if record.levelno >= logging.WARNING]
