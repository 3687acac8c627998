"""The resource layer shows all that is known of what nodes have, what of it may be used, and how full they are."""

import pathlib

import msgspec
import pytest

from graphsched.app import cli
from graphsched.explain.atlas import figures, maps, stats, survey, telling, trees
from graphsched.graph import delta, store, watermarks
from tests.app.manifests import write
from tests.builders import NodeBuilder, make_node, make_pod

RESOURCES = (maps.Layer.RESOURCES,)
RESERVED = '{"team-a": {"cpu": "2", "memory": "1Gi"}, "team-b/web": {"pods": 3}}'


def granted(name: str = "n1") -> NodeBuilder:
    """A node of 4 CPUs, of 5 that there are; 3 of them may be used, 2 are kept for team-a."""
    notes = {"graphsched.io/cpu-quota": "3", "graphsched.io/reserved": RESERVED}
    node = make_node(name).set("metadata.annotations", notes)
    return node.set("status.capacity", {"cpu": "5", "memory": "40Gi", "pods": "110"})


def graph_of(*builds: NodeBuilder | delta.Vertex) -> store.Store:
    """A graph of these."""
    graph, patch = store.Store(), delta.Patch()
    for each in builds:
        patch.set_vertex(each.build() if isinstance(each, NodeBuilder) else each)
    assert isinstance(graph.apply(patch), delta.Applied)
    return graph


def used_up() -> store.Store:
    """The node, with a pod that uses up half of what is kept for it and one of somebody else."""
    own, other = (make_pod("p", namespace).cpu("1").node("n1").build() for namespace in ("team-a", "team-c"))
    return graph_of(granted(), own, other)


def test_a_node_tells_capacity_ceilings_and_reservations() -> None:
    """In the units of amounts; what is left of a reservation is what its holder's pods have not used."""
    known = survey.survey(used_up(), RESOURCES).by_key["node/n1"].attributes

    assert {"cpu": 5000, "memory": 40 << 30, "pods": 110} == known["capacity"]
    assert {"cpu": 3000} == known["ceilings"]
    assert {"team-a": {"cpu": 2000, "memory": 1 << 30}, "team-b/web": {"pods": 3}} == known["reserved"]
    assert {"team-a": {"cpu": 1000, "memory": 1 << 30}, "team-b/web": {"pods": 3}} == known["reserved_left"]
    assert not {"fullness", "watermarks"} & known.keys()


def test_a_node_without_limits_tells_none() -> None:
    """What nobody set is left out."""
    known = survey.survey(graph_of(make_node("n1")), RESOURCES).by_key["node/n1"].attributes

    assert {"allocatable"} == known.keys()


@pytest.mark.parametrize(("cpu", "side"), [("1", "below"), ("1500m", "between"), ("2999m", "above")])
def test_a_node_tells_where_it_is_between_the_watermarks(cpu: str, side: str) -> None:
    """Against its ceiling of 3 CPUs, as the watermarks themselves count."""
    graph = graph_of(granted(), make_pod("p").cpu(cpu).node("n1").build())
    marks = {"cpu": watermarks.Marks(90, 50)}
    known = survey.survey(graph, RESOURCES, marks).by_key["node/n1"].attributes

    assert {"cpu": side} == known["watermarks"]
    looked = watermarks.Watermarks(marks)
    looked.look(graph.columns, graph.view().budgets)
    assert (side == "above") == bool(looked.above["cpu"])


def test_limits_are_told_in_words() -> None:
    """In the tree, in tooltips and in pictures alike; nothing of a node that has none."""
    graph = used_up()
    shown = survey.survey(graph, RESOURCES, {"cpu": watermarks.Marks(60, 50)})

    assert [
        "at most 3 CPUs",
        "keeps 2 CPUs and 1Gi memory for team-a, 1 CPU and 1Gi memory unused",
        "keeps 3 pods for team-b/web, 3 pods unused",
        "above the watermark of cpu (66.7 %)",
    ] == telling.limits(shown.by_key["node/n1"].attributes)
    assert "at most 3 CPUs · keeps 2 CPUs" in trees.lines(shown)[0]
    told = telling.attributes(shown.by_key["node/n1"].attributes)
    assert "ceilings: 3 CPUs" in told
    assert "reserved: team-a: 2 CPUs, 1Gi memory; team-b/web: 3 pods" in told
    assert 2 / 3 == telling.share(shown.by_key["node/n1"].attributes)
    assert [] == telling.limits(survey.survey(graph_of(make_node("n1")), RESOURCES).by_key["node/n1"].attributes)


