"""No write without the lease: a client that refuses once the term of this replica is over.

Comes in: the client of the API server, and how long the term still lasts. Goes out: the same client for everything in
`action` that writes. Reads pass, since they harm nobody. A write is refused with `FencedError` when no time is left,
once when it is asked for and again right before its body goes to the socket, since a process may be stopped in between.
It is given no longer than what is left, so that this side has given up on it before anybody else may lead.

What this can not do is call back what is under way already. A process may be stopped between the last look and the
system call; a request may lie in a buffer of the kernel or the network while its sender is cut off, and reach the API
server after another replica has taken the lease. It is harmless there, and so the fence need not be perfect:

- A binding carries the pod's uid, and the API server binds a pod only once. If the pod was deleted, bound by the new
  leader, or made anew under its name, the late call is refused with 409 or 404. If it still waits, the late call binds
  it where its sender decided; the new leader's own call then gets the 409, reads the pod, and takes it as bound by
  somebody else. Either way one binding happens.
- The node was judged by an older graph. The new leader learns of a binding that arrived before its first list from that
  list, and of a later one from its watch; in between it may give the same room away, as any two schedulers of one
  cluster may. The time between the end of the term and the end of the lease (`leaseSeconds` - `renewSeconds`) is there
  for such calls to arrive.
- A condition carries the uid and the version of the pod that it is about: a late text about a pod that was bound or
  told something else meanwhile is refused.
- An event is a record of what its sender did, and is named after it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

from graphsched.action import calls
from graphsched.base.kube import client as clients
from graphsched.base.values import errors


class Fence:
    """A `calls.Client` that writes only while `left_s` is positive."""

    def __init__(self, client: clients.Client, left_s: Callable[[], float]) -> None:
        """`left_s` tells how many seconds the right to write still lasts, 0 or less when it is over."""
        self._client = client
        self._left_s = left_s

    async def get(
        self, path: str, query: calls.Query = calls.NO_QUERY, *, deadline_s: float = clients.REQUEST_S
    ) -> bytes:
        """The object at `path`."""
        return await self._client.get(path, query, deadline_s=deadline_s)

    async def post(
        self, path: str, body: object, query: calls.Query = calls.NO_QUERY, *, deadline_s: float = clients.REQUEST_S
    ) -> bytes:
        """Create `body` in the collection at `path`."""
        permit = functools.partial(self._require, f"POST {path}")
        within_s = min(deadline_s, permit())
        return await self._client.post(path, body, query, deadline_s=within_s, permit=permit)

    async def patch(
        self,
        path: str,
        body: object,
        query: calls.Query = calls.NO_QUERY,
        *,
        kind: calls.Patching,
        deadline_s: float = clients.REQUEST_S,
    ) -> bytes:
        """Change the object at `path`."""
        permit = functools.partial(self._require, f"PATCH {path}")
        within_s = min(deadline_s, permit())
        return await self._client.patch(path, body, query, kind=kind, deadline_s=within_s, permit=permit)

    def _require(self, what: str) -> float:
        """For how long it may still be written."""
        left_s = self._left_s()
        if left_s <= 0.0:
            raise errors.FencedError(f"{what}: not sent: this replica does not lead")
        return left_s
