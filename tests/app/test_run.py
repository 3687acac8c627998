"""The program ends in good order when told to, and with the error that tells most when a part of it fails."""

import asyncio
import json
import os
import pathlib
import signal

import pytest

from graphsched.action import conditions, events
from graphsched.app import run, settings, wiring
from graphsched.base.kube import config, credentials
from graphsched.base.values import errors
from graphsched.sources import custom, resources
from tests import builders
from tests.app import live
from tests.fakes import apiserver, storage, virtual

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: test
clusters: [{{name: test, cluster: {{server: "{server}"}}}}]
contexts: [{{name: test, context: {{cluster: test, user: test}}}}]
users: [{{name: test, user: {{}}}}]
"""


def test_a_signal_ends_the_whole_program_with_code_0(tmp_path: pathlib.Path) -> None:
    """From a kubeconfig to a bound pod to SIGTERM, in this process, over real HTTP and in real time."""

    async def body() -> tuple[int, str]:
        async with apiserver.FakeApiServer() as server:
            server.create(apiserver.NODES, builders.make_node("n1").manifest())
            server.create(storage.PODS, builders.make_pod("web").scheduler(live.NAME).manifest())
            path = tmp_path / "kubeconfig"
            path.write_text(KUBECONFIG.format(server=server.url))
            options = settings.load(flags={"--kubeconfig": str(path), "--port": 0})
            ports: list[int] = []
            task = asyncio.create_task(run.run(options, environ={}, on_listening=ports.append))
            async with asyncio.timeout(60.0):
                await server.until(lambda: "nodeName" in server.pod("web")["spec"])
            os.kill(os.getpid(), signal.SIGTERM)
            async with asyncio.timeout(30.0):
                code = await task
            assert ports[0] > 0
            node: str = server.pod("web")["spec"]["nodeName"]
            return code, node

    assert (0, "n1") == asyncio.run(body())


def dumps(folder: pathlib.Path) -> list[pathlib.Path]:
    """The dumps in a folder."""
    return list(folder.glob("*.json"))


def test_sigusr2_audits_and_dumps_and_the_program_goes_on(tmp_path: pathlib.Path) -> None:
    """In this process, over real HTTP and in real time: a file that holds what the scheduler has in hand."""

    async def body() -> tuple[int, list[pathlib.Path]]:
        async with apiserver.FakeApiServer() as server:
            server.create(apiserver.NODES, builders.make_node("n1").cpu("1").manifest())
            server.create(storage.PODS, builders.make_pod("web").cpu("2").scheduler(live.NAME).manifest())
            path, config = tmp_path / "kubeconfig", tmp_path / "config"
            path.write_text(KUBECONFIG.format(server=server.url))
            config.write_text(f"audit: {{dumpDirectory: {tmp_path}}}")
            options = settings.load(str(config), flags={"--kubeconfig": str(path), "--port": 0})
            task = asyncio.create_task(run.run(options, environ={}))
            async with asyncio.timeout(60.0):
                await server.until(lambda: "conditions" in server.pod("web")["status"])
                os.kill(os.getpid(), signal.SIGUSR2)
                while not (found := dumps(tmp_path)):  # noqa: ASYNC110  the file system tells nobody
                    await asyncio.sleep(0.05)
            os.kill(os.getpid(), signal.SIGTERM)
            async with asyncio.timeout(30.0):
                return await task, found

    code, (dump,) = asyncio.run(body())
    written = json.loads(dump.read_text())
    assert (0, 0o600) == (code, dump.stat().st_mode & 0o777)
    assert ("SIGUSR2", "clean") == (written["audit"]["reason"], written["audit"]["result"])
    (waiting,) = written["queue"]["pods"]
    assert ("default/web", ["NodeResourcesFit"]) == (waiting["pod"], waiting["refused_by"])
    assert {"node": 1, "pod": 1} == written["graph"]


def test_a_signal_ends_it_while_credentials_are_loaded(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An exec plugin may take long: it ends with the program, which ends at once and in good order."""
    asked = asyncio.Event()
    ended: list[str] = []

    async def load(_request: object) -> credentials.Credentials:
        asked.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append("plugin")
        raise AssertionError

    monkeypatch.setattr(config, "load", load)
    (tmp_path / "kubeconfig").write_text(KUBECONFIG.format(server="http://127.0.0.1:1"))

    async def body() -> int:
        options = settings.load(flags={"--kubeconfig": str(tmp_path / "kubeconfig")})
        task = asyncio.create_task(run.run(options, environ={}))
        async with asyncio.timeout(30.0):
            await asked.wait()
            os.kill(os.getpid(), signal.SIGTERM)
            return await task

    assert 0 == asyncio.run(body())
    assert ["plugin"] == ended


def test_a_second_signal_ends_the_first_process_of_a_container(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's own effect of a signal is none on process 1."""
    codes: list[int] = []
    process = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: run.FIRST_PROCESS)
    monkeypatch.setattr(os, "_exit", codes.append)

    async def body() -> None:
        stopping = asyncio.Event()
        with run._Signals(stopping):
            os.kill(process, signal.SIGTERM)
            async with asyncio.timeout(30.0):
                await stopping.wait()
            os.kill(process, signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    try:
        asyncio.run(body())
    finally:
        signal.signal(signal.SIGTERM, before)
    assert [128 + signal.SIGTERM] == codes


def test_a_kubeconfig_that_is_not_there_is_told() -> None:
    """Before anything is started."""
    options = settings.load(flags={"--kubeconfig": "/nowhere/config"})

    with pytest.raises(errors.InputError) as caught:
        asyncio.run(run.run(options, environ={}))
    assert "/nowhere/config: no such file (--kubeconfig names a file)" == str(caught.value)


@virtual.timed
async def test_a_part_that_fails_takes_the_program_down() -> None:
    """A scheduler that runs in part would mislead; the error names the part."""

    async def broken() -> None:
        await asyncio.sleep(5.0)
        raise errors.GraphschedError("the part has failed")

    async with apiserver.FakeApiServer() as server, server.client() as client:
        program = live.wired(client, settings.Settings())
        with pytest.raises(BaseExceptionGroup) as caught:
            await run.serve(program, settings.Settings(), asyncio.Event(), besides={"part": broken()})
        first = run._first(caught.value)

    assert "the part has failed" == str(first)
    assert ["in the task part"] == first.__notes__
    assert 5.0 == pytest.approx(virtual.now(), abs=0.1)


@virtual.timed
async def test_a_part_that_returns_is_a_failure_too() -> None:
    """Nobody would notice otherwise that, say, events are not written any more."""

    async def brief() -> None:
        await asyncio.sleep(1.0)

    async with apiserver.FakeApiServer() as server, server.client() as client:
        program = live.wired(client, settings.Settings())
        with pytest.raises(BaseExceptionGroup) as caught:
            await run.serve(program, settings.Settings(), asyncio.Event(), besides={"part": brief()})

    assert "the task part has ended" in str(run._first(caught.value))


def test_the_lease_never_waits_for_a_connection() -> None:
    """With every watch open, every word on its way, an audit and an inquest, there is one left to renew it by."""
    others = len(resources.ALL) + len(custom.ALL) + conditions.WORKERS + events.WORKERS + len(("audit", "inquest"))

    assert others < wiring.OTHER_CONNECTIONS
