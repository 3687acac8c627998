"""
`graphsched simulate`: who goes where, what is said, and that it is the same on every run.

The engine and the files are real; only the terminal is missing.
"""

import json
import pathlib
import subprocess
import sys
import typing

import pytest
import yaml

from graphsched.app import cli, simulation
from graphsched.decision import cycle
from graphsched.sources import state
from tests.app.manifests import write
from tests.builders import NodeBuilder, PodBuilder, make_node, make_pod

NODE_ROWS = "sn,cpu_milli,memory_mib,gpu,model\nn1,64000,262144,2,P100\nn2,96000,393216,8,G2\n"
POD_ROWS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
    "whole,12000,16384,2,1000,P100\nhalf,6000,12288,1,500,\npicky,6000,12288,1,500,P100\ncpu,1000,1024,0,0,\n"
)


def simulated(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, typing.Any]]:
    """Exit code and JSON output."""
    code = cli.execute(["simulate", *arguments, "--output", "json"])
    return code, json.loads(capsys.readouterr().out)


def run(*builds: NodeBuilder | PodBuilder, order: simulation.Order = simulation.Order.QUEUE) -> simulation.Run:
    """A simulation of these."""
    cluster = state.ClusterState(
        nodes=tuple(build.build() for build in builds if isinstance(build, NodeBuilder)),
        pods=tuple(build.build() for build in builds if isinstance(build, PodBuilder)),
    )
    return simulation.run(cluster, order=order)


