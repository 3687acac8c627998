"""What shows the graph tells what is in it: every layer, by every name, as a tree, as DOT, in numbers."""

import pytest

from graphsched.base.values import errors, keys, nodes, pods, relations
from graphsched.explain.atlas import dot, figures, holding, journeys, maps, naming, stats, survey, telling, trees
from graphsched.graph import delta, routes, store
from tests.explain import dot_grammar, fabrics

KNOWN = (
    "node/n1",
    "node/n2",
    "pod/default/web-0",
    "pod/shop/web-0",
    "pod/shop/db-0",
    "domain/topology.kubernetes.io/zone=eu/a",
    "domain/topology.kubernetes.io/zone=us/a",
    "domain/topology.kubernetes.io/region=eu",
    "domain/nvidia.com/gpu.clique=eu/a:7f.0",
    "place/slurm/leaf-12",
    "place/n2",
    "group/default/mesh",
)


def edges(shown: maps.Map, kind: maps.Relation) -> set[tuple[str, str]]:
    """Source and target of every edge of a kind."""
    return {(edge.source, edge.target) for edge in shown.edges if edge.kind is kind}


# ── layers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_physical_layer_is_what_holds_and_links() -> None:
    """Nodes, domains and places; a link without an end that is there is left out."""
    shown = survey.survey(fabrics.fabric(), (maps.Layer.PHYSICAL,))

    assert {"node", "domain", "place"} == {vertex.kind for vertex in shown.vertices}
    assert (fabrics.ZONE_A, "domain/topology.kubernetes.io/rack=eu/a:r0") in edges(shown, maps.Relation.CONTAINS)
    links = edges(shown, maps.Relation.LINK)
    assert {(fabrics.ZONE_A, fabrics.ZONE_B), ("node/n3", "place/net/leaf-r1")} <= links
    assert not any("gone" in end for link in links for end in link)
    link = next(edge for edge in shown.edges if edge.source == "node/n3" and edge.kind is maps.Relation.LINK)
    assert {"latency_ms": 0.02, "bandwidth_mbps": 100_000.0, "health": 0.3, "measured": 900.0} == link.attributes


def test_a_link_that_is_down_is_shown_as_down() -> None:
    """In the map, in words, in red, and in the numbers."""
    graph, edge = fabrics.fabric(), keys.EdgeID(keys.node_key("n3"), keys.place_key("net/leaf-r1"), keys.EdgeKind.LINK)
    graph.apply(delta.Patch().set_edge(edge, relations.Link(0.02, health=relations.DOWN)))
    shown = survey.survey(graph, (maps.Layer.PHYSICAL,))
    link = next(each for each in shown.edges if (each.source, each.target) == (edge.source, edge.target))

    assert {"latency_ms": 0.02, "health": relations.DOWN, "down": True} == link.attributes
    assert telling.edge(link).endswith("down")
    (line,) = [each for each in dot.text(shown).splitlines() if each.startswith('  "node/n3" -> "place/net/leaf-r1"')]
    assert "down" in line
    assert 'color="red"' in line
    assert 1 == stats.stats(graph).links.by_health["down"]


def test_the_resource_layer_is_what_nodes_have_and_what_is_taken() -> None:
    """A promise counts like a pod that runs."""
    shown = survey.survey(fabrics.fabric(), (maps.Layer.RESOURCES,))

    known = shown.by_key["node/n1"].attributes
    assert {"cpu": 4000, "memory": 32 << 30, "pods": 110} == known["allocatable"]
    assert {"cpu": 1000, "pods": 1} == known["requested"]


def test_shareable_gpus_are_devices_of_their_node() -> None:
    """With the thousandths that are taken of each."""
    graph = store.Store()
    graph.apply(delta.Patch().set_vertex(nodes.Node("n1", gpus=2, gpu_model="T4")))
    shown = survey.survey(graph, (maps.Layer.RESOURCES,))

    assert {("node/n1", "device/n1/gpu-0"), ("node/n1", "device/n1/gpu-1")} == edges(shown, maps.Relation.CONTAINS)
    assert {"model": "T4", "used_milli": 0} == shown.by_key["device/n1/gpu-1"].attributes


