"""Every export of every layer is sound, the same for equal input, and bounded, whatever things are called."""

import itertools
import json
import pathlib
import xml.etree.ElementTree as ET
from collections.abc import Sequence

import msgspec
import pytest
import rustworkx

from graphsched.app import cli, offline
from graphsched.base.values import errors, nodes
from graphsched.explain.atlas import dot, maps, survey, trees
from graphsched.explain.pictures import network
from graphsched.graph import delta, store
from tests.app.manifests import write
from tests.builders import make_node
from tests.explain import dot_grammar, fabrics

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOPOLOGY = ROOT / "examples" / "topology"
WORLDS = {
    "mesh": (TOPOLOGY / "nodes.yaml", TOPOLOGY / "mesh.yaml"),
    "rails": (TOPOLOGY / "nodes.yaml", TOPOLOGY / "rail.yaml"),
    "network": (TOPOLOGY / "nodes.yaml", TOPOLOGY / "wan.yaml"),
    "slurm": (TOPOLOGY / "nodes.yaml", TOPOLOGY / "topology.conf"),
    "policies": (ROOT / "examples" / "policies" / "cluster.yaml", ROOT / "examples" / "policies" / "edge.yaml"),
}
LAYERS = (tuple(maps.Layer), *((layer,) for layer in maps.Layer))
HOSTILE = (
    'a"b\\c];\n->',
    "</title><script>alert(1)</script>",
    "]]>&amp;'",
    "\\",
    "\x00\x01\x1b[31mred\x7f",
    "\u202egnp.exe",
    "\ufffe\uffff",
    "{}|<>\\N\\l",
    "名" * 300,
)


def world(name: str) -> store.Store:
    """The graph of some examples."""
    return offline.graph_of(offline.load([str(path) for path in WORLDS[name]], unknown_nodes=True))


