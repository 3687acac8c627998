"""What others do between a decision and its binding, and to the world itself: each played in every phase.

Comes in: a deed of the table, a seed. Goes out: nothing, or an `AssertionError`. One binding is held at the
proxy, the deed is done at the API server, the binding goes on; what must come of it is the deed's to say, and all that
always holds is checked as after every fault.
"""

import random
from collections.abc import Awaitable, Callable

from tests.faults import calls, checkers, proxy as proxies, table, voyage, worlds

_CONFLICT, _GONE = 409, 404


class Meanwhile(voyage.Voyage):
    """A voyage on which somebody interferes."""

    def __init__(self, shared: worlds.Shared, deed: table.Fault, seed: int) -> None:
        super().__init__(shared, deed, table.BETWEEN, seed)
        self._phase_name = ""
        self._deeds: dict[str, Callable[[str, proxies.Held], Awaitable[None]]] = {
            "node-deleted": self._node_deleted,
            "node-cordoned": self._node_cordoned,
            "pod-deleted": self._pod_deleted,
            "pod-ending": self._pod_ending,
            "pod-again": self._pod_again,
            "pod-gated": self._pod_gated,
            "bound-by-other": self._bound_by_other,
            "clock-ahead": self._clock_ahead,
            "clock-back": self._clock_back,
        }
        assert set(self._deeds) == {deed.name for deed in table.DEEDS}

    async def _phase(self, phase: table.Phase) -> None:
        world, self._phase_name = self.world, phase.name.lower()
        if phase is table.Phase.RESTART:
            await world.pods(2)
            await world.stop(hard=self.rng.random() < 0.5)
        name = f"held-{self._phase_name}"
        holding = world.proxy.hold(lambda call: call.name == calls.BIND and call.subject == name)
        await world.pod(name)
        if phase in {table.Phase.START, table.Phase.RESTART}:
            await world.start()
        elif phase is table.Phase.BURST:
            await world.pods(5)
        await world.proxy.until(holding.done, what=f"{world.name}: {phase}: the binding is held")
        held = holding.result()
        await world.until("who watches has seen the pod as well", lambda pods: name in pods)
        await self._deeds[self.fault.name](name, held)
        await world.pods(1)
        await world.giant()
        await self._settle(phase)

    # ------------------------------------------------------------------------------ deeds

    async def _go_on(self, held: proxies.Held) -> int:
        """Let the binding go on; the status it met."""
        held.let_go()
        proxy = self.world.proxy
        await proxy.until(lambda: held.done.over is not None, what=f"{self.world.name}: the held binding is answered")
        return held.done.status

    def _target(self, held: proxies.Held) -> str:
        return held.done.node

    async def _node_deleted(self, name: str, held: proxies.Held) -> None:
        """The API server takes bindings to nodes that are gone; whoever deletes pods of lost nodes sees to that pod."""
        world, node = self.world, self._target(held)
        await world.delete("nodes", node)
        assert 201 == await self._go_on(held)
        await world.until("it is bound", lambda pods: bool(checkers.node_of(pods[name])))
        await checkers.require_true_graph(world)
        # As the garbage collector of pods does, so that its room is known to be free when the node is back.
        for lost in [each for each, pod in world.seen.items() if checkers.node_of(pod) == node]:
            await world.delete("pods", lost)
        await world.node(node.removeprefix(f"{world.name}-"))

    async def _node_cordoned(self, name: str, held: proxies.Held) -> None:
        """What was decided before holds; nothing more goes there."""
        world, node = self.world, self._target(held)
        await world.shared.client.patch(world.path("nodes", node), {"spec": {"unschedulable": True}})
        assert 201 == await self._go_on(held)
        await world.until("it is bound", lambda pods: checkers.node_of(pods[name]) == node)
        await checkers.require_true_graph(world)
        later = await world.pod()
        await world.until("the next is bound", lambda pods: later in pods and bool(checkers.node_of(pods[later])))
        assert node != checkers.node_of(world.seen[later])
        await world.shared.client.patch(world.path("nodes", node), {"spec": {"unschedulable": False}})

    async def _pod_deleted(self, name: str, held: proxies.Held) -> None:
        await self.world.delete("pods", name)
        assert _GONE == await self._go_on(held)

    async def _pod_ending(self, name: str, held: proxies.Held) -> None:
        """Marked for deletion, kept by a finalizer."""
        world = self.world
        path = world.path("pods", name)
        await world.shared.client.patch(path, {"metadata": {"finalizers": ["tests.graphsched/keep"]}})
        await world.delete("pods", name)
        assert _CONFLICT == await self._go_on(held)
        await world.shared.client.patch(path, {"metadata": {"finalizers": None}})
        await world.until("it is gone", lambda pods: name not in pods)

    async def _pod_again(self, name: str, held: proxies.Held) -> None:
        """Deleted, and another one made under its name: that one is to be bound, not the one that was decided on."""
        world, old = self.world, self.world.seen[name]["metadata"]["uid"]
        await world.delete("pods", name)
        await world.pod(name)
        assert _CONFLICT == await self._go_on(held)
        await world.until("the new one is bound", lambda pods: name in pods and bool(checkers.node_of(pods[name])))
        assert old != world.seen[name]["metadata"]["uid"]

    async def _pod_gated(self, name: str, held: proxies.Held) -> None:
        """A gate can not be put on a pod, but another one with a gate may have its name."""
        world = self.world
        await world.delete("pods", name)
        await world.pod(name, spec={"schedulingGates": [{"name": "tests.graphsched/wait"}]})
        assert _CONFLICT == await self._go_on(held)
        await checkers.require_true_graph(world)
        assert not checkers.node_of(world.seen[name])
        await world.shared.client.patch(world.path("pods", name), {"spec": {"schedulingGates": None}})

    async def _bound_by_other(self, name: str, held: proxies.Held) -> None:
        world = self.world
        nodes = [f"{world.name}-n{number}" for number in range(worlds.NODES_COUNT)]
        other = self.rng.choice([node for node in nodes if node != self._target(held)])
        before = self._conflicts()
        await world.shared.client.bind(name, other, namespace=world.name)
        assert _CONFLICT == await self._go_on(held)
        await checkers.require_true_graph(world)
        assert other == checkers.node_of(world.seen[name])
        assert self._conflicts() == before + 1

    def _conflicts(self) -> float:
        lines = self.world.program.wired.parts.meters.render().decode().splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("graphsched_conflicts_total"))

    async def _clock_ahead(self, _name: str, held: proxies.Held) -> None:
        self.clock.shift_s += random.Random(self._phase_name).choice([3600.0, 86_400.0])
        assert 201 == await self._go_on(held)

    async def _clock_back(self, _name: str, held: proxies.Held) -> None:
        self.clock.shift_s -= random.Random(self._phase_name).choice([3600.0, 86_400.0])
        assert 201 == await self._go_on(held)