def test_a_trace_is_placed_with_its_devices(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Models are honoured, and a part of a GPU is a part of one."""
    (tmp_path / "nodes.csv").write_text(NODE_ROWS)
    (tmp_path / "pods.csv").write_text(POD_ROWS)
    files = ["--nodes", str(tmp_path / "nodes.csv"), "--pods", str(tmp_path / "pods.csv")]
    code, result = simulated(*files, capsys=capsys)

    assert 1 == code
    assert {"bound": 0, "placed": 3, "pending": 1, "gated": 0} == result["pods"]
    placed = {entry["pod"]: (entry["node"], entry["devices"]) for entry in result["placed"]}
    assert ("n1", [0, 1]) == placed["openb/whole"]
    assert ("n2", [0]) == placed["openb/half"]
    assert [
        {
            "pod": "openb/picky",
            "message": "0/2 nodes are available: 1 node(s) didn't have enough free GPU devices, "
            "1 node(s) had no GPU of a requested model.",
            "plugins": ["GraphDevices"],
        }
    ] == result["pending"]


def test_everybody_placed_is_a_yes(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0, and a sentence."""
    path = write(tmp_path / "c.yaml", make_node("n1"), make_pod("a"), make_pod("b"))

    assert 0 == cli.execute(["simulate", path])
    captured = capsys.readouterr()
    assert captured.out.startswith("All 2 pods found a node on 1 node.\n")
    assert captured.err.startswith("2 decisions in ")


def test_yaml_says_the_same_as_json(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One structure, two ways to write it."""
    path = write(tmp_path / "c.yaml", make_node("n1"), make_pod("a").cpu("3"), make_pod("b").cpu("3"))
    _, result = simulated(path, capsys=capsys)
    cli.execute(["simulate", path, "--output", "yaml"])

    assert result == yaml.safe_load(capsys.readouterr().out)


def test_timings_are_only_there_when_asked_for(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They would make every run another one."""
    path = write(tmp_path / "c.yaml", make_node("n1"), make_pod("a"))

    assert "timings" not in simulated(path, capsys=capsys)[1]
    assert {"seconds", "decisions_per_second"} == set(simulated(path, "--timings", capsys=capsys)[1]["timings"])


def test_every_run_is_equal_byte_for_byte(tmp_path: pathlib.Path) -> None:
    """Whatever order a hash table of this or that process has."""
    builds: list[NodeBuilder | PodBuilder] = []
    for number in range(40):
        node = make_node(f"n{number:02d}").zone(f"z{number % 3}").cpu(str(2 + number % 5))
        builds.append(node.taint("odd") if number % 7 == 0 else node)
    builds += [make_pod(f"p{number:03d}").cpu(f"{100 + 37 * (number % 23)}m").memory("1Gi") for number in range(300)]
    path = write(tmp_path / "c.yaml", *builds)
    outputs = {
        subprocess.run(
            [sys.executable, "-m", "graphsched", "simulate", path, *arguments],
            capture_output=True,
            check=False,
            env={"PYTHONHASHSEED": seed, "PATH": "/usr/bin:/bin"},
        ).stdout
        for seed in ("1", "2", "3")
        for arguments in (["--output", "json"],)
    }

    assert 1 == len(outputs)
    assert 10_000 < len(outputs.pop())


def test_important_pods_come_first_and_old_ones_next() -> None:
    """As the live queue would take them; `file` keeps them as written."""
    builds: list[NodeBuilder | PodBuilder] = [
        make_node("n1").pods(2),
        make_pod("young").created("2026-01-02T00:00:00Z"),
        make_pod("old").created("2026-01-01T00:00:00Z"),
        make_pod("king").priority(10).created("2026-01-03T00:00:00Z"),
    ]

    assert ["default/king", "default/old"] == [each.pod for each in run(*builds).placed]
    assert ["default/young", "default/old"] == [each.pod for each in run(*builds, order=simulation.Order.FILE).placed]


def test_bound_gated_and_dying_pods_are_not_decided() -> None:
    """They keep their room; the gated ones are told."""
    done = run(
        make_node("n1").cpu("2"),
        make_pod("bound").cpu("1").node("n1"),
        make_pod("gated").gate("quota"),
        make_pod("dying").deleting(),
        make_pod("web").cpu("2"),
    )

    assert ((), ("default/gated",)) == (done.placed, done.gated)
    assert ["default/web"] == [each.pod for each in done.pending]
    assert 1000 == next(usage.used for usage in done.usage if usage.resource == "cpu")


def test_another_schedulers_pods_can_be_left_alone(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--scheduler` names whose pods are placed."""
    path = write(
        tmp_path / "c.yaml",
        make_node("n1"),
        make_pod("ours").scheduler("graph-scheduler"),
        make_pod("theirs"),
    )
    _, result = simulated(path, "--scheduler", "graph-scheduler", capsys=capsys)

    assert ["default/ours"] == [entry["pod"] for entry in result["placed"]]


def test_a_scheduler_that_no_pod_names_is_told_of(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Or it would read as if all was well."""
    path = write(tmp_path / "c.yaml", make_node("n1"), make_pod("web"))
    assert 0 == cli.execute(["simulate", "--scheduler", "nobody", path])
    said = capsys.readouterr()

    assert "nothing to place: no pending pod names the scheduler nobody, but default-scheduler" in said.err
    assert said.out.startswith("There is no pod to place on 1 node.")


def test_room_nominated_to_a_pod_that_went_elsewhere_is_given_again() -> None:
    """The pod that was refused because of it gets another try."""
    done = run(
        make_node("n1").cpu("1"),
        make_node("n2").cpu("1").label("disk", "ssd"),
        make_pod("first").cpu("1").priority(5).node_selector("disk", "hdd"),
        make_pod("second").cpu("1").priority(4),
        make_pod("waits").cpu("1").priority(6).nominated("n1").node_selector("disk", "ssd"),
        make_pod("third").cpu("1").priority(3),
    )

    assert {"default/waits": "n2", "default/second": "n1"} == {each.pod: each.node for each in done.placed}


def test_the_sums_are_those_of_the_graph() -> None:
    """What the books say is used is what the columns hold."""
    done = run(
        make_node("n1").gpus(2, "T4"),
        make_node("n2"),
        make_pod("a").cpu("1").memory("1Gi").gpu(1, 300),
        make_pod("b").cpu("1500m").memory("3Gi"),
        make_pod("c").cpu("1").memory("2Gi").node("n2"),
    )
    columns = done.graph.columns
    used = {usage.resource: usage.used for usage in done.usage}

    assert int(columns.requested["cpu"].sum()) == used["cpu"]
    assert int(columns.requested["memory"].sum()) == used["memory"]
    assert 2000 - int(done.graph.devices.free.sum(where=done.graph.devices.free >= 0)) == used["gpu"]
    assert isinstance(done.decider, cycle.Decider)


def test_the_report_holds_the_pictures_and_asks_nobody(
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One file, nothing loaded from anywhere, names escaped."""
    path = write(tmp_path / "c.yaml", make_node("n1"), make_pod("a").cpu("3"), make_pod("b").cpu("3"))
    report = tmp_path / "r.html"
    cli.execute(["simulate", path, "--report", str(report)])
    text = report.read_text(encoding="utf-8")

    assert 3 == text.count("<svg")
    assert "default/b" in text
    assert not [word for word in ("<script", "src=", "@import", "url(") if word in text]
    assert f"report: {report}\n" in capsys.readouterr().err


def test_pending_pods_are_counted_by_cause(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A person reads causes first; names only up to a bound unless all are wanted."""
    pods = [make_pod(f"p{number:02d}").cpu("3") for number in range(30)]
    path = write(tmp_path / "c.yaml", make_node("n1"), *pods)
    cli.execute(["simulate", path])
    brief = capsys.readouterr().out
    cli.execute(["simulate", path, "--all"])
    full = capsys.readouterr().out

    assert "       29   suitable nodes are short of cpu" in brief
    assert "… and 9 more (--all shows them)" in brief
    assert "default/p29 " not in brief
    assert "default/p29 " in full


def test_a_configuration_judges_as_the_live_scheduler_would(
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The same file, the same weights and filters."""
    (tmp_path / "settings.yaml").write_text("profile: {disabledFilters: [NodeUnschedulable]}\n")
    path = write(tmp_path / "c.yaml", make_node("n1").set("spec.unschedulable", True), make_pod("a"))

    assert 1 == simulated(path, capsys=capsys)[0]
    assert 0 == simulated(path, "--config", str(tmp_path / "settings.yaml"), capsys=capsys)[0]
    assert 2 == cli.execute(["simulate", path, "--config", "/nowhere.yaml"])
