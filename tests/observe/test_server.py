"""
The HTTP server: what it answers, to whom, and how much of it.

The server is real and listens on loopback; what it shows is made up. Every test runs a loop of its own.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable

import aiohttp
import pytest

from graphsched.observe import feeds, health, metrics, server
from tests.fakes import still

Answer = tuple[int, str]
Ask = Callable[[str], Awaitable[Answer]]


class World:
    """What there is to see, and the means to change it."""

    def __init__(self) -> None:
        self.problem = ""
        self.asked: list[tuple[int, str]] = []
        self.busy: asyncio.Queue[str] = asyncio.Queue()
        self.release: asyncio.Event | None = None
        self.data = b"GSDG"
        self.standby = ""
        self.shadow: Callable[[int], object] | None = None

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

    async def graph(self) -> feeds.Graph:
        """Hand out `data`; wait for `release` if there is one."""
        if self.release is not None:
            self.busy.put_nowait("graph")
            await self.release.wait()
        return feeds.Graph(7, self.data)


def sights_of(world: World) -> server.Sights:
    """What a server of this world shows."""
    return server.Sights(
        metrics=metrics.Metrics(profile="graph-scheduler", version="0"),
        health=health.Health([health.Check("watch/pods", lambda: world.problem)]),
        decisions=world.decisions,
        conflicts=lambda limit: [{"kind": "moved", "limit": limit}],
        explain=world.explain,
        graph=world.graph,
        feed=still.StillFeed(),
        affinity=still.StillFeed(),
        shadow=world.shadow,
        queue=lambda: {"counts": {"active": 3}},
        config={"profile": "graph-scheduler"},
        standby=lambda: world.standby,
    )


def served(world: World, talk: Callable[[Ask], Awaitable[object]]) -> None:
    """Run `talk` with a function that asks a server which shows `world`: `await ask("GET /path")`."""

    async def main() -> None:
        serving = server.Server(sights_of(world), server.Door())
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


def test_the_queue_is_shown() -> None:
    """As JSON, as it is handed out."""
    status, body = answers(World(), "GET /debug/queue")[0]

    assert (200, {"counts": {"active": 3}}) == (status, json.loads(body))


def test_recent_decisions_can_be_asked_for_one_pod() -> None:
    """The limit has a default; the pod is passed on."""
    world = World()
    last = answers(world, "GET /debug/decisions", "GET /debug/decisions?limit=5&pod=default/a")[-1]

    assert [(server.DECISIONS_DEFAULT, ""), (5, "default/a")] == world.asked
    assert (200, '[{"pod":"default/a"},{"pod":"default/b"}]\n') == last


def test_recent_conflicts_are_told() -> None:
    """With the same limits as decisions."""
    assert [
        (200, '[{"kind":"moved","limit":20}]\n'),
        (200, '[{"kind":"moved","limit":3}]\n'),
        (400, '{"error": "limit=\'0\' is not a number from 1 to 1000"}'),
    ] == answers(World(), *(f"GET /debug/conflicts{query}" for query in ("", "?limit=3", "?limit=0")))


def test_a_comparison_is_told_where_one_is_made() -> None:
    """With the same limits as decisions; without mode shadow one line says how to have it."""
    world = World()
    world.shadow = lambda limit: {"compared": 1, "limit": limit}
    assert [
        (200, '{"compared":1,"limit":20}\n'),
        (200, '{"compared":1,"limit":3}\n'),
        (400, '{"error": "limit=\'0\' is not a number from 1 to 1000"}'),
    ] == answers(world, *(f"GET /debug/shadow{query}" for query in ("", "?limit=3", "?limit=0")))
    assert [(404, '{"error": "this scheduler compares with no other: run it with --mode shadow"}')] == answers(
        World(), "GET /debug/shadow"
    )


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
        ("GET /debug/graph", 200),
        ("HEAD /debug/graph", 405),
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


async def _status(ask: Ask, request: str = "GET /debug/explain?pod=default/a") -> int:
    return (await ask(request))[0]


def test_the_graph_is_handed_out_to_one_at_a_time() -> None:
    """Copying and encoding it twice at once is of no use to anybody; the next one gets it."""
    statuses: list[int] = []

    async def talk(ask: Ask) -> None:
        world.release = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            first = group.create_task(_status(ask, "GET /debug/graph"))
            await world.busy.get()
            statuses.append(await _status(ask, "GET /debug/graph"))
            world.release.set()
        statuses.extend([await first, await _status(ask, "GET /debug/graph")])

    world = World()
    served(world, talk)

    assert [503, 200, 200] == statuses


def test_the_graph_comes_whole_and_says_its_generation() -> None:
    """In parts, whose sum was announced."""
    world = World()
    world.data = bytes(range(256)) * 5000

    async def main() -> None:
        serving = server.Server(sights_of(world), server.Door())
        await serving.start(host="127.0.0.1", port=0)
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{serving.port}/debug/graph") as response,
        ):
            assert "7" == response.headers[server.GENERATION_HEADER]
            assert "application/octet-stream" == response.content_type
            assert len(world.data) == response.content_length
            assert world.data == await response.read()
        await serving.stop()

    asyncio.run(main())


def test_a_caller_that_does_not_read_the_graph_loses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the next one gets it: nobody can keep it from others."""
    monkeypatch.setattr(server, "GRAPH_S_MAX", 0.05)
    world = World()
    world.data = bytes(64 << 20)
    world.release = asyncio.Event()
    world.release.set()

    async def main() -> None:
        serving = server.Server(sights_of(world), server.Door())
        await serving.start(host="127.0.0.1", port=0)
        reader, writer = await asyncio.open_connection("127.0.0.1", serving.port, limit=1024)
        writer.write(b"GET /debug/graph HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await world.busy.get()
        world.data = b"GSDG"
        async with aiohttp.ClientSession(f"http://127.0.0.1:{serving.port}") as session:
            while (answer := await _body(session))[0] == 503:
                assert b"try again" in answer[1]
        assert (200, b"GSDG") == answer
        assert len(await reader.read()) < 64 << 20
        writer.close()
        await writer.wait_closed()
        await serving.stop()

    asyncio.run(main())


async def _body(session: aiohttp.ClientSession) -> tuple[int, bytes]:
    async with session.get("/debug/graph") as response:
        return response.status, await response.read()


@pytest.mark.parametrize(
    "path",
    [
        "/configz",
        "/debug/decisions",
        "/debug/conflicts",
        "/debug/explain?pod=default/a",
        "/debug/graph",
        "/debug/graph?follow",
        "/debug/graph?after=1&epoch=1",
        "/debug/affinity",
        "/debug/affinity?after=1&epoch=1",
        "/debug/queue",
        "/debug/shadow",
    ],
)
def test_other_hosts_are_told_how_to_ask(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every debug endpoint follows the rule."""
    monkeypatch.setattr(server, "_is_local", lambda _address: False)
    (answer,) = answers(World(), f"GET {path}")

    assert (403, True) == (answer[0], "use kubectl port-forward" in answer[1])


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("::1", True),
        ("pages.example", False),
        ("10.0.0.7", False),
        ("", False),
        (None, False),
    ],
)
def test_debugging_is_for_callers_that_name_this_host(host: str | None, local: bool) -> None:
    """A page whose name was made to mean this host does not read the scheduler through a browser here."""
    assert local == server._is_local_name(host)


def test_a_foreign_name_for_this_host_is_refused() -> None:
    """The rule holds for a request as it comes in."""

    async def main() -> tuple[int, int]:
        serving = server.Server(sights_of(World()), server.Door())
        await serving.start(host="127.0.0.1", port=0)
        async with aiohttp.ClientSession(f"http://127.0.0.1:{serving.port}") as session:
            async with session.get("/debug/decisions", headers={"Host": "pages.example"}) as foreign:
                refused = foreign.status
            async with session.get("/debug/decisions") as own:
                answered = own.status
        await serving.stop()
        return refused, answered

    assert (403, 200) == asyncio.run(main())


def test_noise_on_the_port_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A caller that speaks no HTTP is answered and leaves no error in the log."""

    async def main() -> bytes:
        serving = server.Server(sights_of(World()), server.Door())
        await serving.start(host="127.0.0.1", port=0)
        reader, writer = await asyncio.open_connection("127.0.0.1", serving.port)
        writer.write(b"\x16\x03\x01 noise\r\n\r\n")
        answer = await reader.read(64)
        writer.close()
        await writer.wait_closed()
        await serving.stop()
        return answer

    answer = asyncio.run(main())

    assert (True, []) == (answer.startswith(b"HTTP/1.0 400"), [record.message for record in caplog.records])


@pytest.mark.parametrize(
    ("address", "local"),
    [("127.0.0.1", True), ("::1", True), ("::ffff:127.0.0.1", True), ("10.0.0.7", False), ("fe80::1%eth0", False)],
)
def test_debugging_is_for_callers_on_this_host(address: str, local: bool) -> None:
    """Where port-forward comes from; another pod is told how."""
    assert local == server._is_local(address)


def test_a_standby_explains_nothing() -> None:
    """It has made none of the decisions that are asked about, and says who has."""
    world = World()
    world.standby = "standby of b"

    async def talk(ask: Ask) -> None:
        status, text = await ask("GET /debug/explain?pod=default/a")
        assert 409 == status
        assert "this replica decides nothing (standby of b): ask the one that leads" in text
        assert 200 == (await ask("GET /debug/decisions"))[0]

    served(world, talk)
