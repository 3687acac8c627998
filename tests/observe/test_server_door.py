"""
Who is let in over HTTP: the guard before every path but the health endpoints, and TLS, on both event loops.

The server is real and listens on loopback; the guard and what is shown are made up.
"""

import asyncio
import re
import ssl
from collections.abc import Awaitable, Callable

import aiohttp
import pytest
import uvloop

from graphsched.app import certificates
from graphsched.base.kit import clock
from graphsched.observe import access, feeds, health, metrics, server, tls
from tests.fakes import still

PATHS = (
    "/",
    "/debug/explain?pod=default/a",
    *sorted(set(re.findall(r"(?m)^(/[\w/]+)", server._INDEX)) - {"/healthz", "/livez", "/debug/explain"}),
)
"""Every page but those for health, as the index lists them: one that is added is guarded, too."""
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}

Talk = Callable[[aiohttp.ClientSession, server.Server], Awaitable[None]]


class Guard:
    """Lets `good` in to everything but what is forbidden; notes what it was asked."""

    def __init__(self, forbidden: str = "") -> None:
        self.asked: list[tuple[str, str]] = []
        self._forbidden = forbidden

    async def __call__(self, token: str, path: str) -> access.Verdict:
        """Judge by the token, then by the path."""
        self.asked.append((token, path))
        if token == "busy":
            return access.Verdict(503, "try again")
        if token != "good":
            return access.Verdict(401, "who are you")
        return access.Verdict(403, "not that") if path == self._forbidden else access.Verdict(200)


def shown() -> server.Sights:
    """Something to see at every path."""

    async def explain(_pod: str) -> object:
        return {"text": "because"}

    async def graph() -> feeds.Graph:
        return feeds.Graph(1, b"GSDG")

    return server.Sights(
        metrics=metrics.Metrics(profile="graph-scheduler", version="0"),
        health=health.Health([health.Check("watch/pods", lambda: "")]),
        decisions=lambda _limit, _pod: [],
        conflicts=lambda _limit: [],
        explain=explain,
        graph=graph,
        feed=still.StillFeed(),
        affinity=still.StillFeed(),
        queue=lambda: {"counts": {"active": 3}},
        config={},
        shadow=lambda _limit: {},
    )


def own_certificate() -> tls.Certificate:
    """One made on the spot."""
    return tls.Certificate(certificates.of_its_own("127.0.0.1", clock=clock.RealClock()), place="test")


def served(talk: Talk, guard: Guard | None, *, loop: str = "asyncio") -> server.Server:
    """Run `talk` beside a server on TLS with this guard, as a client that does not check whom it talks to."""

    async def main() -> server.Server:
        serving = server.Server(shown(), server.Door(guard, own_certificate()))
        await serving.start(host="127.0.0.1", port=0)
        connector = aiohttp.TCPConnector(ssl=False)
        async with aiohttp.ClientSession(f"https://127.0.0.1:{serving.port}", connector=connector) as session:
            await talk(session, serving)
        await serving.stop()
        return serving

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        return runner.run(main())


def refusals(serving: server.Server, reason: str) -> float:
    """How many requests were turned away for this reason."""
    for line in serving._sights.metrics.render().decode().splitlines():
        if line.startswith(f'graphsched_http_refused_total{{reason="{reason}"}}'):
            return float(line.rpartition(" ")[2])
    return 0.0


@pytest.mark.parametrize("loop", LOOPS)
def test_every_path_but_health_asks_for_a_token(loop: str) -> None:
    """401 without, with a word on how, and nothing of the page; the guard is asked each time."""
    guard = Guard()

    async def talk(session: aiohttp.ClientSession, _serving: server.Server) -> None:
        for path in (*PATHS, "/nothing", "/debug"):
            async with session.get(path) as response:
                assert (401, 'Bearer realm="graphsched"') == (response.status, response.headers["WWW-Authenticate"])
                assert {"error": "who are you"} == await response.json()
        for path in ("/healthz", "/readyz", "/livez"):
            async with session.get(path) as response:
                assert (200, "ok") == (response.status, await response.text())

    serving = served(talk, guard, loop=loop)

    assert len(PATHS) + 2 == len(guard.asked) == refusals(serving, "unauthenticated")


