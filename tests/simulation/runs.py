"""
One run: a cluster, its troubles and the production scheduler, from a seed.

Comes in: a seed. Goes out: a `Result`: what does not hold, and the trace. The scheduler is what `graphsched run` wires;
its clock, its dice and its API server are the simulation's. First there is trouble, then peace for long enough that
everything that waits for a deadline has met it, then a little more happens in peace, and then the checkers look.

Invariant: a pure function of the seed: equal seeds give equal traces, in any process.
"""

from __future__ import annotations

import asyncio
import collections
import contextvars
import dataclasses
import gc
import logging
import random
import re
import typing
import warnings
from collections.abc import Mapping

import msgspec

from graphsched.action import bind
from graphsched.app import election, run as running, settings as configuration, wiring
from graphsched.sources import resources
from tests.fakes import serving, storage
from tests.simulation import checkers, faults, loop as loops, memory, traces, world as worlds

STEPS = 60
PAUSES_S = (0.0, 0.001, 0.01, 0.3, 0.3, 2.0, 8.0)
#: A silent watch is given up after 150 s; lists, bindings and credentials are tried again within another minute or two.
QUIET_S = 300.0
#: With no fault left, news wake who they help within a second or a penalty; pods that admission refused have the
#: longest, twice in a row at most.
REFUSED_S = 60.0
PEACE_S = 30.0 + 2 * REFUSED_S
#: How long a process has to end in good order before it is an error.
ENDING_S = 60.0
#: How an audit tells of an object that is not as its watch has told.
_FOUND = re.compile(r"audit: (\S+) .* \((?:missing|stale|extra)\): mended")

ELECTIONS = (
    election.LeaderElectionSettings(enabled=False),
    election.LeaderElectionSettings(enabled=False),
    election.LeaderElectionSettings(),
    election.LeaderElectionSettings(lease_seconds=4, renew_seconds=3.0, retry_seconds=1.0),
)


@dataclasses.dataclass(frozen=True)
class Result:
    """What came of a run."""

    seed: int
    failures: tuple[str, ...]
    trace: traces.Trace
    #: Virtual seconds, steps of the loop, calls of the schedulers, and those in the busiest minute.
    seconds: float
    steps: int
    calls: int
    busiest: int


@dataclasses.dataclass(frozen=True)
class Summary:
    """What is left to say of a run among many."""

    seed: int
    failures: tuple[str, ...]
    seconds: float
    calls: int
    busiest: int
    #: How often what happened.
    seen: Mapping[str, int]


def summary(seed: int) -> Summary:
    """Run the seed's world, and keep little of it."""
    result = simulate(seed)
    seen: collections.Counter[str] = collections.Counter()
    for line in result.trace.lines:
        _, who, what = line.split(maxsplit=2)
        word = what.split(maxsplit=1)[0]
        if who in {"fault", "server"} or word in {"decides", "outcome"}:
            seen[f"fault: {word}" if who == "fault" else word] += 1
    return Summary(seed, result.failures, result.seconds, result.calls, result.busiest, seen)


