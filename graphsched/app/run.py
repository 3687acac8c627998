"""`graphsched run`: start the live scheduler, keep it alive, and end it in good order.

Comes in: settings. Goes out: an exit code, 0 after SIGTERM or SIGINT. Every long-lived task lives in one TaskGroup; one
that fails takes the program down with its error, since a scheduler that runs in part misleads. SIGUSR2 asks for an
audit and a dump.

The end, in this order: not ready any more; no new decisions; bindings that are out get `binding.graceSeconds` to end;
what is then unknown is named in the log (nothing of it is kept, so the next start reads the truth from the API server);
events and conditions that wait are written; the lease is released; the connections close. A second signal ends it at
once.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import signal
import types
import typing
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from graphsched.app import modes, settings as configuration, wiring
from graphsched.base.kernel import memory
from graphsched.base.kit import clock as clocks, tasks
from graphsched.base.kube import config, credentials
from graphsched.base.values import errors
from graphsched.observe import logs

_log = logging.getLogger(__name__)

FLUSH_S = 3.0
"""For events and conditions at the end: most of what waits fits, and a kubelet's patience is 30 s."""
RELEASE_S = 3.0
"""For giving up the lease at the end; who is not told waits until it runs out."""
LAG_PERIOD_S = 0.5
SIGNALS = (signal.SIGTERM, signal.SIGINT)
FIRST_PROCESS = 1
"""Of a container. The system ends it by no signal that it does not handle itself."""


def main(settings: configuration.Settings) -> int:
    """Run the scheduler on an event loop of its own, until a signal ends it.

    Raises:
        InputError: Credentials, certificate or the address to listen on are not what they should be.
        GraphschedError: A part of it has failed.
    """
    import uvloop

    memory.hold_still()
    logs.configure(format=settings.log.format, level=settings.log.level)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run(settings))


async def run(
    settings: configuration.Settings,
    *,
    environ: Mapping[str, str] = os.environ,
    clock: clocks.Clock | None = None,
    on_listening: Callable[[int], None] = lambda _port: None,
) -> int:
    """Run the scheduler until a signal ends it; returns the exit code.

    Args:
        settings: What the operator wants.
        environ: Where credentials may be named.
        clock: The machine's unless given.
        on_listening: Told the port that metrics and health are served on.

    Raises:
        InputError: Credentials, certificate or the address to listen on are not what they should be.
        GraphschedError: A part of it has failed.
    """
    clock = clock or clocks.RealClock()
    request = config.find(kubeconfig=settings.client.kubeconfig, context=settings.client.context, environ=environ)
    keeper = credentials.Keeper(lambda: config.load(request), clock=clock)
    stopping = asyncio.Event()
    with _Signals(stopping) as signals:
        if not await _loaded(keeper, stopping):
            _log.info("ended before anything was asked of a cluster")
            return 0
        access = await keeper.current()
        _log.info("serving %s in mode %s at %s", modes.served(settings), settings.mode, access.server)
        async with wiring.client(settings, keeper) as client:
            program = wiring.build(settings, client, clock=clock, rng=random.Random())
            signals.on_audit(program.auditor.ask)
            await _listen(program, settings)
            on_listening(program.server.port)
            try:
                await serve(program, settings, stopping, besides={"lag": _watch_lag(program)})
            except BaseExceptionGroup as group:
                raise _first(group) from group
            finally:
                await program.server.stop()
    return 0


async def _loaded(keeper: credentials.Keeper, stopping: asyncio.Event) -> bool:
    """Have the credentials loaded; whether that came before `stopping`, which ends it with all that it has started.

    Raises:
        InputError: They can not be had.
    """
    loading, stopped = asyncio.ensure_future(keeper.current()), asyncio.ensure_future(stopping.wait())
    try:
        await asyncio.wait((loading, stopped), return_when=asyncio.FIRST_COMPLETED)
        if loading.done():
            await loading
        return loading.done()
    finally:
        loading.cancel()
        stopped.cancel()
        await asyncio.gather(loading, stopped, return_exceptions=True)


async def serve(
    program: wiring.Program,
    settings: configuration.Settings,
    stopping: asyncio.Event,
    *,
    besides: Mapping[str, Coroutine[Any, Any, object]] = types.MappingProxyType({}),
) -> None:
    """Everything at work until `stopping`, then the end in good order; `besides` is further work that never ends.

    Raises:
        ExceptionGroup: A task has failed.
    """
    async with asyncio.TaskGroup() as group:
        works = {**program.background(), **besides}
        background = [tasks.start(group, work, name=name) for name, work in works.items()]
        deciding = group.create_task(program.loop.run(), name="loop")
        await stopping.wait()
        _log.info("ending: no more decisions, %d bindings are under way", len(program.parts.dispatcher))
        program.sights.stopping = True
        program.loop.stop()
        await asyncio.wait((deciding,), timeout=settings.binding.grace_seconds)
        deciding.cancel()
        await program.loop.abandon()
        await program.parts.conditions.flush(deadline_s=FLUSH_S)
        await program.parts.events.flush(deadline_s=FLUSH_S)
        for task in background:
            task.cancel()
    if program.elector is not None:
        # Nothing is written after this, so another replica may begin.
        await program.elector.release(deadline_s=RELEASE_S)
    _log.info("ended in good order after %d decisions", program.loop.decisions)


async def _listen(program: wiring.Program, settings: configuration.Settings) -> None:
    http = settings.http
    try:
        await program.server.start(host=http.host, port=http.port)
    except OSError as error:
        # The event loop puts a sentence of its own round the system's words; a failed look-up of a name has no number.
        told = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or str(error)
        raise errors.InputError(
            f"{http.host}:{http.port}",
            problem=f"can not listen there: {told.lower()}",
            remedy="choose another --port, or --port 0 for any",
        ) from error
    scheme = "https" if http.tls.on else "http"
    _log.info("metrics and health at %s://%s:%d", scheme, http.host, program.server.port)


async def _watch_lag(program: wiring.Program) -> None:
    """Note how late a timer fires: what everybody else on the loop had to wait."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + LAG_PERIOD_S
        await asyncio.sleep(LAG_PERIOD_S)
        program.parts.meters.loop_lag(max(0.0, loop.time() - due))


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one error that tells most: the first leaf."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class _Signals:
    """Turns the first signal to end into an event; the next one has the system's own effect. SIGUSR2 asks for an audit
    as often as it comes; until somebody does audits it is passed over, as its own effect would be to end.
    """

    def __init__(self, stopping: asyncio.Event) -> None:
        self._stopping = stopping
        self._loop = asyncio.get_running_loop()
        self._installed: list[signal.Signals] = []

    def __enter__(self) -> typing.Self:
        for number in SIGNALS:
            self._loop.add_signal_handler(number, self._received)
            self._installed.append(number)
        self.on_audit(lambda: None)
        return self

    def __exit__(self, *_: object) -> None:
        self._remove()
        self._loop.remove_signal_handler(signal.SIGUSR2)

    def on_audit(self, ask: Callable[[], None]) -> None:
        """Call `ask` at each SIGUSR2 from now on."""
        self._loop.add_signal_handler(signal.SIGUSR2, ask)

    def _received(self) -> None:
        self._stopping.set()
        self._remove()
        if os.getpid() == FIRST_PROCESS:
            signal.signal(signal.SIGTERM, lambda number, _: os._exit(128 + number))

    def _remove(self) -> None:
        while self._installed:
            self._loop.remove_signal_handler(self._installed.pop())
