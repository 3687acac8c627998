"""Manifests that describe a network, beside nodes and pods."""

import pytest

from graphsched.app import offline
from graphsched.base.values import errors, keys
from graphsched.graph import codec, delta
from graphsched.sources import captures, manifests, state

LINK: dict[str, object] = {
    "apiVersion": "graphsched.io/v1alpha1",
    "kind": "NetworkLink",
    "metadata": {"name": "a"},
    "spec": {"endpoints": [{"node": "n1"}, {"place": "switch"}]},
}
LEVELS: dict[str, object] = {
    "metadata": {"name": "a"},
    "kind": "Topology",
    "spec": {"levels": [{"nodeLabel": "example.com/rack"}]},
}


def node(name: str, rack: str) -> dict[str, object]:
    """A node in a rack."""
    metadata = {"name": name, "labels": {"example.com/rack": rack}}
    status = {"allocatable": {"cpu": "1", "pods": "10"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def collected(*bodies: dict[str, object]) -> state.ClusterState:
    """The cluster in these manifests."""
    collector = manifests.Collector()
    for number, body in enumerate(bodies):
        collector.add(body, place=f"x.yaml:{number}")
    return collector.state()


def test_what_is_described_stands_in_the_graph_whatever_the_order() -> None:
    """Objects before the nodes that they depend on."""
    kueue = {**LEVELS, "apiVersion": "kueue.x-k8s.io/v1beta1"}
    graph = offline.graph_of(collected(kueue, LINK, node("n1", "r1")))

    assert {"place/switch", "place/example.com/rack=r1"} == set(graph.vertex_keys("place/"))
    assert (2, 1) == (len(graph.edge_ids(keys.EdgeKind.LINK)), len(graph.edge_ids(keys.EdgeKind.CONTAINS)))


def test_a_captured_graph_keeps_its_places(tmp_path: object) -> None:
    """What a running scheduler knew is known again, with links and containment."""
    cluster = collected(LINK, node("n1", "r1"))
    graph = offline.graph_of(cluster)
    vertices, edges = graph.content()
    path = f"{tmp_path}/cluster.dg"
    with open(path, "wb") as file:  # noqa: PTH123  a text is at hand
        file.write(codec.encode(delta.Patch(vertices=vertices, edges=edges), base_generation=1))

    assert graph.content() == offline.graph_of(captures.read(path)).content()


def test_kinds_of_one_name_in_two_groups_do_not_meet() -> None:
    """Kueue and KAI both have a Topology."""
    both: list[dict[str, object]] = [
        {**LEVELS, "apiVersion": api} for api in ("kueue.x-k8s.io/v1beta1", "kai.scheduler/v1alpha1")
    ]

    assert ["kueue/a", "kai/a"] == [each.by for each in collected(*both).described]


def test_an_object_that_is_there_twice_is_refused() -> None:
    """With both places."""
    with pytest.raises(errors.InputError, match=r"is there twice, first at x\.yaml:0"):
        collected(LINK, LINK)


def test_a_mistake_is_told_with_its_place() -> None:
    """File, line, object, field."""
    with pytest.raises(errors.InputError, match=r'x\.yaml:0: NetworkLink "a": spec\.endpoints: holds 0, not two'):
        collected({**LINK, "spec": {}})


def test_an_object_of_somebody_elses_group_is_ignored_as_before() -> None:
    """A Topology of a group that nobody here knows is no business of ours."""
    assert {"Topology": 1} == collected({**LEVELS, "apiVersion": "example.com/v1"}).ignored
