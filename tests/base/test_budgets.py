"""What an operator grants of a node is read from its annotations, and refused where it is not what it should be."""

import pytest

from graphsched.base.values import errors, nodes
from tests.builders import make_node, make_pod

OURS = "graphsched.io/"


def annotated(**notes: str) -> nodes.Node:
    """A node with these annotations of ours, `_` standing for `-`."""
    return (
        make_node("n1").set("metadata.annotations", {OURS + key.replace("_", "-"): notes[key] for key in notes}).build()
    )


def test_ceilings_are_read_in_the_units_of_amounts() -> None:
    """CPU as a quantity in thousandths, memory in mebibytes as bytes."""
    budget = annotated(cpu_quota="2500m", memory_limit_mb="1024").budget

    assert budget.ceilings == (("cpu", 2500), ("memory", 1024 << 20))


def test_capacity_is_read_beside_what_is_offered() -> None:
    """Also that of resources nobody asks for yet; names that are no resources are left out."""
    status = {"capacity": {"cpu": "4", "pods": "110", "junk": "1"}, "allocatable": {"cpu": "3500m", "pods": "110"}}

    node = make_node("n1").set("status", status).build()

    assert node.budget.capacity == (("cpu", 4000), ("pods", 110))
    assert node.allocatable == (("cpu", 3500), ("pods", 110))


def test_reservations_are_sorted_by_holder() -> None:
    """Each with what is kept; a zero keeps nothing."""
    text = '{"team-b/web": {"pods": 3}, "team-a": {"memory": "4Gi", "cpu": 1.5, "example.com/gpu": "0"}}'

    reserved = annotated(reserved=text).budget.reserved

    assert reserved == (("team-a", (("cpu", 1500), ("memory", 4 << 30))), ("team-b/web", (("pods", 3),)))


def test_operations_are_offered_as_a_resource() -> None:
    """Where the kubelet offers none, the annotation is what the node offers."""
    node = annotated(iops="4000")

    assert dict(node.allocatable)[nodes.IOPS] == 4000
    assert node.budget.ceilings == ()


def test_operations_below_those_that_the_kubelet_offers_are_a_ceiling() -> None:
    """The resource stays what the kubelet says."""
    node = make_node("n1").resource(nodes.IOPS, "9000").set("metadata.annotations", {nodes.IOPS: "4000"}).build()

    assert dict(node.allocatable)[nodes.IOPS] == 9000
    assert node.budget.ceilings == ((nodes.IOPS, 4000),)


def test_a_pod_asks_for_operations_by_annotation() -> None:
    """They are asked for and held as any resource; a request of a container comes first."""
    by_note = make_pod("a").cpu("1").set("metadata.annotations", {nodes.IOPS: "250"}).build()
    by_both = make_pod("b").request(nodes.IOPS, "100").set("metadata.annotations", {nodes.IOPS: "250"}).build()

    assert dict(by_note.spec.demand.amounts) == {"cpu": 1000, nodes.IOPS: 250}
    assert by_note.held == by_note.spec.demand
    assert dict(by_both.spec.demand.amounts) == {nodes.IOPS: 100}


def test_annotations_of_others_say_nothing() -> None:
    """Nor is a pod with them another kind of pod."""
    pod = make_pod("a").cpu("1").set("metadata.annotations", {"example.com/iops": "250"}).build()

    assert pod.spec is make_pod("b").cpu("1").build().spec


@pytest.mark.parametrize(
    ("key", "text", "told"),
    [
        ("cpu-quota", "12Gx", '"12Gx" is not a quantity'),
        ("cpu-quota", "-1", '"-1" is negative'),
        ("memory-limit-mb", "4Gi", '"4Gi" is no whole number'),
        ("iops", "many", '"many" is no whole number'),
        ("reserved", "cpu=1", "is not JSON of amounts by holder"),
        ("reserved", '{"Team": {"cpu": 1}}', '"Team" is no holder'),
        ("reserved", '{"a": {"cpus": 1}}', '"cpus" is no resource'),
        ("reserved", '{"a": {"cpu": "x"}}', '"x" is not a quantity'),
    ],
)
def test_what_can_not_be_read_is_told_with_its_place(key: str, text: str, told: str) -> None:
    """Node, annotation, problem."""
    with pytest.raises(errors.InputError) as caught:
        make_node("n1").set("metadata.annotations", {OURS + key: text}).build()

    assert str(caught.value).startswith(f'Node "n1": metadata.annotations.graphsched.io/{key}')
    assert told in str(caught.value)


def test_a_pod_whose_annotation_can_not_be_read_is_refused() -> None:
    """Passing over it would place the pod where it starves."""
    with pytest.raises(errors.InputError, match=r'Pod "default/a": metadata.annotations.graphsched.io/iops'):
        make_pod("a").set("metadata.annotations", {nodes.IOPS: "-3"}).build()
