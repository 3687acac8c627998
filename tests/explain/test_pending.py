"""
Why a pod is pending: the dominating reason, the groups, the smallest change, what wakes it.

The engine is real. Every change that is told is applied to the cluster and must then be enough.
"""

import msgspec
import pytest
from hypothesis import given, strategies

from graphsched.base.values import keys, pods
from graphsched.decision import cycle, profile
from graphsched.explain import remedies, why
from graphsched.graph import delta
from tests.builders import NodeBuilder, PodBuilder, make_node, make_pod
from tests.explain.worlds import asked, told, world


def test_a_full_cluster_names_the_resource_and_the_nearest_node() -> None:
    """What is wanted, what is free at most and where, and the change that would do."""
    graph = world(
        make_node("n1"),
        make_node("n2"),
        make_pod("a").cpu("3").node("n1"),
        make_pod("b").cpu("2500m").node("n2"),
    )

    assert [
        "web is pending: none of the 2 nodes has 2 CPUs free (most: 1.5 CPUs on n2).",
        "  2 nodes: 2 full (cpu)",
        "  Smallest change: 500m CPU on n2.",
        "  Wakes on: a pod leaving a node it may run on or a node joining or growing.",
    ] == told(graph, make_pod("web").cpu("2"))


def test_nodes_of_another_sort_are_no_news() -> None:
    """A hundred tainted nodes do not hide that the only suitable one is full."""
    others = [make_node(f"x{number:03d}").taint("dedicated", "db") for number in range(100)]
    graph = world(*others, make_node("n1"), make_pod("a").cpu("3500m").node("n1"))
    lines = told(graph, make_pod("web").cpu("1"))

    assert (
        "web is pending: not even n1, the only node it may run on, has 1 CPU free (most: 500m CPU on n1)." == lines[0]
    )
    assert "  101 nodes: 100 tainted (dedicated=db) · 1 full (cpu)" == lines[1]


@pytest.mark.parametrize(
    ("node", "label", "change"),
    [
        (make_node("n1").cordoned(), "cordoned", "lifting the cordon on n1"),
        (make_node("n1").taint("gpu", "yes"), "tainted (gpu=yes)", "tolerating gpu=yes:NoSchedule on n1"),
        (make_node("n1").label("disk", "hdd"), "without disk=ssd", "dropping its node selector on n1"),
        (make_node("n1").label("disk", "ssd").cpu("1"), "too small (cpu)", "1 CPU on n1"),
        (make_node("n1").label("disk", "ssd").pods(0), "full (pods)", ""),
    ],
)
def test_each_obstacle_has_a_name_and_its_remedy(node: NodeBuilder, label: str, change: str) -> None:
    """What is in the way is named, and so is what an operator or the author of the pod could do."""
    pod = make_pod("web").cpu("2").node_selector("disk", "ssd")
    if "disk" not in str(node.manifest()):
        node = node.label("disk", "ssd")
    found = asked(world(node), pod)

    assert ([label], [change] if change else []) == (
        [group.label for group in found.groups],
        [str(one) for one in found.changes],
    )


def test_several_obstacles_on_a_node_are_all_told() -> None:
    """A change that leaves the next refusal standing would be no help."""
    graph = world(make_node("n1").taint("gpu").cordoned(), make_pod("a").cpu("4").node("n1"))
    found = asked(graph, make_pod("web").cpu("1"))

    assert ["lifting the cordon, tolerating gpu:NoSchedule and 1 CPU on n1"] == [str(one) for one in found.changes]


def test_a_node_that_could_hold_the_pod_is_named_before_one_that_is_too_small() -> None:
    """More is missing there, but a pod that leaves it would help, and none that leaves the other."""
    graph = world(make_node("small").cpu("4"), make_node("large").cpu("10"), make_pod("a").cpu("9500m").node("large"))
    found = asked(graph, make_pod("web").cpu("8"))

    assert ["7.5 CPUs on large"] == [str(one) for one in found.changes]
    gpus = world(make_node("few").gpus(1), make_node("many").gpus(4), make_pod("a").gpu(4, 1000).cpu("3").node("many"))
    assert "many" == asked(gpus, make_pod("web").cpu("3").gpu(4, 1000)).changes[0].node


def test_the_pod_in_the_way_is_named() -> None:
    """The least important one whose going would be enough."""
    graph = world(
        make_node("n1"),
        make_pod("small").cpu("500m").node("n1"),
        make_pod("batch").cpu("2").node("n1"),
        make_pod("king").cpu("1").priority(1000).node("n1"),
    )
    found = asked(graph, make_pod("web").cpu("1").priority(10))

    assert "500m CPU on n1 (without default/small, priority 0, it fits)" == str(found.changes[0])


def test_a_shared_gpu_is_looked_for_on_one_device() -> None:
    """Two halves on two devices are no whole one."""
    graph = world(
        make_node("n1").gpus(2, "T4"),
        make_pod("a").gpu(1, 700).devices(0).node("n1"),
        make_pod("b").gpu(1, 600).devices(1).node("n1"),
    )
    lines = told(graph, make_pod("web").gpu(1, 500))

    assert lines[0].startswith("web is pending: not even n1, the only node, has 500/1000 of one GPU free")
    assert "(most: 400/1000 of one on n1)" in lines[0]
    assert "  Smallest change: 100/1000 of one GPU on n1." in lines


