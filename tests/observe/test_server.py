"""
The HTTP server: what it answers, to whom, and how much of it.

The server is real and listens on loopback; what it shows is made up. Every test runs a loop of its own.
"""

import asyncio
from collections.abc import Awaitable, Callable

import aiohttp
import pytest

from graphsched.observe import health, metrics, server

Answer = tuple[int, str]
Ask = Callable[[str], Awaitable[Answer]]


class World:
    """What there is to see, and the means to change it."""

    def __init__(self) -> None:
        self.problem = ""
        self.asked: list[tuple[int, str]] = []
        self.busy: asyncio.Queue[str] = asyncio.Queue()
        self.release: asyncio.Event | None = None

    def decisions(self, limit: int, pod: str) -> list[object]:
        """Two entries, and the question is noted."""
        self.asked.append((limit, pod))
        return [{"pod": "default/a"}, {"pod": "default/b"}]

    async def explain(self, pod: str) -> object | None:
        """Know `default/a`; wait for `release` if there is one."""
        if self.release is not None:
            self.busy.put_nowait(pod)
            await self.release.wait()
        return {"text": "because"} if pod == "default/a" else None


def served(world: World, talk: Callable[[Ask], Awaitable[object]]) -> None:
    """Run `talk` with a function that asks a server which shows `world`: `await ask("GET /path")`."""

    async def main() -> None:
        sights = server.Sights(
            metrics=metrics.Metrics(profile="graph-scheduler", version="0"),
            health=health.Health([health.Check("watch/pods", lambda: world.problem)]),
            decisions=world.decisions,
            explain=world.explain,
            config={"profile": "graph-scheduler"},
        )
        serving = server.Server(sights)
        await serving.start(host="127.0.0.1", port=0)
        async with aiohttp.ClientSession(f"http://127.0.0.1:{serving.port}") as session:

            async def ask(request: str) -> Answer:
                method, path = request.split()
                async with session.request(method, path) as response:
                    return response.status, await response.text()

            await talk(ask)
        await serving.stop()
        await serving.stop()

    asyncio.run(main())


def answers(world: World, *requests: str) -> list[Answer]:
    """The answers to these requests, one after the other."""
    collected: list[Answer] = []

    async def talk(ask: Ask) -> None:
        collected.extend([await ask(request) for request in requests])

    served(world, talk)
    return collected


def test_a_scrape_gets_the_text_format() -> None:
    """Prometheus reads it."""
    status, body = answers(World(), "GET /metrics")[0]

    assert 200 == status
    assert "# TYPE scheduler_schedule_attempts_total counter" in body


@pytest.mark.parametrize("endpoint", ["healthz", "readyz"])
def test_a_failed_check_fails_the_probe(endpoint: str) -> None:
    """500, and what is wrong; livez stays well."""
    world = World()
    world.problem = "no list yet"

    expected = [(500, f"[-]watch/pods failed: no list yet\n{endpoint} check failed\n"), (200, "ok")]
    assert expected == answers(world, f"GET /{endpoint}", "GET /livez")


def test_verbose_and_exclude_are_understood() -> None:
    """As all Kubernetes components understand them."""
    world = World()
    world.problem = "no list yet"

    assert [(200, "readyz check passed\n")] == answers(world, "GET /readyz?verbose&exclude=watch/pods")


def test_recent_decisions_can_be_asked_for_one_pod() -> None:
    """The limit has a default; the pod is passed on."""
    world = World()
    last = answers(world, "GET /debug/decisions", "GET /debug/decisions?limit=5&pod=default/a")[-1]

    assert [(server.DECISIONS_DEFAULT, ""), (5, "default/a")] == world.asked
    assert (200, '[{"pod":"default/a"},{"pod":"default/b"}]\n') == last


@pytest.mark.parametrize("limit", ["0", "-1", "1001", "many", "", "9" * 5000, "%D9%A3"])
def test_a_limit_that_is_none_is_refused(limit: str) -> None:
    """One line says what is allowed, and nothing is asked of the history."""
    world = World()
    status, body = answers(world, f"GET /debug/decisions?limit={limit}")[0]

    assert (400, []) == (status, world.asked)
    assert "is not a number from 1 to 1000" in body


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        ("GET /debug/explain?pod=default/a", 200),
        ("GET /debug/explain?pod=default/b", 404),
        ("GET /debug/explain?pod=a", 400),
        ("GET /debug/explain", 400),
        ("GET /configz", 200),
        ("GET /", 200),
        ("GET /nothing", 404),
        ("POST /metrics", 405),
        ("DELETE /debug/decisions", 405),
    ],
)
def test_each_path_answers(request_line: str, status: int) -> None:
    """Known, unknown, malformed; and nothing can be changed from here, since looking on never steers."""
    assert [status] == [answer[0] for answer in answers(World(), request_line)]


def test_explanations_at_a_time_are_bounded() -> None:
    """The third caller is told to come back; the first two get their answers."""
    world = World()
    statuses: list[int] = []

    async def talk(ask: Ask) -> None:
        world.release = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            first = [group.create_task(_status(ask)) for _ in range(2)]
            for _ in first:
                await world.busy.get()
            statuses.append(await _status(ask))
            world.release.set()
        statuses.extend([await task for task in first])

    served(world, talk)

    assert [503, 200, 200] == statuses


async def _status(ask: Ask) -> int:
    return (await ask("GET /debug/explain?pod=default/a"))[0]


@pytest.mark.parametrize(
    ("address", "local"),
    [("127.0.0.1", True), ("::1", True), ("::ffff:127.0.0.1", True), ("10.0.0.7", False), ("fe80::1%eth0", False)],
)
def test_debugging_is_for_callers_on_this_host(address: str, local: bool) -> None:
    """Where port-forward comes from; another pod is told how."""
    assert local == server._is_local(address)
