"""
The kubelets of all nodes in a few lines: bound pods run, pods that are told to leave go.

Comes in: a client of a real API server. Goes out: status writes and final deletions. kwok is not used here, as it
overwrites what a case says about nodes and containers, and takes away the finalizers that hold pods.

Invariant: a pod with a finalizer stays; a pod whose phase is written by the case keeps it.
"""

import asyncio
import contextlib
import http
from collections.abc import AsyncIterator

from tests.controlplane import api, cluster as clusters

PAUSE_S = 0.05

_PODS = "/api/v1/pods"
_RUNS = {"phase": "Running"}


@contextlib.asynccontextmanager
async def running(client: api.Api) -> AsyncIterator[None]:
    """Kubelets for as long as the block runs; what goes wrong in them ends it."""
    over = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(_work(client, over), name="kubelets")
        try:
            yield
        finally:
            # No cancellation: a request that ends halfway leaves a connection behind.
            over.set()


async def _work(client: api.Api, over: asyncio.Event) -> None:
    while not over.is_set():
        for pod in (await client.list(_PODS))[0]:
            await _care_for(client, pod)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), PAUSE_S)


async def _care_for(client: api.Api, pod: api.Object) -> None:
    metadata = pod["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
    if not pod["spec"].get("nodeName"):
        return
    try:
        if "deletionTimestamp" not in metadata:
            if pod["status"].get("phase", "Pending") == "Pending":
                await client.patch(f"{path}/status", {"metadata": {"uid": metadata["uid"]}, "status": _RUNS})
        elif not metadata.get("finalizers"):
            await client.delete(path)
    except clusters.RequestError as error:
        # Somebody else was faster; the next look tells.
        if error.status not in {http.HTTPStatus.NOT_FOUND, http.HTTPStatus.CONFLICT}:
            raise
