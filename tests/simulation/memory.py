"""
An API server in memory: the fake one's answers for the project's own client, without a socket in between.

Comes in: what `graphsched.base.kube.client.Client` would hand to aiohttp. Goes out: responses of the same form, with
the same bytes and the same errors of the library, so that all of the client above its HTTP session is the real one:
deadlines, the renewal of credentials, what a status means, how a watch is cut into lines. What lies between client and
server is a `Network`: how long each way takes, and whether the server is there at all.

Invariants: a request that has arrived is carried out whatever becomes of its client, as on a real server; the chunks of
a watch arrive in order; a client has no more connections than it was given.
"""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import errno
import types
import typing
from collections.abc import Callable, Mapping

import aiohttp
import msgspec
import yarl

from graphsched.base.kube import client as clients, credentials, permits
from tests.fakes import serving, virtual, watching

URL = "http://memory"
#: What a server lets lie in front of a client that reads slowly before it gives it up.
UNREAD_BYTES_MAX = 4 << 20
_ORIGIN = credentials.Credentials(origin="simulation", server=URL)


class Network(typing.Protocol):
    """What lies between clients and the server."""

    def there_s(self, request: serving.Request) -> float:
        """How long the request takes to arrive."""
        ...

    def back_s(self, request: serving.Request) -> float:
        """How long an answer, or a piece of a watch, takes to arrive."""
        ...


class Instant:
    """A network that takes no time."""

    def there_s(self, _request: serving.Request) -> float:
        """None."""
        return 0.0

    def back_s(self, _request: serving.Request) -> float:
        """None."""
        return 0.0


class Server(serving.Server):
    """The server, reached by `client` alone; an async context manager."""

    def __init__(self, network: Network | None = None) -> None:
        super().__init__()
        self.network: Network = network or Instant()
        #: Called with every request that has ended: its status, 0 for no answer, 200 at the end of a watch.
        self.on_end: Callable[[serving.Request, int], None] = lambda _request, _status: None
        self.up = False
        self._connections: dict[Connection, None] = {}
        self._context = contextvars.copy_context()

    async def __aenter__(self) -> typing.Self:
        self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        await self.stop()

    def start(self) -> None:
        """Be there."""
        self._stopping.clear()
        self.up = True

    async def stop(self) -> None:
        """Be gone: all connections break, and what is not carried out yet never will be. The objects stay."""
        self.up = False
        self._stopping.set()
        gone = list(self._connections)
        for connection in gone:
            connection.kill()
        tasks = [connection.task for connection in gone if connection.task is not None]
        if tasks:
            await asyncio.wait(tasks)

    def sever(self, sender: str) -> None:
        """Break all connections of one client, as when its process dies; what has arrived is carried out."""
        for connection in list(self._connections):
            if connection.request.sender == sender:
                connection.leave()
                connection.abort()

    def client(self, *, token: str = "", sender: str = "", connections_max: int = clients.CONNECTIONS_MAX) -> Client:
        """A client of this server, to be entered; `sender` is its name in the record of requests."""

        async def load() -> credentials.Credentials:
            return msgspec.structs.replace(_ORIGIN, authorization=f"Bearer {token}" if token else "")

        keeper = credentials.Keeper(load, clock=virtual.LoopClock())
        return Client(self, keeper, sender=sender, connections_max=connections_max)

    # ── for connections ────────────────────────────────────────────────────────────────────────────────────────────

    def connect(self, connection: Connection) -> None:
        """Have the request carried out.

        Raises:
            ClientOSError: Nobody listens.
        """
        if not self.up:
            raise aiohttp.ClientOSError(errno.ECONNREFUSED, "Connection refused")
        self._connections[connection] = None
        connection.task = asyncio.get_running_loop().create_task(
            self._speak(connection), name=f"serve {connection.request.path}", context=self._context.copy()
        )

    async def _speak(self, connection: Connection) -> None:
        status = 0
        try:
            answer = await self.serve(connection.request, connection.begin)
            if answer is None:
                status = 200
                connection.end()
            else:
                status = answer.status
                connection.answer(answer)
        except serving.Broken:
            connection.abort()
        finally:
            del self._connections[connection]
            self.on_end(connection.request, status)