def test_the_policy_layer_is_rules_and_whom_they_are_about() -> None:
    """The pods and nodes that their selectors match, and where the way they demand leads."""
    shown = survey.survey(fabrics.fabric(), (maps.Layer.POLICY,))

    pods = {("rule/keep-out/0", f"pod/default/web-{number}") for number in range(4)}
    assert {*pods, ("rule/keep-out/0", "node/n0"), ("rule/keep-out/0", "node/n1")} == edges(
        shown, maps.Relation.SELECTS
    )
    assert {("rule/keep-out/0", fabrics.ZONE_A)} == edges(shown, maps.Relation.DEPENDS_ON)
    rule = shown.by_key["rule/keep-out/0"].attributes
    assert ("require", "app=web", "tier=gold") == (rule["action"], rule["pods"], rule["nodes"])
    assert {"to": fabrics.ZONE_A, "hops_max": 3} == rule["path"]


def test_the_workload_layer_is_pods_and_what_runs_selects_and_groups_them() -> None:
    """Promised placements are told from confirmed ones; a group is a vertex that holds its workloads."""
    shown = survey.survey(fabrics.fabric(), (maps.Layer.WORKLOADS,))

    assert ("pod/default/web-0", "node/n0") in edges(shown, maps.Relation.RUNS)
    promised = [edge.source for edge in shown.edges if edge.attributes.get("promised")]
    assert ["pod/default/web-1"] == promised
    assert "pod/shop/db-0" in shown.by_key
    selected = edges(shown, maps.Relation.SELECTS)
    assert ("selection/Service/default/web", "pod/default/web-3") in selected
    assert ("workload/default/mesh/web", "pod/default/web-3") in selected
    assert {
        ("group/default/mesh", "workload/default/mesh/web"),
        ("group/default/mesh", "workload/default/mesh/api"),
    } == (edges(shown, maps.Relation.CONTAINS))
    (needed,) = [edge for edge in shown.edges if edge.kind is maps.Relation.DEPENDS_ON]
    assert {"rate": 3.0, "latency_ms_max": 2.0} == needed.attributes


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_equal_graphs_give_equal_maps(seed: int) -> None:
    """Whatever the order in which things arrived."""
    assert survey.survey(fabrics.fabric()) == survey.survey(fabrics.fabric(seed=seed))


def test_both_ends_of_every_edge_are_there() -> None:
    """In every layer and in all together, and a layer is a part of the whole."""
    graph = fabrics.fabric()
    whole = survey.survey(graph)
    for layers in (*((layer,) for layer in maps.Layer), tuple(maps.Layer)):
        shown = survey.survey(graph, layers)

        assert all(edge.source in shown.by_key and edge.target in shown.by_key for edge in shown.edges)
        assert set(shown.by_key) <= set(whole.by_key)


def test_a_neighbourhood_reaches_so_many_edges_in_either_direction() -> None:
    """Depth 0 is the vertex itself; edges between what is reached are all there."""
    shown = survey.survey(fabrics.fabric(), (maps.Layer.PHYSICAL,))

    assert ["node/n3"] == [vertex.key for vertex in shown.neighbourhood("node/n3", 0).vertices]
    near = shown.neighbourhood("node/n3", 1)
    rack, clique = "domain/topology.kubernetes.io/rack=eu/a:r1", "domain/nvidia.com/gpu.clique=eu/a:c0"
    assert {"node/n3", rack, clique, "place/net/leaf-r1"} == set(near.by_key)
    assert 4 == len(near.edges)
    assert ("node/n3", 1) == (near.around, near.depth)
    assert set(shown.by_key) == set(shown.neighbourhood("node/n3", 100).by_key)


