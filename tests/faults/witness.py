"""What became of every pod, as the API server tells it: the one that the checkers believe.

Comes in: a watch of all pods, taken from the API server itself and not through any proxy. Goes out: for each world (the
value of a label) its pods as they are now, and for each pod every node it was ever seen on. Whoever waits is woken by
what changes. Invariant: nothing here is asked of the scheduler.
"""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import aiohttp

from tests.controlplane import api, cluster as clusters

LABEL = "world"
PODS = "/api/v1/pods"
Object = dict[str, Any]


class Witness:
    """Follows all pods of one API server.

    Attributes:
        nodes: UID of a pod → the nodes it was seen on.
    """

    def __init__(self) -> None:
        self._pods: dict[str, dict[str, Object]] = defaultdict(dict)
        self._changed: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self.nodes: dict[str, set[str]] = defaultdict(set)

    async def run(self, client: api.Api) -> None:
        """Follow until cancelled; a watch that ends is begun again from a fresh list."""
        while True:
            with contextlib.suppress(aiohttp.ClientError, OSError, RuntimeError, clusters.RequestError):
                items, since = await client.list(PODS)
                self._relist(items)
                async for event in client.watch(PODS, since=since):
                    if event["type"] == "ERROR":
                        break
                    if event["type"] != "BOOKMARK":
                        self._take(event["object"], gone=event["type"] == "DELETED")
            await asyncio.sleep(0.1)

    def pods(self, world: str) -> dict[str, Object]:
        """Name → the pod, of this world."""
        return self._pods[world]

    async def until(
        self, world: str, happened: Callable[[dict[str, Object]], bool], *, what: str, within_s: float
    ) -> None:
        """Wait until the pods of a world are so. Raises `AssertionError` naming `what`."""
        changed = self._changed[world]
        try:
            async with asyncio.timeout(within_s):
                while not happened(self._pods[world]):
                    changed.clear()
                    await changed.wait()
        except TimeoutError:
            seen = {name: pod["spec"].get("nodeName", "") for name, pod in sorted(self._pods[world].items())}
            raise AssertionError(f"not within {within_s:.0f} s: {what}; pods and their nodes: {seen}") from None

    def _relist(self, items: list[Object]) -> None:
        for pods in self._pods.values():
            pods.clear()
        for item in items:
            self._take(item, gone=False)
        for changed in self._changed.values():
            changed.set()

    def _take(self, pod: Object, *, gone: bool) -> None:
        metadata = pod["metadata"]
        world = metadata.get("labels", {}).get(LABEL, "")
        node = pod["spec"].get("nodeName")
        if node:
            self.nodes[metadata["uid"]].add(node)
        if gone:
            self._pods[world].pop(metadata["name"], None)
        else:
            self._pods[world][metadata["name"]] = pod
        self._changed[world].set()
