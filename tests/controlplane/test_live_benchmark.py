"""
The live benchmark calls a wrong outcome wrong, and counts what it says it counts.

The verdict and the report are pure and run on made-up histories; one small run goes the whole way on real processes.
"""

import json
import pathlib

import pytest

from benchmarks.live import __main__ as program, measure, report, verdict, workloads
from tests.controlplane import binaries


def _event(kind: str, pod: str, node: str, *, uid: str = "1") -> bytes:
    body = {"type": kind, "object": {"metadata": {"name": pod, "uid": uid}, "spec": {"nodeName": node}}}
    return json.dumps(body).encode()


def _pod(name: str, node: str, *, cpu: str = "100m") -> verdict.Pod:
    spec = verdict._PodSpec(
        node_name=node,
        containers=[verdict._Container(verdict._Resources({"cpu": cpu}))],
    )
    return verdict.Pod(verdict._Metadata(name), spec)


def _node(name: str, **allocatable: str) -> verdict.Node:
    return verdict.Node(verdict._Metadata(name), verdict._NodeStatus({"cpu": "1", "pods": "10", **allocatable}))


def _result(scheduler: str, *, kind: str = "basic", **changed: float) -> measure.Result:
    numbers = {
        "ready_s": 1.0,
        "window_s": 10.0,
        "pods_per_s": 100.0,
        "cpu_ms_per_pod": 2.0,
        "cpu_ms_per_pod_settled": 2.0,
        "rss_peak_mb": 200.0,
        "creation_s": 5.0,
        "apiserver_cpu_ms_per_pod": 3.0,
        "load_cpu_ms_per_pod": 0.3,
        "others_share": 0.0,
        **changed,
    }
    return measure.Result(
        scheduler=scheduler,
        kind=kind,
        arrival="during",
        nodes=10,
        pods=20,
        events=20,
        watches=1,
        exit_code=0,
        faults=(),
        **numbers,
    )


@pytest.mark.parametrize(
    ("events", "fault"),
    [
        ([_event("ADDED", "p", "n1"), _event("MODIFIED", "p", "n1")], None),
        ([_event("ADDED", "p", "n1"), _event("MODIFIED", "p", "n2")], "pod p was bound to n1, then to n2"),
        ([_event("ADDED", "p", "n1"), _event("DELETED", "p", "n1")], "pod p was deleted"),
        ([_event("ADDED", "p", "n1"), _event("ADDED", "p", "n1", uid="2")], "pod p was replaced"),
        ([_event("ERROR", "", "")], "the history has a gap"),
    ],
)
def test_a_binding_that_changes_is_a_fault(events: list[bytes], fault: str | None) -> None:
    """A history with anything but one binding for each pod is called wrong, a later status change is not."""
    bindings, faults = verdict.bindings_of(enumerate(events))

    assert len(bindings) <= 1
    assert (fault is None) == (faults == [])
    assert fault is None or fault in faults[0]


@pytest.mark.parametrize(
    ("pods", "fault"),
    [
        ([_pod("a", "n1", cpu="500m"), _pod("b", "n1", cpu="500m")], None),
        ([_pod("a", "n1", cpu="500m"), _pod("b", "n1", cpu="501m")], "node n1 has 1 cpu, its pods request 1.001"),
        ([_pod("a", "n1"), _pod("b", "nowhere")], "nowhere, which is no node"),
        ([_pod("a", "n1"), _pod("b", "")], "1 pods are not bound: b"),
        ([_pod("a", "n1")], "2 pods were created, 1 are there"),
    ],
)
def test_a_wrong_outcome_is_a_fault(pods: list[verdict.Pod], fault: str | None) -> None:
    """Too much on a node, a pod unbound, lost or on no node are each called wrong; a node exactly full is not."""
    bindings = [verdict.Binding(one.metadata.name, one.spec.node_name, 0.0) for one in pods if one.spec.node_name]
    faults = verdict.faults_of(pods=pods, nodes=[_node("n1")], bindings=bindings, expected=2)

    assert (fault is None) == (faults == [])
    assert fault is None or any(fault in one for one in faults)


def test_too_many_pods_on_a_node_are_a_fault() -> None:
    """The number of pods is a resource like the others."""
    pods = [_pod("a", "n1", cpu="0"), _pod("b", "n1", cpu="0")]
    bindings = [verdict.Binding(one.metadata.name, "n1", 0.0) for one in pods]

    faults = verdict.faults_of(pods=pods, nodes=[_node("n1", pods="1")], bindings=bindings, expected=2)

    assert faults == ["node n1 has 1 pods, its pods request 2"]


