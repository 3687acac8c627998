"""
A real control plane with both schedulers, that takes one case after the other.

Comes in: the configuration that some cases share, then one case at a time. Goes out: the case's objects as the API
server has them, seen by the scheduler that is to decide; afterwards nothing of them is left.

Invariant: a case starts when the scheduler has shown that it knows the right number of nodes, first none and then
those of the case, so that no verdict rests on what was there before.
"""

import asyncio
import contextlib
import http
import itertools
import pathlib
from collections.abc import Iterator

from tests.cases.runner import cases, polling, resources, schedulers, verdicts
from tests.controlplane import api, binaries, cluster as clusters

DEADLINE_S = 30.0

_PODS = "/api/v1/namespaces/default/pods"
_NOWHERE = {"cases/canary": "no-node-has-this"}
_UNKNOWN_CLASS = "no PriorityClass with name"


class Arena:
    """One control plane and its schedulers, by their names in `schedulers`."""

    def __init__(self, cluster: clusters.Cluster, running: dict[str, schedulers.Running]) -> None:
        self.cluster = cluster
        self.schedulers = running
        self._created: list[str] = []
        self._canaries = itertools.count()

    def require_alive(self) -> None:
        """Raise `processes.ProcessDiedError` if a part of it has ended."""
        self.cluster.require_alive()
        for scheduler in self.schedulers.values():
            scheduler.process.require_alive()

    async def fill(self, client: api.Api, case: cases.Case, *, scheduler: str) -> None:
        """Take away what is left of the case before, create this one's objects, and wait until `scheduler` knows."""
        name = self.schedulers[scheduler].name
        await self._empty(client)
        await self._seen(client, name, nodes=0)
        for manifest in resources.in_order(case.objects):
            await self.create(client, manifest)
        await self._seen(client, name, nodes=sum(item["kind"] == "Node" for item in case.objects))

    async def create(self, client: api.Api, manifest: cases.Object) -> None:
        """Create one object with its status; delete it in the mildest way where it is to be leaving."""
        path = resources.path(manifest)
        # Before the request: one that fails halfway must be taken away as well.
        self._created.append(path)
        async with asyncio.timeout(DEADLINE_S):
            while not await _created(client, manifest):
                pass
        if (status := resources.status(manifest)) is not None:
            await client.patch(f"{path}/status", {"status": status})
        if "deletionTimestamp" in manifest["metadata"]:
            await client.delete(path, grace_s=None)

    async def _empty(self, client: api.Api) -> None:
        pods, _ = await client.list("/api/v1/pods")
        for pod in pods:
            await _remove(client, f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}")
        while self._created:
            await _remove(client, self._created.pop())

    async def _seen(self, client: api.Api, name: str, *, nodes: int) -> None:
        """Wait until the scheduler says how many nodes it knows: each canary fits on none, and is told of how many."""
        wanted = f"0/{nodes} nodes are available" if nodes else "no nodes available"
        said = ""
        try:
            async with asyncio.timeout(DEADLINE_S):
                while wanted not in said:
                    said = await self._asked(client, name)
        except TimeoutError:
            self.require_alive()
            raise AssertionError(f'{name} does not know {nodes} nodes, it says "{said}"') from None

    async def _asked(self, client: api.Api, name: str) -> str:
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"canary-{next(self._canaries)}"},
            "spec": {
                "schedulerName": name,
                "nodeSelector": _NOWHERE,
                "containers": [{"name": "main", "image": "pause:1"}],
            },
        }
        await client.create(_PODS, pod)
        path = resources.path(pod)
        told = await polling.until(
            lambda: client.get(path), lambda now: bool(verdicts.refusal(now)[0]), timeout_s=DEADLINE_S
        )
        await client.delete(path)
        return verdicts.refusal(told)[1]


@contextlib.contextmanager
def open_arena(config: cases.Config, *, programs: binaries.Binaries, logs: pathlib.Path) -> Iterator[Arena]:
    """Start a control plane with the configuration's gates, and both schedulers on it; about 8 s."""
    flags = [f"--runtime-config={group}=true" for group in config.runtime_config]
    if config.gates:
        flags.append(f"--feature-gates={config.gates}")
    options = clusters.Options(apiserver_flags=tuple(flags))
    with (
        clusters.Cluster(options, programs=programs, logs=logs) as cluster,
        schedulers.kube_scheduler(cluster, gates=config.gates) as kube,
        schedulers.graphsched(cluster) as ours,
    ):
        yield Arena(
            cluster,
            {schedulers.KUBE: kube, schedulers.OURS: schedulers.Running("graph-scheduler", ours.process)},
        )


async def _created(client: api.Api, manifest: cases.Object) -> bool:
    """Create it; False if the admission does not know its priority class yet."""
    try:
        await client.create(resources.collection(manifest), resources.body(manifest))
    except clusters.RequestError as error:
        if error.status == http.HTTPStatus.FORBIDDEN and _UNKNOWN_CLASS in str(error):
            return False
        raise
    return True


async def _remove(client: api.Api, path: str) -> None:
    """Delete it with nothing to hold it back."""
    try:
        left = await client.delete(path)
        if "/namespaces/" in path and path.count("/") == _NAMESPACE_DEPTH:
            await client.replace(f"{path}/finalize", {**left, "spec": {"finalizers": []}})
        elif left.get("metadata", {}).get("finalizers"):
            await client.patch(path, {"metadata": {"finalizers": None}})
    except clusters.RequestError as error:
        if error.status != http.HTTPStatus.NOT_FOUND:
            raise


#: Slashes in the path of a namespace.
_NAMESPACE_DEPTH = 4
