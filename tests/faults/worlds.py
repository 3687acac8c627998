"""A small cluster of its own for one scheduler, on an API server that many share.

Comes in: the shared API server, a name. Goes out: a namespace, nodes, pods and whatever else a test asks for, all with
the world's label; and the scheduler of that world, the one that `graphsched run` wires, in this process, on real
time, behind a proxy that shows it its own world and nothing else.

Invariant: whatever a world does, no other one sees of it.
"""

import asyncio
import contextlib
import dataclasses
import gc
import pathlib
import random
from collections.abc import Iterator
from typing import Any, Self

import aiohttp

from graphsched.app import election, run, settings as configuration, wiring
from graphsched.base.kit import clock as clocks
from graphsched.base.kube import client as clients, credentials
from tests.controlplane import api, cluster as clusters, objects
from tests.faults import calls, customs, proxy as proxies, witness as witnesses

NODES = "/api/v1/nodes"
NODE_MILLI, NODES_COUNT, POD_MILLI = 4000, 3, 500
CONNECTIONS = 40
SETTLED_S = 60.0
LOOK_S = 2.0
"""How often policies are listed; the scheduler's own 30 s would be most of a voyage."""

_TEMPLATE = {
    "metadata": {"labels": {"app": "other"}},
    "spec": {"containers": [{"name": "pause", "image": "registry.k8s.io/pause:3.10.2"}]},
}
_SELECTOR = {"matchLabels": {"app": "other"}}
_COLLECTIONS = {
    "namespaces": "/api/v1/namespaces",
    "priorityclasses": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "nodes": NODES,
    "pods": "/api/v1/namespaces/{0}/pods",
    "services": "/api/v1/namespaces/{0}/services",
    "replicationcontrollers": "/api/v1/namespaces/{0}/replicationcontrollers",
    "replicasets": "/apis/apps/v1/namespaces/{0}/replicasets",
    "statefulsets": "/apis/apps/v1/namespaces/{0}/statefulsets",
    **{resource: customs.path(resource) for resource in (*calls.CUSTOMS, calls.POLICIES)},
}
_BODIES: dict[str, dict[str, Any]] = {
    "namespaces": {},
    "priorityclasses": {"value": 7},
    "services": {"spec": {"selector": {"app": "other"}, "ports": [{"port": 80}]}},
    "replicationcontrollers": {"spec": {"replicas": 0, "selector": {"app": "other"}, "template": _TEMPLATE}},
    "replicasets": {"spec": {"replicas": 0, "selector": _SELECTOR, "template": _TEMPLATE}},
    "statefulsets": {"spec": {"replicas": 0, "serviceName": "o", "selector": _SELECTOR, "template": _TEMPLATE}},
}


@dataclasses.dataclass(frozen=True, slots=True)
class Shared:
    """What all worlds share."""

    cluster: clusters.Cluster
    client: api.Api
    session: aiohttp.ClientSession
    witness: witnesses.Witness


class ShiftedClock(clocks.RealClock):
    """The machine's time, with a wall clock that somebody sets.

    Attributes:
        shift_s: By how much it is wrong.
    """

    def __init__(self) -> None:
        self.shift_s = 0.0

    def wall(self) -> float:
        """Seconds since the epoch, as this clock has it."""
        return super().wall() + self.shift_s


class Program:
    """One run of the scheduler."""

    def __init__(self, wired: wiring.Program, client: clients.Client, task: asyncio.Task[None]) -> None:
        self.wired = wired
        self.client = client
        self.task = task

    @property
    def ready(self) -> bool:
        """Whether it says that it is."""
        return self.wired.sights.health().report("readyz").ok

    @property
    def idle(self) -> bool:
        """Whether nothing is under way."""
        parts = self.wired.parts
        return self.wired.surveyor.settled and not (len(parts.dispatcher) or len(parts.promises) or len(parts.inbox))