# ── names ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("node/n1", "node/n1"),
        ("n1", "node/n1"),
        ("n2", "node/n2"),
        ("place/n2", "place/n2"),
        ("web-0", "pod/default/web-0"),
        ("shop/web-0", "pod/shop/web-0"),
        ("db-0", "pod/shop/db-0"),
        ("leaf-12", "place/slurm/leaf-12"),
        ("region=eu", "domain/topology.kubernetes.io/region=eu"),
        ("zone=us/a", "domain/topology.kubernetes.io/zone=us/a"),
        ("us/a", "domain/topology.kubernetes.io/zone=us/a"),
        ("7f.0", "domain/nvidia.com/gpu.clique=eu/a:7f.0"),
        ("mesh", "group/default/mesh"),
    ],
)
def test_a_name_is_as_short_as_it_may_be(text: str, meant: str) -> None:
    """A node goes before others of its name, the default namespace before others."""
    assert meant == naming.find(KNOWN, text)


@pytest.mark.parametrize("text", ["keep-gpus", "edge/keep-gpus", "edge/0", "rule/edge/0"])
def test_a_rule_is_named_as_it_is_shown(text: str) -> None:
    """With its policy or without."""
    assert "rule/edge/0" == naming.find([*KNOWN, "rule/edge/0", "rule/edge/1"], text, {"rule/edge/0": "keep-gpus"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("zone=a", 'vertex "zone=a": could be domain/topology.kubernetes.io/zone=eu/a, domain/topology.kubern'),
        ("n3", "is not in the graph (did you mean node/n"),
        ("laef-12", "did you mean place/slurm/leaf-12 or"),
        ("", "is not in the graph (it holds e.g. domain/nvidia.com/gpu.clique=eu/a:7f.0)"),
    ],
)
def test_a_name_that_is_not_one_vertexs_is_told(text: str, said: str) -> None:
    """With what may have been meant."""
    with pytest.raises(errors.InputError) as found:
        naming.find(KNOWN, text)
    assert said in str(found.value)


def test_an_empty_graph_says_so() -> None:
    """Rather than that a name is misspelt."""
    with pytest.raises(errors.InputError, match="it is empty"):
        naming.find((), "n1")


# ── trees, DOT, numbers ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_tree_shows_every_vertex_once() -> None:
    """Under one of those that hold it; the others are named beside it."""
    shown = survey.survey(fabrics.fabric())
    lines = trees.lines(shown)

    assert len(shown.vertices) == len(lines)
    assert any("├─ n0   1 of 4 CPUs, 0 of 32Gi memory, 1 of 110 pods · also in gpu.clique c0" in line for line in lines)
    assert any(line.endswith("└─ web-0") for line in lines)


def test_a_tree_that_nobody_would_read_is_cut() -> None:
    """And says how much is missing."""
    shown = survey.survey(fabrics.fabric())

    assert trees.lines(shown)[:3] == trees.lines(shown, 3)[:3]
    assert f"… and {len(shown.vertices) - 3} more vertices" in " ".join(trees.lines(shown, 3)).replace(
        " vertices more", " more vertices"
    )


def test_links_that_say_the_same_both_ways_are_one_row() -> None:
    """One that says something in one direction alone is told with it."""
    rows = trees.rows(survey.survey(fabrics.fabric(), (maps.Layer.PHYSICAL,)))
    told = {(row.source, row.target): (row.kind, row.words) for row in rows}

    assert ("link ↔", "20 µs · 100 Gbps · health 0.3") == told["n3", "net/leaf-r1"]
    assert ("net/leaf-r1", "n3") not in told
    assert ("link →", "1.2 ms") == told["zone=eu/a", "zone=eu/b"]