class Server(memory.Server):
    """Says who is bound by whom, and refuses what admission does."""

    def __init__(self, weather: faults.Weather, failures: checkers.Failures, trace: traces.Trace) -> None:
        super().__init__(weather)
        self.faults: faults.Weather = weather
        self.ledger = checkers.Ledger(self.storage, failures)
        #: Sender → its judge, of those that live.
        self.judges: dict[str, checkers.Judge] = {}
        self._refusals: dict[str, int] = {}
        self._trace = trace
        self._seen = self.storage.version
        self._by_us = False
        self.on_end = self._ended

    def rolled_back(self) -> None:
        """What was since the backup never happened."""
        self.ledger.rolled_back()
        for judge in self.judges.values():
            judge.rolled_back()

    def has_hidden(self, process: str, text: str) -> bool:
        """Whether the text is an audit's, of an object of which a watch of this process should tell and is silent."""
        found = _FOUND.fullmatch(text)
        return found is not None and any(
            typing.cast("memory.Connection", watch.pipe).request.sender == process
            and any(found[1].startswith(each.prefix) for each in resources.ALL if each.path == watch.path)
            for watch in self.watches
            if not watch.live
        )

    def _changed(self) -> None:
        change = self.storage.history[-1]
        self.ledger.changed(change)
        if change.key.collection == serving.PODS and change.after is not None and not self._by_us:
            was = "" if change.before is None else change.before["spec"].get("nodeName", "")
            node = change.after["spec"].get("nodeName", "")
            if node != was:
                self.ledger.placed_by_others(node)
        super()._changed()

    def _answer(self, request: serving.Request) -> serving.Answer:
        if request.path.endswith("/status") and request.method == "PATCH":
            answer = super()._answer(request)
            self.ledger.told(_pod(request.path), request.sender)
            return answer
        if request.method != "POST" or not request.path.endswith("/binding"):
            return super()._answer(request)
        key = _pod(request.path)
        self.ledger.led(self.judges)
        uid, node = request.body["metadata"]["uid"], request.body["target"]["name"]
        self.ledger.asked(key, uid, node, request.sender)
        self._admit(key, uid)
        self._by_us = True
        try:
            answer = super()._answer(request)
        finally:
            self._by_us = False
        self._trace.add("server", f"binds {key.namespace}/{key.name} to {node} for {request.sender}")
        self.ledger.bound(key, node, request.sender, self.judges.get(request.sender))
        return answer

    def _admit(self, key: storage.Key, uid: str) -> None:
        pod = self.storage.get(key)
        times = pod["metadata"].get("labels", {}).get(worlds.REFUSED, "0")
        self._refusals[uid] = self._refusals.get(uid, 0) + 1
        if times == "ever" or self._refusals[uid] <= int(times):
            told = f'pods "{key.name}" is forbidden: admission webhook "example.com" denied the request'
            raise storage.Refusal(403, "Forbidden", told)

    def _ended(self, request: serving.Request, status: int) -> None:
        loop = asyncio.get_running_loop()
        self.ledger.called(request.sender, int(loop.time() // 60))
        query = "&".join(f"{name}={value}" for name, value in request.query.items())
        self._trace.add(
            request.sender, f"{request.method} {request.path}{query and '?'}{query} → {status or 'no answer'}"
        )


def _pod(path: str) -> storage.Key:
    """The pod that the path of one of its parts names."""
    _, _, _, _, namespace, _, name, _ = path.split("/")
    return storage.Key(serving.PODS, namespace, name)


class Replica:
    """A scheduler that is started again whenever it ends; a `faults.Victim`."""

    def __init__(
        self,
        name: str,
        server: Server,
        rng: random.Random,
        failures: checkers.Failures,
        trace: traces.Trace,
        *,
        elects: election.LeaderElectionSettings,
    ) -> None:
        self._name = name
        self._server = server
        self._rng = rng
        self._failures = failures
        self._trace = trace
        self._number = 0
        self._loop = typing.cast("loops.Loop", asyncio.get_running_loop())
        self._elects = elects
        self._clock = loops.Clock(self._loop, cost_s=rng.choice((0.0, 0.00001, 0.0005)))
        self._settings = configuration.Settings(
            client=configuration.ClientSettings(timeout_seconds=rng.choice((5.0, 30.0))),
            binding=configuration.BindingSettings(concurrency=rng.choice((1, 4, 32))),
            # Leftovers are not tried again here: only the right event wakes a pod.
            queue=configuration.QueueSettings(max_unschedulable_seconds=1e9, max_refused_backoff_seconds=REFUSED_S),
            log=configuration.LogSettings(level=rng.choice(("info", "debug"))),
        )
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._client: memory.Client | None = None
        self.program: wiring.Program | None = None

    @property
    def process(self) -> str:
        """Name of the present process."""
        return f"{self._name}.{self._number}"

    def start(self) -> None:
        """Begin."""
        self._number += 1
        elects = msgspec.structs.replace(self._elects, identity=self.process)
        self._settings = msgspec.structs.replace(self._settings, leader_election=elects)
        self._stopping = asyncio.Event()
        context = contextvars.copy_context()
        context.run(loops.PROCESS.set, self.process)
        self._task = self._loop.create_task(self._live(), name=self.process, context=context)

    async def _live(self) -> None:
        binding = self._settings.binding.concurrency
        client = self._client = self._server.client(
            sender=self.process, connections_max=binding + wiring.OTHER_CONNECTIONS
        )
        async with client:
            rng = random.Random(self._rng.random())
            program = self.program = wiring.build(self._settings, client, clock=self._clock, rng=rng)
            self._watch(program)
            await running.serve(program, self._settings, self._stopping)

    def _watch(self, program: wiring.Program) -> None:
        """Put a judge beside the dispatcher, and have decisions in the trace."""
        judge = checkers.Judge(program, self._settings.decider, self._failures)
        self._server.judges[self.process] = judge
        process, dispatcher, past = self.process, program.parts.dispatcher, program.loop._past
        submit, fetch, add, abandon = dispatcher.submit, dispatcher.fetch, past.add, dispatcher.abandon

        def submitted(order: bind.Order) -> None:
            look = order.look

            def looked(order: bind.Order, *, pinned: bool) -> bool:
                goes = look(order, pinned=pinned)
                if goes and order.seen is None:
                    judge.decided(order)
                return goes

            order.look = looked
            judge.decided(order)
            submit(order)

        def abandoned() -> list[bind.Order]:
            orders = abandon()
            judge.abandoned(orders)
            return orders

        def fetched() -> list[bind.Outcome]:
            outcomes = fetch()
            for outcome in outcomes:
                order = outcome.order
                told = f"{order.pod.full_name} to {order.node}: {outcome.end} {outcome.node} {outcome.detail}"
                self._trace.add(process, f"outcome {told}")
            judge.ended(outcomes)
            return outcomes

        def added(decision: typing.Any, **more: typing.Any) -> typing.Any:
            entry = add(decision, **more)
            self._trace.add(process, f"decides {entry.pod}: {entry.node or entry.message}")
            return entry

        hooks: Mapping[object, Mapping[str, object]] = {
            dispatcher: {"submit": submitted, "fetch": fetched, "abandon": abandoned},
            past: {"add": added},
        }
        for owner, each in hooks.items():
            for name, hook in each.items():
                setattr(owner, name, hook)

    # ── what may happen to it ──────────────────────────────────────────────────────────────────────────────────────

    async def crash(self) -> None:
        """Die at once, and begin again."""
        self._loop.thaw(self.process)
        self._server.judges.pop(self.process, None)
        if self._client is not None:
            self._client.session.cut()
        self._server.sever(self.process)
        while tasks := self._loop.tasks_of(self.process):
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        self.start()

    async def restart(self) -> None:
        """End in good order, and begin again."""
        await self.stop()
        self.start()

    async def stop(self) -> None:
        """End in good order."""
        self._stopping.set()
        assert self._task is not None
        await asyncio.wait([self._task], timeout=ENDING_S)
        if not self._task.done():
            self._failures.add(f"{self.process} does not end")
            await self.crash()
            return
        self._server.judges.pop(self.process, None)
        self.require_alive(ended=True)
        left = [task.get_name() for task in self._loop.tasks_of(self.process)]
        if left:
            self._failures.add(f"{self.process} leaves tasks behind: {left}")

    def freeze(self, seconds: float) -> None:
        """Stand still, while the world goes on."""
        self._loop.freeze(self.process)
        self._loop.call_later(seconds, self._loop.thaw, self.process)

    def thaw(self) -> None:
        """Go on."""
        self._loop.thaw(self.process)

    def shift(self, seconds: float) -> None:
        """Have the wall clock jump."""
        self._clock.shift_s += seconds

    @property
    def leads(self) -> bool:
        """Whether it decides."""
        return self.program is not None and (self.program.elector is None or self.program.elector.leading)

    def require_rest(self) -> None:
        """It is alive, and everything is as it should be."""
        self.require_alive()
        if self.program is None:
            self._failures.add(f"{self.process} has not begun")
            return
        checkers.at_rest(self.program, self._server.storage, self._settings.decider, self._failures)

    def require_alive(self, *, ended: bool = False) -> None:
        """It has not died by itself."""
        task = self._task
        if task is None or not task.done():
            return
        error = None if task.cancelled() else task.exception()
        if error is not None or not ended:
            self._failures.add(f"{self.process} has died: {_told(error)}")


def simulate(seed: int) -> Result:
    """Run the seed's world."""
    handler: traces.Handler | None = None
    logger = logging.getLogger()
    level = logger.level
    try:
        with warnings.catch_warnings(), asyncio.Runner(loop_factory=loops.Loop) as runner:
            warnings.simplefilter("error")
            # A process that is killed leaves work behind that has not begun.
            warnings.filterwarnings("ignore", message="coroutine .* was never awaited")
            loop = typing.cast("loops.Loop", runner.get_loop())
            trace = traces.Trace(loop.time)
            failures = checkers.Failures(trace)
            loop.set_exception_handler(lambda _, context: failures.add(f"the loop: {context}"))
            server = Server(faults.Weather(random.Random(f"{seed}/weather")), failures, trace)
            handler = traces.Handler(trace, lambda: loops.PROCESS.get() or "sim", server.has_hidden)
            logger.addHandler(handler)
            logger.setLevel(logging.INFO)
            try:
                runner.run(_scenario(seed, server, trace, failures))
            except Exception as error:  # noqa: BLE001  it fails this seed, and says so
                failures.add(f"the simulation broke down: {_told(error)}")
            found = [*failures.found, *(f"logged as an error: {text}" for text in handler.errors)]
            return Result(
                seed, tuple(found), trace, loop.time(), loop.steps, len(server.requests), server.ledger.busiest
            )
    finally:
        # The scheduler freezes what it has loaded, for good; here there are many of them.
        gc.unfreeze()
        logger.setLevel(level)
        if handler is not None:
            logger.removeHandler(handler)


async def _scenario(seed: int, server: Server, trace: traces.Trace, failures: checkers.Failures) -> None:
    # Every part has dice of its own, so that one that throws once more does not change all others.
    dice = {name: random.Random(f"{seed}/{name}") for name in ("course", "world", "trouble", "s1", "s2")}
    course = dice["course"]
    world = worlds.World(server.storage, dice["world"], trace)
    elects = course.choice(ELECTIONS)
    names = ("s1", "s2") if elects.enabled else ("s1",)
    async with server:
        world.populate()
        replicas = [Replica(name, server, dice[name], failures, trace, elects=elects) for name in names]
        for replica in replicas:
            replica.start()
        trouble = faults.Trouble(
            server, server.faults, replicas, dice["trouble"], trace, on_rollback=server.rolled_back
        )
        bad = course.choice((0.1, 0.3, 0.5))
        for _ in range(STEPS):
            if course.random() < bad:
                await trouble.step()
            else:
                world.step()
            await asyncio.sleep(course.choice(PAUSES_S))
        trouble.clear()
        trace.add("sim", "all faults are over")
        world.settle()
        await asyncio.sleep(QUIET_S)
        trace.add("sim", "peace")
        for _ in range(course.randint(0, 10)):
            world.step()
            await asyncio.sleep(course.choice(PAUSES_S))
        world.settle()
        await asyncio.sleep(PEACE_S)
        for replica in replicas:
            replica.require_rest()
        leading = [replica.process for replica in replicas if replica.leads]
        if len(leading) != 1:
            failures.add(f"at rest these lead: {leading}")
        for replica in replicas:
            await replica.stop()


def _told(error: BaseException | None) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return repr(error)
