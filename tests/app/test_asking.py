"""
The commands that look at a running scheduler, when it serves on TLS and asks who they are.

The scheduler is whole and listens on loopback; the API server behind it is a fake that knows two tokens.
"""

import asyncio
import pathlib
from collections.abc import Awaitable, Callable

import pytest
from aiohttp import web

from graphsched.app import asking, cli, settings as configuration
from graphsched.base.values import errors
from graphsched.graph import delta
from tests import builders
from tests.app import live
from tests.controlplane import certificates
from tests.fakes import apiserver

GOOD, POOR = "canary-good", "canary-poor"
EXPLAIN, SNAPSHOT = ["explain", "web"], ["snapshot", "--from-scheduler"]


def beside_a_guarded_scheduler(talk: Callable[[int], Awaitable[object]], **tls: object) -> None:
    """Run `talk` with the port of a scheduler that lets `GOOD` see everything and `POOR` nothing."""

    async def main() -> None:
        async with apiserver.FakeApiServer() as api, api.client() as client:
            api.reviews.users.update({GOOD: "good", POOR: "poor"})
            api.reviews.rights.update({("good", "/debug/explain"), ("good", "/debug/graph")})
            group = configuration.TLSSettings(**tls)  # type: ignore[arg-type]
            http = configuration.HTTPSettings(auth="delegated", tls=group)
            program = live.wired(client, configuration.Settings(http=http, leader_election=live.ALONE))
            patch = delta.Patch()
            for vertex in (builders.make_node("n1").build(), builders.make_pod("web").build()):
                patch.set_vertex(vertex)
            program.parts.store.apply(patch)
            await program.server.start(host="127.0.0.1", port=0)
            try:
                await talk(program.server.port)
            finally:
                await program.server.stop()

    asyncio.run(main())


def ran(command: list[str], folder: pathlib.Path, *options: str, token: str = "") -> int:
    """Run a command against a guarded scheduler with a certificate of its own; returns the exit code."""
    codes: list[int] = []

    async def talk(port: int) -> None:
        arguments = [*command, "--server", f"https://127.0.0.1:{port}", *options]
        if token:
            (folder / "token").write_text(f"{token}\n")
            arguments += ["--token-file", str(folder / "token")]
        codes.append(await asyncio.to_thread(cli.execute, arguments))

    beside_a_guarded_scheduler(talk, self_signed=True)
    return codes[0]


