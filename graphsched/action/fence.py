"""No write without the lease: a client that refuses once the term of this replica is over.

Comes in: the client of the API server, and how long the term still lasts. Goes out: the same client for everything in
`action` that writes. Reads pass, since they harm nobody. A write is refused with `FencedError` when no time is left,
and is given no longer than what is left, so that this side has given up on it before anybody else may lead.

What this can not do is call back what is under way already. A request may lie in a buffer of the kernel or the network
while its sender is cut off, and reach the API server after another replica has taken the lease. It is harmless there,
and that is why the fence need not be perfect:

- A binding carries the pod's uid, and the API server binds a pod only once. If the pod was deleted, bound by the new
  leader, or made anew under its name, the late call is refused with 409 or 404. If it still waits, the late call binds
  it where its sender decided; the new leader's own call then gets the 409, reads the pod, and takes it as bound by
  somebody else. Either way one binding happens.
- The node was judged by an older graph. The new leader learns of a binding that arrived before its first list from that
  list, and of a later one from its watch; in between it may give the same room away, as any two schedulers of one
  cluster may. The time between the end of the term and the end of the lease (`leaseSeconds` - `renewSeconds`) is there
  for such calls to arrive.
- A condition carries the uid as well, and loses against nothing: the API server sets PodScheduled to True with the
  binding, and a late text about a pod that still waits is replaced by the next.
- An event is a record of what its sender did, and is named after it.
"""

from __future__ import annotations

from collections.abc import Callable

from graphsched.action import calls
from graphsched.base.values import errors

READ_S = 30.0
"""For callers that name no deadline, as in `base.kube.client`."""


class Fence:
    """A `calls.Client` that writes only while `left_s` is positive."""

    def __init__(self, client: calls.Client, left_s: Callable[[], float]) -> None:
        """`left_s` tells how many seconds the right to write still lasts, 0 or less when it is over."""
        self._client = client
        self._left_s = left_s

    async def get(self, path: str, query: calls.Query = calls.NO_QUERY, *, deadline_s: float = READ_S) -> bytes:
        """The object at `path`."""
        return await self._client.get(path, query, deadline_s=deadline_s)

    async def post(
        self, path: str, body: object, query: calls.Query = calls.NO_QUERY, *, deadline_s: float = READ_S
    ) -> bytes:
        """Create `body` in the collection at `path`."""
        return await self._client.post(path, body, query, deadline_s=self._within(deadline_s, f"POST {path}"))

    async def patch(
        self,
        path: str,
        body: object,
        query: calls.Query = calls.NO_QUERY,
        *,
        kind: calls.Patching,
        deadline_s: float = READ_S,
    ) -> bytes:
        """Change the object at `path`."""
        within_s = self._within(deadline_s, f"PATCH {path}")
        return await self._client.patch(path, body, query, kind=kind, deadline_s=within_s)

    def _within(self, deadline_s: float, what: str) -> float:
        left_s = self._left_s()
        if left_s <= 0.0:
            raise errors.FencedError(f"{what}: not sent: this replica does not lead")
        return min(deadline_s, left_s)