class World:
    """One world; an async context manager.

    Attributes:
        proxy: What the scheduler sees the API server through.
        program: The scheduler that runs.
        giants: Names of the pods that fit nowhere.
        beside: What the scheduler follows beside what every scheduler does.
        token_file: Where the scheduler reads its token, or None.
    """

    def __init__(
        self,
        shared: Shared,
        name: str,
        *,
        rng: random.Random,
        patience: clients.Patience = clients.Patience(),  # noqa: B008  frozen
        clock: clocks.Clock = clocks.RealClock(),  # noqa: B008  without state
        electing: bool = False,
        beside: customs.Beside = customs.Beside.NOTHING,
    ) -> None:
        """Prepare. `electing` is whether the scheduler takes part in an election, as one replica of several."""
        self.name = name
        self.beside = beside
        self.shared = shared
        self.rng = rng
        self.giants: set[str] = set()
        self.token_file: pathlib.Path | None = None
        self.scheduler = f"faults-{name}"
        self._clock = clock
        self._patience = patience
        self._settings = configuration.Settings(
            scheduler_name=self.scheduler,
            client=configuration.ClientSettings(timeout_seconds=patience.request_s),
            binding=configuration.BindingSettings(concurrency=8),
            queue=configuration.QueueSettings(
                initial_backoff_seconds=0.2, max_backoff_seconds=1.0, max_refused_backoff_seconds=2.0
            ),
            leader_election=election.LeaderElectionSettings(
                enabled=electing, namespace=name, lease_seconds=12, renew_seconds=9.0, retry_seconds=1.0
            ),
            topology=configuration.TopologySettings(crds="auto" if beside is customs.Beside.NETWORK else "none"),
            # No pod may ever be bound without the rules, whatever goes wrong with reading them.
            policies=configuration.PolicySettings(enabled="always" if beside is customs.Beside.POLICIES else "never"),
        )
        self._serial = 0
        self._stopping = asyncio.Event()
        self._program: Program | None = None
        self._ways_out = contextlib.AsyncExitStack()
        self.proxy = proxies.Proxy(
            shared.cluster.server, shared.cluster.ssl, shared.session, selector=f"{witnesses.LABEL}={name}"
        )

    async def __aenter__(self) -> Self:
        await self._ways_out.enter_async_context(self.proxy)
        await self.create("namespaces", self.name)
        for number in range(NODES_COUNT):
            await self.node(f"n{number}")
        for resource in self.beside.value:
            await self.create(resource, self.name)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._program is not None:
            await self.stop(hard=True)
        await self._ways_out.aclose()
        # Each scheduler that starts has everything kept for good, what worlds before it have left behind included.
        gc.unfreeze()

    # ---------------------------------------------------------------------------- the world

    def path(self, resource: str, name: str = "") -> str:
        """Of a collection, or of an object of it."""
        path = _COLLECTIONS[resource].format(self.name)
        return f"{path}/{name}" if name else path

    async def create(self, resource: str, name: str) -> None:
        """Make one of the further objects."""
        metadata = {"name": name, "labels": {witnesses.LABEL: self.name}}
        body = customs.body(resource, self.name) if resource in self.beside.value else _BODIES[resource]
        await self.shared.client.create(self.path(resource), {"metadata": metadata, **body})

    async def node(self, name: str, **changes: Any) -> str:
        """Make a node."""
        full = f"{self.name}-{name}"
        body = objects.node(full, labels={witnesses.LABEL: self.name}, cpu=f"{NODE_MILLI}m")
        await self.shared.client.create(NODES, {**body, **changes})
        return full

    async def pod(self, name: str = "", *, milli: int = POD_MILLI, spec: dict[str, Any] | None = None) -> str:
        """Make a pod of this world's scheduler; its name."""
        self._serial += 1
        name = name or f"p{self._serial}"
        labels = {witnesses.LABEL: self.name}
        body = objects.pod(name, labels=labels, scheduler=self.scheduler, cpu=f"{milli}m", memory="1Mi", spec=spec)
        await self.shared.client.create(self.path("pods"), body)
        return name

    async def pods(self, count: int) -> None:
        """Make some at once."""
        async with asyncio.TaskGroup() as group:
            for _ in range(count):
                group.create_task(self.pod())

    async def giant(self) -> str:
        """Make a pod that fits nowhere; its name."""
        self._serial += 1
        name = f"giant{self._serial}"
        self.giants.add(name)
        return await self.pod(name, milli=100 * NODE_MILLI)

    async def delete(self, resource: str, name: str) -> None:
        """Delete an object at once."""
        await self.shared.client.delete(self.path(resource, name))

    async def touch(self, resource: str) -> None:
        """Change an object of the kind in a way that means nothing."""
        self._serial += 1
        name = {"nodes": f"{self.name}-n0", "pods": ""}.get(resource, self.name)
        if resource == "pods":
            name = min(self.seen)
        change = {"metadata": {"annotations": {"touched": str(self._serial)}}}
        await self.shared.client.patch(self.path(resource, name), change)

    async def restate(self) -> None:
        """Have its custom resources say something else; the status of a policy has to be written anew then."""
        self._serial += 1
        for resource in self.beside.value:
            await self.shared.client.patch(self.path(resource, self.name), customs.change(resource, self._serial))

    @property
    def seen(self) -> dict[str, witnesses.Object]:
        """Its pods as the API server has them: name → pod."""
        return self.shared.witness.pods(self.name)

    async def until(self, what: str, happened: Any, *, within_s: float = SETTLED_S) -> None:
        """Wait until the API server has the pods so."""
        await self.shared.witness.until(self.name, happened, what=f"{self.name}: {what}", within_s=within_s)

    # ------------------------------------------------------------------------ the scheduler

    @property
    def program(self) -> Program:
        """The scheduler that runs."""
        assert self._program is not None
        return self._program

    async def start(self) -> None:
        """Start a scheduler."""
        self.proxy.forget()
        self._stopping = asyncio.Event()
        keeper = credentials.Keeper(self._credentials, clock=self._clock)
        client = clients.Client(keeper, connections_max=CONNECTIONS, patience=self._patience)
        await client.__aenter__()
        wired = wiring.build(self._settings, client, clock=self._clock, rng=random.Random(self.rng.random()))
        if wired.policing is not None:
            wired.policing.look_s = LOOK_S
        task = asyncio.create_task(run.serve(wired, self._settings, self._stopping), name=f"scheduler {self.name}")
        self._program = Program(wired, client, task)

    async def _credentials(self) -> credentials.Credentials:
        if self.token_file is None:
            return credentials.Credentials(origin="test", server=self.proxy.url)
        path = str(self.token_file)
        return credentials.Credentials(
            origin="test", server=self.proxy.url, authorization=credentials.read_token(path), token_file=path
        )

    async def stop(self, *, hard: bool) -> None:
        """End the scheduler, `hard` as a kill does: nothing more is said or waited for."""
        program, self._program = self.program, None
        if hard:
            program.task.cancel()
            await program.wired.parts.dispatcher.close(grace_s=0.0)
        else:
            self._stopping.set()
        await asyncio.wait((program.task,), timeout=SETTLED_S)
        assert program.task.done(), f"{self.name}: the scheduler does not end: {program.task.get_stack()}"
        if not hard:
            program.task.result()
        await program.client.__aexit__(None, None, None)


def fits(pods: dict[str, witnesses.Object], but: set[str]) -> Iterator[witnesses.Object]:
    """All pods except those named."""
    return (pod for name, pod in pods.items() if name not in but)
