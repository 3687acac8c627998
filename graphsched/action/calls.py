"""What this layer needs of a client of the API server, and the words it has for how a call went.

`base.kube.client.Client` is one; tests bring another. Every failure is a `ClusterError`: of those only
`UnreachableError` leaves open whether the call took effect.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping

from graphsched.base.values import errors, pods

Patching = typing.Literal["merge", "strategic-merge", "json"]
Query = Mapping[str, str | int]
NO_QUERY: Query = {}

BUSY = (429, 503)
"""The API server is there and asks for patience: nothing took effect."""

WEBHOOK_AWAY = 500
"""A webhook that the API server asked did not answer: nothing took effect, and it cost the server's patience to know.
(A 500 that is the server's own is an `UnreachableError`.)
"""


class Client(typing.Protocol):
    """Reads and writes, each within a deadline."""

    async def get(self, path: str, query: Query = ..., *, deadline_s: float = ...) -> bytes:
        """The object at `path`."""
        ...

    async def post(self, path: str, body: object, query: Query = ..., *, deadline_s: float = ...) -> bytes:
        """Create `body` in the collection at `path`."""
        ...

    async def patch(
        self, path: str, body: object, query: Query = ..., *, kind: Patching, deadline_s: float = ...
    ) -> bytes:
        """Change the object at `path`."""
        ...


def pod_path(pod: pods.Pod, part: str = "") -> str:
    """The path of a pod, or of one of its subresources. Names of objects need no quoting."""
    path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"
    return f"{path}/{part}" if part else path


def passing(error: errors.ClusterError) -> bool:
    """Whether the same call may work a little later."""
    return isinstance(error, errors.UnreachableError) or error.status in {*BUSY, WEBHOOK_AWAY}