def test_stranded_gpus_are_told() -> None:
    """GPUs are free, but only where the CPUs are gone: the operator should know."""
    graph = world(
        make_node("n1").gpus(1, "T4"),
        make_node("n2").gpus(1, "T4"),
        make_pod("a").cpu("4").node("n1"),
        make_pod("b").gpu(1, 1000).devices(0).node("n2"),
    )

    assert (
        "web is pending: the 1 node with 1 GPU free is short of cpu, the others of GPUs."
        == told(
            graph,
            make_pod("web").cpu("1").gpu(1, 1000),
        )[0]
    )


def test_a_request_above_every_node_is_told_as_that() -> None:
    """No departure will help, so none is waited for."""
    graph = world(make_node("n1"), make_node("n2").cpu("8"))

    assert (
        "web is pending: it asks for 64 CPUs, and none of the 2 nodes has more than 8 CPUs."
        == told(
            graph,
            make_pod("web").cpu("64"),
        )[0]
    )


def test_what_is_not_supported_is_said_and_nothing_else() -> None:
    """The whole pod is refused, so no node is to blame."""
    found = asked(world(make_node("n1")), make_pod("web").claim("data"))

    assert "pending" == found.state
    assert "persistentVolumeClaim data" in found.headline
    assert ((), ()) == (found.groups, found.changes)


def test_a_gated_pod_waits_for_its_gates() -> None:
    """It is not tried, so nothing refuses it."""
    assert (
        "web is held back by the scheduling gate quota; it is not tried before that is removed."
        == told(
            world(make_node("n1")),
            make_pod("web").gate("quota"),
        )[0]
    )


def test_an_empty_cluster_waits_for_a_node() -> None:
    """There is nobody to refuse it."""
    assert ["web is pending: there are no nodes.", "  Wakes on: a node joining."] == told(world(), make_pod("web"))


def test_the_queue_adds_how_long_and_how_often() -> None:
    """Only a live scheduler knows."""
    waiting = why.Waiting(seconds=192, attempts=7, next_try_s=8)
    lines = told(world(make_node("n1").cordoned()), make_pod("web"), waiting=waiting)

    assert "web is pending for 3m12s: the only node is cordoned." == lines[0]
    assert lines[-1].endswith("Tried 7 times, next try in 8s.")


cpus = strategies.integers(0, 40).map(lambda tenths: f"{tenths * 100}m")
pairs = strategies.lists(strategies.tuples(cpus, cpus, strategies.booleans()), min_size=1, max_size=5)


@given(pairs=pairs, wanted=cpus, gpu=strategies.sampled_from([None, 300, 700, 1000]))
def test_a_change_that_is_told_is_enough(pairs: list[tuple[str, str, bool]], wanted: str, gpu: int | None) -> None:
    """Whatever the cluster: with that much more room on that node, the real engine takes the pod there."""
    builds: list[NodeBuilder | PodBuilder] = []
    for number, (first, second, cordoned) in enumerate(pairs):
        node = make_node(f"n{number}").gpus(2, "T4")
        builds.append(node.cordoned() if cordoned else node)
        builds.append(make_pod(f"a{number}").cpu(first).gpu(1, 500).devices(0).node(f"n{number}"))
        builds.append(make_pod(f"b{number}").cpu(second).gpu(1, 900).devices(1).node(f"n{number}"))
    graph = world(*builds)
    builder = make_pod("web").cpu(wanted).priority(5)
    pod = (builder if gpu is None else builder.gpu(1, gpu)).build()
    for change in asked(graph, pod).changes:
        if change.room and change.instead_of:
            graph.apply(delta.Patch().remove(keys.VertexKey(f"pod/{change.instead_of}")))
            verdict = cycle.Decider().evaluate(graph.view(), pod).verdicts[change.node]
            assert verdict.status.ok
            break


@given(pairs=pairs, wanted=cpus)
def test_one_nodes_refusal_is_the_evaluations(pairs: list[tuple[str, str, bool]], wanted: str) -> None:
    """Looking at a single node and at all of them say the same."""
    builds: list[NodeBuilder | PodBuilder] = []
    for number, (first, second, cordoned) in enumerate(pairs):
        node = make_node(f"n{number}").cpu(first)
        builds.append(node.cordoned() if cordoned else node)
        builds.append(make_pod(f"a{number}").cpu(second).node(f"n{number}"))
    graph = world(*builds)
    pod = make_pod("web").cpu(wanted).build()
    evaluation = cycle.Decider().evaluate(graph.view(), pod)

    assert {name: verdict.status for name, verdict in evaluation.verdicts.items()} == {
        name: remedies.refusal(graph.view(), pod, name, profile.Profile()) for name in evaluation.verdicts
    }


def test_an_explanation_survives_json() -> None:
    """The debug endpoint sends it, the command line reads it back."""
    graph = world(make_node("n1"), make_node("n2").cordoned(), make_pod("a").cpu("4").node("n1"))
    found = asked(graph, make_pod("web").cpu("2"))

    assert found == msgspec.json.decode(msgspec.json.encode(found), type=why.Explanation)
    assert isinstance(found.changes[0], remedies.Change)
    assert isinstance(make_pod("web").build(), pods.Pod)
