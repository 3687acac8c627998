"""The kopf operator: follows GraphPolicies on a loop and a thread of its own.

Comes in: how to reach the API server, and whom to tell. Goes out: each event, handed over to the scheduler's loop and
waited for, so that a loop that is behind slows the watch down. Nothing is written by kopf: handlers of events alone
need no finalizer and no annotation, peering and posting are off. When kopf ends it cancels every task of its loop that
is younger than itself, which is why that loop is nobody else's.

What kopf does not do is tell of objects that went away while it was not watching; `policing` lists for that.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import typing
from collections.abc import Awaitable, Callable

import aiohttp

import graphsched
from graphsched.base.kube import client as clients, credentials, policies as kube_policies

_log = logging.getLogger(__name__)

WATCH_S = 600
"""How long the server is to hold a watch; whole seconds, as it reads no others."""
CONNECT_S = 10.0
USER_AGENT = f"graphsched/{graphsched.__version__} kopf"
"""What the API server's logs call it, so that its requests are told from those of the scheduler itself."""

Tell = Callable[[str | None, typing.Any], Awaitable[None]]
Access = Callable[[credentials.Access | None], Awaitable[credentials.Access]]
"""Gives what a request needs; asked with what the server has turned away, None at first."""


class Operator:
    """kopf in a thread. `start` it on the loop that is told; `stop` waits for its end."""

    def __init__(self, access: Access, tell: Tell, *, patience: clients.Patience) -> None:
        """Prepare; it waits for answers and for the next word of a watch as long as all others do."""
        self._access = access
        self._tell = tell
        self._patience = patience
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self._held: credentials.Access | None = None

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Begin to follow; nothing happens while it does already."""
        if self.alive:
            return
        self._ending, self._held = threading.Event(), None
        home = asyncio.get_running_loop()
        self._thread = threading.Thread(target=self._run, args=(home, self._ending), name="kopf", daemon=True)
        self._thread.start()

    async def stop(self, *, deadline_s: float) -> None:
        """End; a thread that does not by the deadline is left behind, as it dies with the process."""
        self._ending.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            await asyncio.to_thread(thread.join, deadline_s)
            if thread.is_alive():
                _log.warning("the operator did not end within %.0f s", deadline_s)

    def _run(self, home: asyncio.AbstractEventLoop, ending: threading.Event) -> None:
        try:
            with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
                runner.run(self._operate(home, ending))
        except Exception as error:  # noqa: BLE001  whatever ended it, it is begun anew, and the list goes on meanwhile
            _log.warning("the operator ended, and is begun anew: %s: %s", type(error).__name__, error)

    async def _operate(self, home: asyncio.AbstractEventLoop, ending: threading.Event) -> None:
        # It takes a second and 20 MB, which only those pay that have such objects.
        import kopf

        logging.getLogger("kopf").setLevel(logging.WARNING)
        for module in ("running", "orchestration"):
            # That it is not in the main thread, and why it ended, with the whole way there: said below in one line.
            logging.getLogger(f"kopf._core.reactor.{module}").setLevel(logging.CRITICAL)
        registry, settings = kopf.OperatorRegistry(), kopf.OperatorSettings()
        settings.peering.standalone = True
        settings.posting.enabled = False
        settings.scanning.disabled = True
        # It would kill this process.
        settings.process.ultimate_exiting_timeout = None
        settings.watching.server_timeout = WATCH_S
        settings.watching.connect_timeout = CONNECT_S
        settings.watching.inactivity_timeout = self._patience.stall_s
        settings.networking.request_timeout = self._patience.request_s

        async def login(**_: typing.Any) -> kopf.AiohttpSession:
            access = self._held = await _across(home, self._access(self._held))
            connector = aiohttp.TCPConnector(ssl=access.tls)
            headers = {**access.headers, "User-Agent": USER_AGENT}
            session = aiohttp.ClientSession(connector=connector, headers=headers, proxy=access.proxy)
            return kopf.AiohttpSession(server=access.server, aiohttp_session=session)

        async def told(event: typing.Any, **_: typing.Any) -> None:
            await _across(home, self._tell(event["type"], dict(event["object"])))

        kopf.on.login(registry=registry)(login)
        kopf.on.event(kube_policies.GROUP, "v1alpha1", "graphpolicies", registry=registry)(told)
        try:
            await kopf.operator(
                registry=registry, settings=settings, clusterwide=True, standalone=True, stop_flag=ending
            )
        finally:
            # Something else may have ended it, and then a thread of this loop still waits for the flag: the loop would
            # never close, and what never ended is never begun anew.
            ending.set()


Result = typing.TypeVar("Result")


async def _across(home: asyncio.AbstractEventLoop, work: Awaitable[Result]) -> Result:
    """Have the work done on the other loop, and wait for it on this one."""

    async def awaited() -> Result:
        return await work

    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(awaited(), home))
