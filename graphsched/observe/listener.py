"""Takes connections for the HTTP server, and never more of them than it can hold.

Comes in: an address, an aiohttp server that makes the protocol of each connection, and TLS or none. Goes out:
connections at work. asyncio's own server would take as many as the system has descriptors, and those that shake hands
are seen by nobody; here both are counted.

Invariants: at most `CONNECTIONS_MAX` at a time, handshakes included. Who comes when all are taken gets the place of the
one that has been there longest and asks nothing, so that whoever only holds connections keeps a kubelet's probe out for
no moment.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
import typing

from aiohttp import web, web_protocol

_log = logging.getLogger(__name__)

CONNECTIONS_MAX = 128
"""A kubelet, a few scrapers and people need a dozen."""
HANDSHAKE_S = 10.0
"""For a TLS handshake, and for the good-bye at the end."""
_BACKLOG = 128
_ABSENT = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
"""A name may stand for addresses that this host does not have: `localhost` for `::1`, in a pod without IPv6."""
_PAUSE_S = 1.0
"""After the system had no descriptor left for a connection."""

Protocol = web_protocol.RequestHandler


class Listener:
    """Listens on one address and serves with `server`."""

    def __init__(self, server: web.Server, *, tls: ssl.SSLContext | None) -> None:
        self._server = server
        self._tls = tls
        self._sockets: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._shaking: dict[asyncio.Task[None], None] = {}
        self.busy: set[Protocol] = set()
        """Connections with a request at work; whoever serves the requests says so."""

    async def start(self, host: str, port: int) -> int:
        """Listen at all addresses that `host` stands for; returns the port, which is one for all of them.

        Raises:
            OSError: The address is taken or is none of this host's.
        """
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        absent: OSError | None = None
        try:
            for family, _, _, _, address in dict.fromkeys(found):
                try:
                    listening = socket.create_server((str(address[0]), port), family=family, backlog=_BACKLOG)
                except OSError as error:
                    if error.errno not in _ABSENT:
                        raise
                    absent = error
                    continue
                self._sockets.append(listening)
                listening.setblocking(False)
                port = listening.getsockname()[1]
            if absent is not None and not self._sockets:
                raise absent
        except BaseException:
            self._close()
            raise
        self._accepting = [asyncio.create_task(self._accept(each), name="accept") for each in self._sockets]
        return port

    async def stop(self) -> None:
        """Take no more connections and end the handshakes; those that are open are the server's to close."""
        tasks = [*self._accepting, *self._shaking]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._accepting = []
        self._close()

    def _close(self) -> None:
        while self._sockets:
            self._sockets.pop().close()

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listening)
            except OSError as error:
                # As a rule the process has no descriptor left. What is waiting stays in the system's queue.
                _log.warning("no connection can be taken: %s", error)
                await asyncio.sleep(_PAUSE_S)
                continue
            if not self._has_room():
                connection.close()
                continue
            task = asyncio.create_task(self._begin(connection), name="handshake")
            self._shaking[task] = None
            task.add_done_callback(self._shaking.pop)

    async def _begin(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        limits: dict[str, typing.Any] = {}
        if self._tls is not None:
            limits = {"ssl_handshake_timeout": HANDSHAKE_S, "ssl_shutdown_timeout": HANDSHAKE_S}
        try:
            await loop.connect_accepted_socket(self._server, connection, ssl=self._tls, **limits)
        except OSError as error:
            # Somebody without TLS, with too old a version, or who trusts somebody else. TimeoutError is one of these.
            _log.debug("a connection did not come about: %s", error)
            connection.close()
        except asyncio.CancelledError:
            connection.close()
            raise

    def _has_room(self) -> bool:
        """Whether another one may come; where all places are taken, the one that has been idle longest goes for it."""
        taken = [each for each in self._server.connections if each.transport and not each.transport.is_closing()]
        shaking = [task for task in self._shaking if not task.cancelling()]
        if len(taken) + len(shaking) < CONNECTIONS_MAX:
            return True
        idle = next((each.transport for each in taken if each not in self.busy), None)
        if idle is not None:
            idle.abort()
        elif shaking:
            shaking[0].cancel()
        return idle is not None or bool(shaking)
