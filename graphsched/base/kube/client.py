"""The API server, as calls with deadlines.

Path, query and body come in; the body of the answer goes out as bytes, for `wire` to decode. `lists` and `reflector`
read through it, `action` writes through it.

One aiohttp session with connections kept alive serves all but pages of lists, which have a few of their own, and
watches, which have theirs: the event loop keeps a buffer of 256 kB a TLS connection, and idle connections are
used in turn, so that after one list of megabytes, or a day of watches that end and begin anew on another connection,
all would have theirs filled for good (measured: 8 to 15 MB). Compression is declined: it made a list of 5,000
pods take 140 ms instead of 110 (measured on loopback), and on a watch it delays events until a block is full.

Invariants: every wait has a limit; every failure is a `ClusterError`, and a cancellation none, whenever it comes; a
request is sent again by itself only after a 401, when it can not have taken effect.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import types
import typing
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator, Mapping

import aiohttp
import msgspec
import yarl

from graphsched.base.kube import answers, credentials, permits, streams
from graphsched.base.values import errors

REQUEST_S = 30.0
CONNECT_S = 10.0
"""TCP and TLS together."""
STALL_S = 150.0
"""The API server sends a bookmark about once a minute, so that two in a row are missing."""
PAGE_S = 60.0
"""An API server that has just started fills its caches while the first list waits."""
KEEP_ALIVE_S = 60.0
"""API servers keep idle connections open longer than this."""
CONNECTIONS_MAX = 64
PAGES_MAX = 4
"""Pages of lists at once; more of them would make each of them slower."""
_READ_BUFFER_BYTES = 1 << 20
"""How much of a watch is read ahead of who handles it, before TCP pushes back."""

Query = Mapping[str, str | int]
Patching = typing.Literal["merge", "strategic-merge", "json"]

_HEADERS = {"Accept": "application/json", "Accept-Encoding": "identity"}
_EMPTY: Query = {}


class Patience(msgspec.Struct, frozen=True, kw_only=True):
    """How long a client waits, in seconds.

    Attributes:
        request_s: For a call whose caller names no deadline, and for a watch to be let in.
        page_s: For one page of a list.
        stall_s: For the next word on a watch; after that it breaks.
    """

    request_s: float = REQUEST_S
    page_s: float = PAGE_S
    stall_s: float = STALL_S


class Client:
    """A client of one API server; an async context manager.

    Attributes:
        patience: How long it waits where nobody says otherwise.
    """

    def __init__(
        self,
        keeper: credentials.Keeper,
        *,
        user_agent: str = "graphsched",
        connections_max: int = CONNECTIONS_MAX,
        patience: Patience = Patience(),  # noqa: B008  frozen
    ) -> None:
        """Prepare; nothing is sent. More than `connections_max` requests at once wait for a free one, and as many
        watches, as do more than `PAGES_MAX` pages of lists.
        """
        self.patience = patience
        self._keeper = keeper
        self._user_agent = user_agent
        self._connections_max = connections_max
        self._session: aiohttp.ClientSession | None = None
        self._pages: aiohttp.ClientSession | None = None
        self._watches: aiohttp.ClientSession | None = None
        self._proxies: dict[str, str | None] = {}

    @property
    def keeper(self) -> credentials.Keeper:
        """Who keeps the credentials, for what reaches the API server by means of its own."""
        return self._keeper

    async def __aenter__(self) -> typing.Self:
        self._session, self._pages = self._connected(self._connections_max), self._connected(PAGES_MAX)
        self._watches = self._connected(self._connections_max)
        return self

    def _connected(self, connections_max: int) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(limit=connections_max, keepalive_timeout=KEEP_ALIVE_S, socket_factory=_socket)
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={**_HEADERS, "User-Agent": self._user_agent},
            read_bufsize=_READ_BUFFER_BYTES,
        )

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        for session in (self._session, self._pages, self._watches):
            if session is not None:
                await session.close()
        self._session = self._pages = self._watches = None

    async def get(self, path: str, query: Query = _EMPTY, *, deadline_s: float | None = None) -> bytes:
        """Read what is at `path`."""
        return await self._request("GET", path, query, None, deadline_s=deadline_s)

    async def page(self, path: str, query: Query) -> bytes:
        """Read one page of the collection at `path`, within `patience.page_s`."""
        return await self._request("GET", path, query, None, deadline_s=self.patience.page_s, session=self._pages)

    async def post(
        self,
        path: str,
        body: object,
        query: Query = _EMPTY,
        *,
        deadline_s: float | None = None,
        permit: permits.Permit | None = None,
    ) -> bytes:
        """Create the object `body` (bytes of JSON, or anything that encodes to JSON) in the collection at `path`.

        With a `permit` it is asked right before the body leaves, and what it raises is raised here.
        """
        return await self._request("POST", path, query, body, deadline_s=deadline_s, permit=permit)

    async def put(self, path: str, body: object, query: Query = _EMPTY, *, deadline_s: float | None = None) -> bytes:
        """Replace the object at `path`."""
        return await self._request("PUT", path, query, body, deadline_s=deadline_s)

    async def patch(
        self,
        path: str,
        body: object,
        query: Query = _EMPTY,
        *,
        kind: Patching,
        deadline_s: float | None = None,
        permit: permits.Permit | None = None,
    ) -> bytes:
        """Change the object at `path`; for `permit` see `post`."""
        content = f"application/{kind}-patch+json"
        return await self._request("PATCH", path, query, body, content=content, deadline_s=deadline_s, permit=permit)

    async def delete(
        self,
        path: str,
        body: object = None,
        query: Query = _EMPTY,
        *,
        deadline_s: float | None = None,
    ) -> bytes:
        """Delete the object at `path`; `body` may hold preconditions."""
        return await self._request("DELETE", path, query, body, deadline_s=deadline_s)

    @contextlib.asynccontextmanager
    async def watch(self, path: str, query: Query, *, stall_s: float | None = None) -> AsyncIterator[streams.Watch]:
        """Open a watch; it breaks when nothing comes for `stall_s` (`patience` unless given).

        Raises:
            ClusterError: The server did not let it begin.
        """
        what = f"watch {path}"
        stall_s = self.patience.stall_s if stall_s is None else stall_s
        async with contextlib.AsyncExitStack() as stack:
            access = await self._keeper.current()
            response = await self._open(stack, access, path, query, stall_s=stall_s)
            if response.status == 401:
                renewed = await self._keeper.renew(access)
                if renewed is not access:
                    response = await self._open(stack, renewed, path, query, stall_s=stall_s)
            if response.status != 200:
                raise await self._refusal(response, what=what)
            watch = streams.Watch(response, what=what, bytes_max=streams.LINE_BYTES_MAX)
            stack.callback(watch.close)
            yield watch

    async def _open(
        self,
        stack: contextlib.AsyncExitStack,
        access: credentials.Access,
        path: str,
        query: Query,
        *,
        stall_s: float,
    ) -> aiohttp.ClientResponse:
        """Ask for something that begins within the usual time, although it may go on for long."""
        limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=stall_s)
        try:
            async with asyncio.timeout(self.patience.request_s):
                return await stack.enter_async_context(
                    self._send(access, "GET", path, query, None, limits=limits, session=self._watches)
                )
        except (aiohttp.ClientError, OSError) as error:
            raise answers.unreachable(error, what=f"watch {path}") from error

    async def _refusal(self, response: aiohttp.ClientResponse, *, what: str) -> errors.ClusterError:
        try:
            async with asyncio.timeout(self.patience.request_s):
                body = await response.read()
        except (aiohttp.ClientError, OSError):
            # The status has come, and says enough.
            body = b""
        return _error(response, body, what=what)

    async def _request(
        self,
        method: str,
        path: str,
        query: Query,
        body: object,
        *,
        content: str = "application/json",
        deadline_s: float | None,
        permit: permits.Permit | None = None,
        session: aiohttp.ClientSession | None = None,
    ) -> bytes:
        what = f"{method} {path}"
        plain = body if body is None or isinstance(body, bytes) else msgspec.json.encode(body)
        total_s = self.patience.request_s if deadline_s is None else deadline_s
        # Not aiohttp's own limit for the whole (3.14): where it runs out in the turn in which the caller is cancelled,
        # both are taken for it, and the caller goes on as if nobody had told it to end.
        limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S)
        access = await self._keeper.current()
        while True:
            data = plain if plain is None or permit is None else permits.Permitted(plain, permit, content=content)
            try:
                async with (
                    asyncio.timeout(total_s),
                    self._send(
                        access, method, path, query, data, content=content, limits=limits, session=session
                    ) as response,
                ):
                    # Not `response.read()`, which keeps what it returns: a response lives until its cycle is collected.
                    answer = await response.content.read()
            except (aiohttp.ClientError, OSError) as error:
                if isinstance(error.__cause__, errors.ClusterError):
                    raise error.__cause__ from None
                raise answers.unreachable(error, what=what) from error
            if response.status < 300:
                if not answer.startswith(b"{"):
                    # A page to log in at, or what is left of an answer: it was not the API server that said so.
                    raise answers.garbled(answer, what=what)
                return answer
            if response.status == 401:
                rejected, access = access, await self._keeper.renew(access)
                if access is not rejected:
                    continue
            raise _error(response, answer, what=what)

    def _send(
        self,
        access: credentials.Access,
        method: str,
        path: str,
        query: Query,
        data: bytes | permits.Permitted | None,
        *,
        content: str = "",
        limits: aiohttp.ClientTimeout,
        session: aiohttp.ClientSession | None = None,
    ) -> contextlib.AbstractAsyncContextManager[aiohttp.ClientResponse]:
        session = self._session if session is None else session
        if session is None:
            raise RuntimeError("use `async with Client(…) as client`")
        return session.request(
            method,
            # Paths are made of names of objects, which need no quoting; finding that out costs 5 µs a call.
            yarl.URL(access.server + path, encoded=True),
            params=query or None,
            data=data,
            headers={**access.headers, "Content-Type": content} if data is not None else access.headers,
            timeout=limits,
            # A page to log in at is no answer.
            allow_redirects=False,
            ssl=access.tls,
            server_hostname=access.server_name,
            proxy=access.proxy or self._environment_proxy(access.server),
        )

    def _environment_proxy(self, server: str) -> str | None:
        """What the environment said of this server when it was first asked."""
        if server not in self._proxies:
            self._proxies[server] = environment_proxy(server)
        return self._proxies[server]


def _error(response: aiohttp.ClientResponse, body: bytes, *, what: str) -> errors.ClusterError:
    return answers.error(response.status, body, what=what, retry_after=response.headers.get("Retry-After", ""))


def environment_proxy(server: str) -> str | None:
    """The proxy that the environment names for this server; never one for this very machine."""
    url = urllib.parse.urlsplit(server)
    host = url.hostname or ""
    excepted: bool = urllib.request.proxy_bypass_environment(host)  # type: ignore[attr-defined]
    if credentials.is_loopback(server) or excepted:
        return None
    return urllib.request.getproxies_environment().get(url.scheme)


def _socket(address: typing.Any) -> socket.socket:
    """A socket that notices within a minute that the other side is gone without a word."""
    family, kind, protocol, _, _ = address
    made = socket.socket(family=family, type=kind, proto=protocol)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_KEEPIDLE"):
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10)
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    return made