def test_a_reservation_that_is_used_up_says_so() -> None:
    """Nothing of it is kept from others any more."""
    known = {"reserved": {"a": {"cpu": 1000}}, "reserved_left": {}}

    assert ["keeps 1 CPU for a, all used"] == telling.limits(known)


def test_amounts_come_in_one_order() -> None:
    """Whichever node named a resource first."""
    odd = make_node("n2").resource("a.example/x", "1").resource("z.example/y", "2")
    other = make_node("n1").resource("z.example/y", "2").resource("m.example/x", "1")
    texts = []
    for order in ((odd, other), (other, odd)):
        graph = store.Store()
        for each in order:
            graph.apply(delta.Patch().set_vertex(each.build()))
        texts.append(msgspec.json.encode(survey.survey(graph, RESOURCES)))

    assert texts[0] == texts[1]


def test_columns_hold_what_is_installed() -> None:
    """A node that goes, or loses a resource, leaves nothing behind; a store built afresh holds the same."""
    graph = graph_of(granted("n1"), granted("n2"))
    assert 5000 == graph.columns.installed["cpu"][graph.columns.rows["n1"]]
    graph.apply(delta.Patch().set_vertex(make_node("n1").set("status.capacity", {"memory": "1Gi"}).build()))
    row = graph.columns.rows["n1"]
    assert (0, 1 << 30) == (graph.columns.installed["cpu"][row], graph.columns.installed["memory"][row])
    graph.apply(delta.Patch().remove(make_node("n2").build().key))
    assert 0 == graph.columns.installed["cpu"].sum()
    for number in range(20):
        graph.apply(delta.Patch().set_vertex(make_node(f"m{number}").build()))

    assert 1 << 30 == graph.columns.installed["memory"].sum()
    assert [] == graph.audit()
    graph.columns.installed["memory"][row] += 1
    assert ["node/n1: installed is"] == [line[:21] for line in graph.audit()]


def test_numbers_sum_up_each_resource() -> None:
    """What there is, what is offered, what ceilings leave, what is requested, what is kept for somebody."""
    graph = used_up()
    graph.apply(delta.Patch().set_vertex(make_node("n2").build()))
    cpu = next(each for each in stats.stats(graph).resources if each.resource == "cpu")

    assert (5000, 8000, 7000, 2000, 1000) == (cpu.capacity, cpu.allocatable, cpu.usable, cpu.requested, cpu.reserved)
    rows = figures.rows(stats.stats(graph), now=0.0)
    told = "2 CPUs of 8 CPUs offered, 7 CPUs of them under ceilings, 1 CPU kept for their holders"
    assert ["requested", "28.6%", told] in rows


def test_the_command_reads_marks_and_reservations_from_settings(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the live scheduler with this file would."""
    config = tmp_path / "settings.yaml"
    config.write_text(
        "watermarks: {cpu: {highPercent: 90, lowPercent: 50}}\n"
        "resources: {reservations: [{holder: team-a, amounts: {cpu: 1}}]}\n",
        encoding="utf-8",
    )
    path = write(tmp_path / "c.yaml", make_node("n1"), make_pod("p").cpu("4").node("n1"))
    assert 0 == cli.execute(["graph", path, "--layer", "resources", "--config", str(config)])
    told = capsys.readouterr().out
    assert "keeps 1 CPU for team-a, 1 CPU unused · above the watermark of cpu (100 %)" in told

    assert 0 == cli.execute(["graph", "stats", path, "--config", str(config)])
    assert "1 CPU kept for their holders" in capsys.readouterr().out