def test_dot_parses_and_holds_the_whole_map() -> None:
    """Every vertex under its key with its name, every edge with what is to be said of it."""
    shown = survey.survey(fabrics.fabric())
    vertices, drawn = dot_grammar.parse(dot.text(shown))

    assert {vertex.key: vertex.name for vertex in shown.vertices} == {
        key: known["label"] for key, known in vertices.items()
    }
    assert [(edge.source, edge.target) for edge in shown.edges] == [(source, target) for source, target, _ in drawn]
    bad = next(known for source, target, known in drawn if (source, target) == ("node/n3", "place/net/leaf-r1"))
    assert ("20 µs · 100 Gbps · health 0.3", "red") == (bad["label"], bad["color"])


def test_dot_survives_names_that_mean_something_in_it() -> None:
    """Quotes, backslashes, line breaks and brackets."""
    name = 'a"b\\c];\n->'
    shown = maps.Map(vertices=(maps.Vertex(f"place/{name}", "place", name, {"by": name}),))
    vertices, _ = dot_grammar.parse(dot.text(shown))

    assert {f"place/{name}": name} == {key: known["label"] for key, known in vertices.items()}


def test_what_holds_itself_is_shown_all_the_same() -> None:
    """A circle of containment, which anybody may patch in, is cut somewhere."""
    ring = [f"place/{letter}" for letter in "abc"]
    shown = maps.Map(
        vertices=tuple(maps.Vertex(key, "place", key[-1]) for key in ring),
        edges=tuple(maps.Edge(ring[n - 1], ring[n], maps.Relation.CONTAINS) for n in range(3)),
    )

    assert 2 == len(holding.holders(shown))
    assert 3 == len(trees.lines(shown))


def test_the_numbers_are_those_of_the_graph() -> None:
    """Counts by kind, the shape of the physical layer, the health of the links, the domains of each level."""
    found = stats.stats(fabrics.fabric())

    assert {"node": 8, "pod": 5, "place": 6, "rule": 1, "group": 1, "workload": 2, "selection": 1, "domain": 9} == (
        found.vertices
    )
    assert (33, 1) == (found.edges["link"], found.edges["depends_on"] - 1)
    assert {"perfect": 33, "below 0.4": 2} == found.links.by_health
    assert (2, 3) == (found.links.unattached, found.links.bandwidth_unknown)
    assert (0.02, 0.05, 1.2) == found.links.latency_ms
    assert (16, 900.0) == (found.links.measured, found.links.measured_oldest)
    assert 16 * 2 * 50 < found.shape.adjacency_bytes < 3000
    assert (1, 23, 0) == (found.shape.components, found.shape.largest, found.shape.alone)
    assert (1, "topology.kubernetes.io/region", 8) == (
        found.levels[0].domains,
        found.levels[0].label,
        found.levels[0].nodes_max,
    )


def test_parts_that_nothing_ties_are_counted() -> None:
    """Two nodes without labels are alone, and a line of three is two edges long."""
    graph, patch = store.Store(), delta.Patch()
    for name in ("a", "b", "c", "d", "e"):
        patch.set_vertex(nodes.Node(name))
    for ends in (("a", "b"), ("b", "c")):
        patch.set_edge(
            keys.EdgeID(keys.node_key(ends[0]), keys.node_key(ends[1]), keys.EdgeKind.LINK), relations.Link()
        )
    graph.apply(patch)
    shape = stats.stats(graph).shape

    assert (3, 3, 2, 2) == (shape.components, shape.largest, shape.alone, shape.diameter_min)
    assert ("node/b", 2) == (shape.busiest, shape.degree_max)


def test_an_empty_graph_has_numbers_too() -> None:
    """All of them nothing."""
    assert [["vertices", "0", ""], ["edges", "0", ""]] == figures.rows(stats.stats(store.Store()), now=0.0)


def test_numbers_are_told_with_their_age() -> None:
    """Of the link that was measured longest ago."""
    rows = figures.rows(stats.stats(fabrics.fabric()), now=960.0)

    assert ["", "", "16 were measured, the one longest ago 1m ago"] in rows
    assert ["domains", "2", "topology.kubernetes.io/zone: 4 nodes each"] in rows


