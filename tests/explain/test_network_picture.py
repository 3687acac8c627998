"""The picture of the graph: everything is in it, nothing overlaps, and equal graphs look alike."""

import itertools
import xml.etree.ElementTree as ET

import pytest

from graphsched.base.values import errors
from graphsched.explain.atlas import maps, survey
from graphsched.explain.pictures import nesting, network
from tests.explain import fabrics

SVG = "{http://www.w3.org/2000/svg}"


def overlap(a: nesting.Box, b: nesting.Box) -> bool:
    """Whether two boxes have room in common."""
    return a.x < b.x + b.width and b.x < a.x + a.width and a.y < b.y + b.height and b.y < a.y + a.height


def test_the_picture_is_sound_markup_that_names_every_vertex() -> None:
    """Pointing at anything tells what it is."""
    shown = survey.survey(fabrics.fabric())
    root = ET.fromstring(network.draw(shown))  # noqa: S314  our own text
    titles = [title.text or "" for title in root.iter(f"{SVG}title")]

    assert f"{SVG}svg" == root.tag
    assert {vertex.key for vertex in shown.vertices} <= {title.split("\n")[0] for title in titles}
    assert any(title.startswith("node/n3 ↔ place/net/leaf-r1\nkind: link\n") for title in titles)


@pytest.mark.parametrize("layer", list(maps.Layer))
def test_nothing_overlaps_and_what_is_held_is_inside(layer: maps.Layer) -> None:
    """Boxes of one level stand apart, within the box around them."""
    plan = nesting.plan(survey.survey(fabrics.fabric(), (layer,)))
    inner = {id(each) for box in plan.boxes.values() for each in box.inside}
    tops = [box for box in plan.boxes.values() if id(box) not in inner]
    for level in (tops, *(box.inside for box in plan.boxes.values())):
        assert not [pair for pair in itertools.combinations(level, 2) if overlap(*pair)]
    for box in plan.boxes.values():
        for each in box.inside:
            assert box.x < each.x
            assert box.y + nesting.HEAD <= each.y
            assert each.x + each.width < box.x + box.width
            assert each.y + each.height < box.y + box.height
    assert all(0 <= box.x <= plan.width - box.width + 0.1 for box in tops)
    assert max(box.y + box.height for box in tops) == pytest.approx(plan.height)


def test_a_switch_stands_with_all_that_it_links_to_below() -> None:
    """A leaf in the rack of its nodes, a spine in the region of its leaves, above them."""
    boxes = nesting.plan(survey.survey(fabrics.fabric(), (maps.Layer.PHYSICAL,))).boxes
    rack, region = boxes["domain/topology.kubernetes.io/rack=eu/a:r0"], boxes["domain/topology.kubernetes.io/region=eu"]

    assert boxes["place/net/leaf-r0"] in rack.inside
    assert boxes["place/net/s1"] in region.inside
    assert boxes["place/net/leaf-r0"].y < boxes["node/n0"].y
    assert boxes["place/net/s1"].y < boxes[fabrics.ZONE_A].y


@pytest.mark.parametrize("seed", [1, 2])
def test_equal_graphs_look_alike(seed: int) -> None:
    """Byte for byte, whatever the order in which things arrived."""
    assert network.draw(survey.survey(fabrics.fabric())) == network.draw(survey.survey(fabrics.fabric(seed=seed)))


def test_health_shows() -> None:
    """A bad link has another colour and says its health."""
    text = network.draw(survey.survey(fabrics.fabric(), (maps.Layer.PHYSICAL,)))

    assert 'class="line bad"' in text
    assert "health 0.3" in text


def test_names_can_not_break_the_markup() -> None:
    """What people name things is escaped."""
    shown = maps.Map(vertices=(maps.Vertex("place/<b>&", "place", "<b>&", {"by": "</title>"}),))

    root = ET.fromstring(network.draw(shown))  # noqa: S314  our own text
    assert "<b>&" in [text.text for text in root.iter(f"{SVG}text")]


def test_what_nobody_could_read_is_not_drawn() -> None:
    """But what to do instead is told."""
    vertices = tuple(maps.Vertex(f"node/n{n:04}", "node", f"n{n:04}") for n in range(network.VERTICES_MAX + 1))
    with pytest.raises(errors.InputError, match=r"401 vertices could not be read; at most 400 fit \(narrow it with"):
        network.draw(maps.Map(vertices=vertices))
    with pytest.raises(errors.InputError, match="there is nothing to draw"):
        network.draw(maps.Map())


def test_as_much_as_can_be_read_is_drawn() -> None:
    """At the limit, in a picture that is wider than high but not by much."""
    vertices = tuple(maps.Vertex(f"node/n{n:04}", "node", f"n{n:04}") for n in range(network.VERTICES_MAX))
    plan = nesting.plan(maps.Map(vertices=vertices))

    assert 1 < plan.width / plan.height < 3


def test_the_picture_in_the_manual_is_fresh() -> None:
    """docs/img/graph.svg is what `python -m tests.explain.fabrics` draws."""
    assert fabrics.drawn() == fabrics.PICTURE.read_text(encoding="utf-8")


def test_a_heading_is_not_cut_for_want_of_room() -> None:
    """A box is as wide as its own name, however little stands in it."""
    text = network.draw(survey.survey(fabrics.fabric(), (maps.Layer.PHYSICAL,)))

    assert "…" not in text
