"""One voyage: a scheduler from its first start to its second, and one fault of one call in every phase.

Comes in: a fault and a call of the table, a seed. Goes out: nothing, or an `AssertionError` that says what is broken.
Each phase arms the fault, does what makes the scheduler make that call, waits until all is well again, requires that
the fault has struck, and has everything checked.
"""

import asyncio
import random

from graphsched.base.kube import client as clients
from tests.fakes import faults
from tests.faults import calls, checkers, customs, proxy as proxies, table, witness as witnesses, worlds

PATIENT = clients.Patience(request_s=10.0)
UNANSWERED = clients.Patience(request_s=3.0, page_s=3.0)
UNHEARD = clients.Patience(request_s=3.0, page_s=3.0, stall_s=10.0)
"""kopf knows a watch that is not let in by its silence alone."""
STALLED = clients.Patience(request_s=10.0, stall_s=3.0)
STALLED_BESIDE = clients.Patience(request_s=10.0, stall_s=10.0)
"""Where more than a dozen kinds are followed most say nothing for a minute, so each stall is one more failure in a row.
The pause after it comes to 10 s, and a watch that is silent for two stalls is not to be trusted: with less than 10 s
some watch would nearly always be."""
QUIET = frozenset({"stalled", "deaf"})
LATE_S = 0.8
STRIKES_MAX = 3
MONITOR_S = 0.1