class Connection:
    """A request under way, seen from the server: the pipe of a watch."""

    def __init__(self, server: Server, request: serving.Request) -> None:
        self.request = request
        self.task: asyncio.Task[None] | None = None
        #: The head of the answer; an error when the connection broke before.
        self.head: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._server = server
        self._response: Response | None = None
        self._left = False
        self._due = 0.0

    async def begin(self) -> watching.Pipe:
        """Let a watch in."""
        self._response = Response(200, {"Content-Type": "application/json"}, self.leave)
        self._later(self._arrive, self._response)
        return self

    def answer(self, answer: serving.Answer) -> None:
        """Answer whole."""
        response = self._response = Response(answer.status, answer.headers, self.leave)
        response.content.feed(answer.body)
        response.content.feed(b"")
        self._later(self._arrive, response)

    async def write(self, data: bytes) -> None:
        """Send a piece of a watch."""
        if self._response is None or self._left:
            raise ConnectionResetError(errno.ECONNRESET, "the client has gone")
        if self._response.content.unread > UNREAD_BYTES_MAX:
            self.abort()
            raise ConnectionResetError(errno.ECONNRESET, "the client reads too slowly")
        self._later(self._response.content.feed, data)

    def end(self) -> None:
        """The watch is over."""
        if self._response is not None:
            self._later(self._response.content.feed, b"")

    def abort(self) -> None:
        """Break it; what was sent before still arrives."""
        self._later(self._break)

    def kill(self) -> None:
        """Break it, and have its request forgotten."""
        if self.task is not None:
            self.task.cancel()
        self.abort()

    def leave(self) -> None:
        """The client is done with it. The server notices at a watch, and carries out everything else."""
        self._left = True
        for watch in self._server.watches:
            if watch.pipe is self:
                watch.end()

    def _arrive(self, response: Response) -> None:
        if not self.head.done():
            self.head.set_result(response)

    def _break(self) -> None:
        error = aiohttp.ServerDisconnectedError()
        if not self.head.done():
            self.head.set_exception(error)
            # Its client may be gone as well, and then nobody asks.
            self.head.exception()
        elif self._response is not None:
            self._response.content.fail(error)

    def _later(self, do: Callable[..., object], *args: object) -> None:
        """Do it on the client's side, after whatever was sent before."""
        loop = asyncio.get_running_loop()
        self._due = max(self._due, loop.time() + self._server.network.back_s(self.request))
        loop.call_at(self._due, do, *args)


class Content:
    """The body of a response as it arrives."""

    def __init__(self) -> None:
        self.unread = 0
        #: How long the reader waits for the next chunk; None for ever.
        self.stall_s: float | None = None
        self._chunks: list[bytes] = []
        self._ended = False
        self._error: Exception | None = None
        self._news = asyncio.Event()

    def feed(self, chunk: bytes) -> None:
        """A chunk has arrived; an empty one is the end."""
        self._ended = self._ended or not chunk
        self._chunks.append(chunk)
        self.unread += len(chunk)
        self._news.set()

    def fail(self, error: Exception) -> None:
        """The connection broke; what had arrived can still be read."""
        if not self._ended:
            self._error = self._error or error
            self._news.set()

    async def read(self) -> bytes:
        """All until the end.

        Raises:
            ClientError: The connection broke before, or nothing came for too long.
        """
        data = b""
        while chunk := await self.readany():
            data += chunk
        return data

    async def readany(self) -> bytes:
        """All that has arrived; nothing at the end.

        Raises:
            ClientError: The connection broke, or nothing came for too long.
        """
        while True:
            if self._chunks:
                data = b"".join(self._chunks)
                self._chunks.clear()
                self.unread = 0
                if data:
                    return data
            if self._error is not None:
                raise self._error
            if self._ended:
                return b""
            self._news.clear()
            try:
                async with asyncio.timeout(self.stall_s):
                    await self._news.wait()
            except TimeoutError:
                raise aiohttp.SocketTimeoutError("Timeout on reading data from socket") from None


