"""The deterministic loop: time only by waiting, one order, and nothing from outside."""

import asyncio
import socket

import pytest

from tests.simulation import loop as loops, memory


def simulated() -> loops.Loop:
    """The running loop."""
    running = asyncio.get_running_loop()
    assert isinstance(running, loops.Loop)
    return running


def test_time_is_what_was_waited_for() -> None:
    """An hour passes at once, and nothing else moves the clock."""

    async def body() -> tuple[float, float]:
        before = simulated().time()
        await asyncio.sleep(3600.0)
        return before, simulated().time()

    assert (0.0, 3600.0) == loops.run(body())


def test_timers_of_one_moment_fire_in_the_order_they_were_set() -> None:
    """A heap alone would shuffle them."""

    async def body() -> list[int]:
        fired: list[int] = []
        for number in range(50):
            simulated().call_at(1.0, fired.append, number)
        await asyncio.sleep(2.0)
        return fired

    assert list(range(50)) == loops.run(body())


def test_time_that_code_takes_makes_timers_late() -> None:
    """They still fire, each once."""

    async def body() -> list[float]:
        loop, fired = simulated(), list[float]()
        loop.call_at(1.0, lambda: fired.append(loop.time()))
        loop.spend(5.0)
        await asyncio.sleep(0.0)
        return fired

    assert [5.0] == loops.run(body())


def test_a_frozen_process_stands_still_while_others_go_on() -> None:
    """What it would have done happens after the thaw, in order."""

    async def body() -> list[tuple[str, float]]:
        seen: list[tuple[str, float]] = []

        async def tick(name: str) -> None:
            loops.PROCESS.set(name)
            for _ in range(4):
                await asyncio.sleep(1.0)
                seen.append((name, simulated().time()))

        ticking = [asyncio.create_task(tick(name)) for name in ("a", "b")]
        await asyncio.sleep(1.5)
        simulated().freeze("a")
        await asyncio.sleep(5.0)
        simulated().thaw("a")
        await asyncio.gather(*ticking)
        return seen

    others = [("b", 1.0), ("b", 2.0), ("b", 3.0), ("b", 4.0)]
    assert [("a", 1.0), others[0], *others[1:], ("a", 6.5), ("a", 7.5), ("a", 8.5)] == loops.run(body())


def test_waiting_for_what_never_happens_is_an_error() -> None:
    """Not a run that never ends."""

    async def body() -> None:
        await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="never happens"):
        loops.run(body())


@pytest.mark.parametrize("reach", ["socket", "server", "thread", "name"])
def test_nothing_outside_can_be_reached(reach: str) -> None:
    """It would make the run depend on the machine."""

    async def body() -> None:
        running = asyncio.get_running_loop()
        if reach == "socket":
            await running.create_connection(asyncio.Protocol, "127.0.0.1", 1)
        elif reach == "server":
            await running.create_server(asyncio.Protocol, "127.0.0.1", 0)
        elif reach == "thread":
            await asyncio.to_thread(socket.gethostname)
        else:
            await running.getaddrinfo("localhost", 1)

    with pytest.raises(loops.OutsideError):
        loops.run(body())


def test_a_server_that_is_down_is_not_reached() -> None:
    """As an error of ours, like any other."""

    async def body() -> str:
        server = memory.Server()
        async with server.client() as client:
            try:
                await client.get("/api/v1/nodes")
            except Exception as error:  # noqa: BLE001  the test asks which
                return type(error).__name__
        return ""

    assert "UnreachableError" == loops.run(body())


def test_what_has_arrived_is_carried_out_though_its_client_gave_up() -> None:
    """A late answer is lost, its effect is not."""

    async def body() -> tuple[str, int]:
        async with memory.Server() as server, server.client() as client:
            server.faults.delay("POST", ".*", 5.0)
            told = ""
            try:
                await client.post("/api/v1/nodes", {"metadata": {"name": "n1"}}, deadline_s=1.0)
            except Exception as error:  # noqa: BLE001  the test asks which
                told = type(error).__name__
            await asyncio.sleep(10.0)
            return told, len(server.storage.items("/api/v1/nodes"))

    assert ("UnreachableError", 1) == loops.run(body())
