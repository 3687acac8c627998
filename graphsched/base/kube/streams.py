"""A watch as it comes: chunks of bytes of any size become whole lines.

`client` opens the response, `Watch` reads it; `reflector` decodes the lines. A line may be of several megabytes and
arrive in hundreds of chunks, so pieces are gathered and joined once.

Invariant: a line is handed out whole or not at all: what a broken connection left of one is dropped.
"""

from __future__ import annotations

import aiohttp

from graphsched.base.kube import answers
from graphsched.base.values import errors

LINE_BYTES_MAX = 64 << 20
"""etcd holds objects of 1.5 MB by default; forty times that is no object but a broken stream."""

STALLED = "Stalled"
TOO_LONG = "LineTooLong"


class Lines:
    """Cuts a stream of chunks at newlines."""

    def __init__(self, *, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that this chunk completes, without newlines; empty ones are left out.

        Raises:
            ClusterError: The line that goes on is longer than the bound.
        """
        head, newline, tail = chunk.partition(b"\n")
        lines: list[bytes] = []
        if newline:
            if self._pieces:
                self._pieces.append(head)
                head = b"".join(self._pieces)
                self._pieces = []
            self._size = 0
            *lines, tail = (head, *tail.split(b"\n"))
            chunk = tail
        if chunk:
            self._pieces.append(chunk)
            self._size += len(chunk)
            if self._size > self._bytes_max:
                text = f"a line of a watch is longer than {self._bytes_max} bytes"
                raise errors.ClusterError(text, reason=TOO_LONG)
        return [line for line in lines if line]


class Watch:
    """An open watch."""

    def __init__(self, response: aiohttp.ClientResponse, *, what: str, bytes_max: int) -> None:
        self._response = response
        self._what = what
        self._lines = Lines(bytes_max=bytes_max)

    async def read(self) -> list[bytes] | None:
        """The next whole lines, one at least; None once the server has ended the watch.

        Raises:
            UnreachableError: The connection broke, or nothing came for too long (then `reason` is `STALLED`).
            ClusterError: A line is too long.
        """
        try:
            while chunk := await self._response.content.readany():
                lines = self._lines.feed(chunk)
                if lines:
                    return lines
        except TimeoutError as error:
            raise answers.unreachable(error, what=self._what, reason=STALLED) from error
        except (aiohttp.ClientError, OSError) as error:
            raise answers.unreachable(error, what=self._what) from error
        return None

    def close(self) -> None:
        """Break it off without a farewell; whoever reads gets an `UnreachableError`. After its end a no-op."""
        connection = self._response.connection
        if connection is not None and connection.transport is not None:
            # A farewell over TLS would wait for a server that is still sending.
            connection.transport.abort()
        self._response.close()