def test_with_a_token_the_commands_are_answered(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both of them."""
    target = tmp_path / "cluster.dg"
    assert 0 == ran(EXPLAIN, tmp_path, "--insecure-skip-tls-verify", token=GOOD)
    assert "web is pending and fits" in capsys.readouterr().out
    assert 0 == ran(SNAPSHOT, tmp_path, "--insecure-skip-tls-verify", "--output", str(target), token=GOOD)
    assert target.stat().st_size > 0


@pytest.mark.parametrize("command", [EXPLAIN, SNAPSHOT], ids=["explain", "snapshot"])
@pytest.mark.parametrize(
    ("options", "token", "said"),
    [
        (["--insecure-skip-tls-verify"], "", "a bearer token is needed: kubectl create token"),
        (["--insecure-skip-tls-verify"], "", "name its file with --token-file"),
        (["--insecure-skip-tls-verify"], "garbage", "the API server does not accept this token"),
        (["--insecure-skip-tls-verify"], POOR, "poor may not get /debug/"),
        (
            [],
            GOOD,
            "its certificate is not trusted: self-signed certificate (name one with --ca-file, or take any with",
        ),
        (["--ca-file", "/nowhere"], GOOD, "--ca-file: /nowhere: no certificates in PEM format can be read from it"),
        (["--token-file", "/nowhere"], "", "--token-file: /nowhere: no such file or directory"),
        (["--insecure-skip-tls-verify"], "a b", "holds no token (kubectl create token SERVICEACCOUNT makes one)"),
        (["--insecure-skip-tls-verify"], "ä", "--token-file: "),
    ],
)
def test_what_is_missing_is_one_line(
    command: list[str],
    options: list[str],
    token: str,
    said: str,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The place, the problem, the remedy; and never the token."""
    code = ran(command, tmp_path, *options, token=token)
    told = capsys.readouterr()

    assert (2, "", 1) == (code, told.out, told.err.count("\n"))
    assert said in told.err
    assert not any(secret in told.err for secret in (GOOD, POOR, "garbage"))


def test_plain_http_to_a_port_that_speaks_tls_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """The default address is plain http, and the chart serves on TLS."""
    ports: list[int] = []

    async def talk(port: int) -> None:
        ports.append(port)
        assert 2 == await asyncio.to_thread(cli.execute, [*EXPLAIN, "--server", f"http://127.0.0.1:{port}"])

    beside_a_guarded_scheduler(talk, self_signed=True)

    assert f"it may speak TLS: try --server https://127.0.0.1:{ports[0]}\n" in capsys.readouterr().err


def test_a_named_authority_is_trusted(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A certificate of the cluster's own authority needs no leap of faith."""
    authority = certificates.Authority(tmp_path)
    pair = authority.serving("server")
    (tmp_path / "token").write_text(GOOD)

    async def talk(port: int) -> None:
        arguments = [*EXPLAIN, "--server", f"https://127.0.0.1:{port}", "--ca-file", str(authority.certificate)]
        code = await asyncio.to_thread(cli.execute, [*arguments, "--token-file", str(tmp_path / "token")])
        assert 0 == code

    beside_a_guarded_scheduler(talk, cert_file=str(pair.certificate), key_file=str(pair.key))
    assert "web is pending and fits" in capsys.readouterr().out


def test_a_token_does_not_travel_in_the_clear(tmp_path: pathlib.Path) -> None:
    """Nothing is sent to another host without TLS."""
    (tmp_path / "token").write_text(GOOD)
    server = asking.Server(url="http://192.0.2.1:10260", token_file=str(tmp_path / "token"))
    with pytest.raises(errors.InputError, match=r"the token would be sent in the clear to http://192\.0\.2\.1:10260"):
        asking.get(server, "/", timeout_s=1.0, bytes_max=1, instead="")


def test_a_token_goes_nowhere_else(tmp_path: pathlib.Path) -> None:
    """A redirection is an answer like any other: it is not followed."""
    (tmp_path / "token").write_text(GOOD)
    asked: list[str] = []

    async def main() -> None:
        async def answer(request: web.BaseRequest) -> web.Response:
            asked.append(request.path)
            return web.Response(status=302, headers={"Location": f"http://127.0.0.1:{port}/elsewhere"})

        runner = web.ServerRunner(web.Server(answer))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port = runner.addresses[0][1]
        server = asking.Server(url=f"http://127.0.0.1:{port}", token_file=str(tmp_path / "token"))
        with pytest.raises(errors.ClusterError, match="answered 302 Found"):
            await asyncio.to_thread(asking.get, server, "/debug", timeout_s=5.0, bytes_max=1, instead="")
        await runner.cleanup()

    asyncio.run(main())

    assert ["/debug"] == asked


@pytest.mark.parametrize(
    "url", ["http://[", "https://[::1", "http://a b", "http://localhost:x", "http://localhost:70000"]
)
@pytest.mark.parametrize("token", ["", "token"])
def test_what_is_no_address_is_told(tmp_path: pathlib.Path, url: str, token: str) -> None:
    """Before a token is read or anything is sent."""
    server = asking.Server(url=url, token_file=token and str(tmp_path / token))
    said = "is no URL: |the token would be sent in the clear to http://a b" if token else "is no URL: "

    with pytest.raises(errors.InputError, match=said):
        asking.get(server, "/", timeout_s=1.0, bytes_max=1, instead="")


def test_a_token_with_control_characters_is_none(tmp_path: pathlib.Path) -> None:
    """Nor is it ever quoted."""
    path = tmp_path / "token"
    path.write_bytes(b"canary\x1b[31m")

    with pytest.raises(errors.InputError, match="holds no token") as caught:
        asking.get(asking.Server(token_file=str(path)), "/", timeout_s=1.0, bytes_max=1, instead="")
    assert "canary" not in str(caught.value)


def test_a_refusal_that_does_not_arrive_whole_is_told_by_its_status(capsys: pytest.CaptureFixture[str]) -> None:
    """And the name of a pod that is no text is unknown, like any other."""

    async def main() -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 500 Broken\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n")
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            url = f"http://127.0.0.1:{port}"
            assert 2 == await asyncio.to_thread(cli.execute, ["explain", "\udcff", "--server", url])
            assert f"graphsched: {url}: answered 500 Broken\n" == capsys.readouterr().err

    asyncio.run(main())
