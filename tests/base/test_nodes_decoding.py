"""Nodes, namespaces and priority classes of the API become values."""

import pytest

from graphsched.base.kube import nodes as kube_nodes, wire
from graphsched.base.values import errors, nodes
from tests.builders import make_node


def test_a_full_node_is_decoded_whole() -> None:
    """Each part from its field; taints keep their order, the rest is sorted."""
    node = (
        make_node("n1")
        .zone("a")
        .resource("ephemeral-storage", "1500m")
        .resource("example.com/gpu", "2")
        .resource("unknown", "3")
        .taint("b", "1", "NoExecute")
        .cordoned()
        .image(5, "x:1", "x@sha256:0")
        .feature("B")
        .feature("A")
        .address("InternalIP", "10.0.0.7")
        .address("Hostname", "n1")
        .address("ExternalIP", "fd00::7")
        .build()
    )

    assert node == nodes.Node(
        name="n1",
        uid="uid-n1",
        labels=(("kubernetes.io/hostname", "n1"), ("topology.kubernetes.io/zone", "a")),
        taints=(
            nodes.Taint("b", "1", "NoExecute"),
            nodes.Taint("node.kubernetes.io/unschedulable", "", "NoSchedule"),
        ),
        unschedulable=True,
        allocatable=(
            ("cpu", 4000),
            ("ephemeral-storage", 2),
            ("example.com/gpu", 2),
            ("memory", 32 << 30),
            ("pods", 110),
        ),
        images=(nodes.Image(("x:1", "x@sha256:0"), 5),),
        features=("A", "B"),
        addresses=("10.0.0.7", "fd00::7"),
    )


def test_a_node_may_know_nothing_of_itself() -> None:
    """A kubelet registers before it reports; nothing fits on it until then."""
    assert nodes.Node("n1") == kube_nodes.node(wire.NODE.decode(b'{"metadata":{"name":"n1"},"status":{"images":null}}'))


def test_zero_is_kept() -> None:
    """Zero of a resource is a report, absence is none."""
    assert ("example.com/gpu", 0) in make_node("n1").resource("example.com/gpu", "0").build().allocatable


def test_a_bad_quantity_names_node_and_field() -> None:
    """In one line."""
    with pytest.raises(errors.InputError) as caught:
        make_node("n1").cpu("12Gx").build()

    expected = 'Node "n1": status.allocatable.cpu: "12Gx" is not a quantity (use e.g. 12, 500m, 1.5Gi)'
    assert expected == str(caught.value)


def test_namespaces_keep_their_labels() -> None:
    """For namespace selectors."""
    body = wire.NAMESPACE.decode(b'{"metadata":{"name":"shop","labels":{"b":"2","a":"1"}}}')

    assert nodes.Namespace("shop", (("a", "1"), ("b", "2"))) == kube_nodes.namespace(body)


def test_priority_classes_keep_value_and_policy() -> None:
    """Including the global default."""
    body = wire.PRIORITY_CLASS.decode(
        b'{"metadata":{"name":"high"},"value":9,"globalDefault":true,"preemptionPolicy":"Never"}',
    )

    assert nodes.PriorityClass("high", 9, True, True) == kube_nodes.priority_class(body)


@pytest.mark.parametrize(
    "convert",
    [
        lambda: kube_nodes.node(wire.Node()),
        lambda: kube_nodes.namespace(wire.Namespace()),
        lambda: kube_nodes.priority_class(wire.PriorityClass()),
    ],
)
def test_an_object_without_a_name_is_refused(convert: object) -> None:
    """It could not be told from another one."""
    with pytest.raises(errors.InputError, match=r"metadata\.name: is missing"):
        convert()  # type: ignore[operator]
