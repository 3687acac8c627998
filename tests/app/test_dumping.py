"""A dump says all there is, in a file of its own; where none can be written the log has its beginning."""

import json
import logging
import os
import pathlib
from typing import Any

import pytest

from graphsched.app import dumping, findings
from graphsched.app.settings import AuditSettings
from graphsched.base.kit import clock
from graphsched.base.values import keys, pods
from tests import builders
from tests.app import live
from tests.fakes import virtual

N1 = builders.make_node("n1").cpu("1")
BIG = builders.make_pod("big").cpu("2")
WEB = builders.make_pod("web").cpu("1")


def dumper(
    it: live.Scheduler, directory: pathlib.Path, *, kept: int = 10, at: clock.Clock | None = None
) -> dumping.Dumper:
    """One that writes there."""
    sources = [each.progress for each in it.program.reflectors]
    now = at or virtual.LoopClock()
    return dumping.Dumper(it.parts, lambda: {"node": 1}, sources, directory=str(directory), kept=kept, clock=now)


def files(directory: pathlib.Path) -> list[pathlib.Path]:
    """The dumps there, oldest first."""
    return sorted(directory.glob(f"{dumping.PREFIX}*"))


def read(path: pathlib.Path) -> Any:
    """The dump in this file."""
    return json.loads(path.read_text())


@virtual.timed
async def test_a_dump_holds_differences_queue_promises_orders_and_counts(tmp_path: pathlib.Path) -> None:
    """While a binding is under way and another pod waits."""
    async with live.scheduler(N1, pods=(BIG,)) as it:
        await it.until(lambda: bool(it.message("big")))
        it.server.faults.hang("POST", live.BINDING)
        it.pod(WEB)
        await it.until(lambda: it.bindings("web") == 1)
        await it.quiet()
        report = findings.Report(reason="test", began=1.0)
        report.add(findings.Difference(findings.Kind.STALE, "node/n1", "labels are others"))

        await dumper(it, tmp_path).dump(report)

    (path,) = files(tmp_path)
    written = read(path)
    assert "graphsched-dump-20270115T080" == path.name[:28]
    assert f"-g{written['generation']}.json" == path.name[path.name.index("-g") :]
    assert 0o600 == path.stat().st_mode & 0o777
    (difference,) = written["audit"]["differences"]
    assert {"kind": "stale", "key": "node/n1", "detail": "labels are others"} == difference
    assert [("default/web", "n1")] == [(each["pod"], each["node"]) for each in written["promises"]]
    assert [("default/web", "n1")] == [(each["pod"], each["node"]) for each in written["orders"]]
    waiting = {each["pod"]: each for each in written["queue"]["pods"]}
    assert {"default/big": "unschedulable", "default/web": "binding"} == {
        name: each["pool"] for name, each in waiting.items()
    }
    assert (1, ["NodeResourcesFit"]) == (waiting["default/big"]["attempts"], waiting["default/big"]["refused_by"])
    assert {"node": 1} == written["graph"]
    assert {"nodes", "pods"} <= {each["source"] for each in written["sources"]}


@virtual.timed
async def test_only_the_newest_dumps_are_kept_and_other_files_are_left_alone(tmp_path: pathlib.Path) -> None:
    """A signal a second does not fill the disk."""
    (tmp_path / "graphsched-notes.json").write_text("mine")
    async with live.scheduler(N1) as it:
        one = dumper(it, tmp_path, kept=3)
        for number in range(6):
            await one.dump(findings.Report(reason=str(number), began=1.0))
            await it.quiet()

    assert ["3", "4", "5"] == [read(path)["audit"]["reason"] for path in files(tmp_path)]
    assert "mine" == (tmp_path / "graphsched-notes.json").read_text()


@pytest.mark.parametrize("trouble", ["no folder", "full"])
def test_where_no_file_can_be_written_the_log_has_the_beginning(
    trouble: str, tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within bounds, with what is wrong and what to set; nothing half is left behind, and the program goes on."""

    @virtual.timed
    async def body() -> None:
        async with live.scheduler(N1, pods=(BIG,), audit=AuditSettings(every_seconds=0)) as it:
            await it.until(lambda: bool(it.message("big")))
            report = findings.Report(reason="test", began=1.0)
            for number in range(findings.KEPT_MAX):
                report.add(findings.Difference(findings.Kind.LOST, f"pod/default/p{number}", "x" * 100))
            await dumper(it, tmp_path / "nowhere" if trouble == "no folder" else tmp_path).dump(report)

    if trouble == "full":

        def full(*_: object, **__: object) -> object:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fdopen", full)
    body()
    (told,) = (record.getMessage() for record in caplog.records if "no dump" in record.getMessage())
    assert ("no space left" if trouble == "full" else "no such file") in told
    assert "set audit.dumpDirectory" in told
    assert '"reason": "test"' in told
    assert len(told) < dumping.LOGGED_BYTES_MAX + 500
    assert [] == list(tmp_path.iterdir())


@virtual.timed
async def test_a_file_that_somebody_put_there_is_not_written_into(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The temporary directory is everybody's: a link there leads to what the scheduler may write and others may not."""
    target = tmp_path / "target"
    target.write_text("precious")
    async with live.scheduler(N1) as it:
        one = dumper(it, tmp_path, at=clock.VirtualClock())
        name = f"{dumping.PREFIX}19700101T000000.000000Z-g{it.parts.store.generation}.json.part"
        (tmp_path / name).symlink_to(target)
        await one.dump(findings.Report(reason="test", began=1.0))

    assert "precious" == target.read_text()
    assert any("no dump" in record.getMessage() for record in caplog.records if record.levelno == logging.WARNING)


def test_the_queue_that_is_shown_is_bounded() -> None:
    """All are counted, the first are shown one by one."""

    @virtual.timed
    async def body() -> None:
        async with live.scheduler(N1) as it:
            for number in range(dumping.SHOWN_MAX + 5):
                key = keys.pod_key("default", f"p{number}")
                it.parts.backlog.add(pods.Pod(key, uid=str(number), gates=("closed",)), 0.0)
            shown = it.program.sights.queue()
            assert isinstance(shown, dumping.Queue)
            assert dumping.SHOWN_MAX == len(shown.pods)
            assert dumping.SHOWN_MAX + 5 == shown.counts["gated"]

    body()
