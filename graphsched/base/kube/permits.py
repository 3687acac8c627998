"""The last look before a request leaves: a body that asks whether it may be sent when it is about to be written.

Between a call of the client and the socket lie a free connection to wait for, perhaps a handshake, and a turn of the
event loop; a process may be stopped there for minutes. A right to write that was checked before may be over by then.
The body is written last, and no server acts on a request whose body it does not have, so this is where to ask.

Invariant: a body that was refused is not sent in part; its connection is closed.
"""

from __future__ import annotations

from collections.abc import Callable

import aiohttp
from aiohttp import abc

Permit = Callable[[], object]
"""Raises a `ClusterError` when the request may not be sent any more."""


class Permitted(aiohttp.BytesPayload):
    """Bytes of a request that are sent with a permit only."""

    def __init__(self, data: bytes, permit: Permit, *, content: str) -> None:
        super().__init__(data, content_type=content)
        self._permit = permit

    def taken(self) -> bytes:
        """The bytes, for who sends them by other means at once.

        Raises:
            ClusterError: They may not be sent any more.
        """
        self._permit()
        return self._value

    async def write_with_length(self, writer: abc.AbstractStreamWriter, content_length: int | None) -> None:
        """See the base. What is raised here comes out of the request as the cause of a `ClientError`."""
        self._permit()
        await super().write_with_length(writer, content_length)
