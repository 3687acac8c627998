"""A whole live scheduler in virtual time, beside a fake API server: what the tests of the loop drive and look at.

Comes in: nodes, pods and faults at the server. Goes out: `Scheduler`, with what a test waits for. Invariant: the
scheduler is the one that `graphsched run` wires; only the clock, the dice and the server are the test's.
"""

import asyncio
import collections
import contextlib
import random
from collections.abc import AsyncIterator, Callable
from typing import Any

from graphsched.app import election, parking, run, settings as configuration, wiring
from graphsched.base.kube import client as clients
from tests import builders
from tests.fakes import apiserver, storage, virtual

NAME = "graph-scheduler"
BINDING = ".*/binding"
ALONE = election.LeaderElectionSettings(enabled=False)


class Scheduler:
    """A running scheduler and its server."""

    def __init__(self, server: apiserver.FakeApiServer, program: wiring.Program) -> None:
        self.server = server
        self.program = program
        self.parts = program.parts

    def node(self, node: builders.NodeBuilder) -> None:
        """Add a node to the cluster."""
        self.server.create(apiserver.NODES, node.manifest())

    def pod(self, pod: builders.PodBuilder) -> None:
        """Create a pod of ours."""
        self.server.create(storage.PODS, pod.scheduler(NAME).manifest())

    def delete(self, name: str) -> None:
        """Delete a pod at once."""
        self.server.storage.delete(storage.Key(storage.PODS, "default", name), {"gracePeriodSeconds": 0})

    def mark(self, name: str, *, cordoned: bool) -> None:
        """Cordon a node, or lift it."""
        key = storage.Key(apiserver.NODES, "", name)
        self.server.storage.patch(key, {"spec": {"unschedulable": cordoned}}, strategic=False)

    def where(self, name: str) -> str:
        """The node the API server has the pod on, empty for none."""
        node: str = self.server.pod(name)["spec"].get("nodeName", "")
        return node

    def message(self, name: str) -> str:
        """The text of the pod's PodScheduled condition, empty without one that is False."""
        for condition in self.server.pod(name).get("status", {}).get("conditions", []):
            if condition["type"] == "PodScheduled" and condition["status"] == "False":
                text: str = condition["message"]
                return text
        return ""

    def bindings(self, name: str = ".*") -> int:
        """How many Binding calls there were for the pod."""
        return len(self.server.asked("POST", f".*/pods/{name}/binding"))

    def pool(self, name: str) -> parking.Pool | None:
        """The pool the pod waits in."""
        entry = self.parts.backlog.get(builders.make_pod(name).build().key)
        return None if entry is None else entry.pool

    async def start(self) -> None:
        """Wait until decisions are made."""
        for each in self.program.reflectors:
            await each.progress.synced.wait()
        await asyncio.sleep(0.2)
        assert self.program.loop.started

    async def until(self, happened: Callable[[], bool]) -> None:
        """Wait for something the server shows."""
        await self.server.until(happened)

    async def bound(self, *names: str) -> None:
        """Wait until these pods are bound."""
        await self.until(lambda: all(self.where(name) for name in names))

    async def quiet(self, seconds: float = 1.0) -> None:
        """Let everything that is under way come to rest."""
        await asyncio.sleep(seconds)

    def require_sound(self) -> None:
        """No node holds more than it has, nobody was bound twice, and the graph agrees with the server."""
        held: collections.Counter[str] = collections.Counter()
        successes: collections.Counter[str] = collections.Counter()
        for pod in self.server.storage.items(storage.PODS):
            node = pod["spec"].get("nodeName", "")
            requests = pod["spec"]["containers"][0].get("resources", {}).get("requests", {})
            held[node] += int(requests.get("cpu", 0))
        for change in self.server.storage.history:
            if change.before is not None and change.after is not None and change.key.collection == storage.PODS:
                was, now = change.before["spec"].get("nodeName"), change.after["spec"].get("nodeName")
                assert was in {None, now}, f"{change.key.name} moved from {was} to {now}"
                successes[change.after["metadata"]["uid"]] += was is None and now is not None
        for node in self.server.storage.items(apiserver.NODES):
            name = node["metadata"]["name"]
            assert held[name] <= int(node["status"]["allocatable"]["cpu"]), f"{name} is over-committed"
        assert max(successes.values(), default=0) <= 1
        assert [] == self.parts.store.audit()


def wired(client: clients.Client, options: configuration.Settings) -> wiring.Program:
    """The program as `graphsched run` makes it, on the loop's clock."""
    return wiring.build(options, client, clock=virtual.LoopClock(), rng=random.Random(1))


@contextlib.asynccontextmanager
async def scheduler(
    *nodes: builders.NodeBuilder,
    pods: tuple[builders.PodBuilder, ...] = (),
    server: apiserver.FakeApiServer | None = None,
    started: bool = True,
    **changes: Any,
) -> AsyncIterator[Scheduler]:
    """A scheduler at work on these nodes and pods; `changes` are groups of settings."""
    async with apiserver.FakeApiServer() if server is None else contextlib.nullcontext(server) as api:
        options = configuration.Settings(**{"leader_election": ALONE, **changes})
        async with api.client() as client:
            program = wired(client, options)
            running = Scheduler(api, program)
            for node in nodes:
                running.node(node)
            for pod in pods:
                running.pod(pod)
            stopping = asyncio.Event()
            task = asyncio.create_task(run.serve(program, options, stopping))
            try:
                if started:
                    await running.start()
                yield running
            finally:
                stopping.set()
                await task
