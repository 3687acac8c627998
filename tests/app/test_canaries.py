"""
No secret comes out of the program by any door: logs at level debug, HTTP, events, conditions, snapshots, reports.

A cluster whose pods and nodes hold a canary wherever people keep secrets, reached with credentials that are one, goes
through every command. The API server is a fake over real HTTP; it records what is written to it.
"""

import asyncio
import contextlib
import io
import json
import logging
import os
import pathlib
import re
import signal
from collections.abc import Iterator

import aiohttp
import pytest

from graphsched.app import cli, run, settings
from graphsched.observe import logs, server as server_pages
from tests import builders
from tests.app import live, test_snapshot_meaning
from tests.fakes import apiserver, storage

CANARY = test_snapshot_meaning.CANARY
TOKEN = "canary-token"
PAGES = (
    *re.findall(r"(/[\w/]+)", "\n".join(line.partition("  ")[0] for line in server_pages._INDEX.splitlines())),
    "/healthz?verbose",
    "/debug/decisions?limit=1000",
    "/debug/explain?pod=default/web",
    "/debug/explain?pod=default/big",
)
"""Every page there is, and some with questions."""
KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: test
clusters: [{{name: test, cluster: {{server: "{server}"}}}}]
contexts: [{{name: test, context: {{cluster: test, user: test}}}}]
users: [{{name: test, user: {{token: {token}}}}}]
"""


class Doors:
    """Everything that came out, by the name of the door."""

    def __init__(self) -> None:
        self.out: dict[str, bytes] = {}

    def add(self, name: str, text: str | bytes) -> None:
        """Take what came out there."""
        self.out[name] = self.out.get(name, b"") + (text.encode() if isinstance(text, str) else text)

    def require_silent(self, *secrets: str) -> None:
        """Something came out of every door, and a secret out of none."""
        for name, content in self.out.items():
            assert content, f"nothing came out of {name}"
            for secret in secrets:
                at = content.find(secret.encode())
                assert at < 0, f"{secret} came out of {name}: {content[max(0, at - 200) : at + 50]!r}"


@contextlib.contextmanager
def logged(kind: str) -> Iterator[io.StringIO]:
    """What the program logs at level debug, in this format, with that of the libraries it uses."""
    stream, root, ours = io.StringIO(), logging.getLogger(), logging.getLogger("graphsched")
    before = root.level, ours.level, list(root.handlers)
    logs.configure(format=kind, level="debug", stream=stream)
    root.setLevel(logging.DEBUG)
    try:
        yield stream
    finally:
        root.setLevel(before[0])
        ours.setLevel(before[1])
        root.handlers[:] = before[2]


def furnish(server: apiserver.FakeApiServer) -> None:
    """A node, a pod that fits, one that does not, one whose binding is refused, one that can not be read."""
    for node in (builders.make_node("n1").cpu("4"), builders.make_node("n2").cpu("1").taint("gpu")):
        server.create(apiserver.NODES, test_snapshot_meaning.furnished(node.manifest()))
    for name, cpu in (("web", "1"), ("big", "64"), ("refused", "1"), ("broken", "1")):
        body = builders.make_pod(name).cpu(cpu).scheduler(live.NAME).manifest()
        body = test_snapshot_meaning.furnished(body)
        if name == "broken":
            body["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "12Gx"
        server.create(storage.PODS, body)
    # As the API server quotes the difference between two specs, and as a webhook may quote anything.
    said = f'denied the request: Forbidden: pod updates may not change fields\n  core.PodSpec{{Env: "{CANARY}"}}'
    server.faults.refuse("POST", ".*/pods/refused/binding", 403, message=said, times=1000)


def dumps(folder: pathlib.Path) -> list[pathlib.Path]:
    """Those that are there whole."""
    return list(folder.glob("graphsched-dump-*.json"))


@pytest.mark.parametrize("kind", ["text", "json"])
def test_a_running_scheduler_gives_no_secret_away(tmp_path: pathlib.Path, kind: str) -> None:
    """Logs, pages, events and conditions of one that binds, refuses, fails and ends; and a capture of its graph."""
    doors = Doors()

    async def body() -> None:
        async with apiserver.FakeApiServer() as server:
            server.tokens = {TOKEN}
            furnish(server)
            path = tmp_path / "kubeconfig"
            path.write_text(KUBECONFIG.format(server=server.url, token=TOKEN))
            config = tmp_path / "config.yaml"
            config.write_text(f"audit: {{dumpDirectory: {tmp_path}}}")
            flags = {"--kubeconfig": str(path), "--port": 0, "--log-level": "debug"}
            options = settings.load(str(config), flags=flags)
            ports: list[int] = []
            task = asyncio.create_task(run.run(options, environ={}, on_listening=ports.append))
            async with asyncio.timeout(60.0):
                await server.until(lambda: "nodeName" in server.pod("web")["spec"])
                await server.until(lambda: bool(server.asked("PATCH", ".*/pods/big/status")))
                await server.until(lambda: bool(server.asked("POST", ".*/pods/refused/binding")))
                await server.until(lambda: bool(server.asked("POST", ".*/events")))
            async with aiohttp.ClientSession(f"http://127.0.0.1:{ports[0]}") as session:
                for page in PAGES:
                    async with session.get(page) as response:
                        doors.add(page, await response.read())
                os.kill(os.getpid(), signal.SIGUSR2)
                async with asyncio.timeout(60.0):
                    while not dumps(tmp_path):
                        async with session.get("/livez") as response:
                            await response.read()
                (dump,) = dumps(tmp_path)
                doors.add("dump", dump.read_bytes())
                assert 0o600 == dump.stat().st_mode & 0o777
            captured = tmp_path / "graph.dg"
            address = f"http://127.0.0.1:{ports[0]}"
            arguments = ["snapshot", "--from-scheduler", "--server", address, "--output", str(captured)]
            assert 0 == await asyncio.to_thread(cli.execute, arguments)
            doors.add("snapshot --from-scheduler", captured.read_bytes())
            os.kill(os.getpid(), signal.SIGTERM)
            async with asyncio.timeout(30.0):
                await task
            for request in server.requests:
                doors.add("requests", f"{request.method} {request.path} {request.query} {json.dumps(request.body)}\n")

    with logged(kind) as stream:
        asyncio.run(body())
    doors.add("log", stream.getvalue())

    doors.require_silent(CANARY, TOKEN)
    assert "denied the request" in stream.getvalue()
    assert "12Gx" in stream.getvalue()


def objects() -> list[test_snapshot_meaning.Json]:
    """The same cluster as manifests, without what can not be read."""
    builds: list[builders.NodeBuilder | builders.PodBuilder] = [
        builders.make_node("n1").cpu("4"),
        builders.make_pod("web").cpu("1"),
        builders.make_pod("held").cpu("1").node("n1"),
        builders.make_pod("big").cpu("64"),
    ]
    return [test_snapshot_meaning.furnished(each.manifest()) for each in builds]


@pytest.mark.parametrize(
    "command",
    [
        ["simulate", "--output", "json", "--all"],
        ["simulate", "--report", "REPORT"],
        ["explain", "web", "--verbose"],
        ["explain", "big", "--output", "json"],
        ["explain", "held", "--output", "yaml"],
    ],
    ids=" ".join,
)
def test_a_command_gives_no_secret_away(
    command: list[str], tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What it writes to the terminal and into a report, from manifests that hold canaries."""
    doors, report = Doors(), tmp_path / "report.html"
    cluster = tmp_path / "cluster.json"
    cluster.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects()}))
    arguments = [str(report) if each == "REPORT" else each for each in command]
    assert cli.execute(["--debug", *arguments, str(cluster)]) in {0, 1}
    doors.add(" ".join(command), "".join(capfd.readouterr()))
    if report.exists():
        doors.add("report", report.read_text())

    doors.require_silent(CANARY)