class _Transport:
    """What the client breaks when it wants to break a connection."""

    def __init__(self, abort: Callable[[], None]) -> None:
        self.abort = abort
        #: Of a response's connection; it is its own.
        self.transport = self


class Response:
    """As much of `aiohttp.ClientResponse` as the client uses."""

    def __init__(self, status: int, headers: Mapping[str, str], on_leave: Callable[[], None]) -> None:
        self.status = status
        self.headers = headers
        self.content = Content()
        self.connection = _Transport(self._abort)
        self.close = on_leave

    async def read(self) -> bytes:
        """The whole body."""
        return await self.content.read()

    def _abort(self) -> None:
        self.content.fail(aiohttp.ClientConnectionError("Connection closed"))
        self.close()


class _Exchange:
    """What `session.request(…)` gives: enter it for the response."""

    def __init__(self, session: Session, request: serving.Request, timeout: aiohttp.ClientTimeout) -> None:
        self._session = session
        self._request = request
        self._timeout = timeout
        self._response: Response | None = None

    async def __aenter__(self) -> Response:
        await self._session.places.acquire()
        try:
            async with asyncio.timeout(self._timeout.total):
                self._response = await self._session.exchange(self._request, stall_s=self._timeout.sock_read)
        except BaseException:
            self._session.places.release()
            raise
        return self._response

    async def __aexit__(self, *_: object) -> None:
        self._session.places.release()
        if self._response is not None:
            self._response.close()


class Session:
    """As much of `aiohttp.ClientSession` as the client uses."""

    def __init__(self, server: Server, *, sender: str, connections_max: int) -> None:
        self.places = asyncio.Semaphore(connections_max)
        self._server = server
        self._sender = sender
        self._cut = False

    def request(
        self,
        method: str,
        url: yarl.URL,
        *,
        params: clients.Query | None,
        data: bytes | permits.Permitted | None,
        headers: Mapping[str, str],
        timeout: aiohttp.ClientTimeout,
        **_: object,
    ) -> _Exchange:
        """Prepare a request."""
        request = serving.Request(
            method=method,
            path=url.path,
            query={name: str(value) for name, value in (params or {}).items()},
            headers=headers,
            body=msgspec.json.decode(data.taken() if isinstance(data, permits.Permitted) else data) if data else None,
            at_s=virtual.now(),
            sender=self._sender,
        )
        return _Exchange(self, request, timeout)

    async def exchange(self, request: serving.Request, *, stall_s: float | None) -> Response:
        """Send the request; the response once its head is there."""
        await asyncio.sleep(self._server.network.there_s(request))
        if self._cut:
            raise aiohttp.ClientConnectionError("Session is closed")
        connection = Connection(self._server, dataclasses.replace(request, at_s=virtual.now()))
        self._server.connect(connection)
        try:
            response = await asyncio.shield(connection.head)
        except BaseException:
            connection.leave()
            raise
        response.content.stall_s = stall_s
        return response

    def cut(self) -> None:
        """Send nothing any more."""
        self._cut = True

    async def close(self) -> None:
        """Nothing is kept open."""


class Client(clients.Client):
    """The project's client with its session in memory."""

    def __init__(self, server: Server, keeper: credentials.Keeper, *, sender: str, connections_max: int) -> None:
        super().__init__(keeper, connections_max=connections_max)
        self.session = Session(server, sender=sender, connections_max=connections_max)

    async def __aenter__(self) -> typing.Self:
        self._session = self._pages = typing.cast("aiohttp.ClientSession", self.session)
        return self
