"""
Who the contract is held against: the fake API server, over sockets and in memory, and the real one in tests marked
`cluster`.

Comes in: a test body that takes a client. Goes out: the same body run on each. All are spoken to through the project's
own client; the real one also through a kubeconfig file with a client certificate.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from graphsched.base.kit import clock
from graphsched.base.kube import client as clients, config, credentials
from tests.controlplane import cluster as clusters
from tests.fakes import apiserver, virtual
from tests.simulation import loop as loops, memory

Body = Callable[[clients.Client], Awaitable[None]]


class Target(Protocol):
    """An API server."""

    def forget(self) -> None:
        """Have the history before now forgotten."""

    def run(self, body: Body) -> None:
        """Run a test body with a client of this server."""


class Fake:
    """The fake, in virtual time."""

    def __init__(self) -> None:
        self._server = apiserver.FakeApiServer()

    def forget(self) -> None:
        """Have the history before now forgotten."""
        self._server.storage.compact()

    def run(self, body: Body) -> None:
        """Run a test body with a client of this server."""

        @virtual.timed
        async def on_fake() -> None:
            async with self._server, self._server.client() as client:
                await body(client)

        on_fake()


class Memory:
    """The fake without sockets, on the loop of the simulation."""

    def __init__(self) -> None:
        self._server = memory.Server()

    def forget(self) -> None:
        """Have the history before now forgotten."""
        self._server.storage.compact()

    def run(self, body: Body) -> None:
        """Run a test body with a client of this server."""

        async def in_memory() -> None:
            async with self._server, self._server.client() as client:
                await body(client)

        loops.run(in_memory())


class Real:
    """The real one, on loopback."""

    def __init__(self, cluster: clusters.Cluster) -> None:
        self._cluster = cluster

    def forget(self) -> None:
        """Have the history before now forgotten: a server that starts knows none."""
        self._cluster.kill_apiserver()
        self._cluster.start_apiserver()

    def run(self, body: Body) -> None:
        """Run a test body with a client of this server."""
        request = config.find(kubeconfig=str(self._cluster.kubeconfig), context="", environ={})

        async def on_real() -> None:
            keeper = credentials.Keeper(lambda: config.load(request), clock=clock.RealClock())
            async with clients.Client(keeper) as client, asyncio.timeout(60):
                await body(client)

        asyncio.run(on_real())
