"""The graph of a running scheduler, for commands that work on it elsewhere."""

from __future__ import annotations

import msgspec

from graphsched.app import asking
from graphsched.base.values import errors
from graphsched.graph import delta
from graphsched.sources import captures

TIMEOUT_S = 60.0


def whole(server: asking.Server, *, instead: str) -> tuple[bytes, captures.Capture]:
    """The whole graph, as it was sent and as it reads.

    Raises:
        InputError: As `asking.get` does.
        ClusterError: Likewise, and where this version does not read the answer.
    """
    asked = usual(server)
    data = asking.get(asked, "/debug/graph", timeout_s=TIMEOUT_S, bytes_max=captures.BYTES_MAX, instead=instead)
    found = captures.decode(data)
    if isinstance(found, delta.Refused):
        raise errors.ClusterError(f"{asked.url}: not a graph that this version reads: {found.detail}")
    return data, found


def usual(server: asking.Server) -> asking.Server:
    """The server at the usual address, unless one is named."""
    return server if server.url else msgspec.structs.replace(server, url=asking.DEFAULT)