def test_a_short_name_means_what_it_is_short_for() -> None:
    """Whatever a table calls a vertex can be asked for."""
    known = survey.survey(fabrics.fabric()).by_key

    assert known
    for key in known:
        assert key == naming.find(known, naming.short(key))


# ── ways ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def journey(start: str, goal: str, metric: routes.Metric) -> journeys.Journey:
    """The best way of the fabric, told a minute after its links were measured."""
    graph = fabrics.fabric()
    found = graph.routes.route(keys.VertexKey(start), keys.VertexKey(goal), metric)
    assert found is not None
    return journeys.journey(found, metric, holds=journeys.holding_in(graph), now=960.0)


def test_a_way_tells_every_leg() -> None:
    """What each link is like, how long ago that was measured, and which one is the narrowest."""
    told = journey("node/n3", "node/n0", routes.Metric.LATENCY)

    assert 4 == told.hops
    assert ["node/n3", "place/net/leaf-r1"] == [told.legs[0].source, told.legs[0].target]
    assert (0.02, 100_000.0, 0.3, 60.0) == (
        told.legs[0].latency_ms,
        told.legs[0].bandwidth_mbps,
        told.legs[0].health,
        told.legs[0].age_s,
    )
    assert None is told.legs[1].age_s
    assert pytest.approx(0.02 / 0.3 + 0.05 + 0.05 + 0.02) == told.latency_ms
    assert 0 == told.bottleneck
    assert pytest.approx(30_000.0) == told.bandwidth_mbps
    assert "n3 → n0: 4 hops · 0.1867 ms one way · 30 Gbps at the narrowest, n3 → net/leaf-r1" == journeys.headline(told)
    assert ["n3", "net/leaf-r1", "link", "20 µs", "100 Gbps", "0.3", "1m ago"] == journeys.rows(told)[0]
    assert "stated" == journeys.rows(told)[1][-1]


def test_a_way_that_says_nothing_of_time_says_so() -> None:
    """Containment alone is hops, and no distance."""
    told = journey("node/n0", "domain/topology.kubernetes.io/region=eu", routes.Metric.HOPS)

    assert ["climbs"] * told.hops == [leg.kind for leg in told.legs]
    assert f"n0 → region=eu: {told.hops} hops · no link: latency and bandwidth unknown" == journeys.headline(told)


def test_a_link_of_unknown_width_makes_the_bottleneck_unknown() -> None:
    """It may be the narrowest."""
    told = journey(fabrics.ZONE_A, fabrics.ZONE_B, routes.Metric.HOPS)

    assert "zone=eu/a → zone=eu/b: 1 hop · 1.2 ms one way · bandwidth unknown" == journeys.headline(told)


def test_whom_a_pod_calls_is_an_edge() -> None:
    """By Service or by selector, with what it asks of the way; and what it asks to be near."""
    by_service = pods.Peer("default", service="web", rate=2.0)
    by_labels = pods.Peer("default", selector=fabrics.WEB, latency_ms_max=5.0)
    demand = pods.GraphDemand(near=(keys.VertexKey(fabrics.ZONE_A),), peers=(by_service, by_labels))
    caller = pods.Pod(keys.pod_key("default", "front"), spec=pods.Spec(graph=demand))
    graph = fabrics.fabric()
    graph.apply(delta.Patch().set_vertex(caller))
    shown = survey.survey(graph)
    calls = {edge.target: edge.attributes for edge in shown.edges if edge.kind is maps.Relation.CALLS}

    assert {"rate": 2.0} == calls["selection/Service/default/web"]
    assert {"rate": 1.0, "latency_ms_max": 5.0} == calls["pod/default/web-2"]
    assert 5 == len(calls)
    assert ("pod/default/front", fabrics.ZONE_A) in edges(shown, maps.Relation.DEPENDS_ON)
