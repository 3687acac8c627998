"""
A small fast client of the API server, for tests and load.

Comes in: a `cluster.Cluster`, and objects as dicts or as already encoded JSON. Goes out: decoded objects, or a stream
of watch events. It shares nothing with the scheduler's own client, so that a mistake in one does not hide in the
other.

Invariants: every wait has a deadline; a watch is read as fast as it comes, whatever the length of its lines.
"""

import asyncio
import json
import types
import weakref
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any, Self

import aiohttp

from tests.controlplane import cluster, processes

Object = dict[str, Any]

#: Enough to keep an API server on two cores busy.
CONCURRENCY = 48

_PAGE = 500
_REQUEST_S = 60.0
_CREATED = 201


class Connector(aiohttp.TCPConnector):
    """A connector that leaves no connection behind: a farewell over TLS takes its time, and may outlive the loop."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._transports: weakref.WeakSet[asyncio.Transport] = weakref.WeakSet()

    async def _wrap_create_connection(self, *arguments: Any, **options: Any) -> Any:
        transport, protocol = await super()._wrap_create_connection(*arguments, **options)
        self._transports.add(transport)
        return transport, protocol

    async def abandon(self) -> None:
        """Break off whatever is open or still saying farewell; the session is closed by now."""
        for transport in list(self._transports):
            transport.abort()
        # The loop acts on it in its next turn.
        await asyncio.sleep(0)
        await asyncio.sleep(0)


class Api:
    """The client; an async context manager."""

    def __init__(self, target: cluster.Cluster, *, connections: int = 64) -> None:
        """Prepare a client of `target` with all rights and at most `connections` connections."""
        self._target = target
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._connector = Connector(ssl=self._target.ssl, limit=self._connections)
        self._session = aiohttp.ClientSession(
            base_url=self._target.server,
            connector=self._connector,
            timeout=aiohttp.ClientTimeout(total=_REQUEST_S),
            headers={"Accept": "application/json"},
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()
            await self._connector.abandon()

    # ------------------------------------------------------------------------- one object

    async def get(self, path: str) -> Object:
        """Read one object (or whatever the path answers with)."""
        return await self._request("GET", path)

    async def create(self, path: str, body: Object | bytes) -> Object:
        """Create one object in the collection at `path`."""
        return await self._request("POST", path, body)

    async def patch(self, path: str, body: Object, *, kind: str = "merge") -> Object:
        """Change one object; `kind` is `merge`, `strategic-merge` or `json`."""
        content = "application/json-patch+json" if kind == "json" else f"application/{kind}-patch+json"
        return await self._request("PATCH", path, body, content=content)

    async def replace(self, path: str, body: Object) -> Object:
        """Replace one object."""
        return await self._request("PUT", path, body)

    async def delete(self, path: str, *, grace_s: int | None = 0) -> Object:
        """Delete one object, or all of a collection; by default at once, without a kubelet's word."""
        body = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
        return await self._request("DELETE", path, body)

    async def bind(self, pod: str, node: str, *, namespace: str = "default") -> Object:
        """Bind a pod to a node, as a scheduler does."""
        body = {"metadata": {"name": pod}, "target": {"apiVersion": "v1", "kind": "Node", "name": node}}
        return await self.create(f"/api/v1/namespaces/{namespace}/pods/{pod}/binding", body)

    # ----------------------------------------------------------------------- many objects

    async def create_many(
        self,
        path: str,
        bodies: Iterable[Object | bytes],
        *,
        concurrency: int = CONCURRENCY,
    ) -> int:
        """Create all `bodies`, `concurrency` at a time; return how many. The first refusal ends it."""
        waiting = iter(bodies)
        done = 0

        async def work() -> None:
            nonlocal done
            for body in waiting:
                await self._send_unread(path, body)
                done += 1

        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(work())
        return done

    async def list(self, path: str, **query: str) -> tuple[list[Object], str]:
        """Read a collection page by page: the objects, and the resourceVersion to watch from."""
        found: list[Object] = []
        query = {**query, "limit": str(_PAGE)}
        while True:
            page = await self._request("GET", path, query=query)
            found.extend(page["items"])
            following = page["metadata"].get("continue")
            if not following:
                return found, page["metadata"]["resourceVersion"]
            query = {**query, "continue": following}

    async def watch_lines(self, path: str, *, since: str, **query: str) -> AsyncIterator[bytes]:
        """The undecoded events of a collection after the resourceVersion `since`, until the server ends the stream."""
        query = {**query, "watch": "true", "resourceVersion": since, "allowWatchBookmarks": "true"}
        unlimited = aiohttp.ClientTimeout(total=None, sock_connect=_REQUEST_S)
        async with self._open.get(path, params=query, timeout=unlimited) as answer:
            await _require_ok(answer)
            rest = b""
            async for chunk in answer.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    yield line

    async def watch(self, path: str, *, since: str, **query: str) -> AsyncIterator[Object]:
        """The events of a collection after `since`, decoded: `{"type": …, "object": …}`."""
        async for line in self.watch_lines(path, since=since, **query):
            yield json.loads(line)

    # ------------------------------------------------------------------------------ waits

    async def wait_for(
        self,
        path: str,
        happened: Callable[[Mapping[str, Object]], bool],
        *,
        what: str,
        timeout_s: float = 30.0,
        **query: str,
    ) -> dict[str, Object]:
        """
        Follow a collection until `happened` is true of it, and return it.

        Both see the objects by `namespace/name` (a node's namespace is empty).

        Raises:
            processes.DeadlineError: not within `timeout_s`; the text names `what`.
        """
        seen: dict[str, Object] = {}
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    items, since = await self.list(path, **query)
                    seen = {key_of(item): item for item in items}
                    if happened(seen):
                        return seen
                    async for event in self.watch(path, since=since, **query):
                        if event["type"] == "ERROR":
                            break
                        if event["type"] == "BOOKMARK":
                            continue
                        _take(seen, event)
                        if happened(seen):
                            return seen
        except TimeoutError:
            self._target.require_alive()
            raise processes.DeadlineError(f"not after {timeout_s:.0f} s: {what}; seen {_digest(seen)}") from None

    async def wait_bound(
        self,
        count: int,
        *,
        namespace: str = "default",
        timeout_s: float = 60.0,
    ) -> dict[str, str]:
        """Wait until `count` pods of the namespace are bound; return each one's node by the pod's name."""
        pods = await self.wait_for(
            f"/api/v1/namespaces/{namespace}/pods",
            lambda seen: len(seen) >= count,
            what=f"{count} pods are bound",
            timeout_s=timeout_s,
            fieldSelector="spec.nodeName!=",
        )
        return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods.values()}

    async def wait_phase(
        self,
        pod: str,
        phase: str,
        *,
        namespace: str = "default",
        timeout_s: float = 30.0,
    ) -> Object:
        """Wait until the pod is in `phase`; return it."""
        pods = await self.wait_for(
            f"/api/v1/namespaces/{namespace}/pods",
            lambda seen: any(one.get("status", {}).get("phase") == phase for one in seen.values()),
            what=f"pod {pod} is {phase}",
            timeout_s=timeout_s,
            fieldSelector=f"metadata.name={pod}",
        )
        return pods[f"{namespace}/{pod}"]

    # ---------------------------------------------------------------------------- details

    @property
    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("use `async with Api(…) as api`")
        return self._session

    async def _request(
        self,
        method: str,
        path: str,
        body: Object | bytes | None = None,
        *,
        query: Mapping[str, str] | None = None,
        content: str = "application/json",
    ) -> Object:
        async with self._open.request(
            method,
            path,
            data=_encoded(body),
            params=query,
            headers={"Content-Type": content},
        ) as answer:
            await _require_ok(answer)
            decoded: Object = await answer.json()
            return decoded

    async def _send_unread(self, path: str, body: Object | bytes) -> None:
        headers = {"Content-Type": "application/json"}
        async with self._open.post(path, data=_encoded(body), headers=headers) as answer:
            if answer.status != _CREATED:
                await _require_ok(answer)
            await answer.read()


def key_of(item: Object) -> str:
    """`namespace/name`; the namespace of a node is empty."""
    return f"{item['metadata'].get('namespace', '')}/{item['metadata']['name']}"


def _take(seen: dict[str, Object], event: Object) -> None:
    key = key_of(event["object"])
    if event["type"] == "DELETED":
        seen.pop(key, None)
    else:
        seen[key] = event["object"]


def _digest(seen: Mapping[str, Object]) -> str:
    shown = ", ".join(
        f"{key} ({item.get('status', {}).get('phase', '?')} on {item.get('spec', {}).get('nodeName', 'no node')})"
        for key, item in list(seen.items())[:5]
    )
    return f"{len(seen)} objects: {shown}" if seen else "nothing"


def _encoded(body: Object | bytes | None) -> bytes | None:
    return body if body is None or isinstance(body, bytes) else json.dumps(body).encode()


async def _require_ok(answer: aiohttp.ClientResponse) -> None:
    if answer.status >= 400:
        raise cluster.RequestError(answer.status, await answer.text(errors="replace"))