def test_evaluate_gives_no_secret_away() -> None:
    """Neither in an answer nor in an error about an object."""
    broken = objects()
    broken[1]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "12Gx"
    doors = Doors()
    for number, items in enumerate((objects(), broken)):
        request = {"objects": items[:1], "pods": items[1:2] + items[3:]}
        doors.add(f"evaluate {number}", json.dumps(test_snapshot_meaning.answer(request)))

    doors.require_silent(CANARY)


def test_a_snapshot_gives_no_secret_away(tmp_path: pathlib.Path, capfd: pytest.CaptureFixture[str]) -> None:
    """From the API server to a file that only its owner may read."""
    target = tmp_path / "cluster.json"
    target.touch(0o644)

    async def main() -> None:
        async with apiserver.FakeApiServer() as server:
            server.tokens = {TOKEN}
            furnish(server)
            path = tmp_path / "kubeconfig"
            path.write_text(KUBECONFIG.format(server=server.url, token=TOKEN))
            arguments = ["--debug", "snapshot", "--kubeconfig", str(path), "--output", str(target)]
            assert 0 == await asyncio.to_thread(cli.execute, arguments)

    asyncio.run(main())
    doors = Doors()
    doors.add("snapshot", target.read_text())
    doors.add("terminal", "".join(capfd.readouterr()))

    doors.require_silent(CANARY, TOKEN)
    assert 0o600 == target.stat().st_mode & 0o777