def test_a_pod_elsewhere_than_its_binding_said_is_a_fault() -> None:
    """The final list is held against the history."""
    faults = verdict.faults_of(
        pods=[_pod("a", "n2")],
        nodes=[_node("n1"), _node("n2")],
        bindings=[verdict.Binding("a", "n1", 0.0)],
        expected=1,
    )

    assert faults == ["1 pods are not where their binding was seen: a"]


@pytest.mark.parametrize(
    ("zones", "together", "max_skew", "fault"),
    [
        ("aa", True, 0, None),
        ("ab", True, 0, "pods that must be in one zone are in a, b"),
        ("abab", False, 1, None),
        ("aaab", False, 1, "zones differ by 2 pods, at most 1 are allowed"),
        ("aa", False, 1, "zones differ by 2 pods, at most 1 are allowed"),
        ("aab", False, 0, None),
    ],
)
def test_pods_in_wrong_zones_are_a_fault(zones: str, together: bool, max_skew: int, fault: str | None) -> None:
    """A scheduler is not fast that ignores what the pods of its workload ask of each other; an empty zone counts."""
    nodes = [verdict.Node(verdict._Metadata(zone, labels={"zone": zone})) for zone in "ab"]
    pods = [_pod(str(number), zone) for number, zone in enumerate(zones)]
    bindings = [verdict.Binding(one.metadata.name, one.spec.node_name, 0.0) for one in pods]

    faults = verdict.misplaced(
        pods=pods, nodes=nodes, bindings=bindings, zone_label="zone", together=together, max_skew=max_skew
    )

    assert faults == ([] if fault is None else [fault])


def test_bounds_are_held_against_the_median_ratio_to_the_first() -> None:
    """One outlier does not decide, and each bound that does not hold is named."""
    results = [
        _result("kube-scheduler"),
        *(_result("graphsched", pods_per_s=speed, cpu_ms_per_pod=0.9) for speed in (120.0, 150.0, 900.0)),
    ]

    assert report.ratios(results)["graphsched"]["pods_per_s"] == 1.5
    assert report.broken(results) == ["graphsched: cpu_ms_per_pod is 0.45 ×, at most 0.40 × is asked for"]
    assert "1.50 ×" in report.table(results)


def test_a_busy_machine_is_said() -> None:
    """Numbers taken beside other work are not left to speak for themselves."""
    assert report.disturbance([_result("kube-scheduler")]) == ""
    assert "25% of the machine" in report.disturbance([_result("a", others_share=0.25), _result("b")])


def test_each_kind_has_its_own_bounds() -> None:
    """Pods that look at each other cost kube-scheduler more, so more is asked for there."""
    results = [_result("kube-scheduler", kind="affinity"), _result("graphsched", kind="affinity", pods_per_s=299.0)]

    assert set(report.BOUNDS) == set(workloads.KINDS)
    assert report.broken(results) == ["graphsched: pods_per_s is 2.99 ×, at least 3.00 × is asked for"]


@pytest.mark.cluster
@pytest.mark.parametrize(("kind", "told_off"), [("affinity", True), ("spread", False)])
def test_pods_that_look_at_each_other_are_measured_and_judged(
    programs: binaries.Binaries,
    tmp_path: pathlib.Path,
    kind: str,
    told_off: bool,
) -> None:
    """kube-scheduler puts them where they have to be; a binder that takes nodes in turn can not keep them together."""
    output = tmp_path / "live.json"
    sizes = ["--nodes", "21", "--pods", "60", "--kind", kind, "--quiet"]
    code = program.main([*sizes, "--schedulers", "kube-scheduler,bare-binder", "--output", str(output)])
    runs = {run["scheduler"]: run for run in json.loads(output.read_text())["runs"]}

    assert runs["kube-scheduler"]["faults"] == []
    assert [code, bool(runs["bare-binder"]["faults"])] == [int(told_off), told_off]


@pytest.mark.cluster
@pytest.mark.parametrize("arrival", ["during", "before"])
def test_a_small_run_measures_and_judges_both_ways_of_arrival(
    programs: binaries.Binaries,
    tmp_path: pathlib.Path,
    arrival: str,
) -> None:
    """The program goes the whole way on real processes and writes what it found."""
    output = tmp_path / "live.json"
    sizes = ["--nodes", "20", "--pods", "60", "--arrival", arrival, "--quiet"]
    code = program.main([*sizes, "--schedulers", "kube-scheduler,bare-binder", "--output", str(output)])
    runs = json.loads(output.read_text())["runs"]

    assert code == 0
    assert [(run["scheduler"], run["faults"]) for run in runs] == [("kube-scheduler", []), ("bare-binder", [])]
    assert all(run["pods_per_s"] > 0 and run["cpu_ms_per_pod"] > 0 for run in runs)