@pytest.mark.parametrize("loop", LOOPS)
def test_a_new_certificate_is_shown_on_either_loop(loop: str) -> None:
    """The context stays the same object, and what it shows changes."""
    clock_ = clock.VirtualClock(wall=1_800_000_000.0)

    async def main() -> tuple[bytes, bytes, bytes]:
        held = tls.Certificate(certificates.of_its_own("127.0.0.1", clock=clock_), place="test")
        serving = server.Server(shown(), server.Door(None, held))
        await serving.start(host="127.0.0.1", port=0)
        seen = [await _certificate(serving.port), await _certificate(serving.port)]
        clock_.advance(certificates.RENEWED_S)
        assert held.refresh()
        seen.append(await _certificate(serving.port))
        await serving.stop()
        return seen[0], seen[1], seen[2]

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        first, same, other = runner.run(main())

    assert (True, False) == (first == same, first == other)


async def _certificate(port: int) -> bytes:
    """What the server shows to whoever connects now."""
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=unchecked())
    shown_now = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return bytes(shown_now)


@pytest.mark.parametrize("loop", LOOPS)
def test_a_good_token_reads_everything(loop: str) -> None:
    """From another name than localhost, too: no browser adds a token by itself."""

    async def talk(session: aiohttp.ClientSession, _serving: server.Server) -> None:
        for path in PATHS:
            headers = {"Authorization": "Bearer good", "Host": "graphsched.kube-system.svc"}
            async with session.get(path, headers=headers) as response:
                assert 200 == response.status
        async with session.head("/metrics", headers={"Authorization": "Bearer good"}) as response:
            assert 200 == response.status

    served(talk, Guard(), loop=loop)


@pytest.mark.parametrize("spelling", ["/metrics", "/%6detrics", "/metrics?x=1", "/metrics#y"])
def test_the_right_is_to_what_is_served(spelling: str) -> None:
    """No spelling of a path leads past the right to it."""
    guard = Guard(forbidden="/metrics")

    async def talk(session: aiohttp.ClientSession, serving: server.Server) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", serving.port, ssl=unchecked())
        request = f"GET {spelling} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\nConnection: close\r\n\r\n"
        writer.write(request.encode())
        assert (await reader.read()).startswith(b"HTTP/1.1 403")
        writer.close()

    serving = served(talk, guard)

    assert ([("good", "/metrics")], 1) == (guard.asked, refusals(serving, "forbidden"))


def test_a_busy_guard_says_when_to_come_back() -> None:
    """503 with Retry-After."""

    async def talk(session: aiohttp.ClientSession, _serving: server.Server) -> None:
        async with session.get("/metrics", headers={"Authorization": "Bearer busy"}) as response:
            assert (503, "1") == (response.status, response.headers["Retry-After"])

    assert 1 == refusals(served(talk, Guard()), "unchecked")


def test_without_a_guard_tls_changes_nothing() -> None:
    """On loopback, HTTPS is a matter of taste."""

    async def talk(session: aiohttp.ClientSession, _serving: server.Server) -> None:
        async with session.get("/debug/decisions") as response:
            assert 200 == response.status

    served(talk, None)


@pytest.mark.parametrize("loop", LOOPS)
def test_plain_http_gets_no_answer_and_makes_no_noise(loop: str, caplog: pytest.LogCaptureFixture) -> None:
    """A token sent in the clear by mistake is not made worse by an answer; a port scan is no error of ours."""

    async def talk(_session: aiohttp.ClientSession, serving: server.Server) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", serving.port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        try:
            answer = await reader.read()
        except ConnectionResetError:
            answer = b""
        assert b"HTTP" not in answer
        writer.close()

    served(talk, Guard(), loop=loop)

    assert [] == [record.message for record in caplog.records]


def unchecked(**versions: ssl.TLSVersion) -> ssl.SSLContext:
    """A client that takes any certificate, and the versions that are asked for."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    for name, version in versions.items():
        setattr(context, name, version)
    return context


@pytest.mark.parametrize(
    ("version", "taken"),
    [(ssl.TLSVersion.TLSv1_3, True), (ssl.TLSVersion.TLSv1_2, True), (ssl.TLSVersion.TLSv1_1, False)],
)
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
def test_old_versions_of_tls_are_refused(version: ssl.TLSVersion, *, taken: bool) -> None:
    """1.2 is the least."""
    context = own_certificate().context
    # The client of this test would send no older version by itself.
    client, server_end = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = unchecked(minimum_version=version, maximum_version=version).wrap_bio(client, server_end)
    answering = context.wrap_bio(server_end, client, server_side=True)

    assert (taken, ssl.TLSVersion.TLSv1_2) == (_shake_hands(asking, answering), context.minimum_version)


def _shake_hands(asking: ssl.SSLObject, answering: ssl.SSLObject) -> bool:
    done = set()
    for _ in range(10):
        for each in (asking, answering):
            try:
                each.do_handshake()
                done.add(each)
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError:
                return False
    return len(done) == 2