def require_sound(shown: maps.Map) -> None:
    """Each export of the map is what it should be, and holds the whole map."""
    found = dot.text(shown)
    vertices, edges = dot_grammar.parse(found)
    assert ([vertex.key for vertex in shown.vertices], len(shown.edges)) == (list(vertices), len(edges))
    assert {(edge.source, edge.target) for edge in shown.edges} == {(source, target) for source, target, _ in edges}
    assert msgspec.json.decode(msgspec.json.encode(shown), type=maps.Map) == msgspec.json.decode(
        msgspec.json.encode(shown), type=maps.Map
    )
    assert all(line.isprintable() for line in trees.lines(shown))
    if 0 < len(shown.vertices) <= network.VERTICES_MAX and len(shown.edges) <= network.EDGES_MAX:
        root = ET.fromstring(network.draw(shown))  # noqa: S314  our own text
        assert len(shown.vertices) <= sum(1 for each in root.iter() if each.tag.endswith("}title"))


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("layers", LAYERS, ids=lambda layers: layers[0] if len(layers) == 1 else "all")
def test_every_layer_of_every_example_is_exported_soundly(name: str, layers: tuple[maps.Layer, ...]) -> None:
    """DOT by its grammar, SVG as XML, JSON as the documented format, a tree of lines."""
    shown = survey.survey(world(name), layers)
    require_sound(shown)
    for vertex in shown.vertices[:: max(1, len(shown.vertices) // 5)]:
        for depth in (0, 1, 2):
            near = shown.neighbourhood(vertex.key, depth)
            assert vertex.key in near.by_key
            require_sound(near)


def test_dot_is_read_by_a_parser_that_is_not_ours() -> None:
    """That of rustworkx, which knows the whole language."""
    shown = survey.survey(fabrics.fabric())
    lines = dot.text(shown).splitlines()
    # It takes what is said of all vertices and edges for three vertices.
    assert ["graph", "node", "edge"] == [line.split()[0] for line in lines[1:4]]
    read = rustworkx.from_dot("\n".join([lines[0], *lines[4:]]))

    assert (len(shown.vertices), len(shown.edges)) == (read.num_nodes(), read.num_edges())


@pytest.mark.parametrize("name", ["mesh", "network", "policies"])
def test_exports_are_the_same_bytes_whatever_the_order_of_the_input(name: str) -> None:
    """Files, and what is in them, in another order."""
    paths = [str(path) for path in WORLDS[name]]
    texts = []
    for order in (paths, paths[::-1]):
        shown = survey.survey(offline.graph_of(offline.load(order, unknown_nodes=True)))
        texts.append((dot.text(shown), msgspec.json.encode(shown), trees.lines(shown), network.draw(shown)))

    assert texts[0] == texts[1]


def hostile(names: Sequence[str]) -> maps.Map:
    """A map in which everything is called so."""
    vertices = [
        maps.Vertex(f"{kind}/{name}", kind, name, {"labels": {name: name}, "place": name, "taints": [name]})
        for kind, name in itertools.product(("node", "place", "pod", "rule"), names)
        if kind != "rule"
    ]
    edges = [
        maps.Edge(f"place/{name}", f"node/{name}", relation, {"by": name, "latency_ms": 1.0})
        for name in names
        for relation in (maps.Relation.CONTAINS, maps.Relation.LINK)
    ]
    return maps.Map(
        vertices=tuple(sorted(vertices, key=lambda each: each.key)),
        edges=tuple(sorted(edges, key=lambda each: (each.source, each.target, each.kind))),
    )


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_no_name_breaks_an_export(name: str) -> None:
    """What is called so is named in the picture, as far as XML can write it, and nowhere ends a line of the tree."""
    shown = hostile([name])
    text = network.draw(shown)
    root = ET.fromstring(text)  # noqa: S314  our own text
    vertices, _ = dot_grammar.parse(dot.text(shown))

    assert "<script" not in text
    assert 3 == len(vertices)
    assert 3 <= sum(1 for each in root.iter() if each.tag.endswith("}title"))
    assert "\x1b" not in "".join([*trees.lines(shown), *(row.source + row.target for row in trees.rows(shown))])
    assert all(line.isprintable() for line in trees.lines(shown))


def test_a_large_graph_is_cut_where_people_read_it_and_whole_where_programs_do(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of 10,000 nodes a tree of 400 lines that says how many more there are, no picture, but how to narrow it, and DOT
    with every vertex, in a bounded number of bytes each.
    """
    graph, patch = store.Store(), delta.Patch()
    long = tuple((f"example.com/label-{number:02}", "v" * 60) for number in range(40))
    for number in range(10_000):
        zone = ("topology.kubernetes.io/zone", "abc"[number % 3])
        patch.set_vertex(nodes.Node(f"n{number:05}", labels=(*long, zone)))
    assert isinstance(graph.apply(patch), delta.Applied)
    shown = survey.survey(graph)

    assert (10_003, 10_000) == (len(shown.vertices), len(shown.edges))
    lines = trees.lines(shown)
    assert trees.LINES_MAX + 1 == len(lines)
    assert lines[-1].startswith("… and 9,603 vertices more (narrow with")
    with pytest.raises(errors.InputError, match=r"a picture of 10,003 vertices could not be read; at most 400 fit"):
        network.draw(shown)
    text = dot.text(shown)
    assert 5 + 10_003 + 10_000 == text.count("\n")
    assert max(map(len, text.split("\n"))) < dot.TOOLTIP_MAX + 200
    assert 2 == len(shown.neighbourhood("node/n00001", 1).vertices)

    path = write(tmp_path / "c.yaml", *(make_node(f"n{number}") for number in range(500)))
    assert 0 == cli.execute(["graph", path])
    out, err = capsys.readouterr()
    assert "… and 100 vertices more (narrow with --around or --layer)" in out.splitlines()
    assert "500 vertices and 0 edges\n" == err
    assert 0 == cli.execute(["graph", path, "-o", "json"])
    assert 500 == len(json.loads(capsys.readouterr().out)["vertices"])