class Voyage:
    """One of them."""

    def __init__(self, shared: worlds.Shared, fault: table.Fault, call: str, seed: int) -> None:
        self.fault = fault
        self.clock = worlds.ShiftedClock()
        self.rng = random.Random(f"{fault.name} {call} {seed}")
        others = [each for each in calls.OTHERS if fault.name != "missed" or each != "namespaces"]
        other = self.rng.choice(others)
        self.call = table.drawn(call, seed).replace("others", other)
        self.resource = self.call.removesuffix(calls.BY_KOPF).rpartition(" ")[2]
        beside = customs.Beside.NOTHING
        if call in table.OF_NETWORK:
            beside = customs.Beside.NETWORK
        elif call in table.OF_POLICIES:
            beside = customs.Beside.POLICIES
        # What other kinds there are can only have changed by the fault, so all are compared at the end alone.
        self._wide = "others" in call or beside is not customs.Beside.NOTHING
        patience = PATIENT
        if fault.kind is faults.Kind.HANG:
            patience = UNHEARD if beside is customs.Beside.POLICIES else UNANSWERED
        elif fault.name in QUIET:
            patience = STALLED if beside is customs.Beside.NOTHING else STALLED_BESIDE
        name = f"{fault.name}-{call}-{seed}".replace(" ", "-")
        self.world = worlds.World(
            shared,
            name,
            rng=self.rng,
            patience=patience,
            clock=self.clock,
            electing=self.call == calls.LEASE,
            beside=beside,
        )

    async def play(self) -> None:
        """All phases. Raises `AssertionError`."""
        async with self.world:
            if self.resource in calls.OTHERS and self.resource != "namespaces":
                await self.world.create(self.resource, self.world.name)
            monitor = asyncio.create_task(self._monitor())
            try:
                for phase in table.Phase:
                    await self._phase(phase)
                    if monitor.done():
                        monitor.result()
            finally:
                monitor.cancel()
                await asyncio.wait((monitor,))

    async def _phase(self, phase: table.Phase) -> None:
        world, before = self.world, self._struck()
        if phase is table.Phase.RESTART:
            await world.pods(2)
            await world.stop(hard=self.rng.random() < 0.5)
        if phase in {table.Phase.START, table.Phase.RESTART}:
            await world.pods(2)
            await world.giant()
            await self._arm()
            await world.start()
        elif phase is table.Phase.STEADY:
            await self._arm()
            await self._provoke()
            await world.pods(2)
            await world.giant()
        else:
            bound = self._bound()
            burst = asyncio.create_task(world.pods(3))
            await world.until("the burst has begun", lambda _: self._bound() > bound)
            await self._arm()
            await self._provoke()
            await world.pods(3)
            await world.giant()
            await burst
        try:
            await self._befall(phase)
            await world.proxy.until(lambda: self._struck() > before, what=f"{world.name}: {phase}: the fault strikes")
            await self._settle(phase)
        except AssertionError as error:
            error.add_note(f"in the phase: {phase}")
            raise

    def _bound(self) -> int:
        return sum(bool(checkers.node_of(pod)) for pod in self.world.seen.values())

    def _struck(self) -> int:
        kind = self.fault.ailment or self.fault.kind
        assert kind is not None
        return self.world.proxy.struck[self.call, kind]

    # ------------------------------------------------------------------------ the fault

    async def _arm(self) -> None:
        """Let the fault strike from now on."""
        proxy, fault = self.world.proxy, self.fault
        if self.call == calls.GET:
            # Nobody reads a pod unless a binding got no answer, nor then if the watch has shown it bound.
            proxy.strike(calls.BIND, faults.Kind.DROP, times=1)
        if fault.kind is not None:
            times = 1 if fault.kind in {faults.Kind.HANG, faults.Kind.DELAY} else self.rng.randint(1, STRIKES_MAX)
            proxy.strike(
                self.call,
                fault.kind,
                times=times,
                status=fault.status,
                retry_after_s=fault.retry_after_s,
                seconds=LATE_S,
            )
        elif fault.ailment is not None and fault.name != "missed":
            proxy.afflict(self.resource, fault.ailment)
        await self.world.restate()

    async def _provoke(self) -> None:
        """Make a scheduler at rest make the call."""
        if self.fault.kind is None:
            return
        if self.call.startswith("list "):
            self.world.proxy.afflict(self.resource, proxies.Ailment.EXPIRE)
        elif self.call.startswith("watch "):
            self.world.proxy.afflict(self.resource, proxies.Ailment.BREAK)
        elif self.call == calls.DISCOVERY + calls.BY_KOPF:
            # It looks around when it begins, and it begins anew when something ended it.
            self.world.proxy.strike(f"watch {calls.POLICIES}", faults.Kind.REFUSE, status=400, times=1)
            self.world.proxy.afflict(calls.POLICIES, proxies.Ailment.BREAK)

    async def _befall(self, phase: table.Phase) -> None:
        """What an ailment of a watch needs beside: something that the watch would tell."""
        world = self.world
        if self.fault.ailment is None:
            return
        # What changes after a list is told by the watch; kopf lists for itself, later than the scheduler does.
        followed = world.proxy.opened if self.resource == calls.POLICIES else world.proxy.heard.__contains__
        await world.proxy.until(
            lambda: followed(self.resource), what=f"{world.name}: {phase}: {self.resource} is followed"
        )
        if self.fault.name == "missed":
            await self._miss(phase)
        else:
            await world.touch(self.resource)

    async def _miss(self, phase: table.Phase) -> None:
        """Delete something while the watch is away and its place lost."""
        world, proxy = self.world, self.world.proxy
        if self.resource == "pods":
            await world.until("all are bound", self._all_bound)
            victim = self.rng.choice(sorted(set(world.seen) - world.giants))
        elif self.resource == "nodes":
            victim = await world.node(f"spare-{phase.name.lower()}", spec={"unschedulable": True})
        else:
            victim = f"spare-{world.name}-{phase.name.lower()}"
            await world.create(self.resource, victim)
        await proxy.until(lambda: proxy.watched(self.resource), what=f"{world.name}: {self.resource} is watched")
        await checkers.require_true_graph(world)
        proxy.strike(self.call, faults.Kind.DROP)
        proxy.afflict(self.resource, proxies.Ailment.BREAK)
        await world.delete(self.resource, victim)
        proxy.lift()
        proxy.strike(self.call, faults.Kind.REFUSE, status=410, times=1)

    # -------------------------------------------------------------------------- the rest

    def _all_bound(self, pods: dict[str, witnesses.Object]) -> bool:
        return all(checkers.node_of(pod) for pod in worlds.fits(pods, self.world.giants))

    async def _settle(self, phase: table.Phase) -> None:
        """Wait until all is well, and have it checked."""
        world = self.world
        if self.fault.ailment in {proxies.Ailment.STALL, proxies.Ailment.DEAF}:
            await world.proxy.until(
                lambda: world.proxy.watched(self.resource), what=f"{world.name}: {phase}: a new watch is open"
            )
        await world.until("all are bound", self._all_bound)
        await world.until(
            "those that fit nowhere are told so",
            lambda pods: all(name in pods and checkers.waits(pods[name]) for name in world.giants),
        )
        if world.beside is customs.Beside.POLICIES:
            await world.proxy.until(
                lambda: world.proxy.watched(calls.POLICIES),
                what=f"{world.name}: {phase}: kopf follows",
                # Each time that it ends and is begun anew takes seven seconds, five of which are kopf's own.
                within_s=worlds.SETTLED_S,
            )
            await checkers.require_told(world)
            checkers.require_rules_kept(world)
        last = phase is table.Phase.RESTART
        kinds = frozenset[str]() if last or self._wide else frozenset(calls.MAIN)
        # What is restated waits for a watch that is refused up to three times, after ten seconds each in the end.
        within_s = worlds.SETTLED_S if world.beside is customs.Beside.NETWORK else checkers.WITHIN_S
        await checkers.require_true_graph(world, kinds, within_s=within_s)
        world.proxy.lift()
        checkers.require_all_bound(world)
        checkers.require_bound_once(world)
        await checkers.require_room(world)
        checkers.require_bounded(world)
        await self._come_ready(phase)

    async def _come_ready(self, phase: table.Phase) -> None:
        end = asyncio.get_running_loop().time() + worlds.SETTLED_S
        while not self.world.program.ready:
            said = self.world.program.wired.sights.health().report("readyz").text()
            assert asyncio.get_running_loop().time() < end, f"{self.world.name}: {phase}: never ready: {said}"
            await asyncio.sleep(MONITOR_S)

    async def _monitor(self) -> None:
        """Readiness is never claimed before every list has been had, and nobody calls for a restart."""
        while True:
            await asyncio.sleep(MONITOR_S)
            if self.world._program is None:
                continue
            sources = self.world.program.wired.reflectors
            waived = {each.resource.name for each in sources if each.progress.state.waived}
            # Some kinds can be done without, and only where it is the right that is missing.
            assert not waived or (self.fault.status, {self.resource}) == (403, waived), f"{self.world.name}: {waived}"
            missing = {*calls.MAIN, *calls.OTHERS, *self.world.beside.value} - self.world.proxy.listed - waived
            ready = self.world.program.ready
            assert not (ready and missing), f"{self.world.name}: ready without a list of {missing}"
            live = self.world.program.wired.sights.health().report("livez")
            assert live.ok, f"{self.world.name}: {live.text()}"
