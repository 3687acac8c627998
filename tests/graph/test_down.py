"""Links that are down: they cut a node off, and no way leads over them."""

import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st

from graphsched.base.values import keys, places, relations
from graphsched.graph import codec, delta, followers, routes, store
from tests.builders import make_node

SICK, WELL, DOWN = relations.Link(1.0, 10.0, 0.1), relations.Link(1.0, 10.0), relations.Link(1.0, 10.0, relations.DOWN)
NODE, OTHER = keys.node_key("n"), keys.node_key("o")
FIRST, SECOND = (keys.EdgeID(NODE, keys.place_key(name), keys.EdgeKind.LINK) for name in ("s1", "s2"))
links = st.sampled_from((DOWN, SICK, WELL))


def graph(*patches: delta.Patch, sick_below: float = routes.SICK_BELOW) -> store.Store:
    """Two nodes, one of them without a link, two switches, and what the patches say."""
    made = store.Store(sick_below=sick_below)
    vertices = (make_node("n").build(), make_node("o").build(), places.Place("s1"), places.Place("s2"))
    for patch in (delta.Patch(vertices={each.key: each for each in vertices}), *patches):
        assert isinstance(made.apply(patch), delta.Applied)
    return made


def stated(first: relations.Link | None, second: relations.Link | None = None) -> delta.Patch:
    """Links of the node; None for none."""
    patch = delta.Patch()
    for edge, link in ((FIRST, first), (SECOND, second)):
        patch = patch.cut_edge(edge) if link is None else patch.set_edge(edge, link)
    return patch


def ailing(graph: store.Store) -> list[str]:
    """The nodes to avoid, which are those that metrics count."""
    found = graph.routes.ailing()
    names = [name for name, row in graph.columns.rows.items() if found is not None and found[row]]
    assert graph.links.cut_off(graph.routes.sick_below) == len(names)
    return names


@pytest.mark.parametrize(
    ("first", "second", "cut_off"),
    [
        (DOWN, None, True),
        (DOWN, DOWN, True),
        (DOWN, SICK, True),
        (DOWN, WELL, False),
        (SICK, WELL, False),
        (None, None, False),
    ],
)
def test_a_node_is_cut_off_by_links_that_are_all_down_or_sick(
    first: relations.Link, second: relations.Link | None, *, cut_off: bool
) -> None:
    """Whichever of them is which; one that has no link, or one that is well, is not."""
    for pair in itertools.permutations((first, second)):
        assert ailing(graph(stated(*pair))) == ["n"] * cut_off


def test_down_is_down_where_no_link_is_sick() -> None:
    """`sickBelow: 0` is about what was observed, not about what is stated."""
    assert ailing(graph(stated(DOWN, DOWN), sick_below=0.0)) == ["n"]
    assert ailing(graph(stated(DOWN, SICK), sick_below=0.0)) == []


@pytest.mark.parametrize("after", [stated(WELL), stated(None), delta.Patch().set_edge(SECOND, WELL)])
def test_a_node_is_sound_again_when_its_link_is_up_or_gone(after: delta.Patch) -> None:
    """Up, no longer stated, or joined by another one that is well."""
    made = graph(stated(DOWN))
    assert ailing(made) == ["n"]

    made.apply(after)

    assert ailing(made) == []


@given(links, links, links, links)
def test_after_any_history_it_is_as_if_there_were_none(
    one: relations.Link, two: relations.Link, three: relations.Link, four: relations.Link
) -> None:
    """And taken back, it is as before."""
    made = graph(stated(one, two))
    before, change = made.content(), stated(three, four)
    was = ailing(made)
    made.apply(change)
    assert ailing(made) == ailing(graph(stated(three, four)))

    made.apply(delta.invert(change, before))

    assert made.content() == before
    assert ailing(made) == was == ailing(graph(stated(one, two)))


@pytest.mark.parametrize("metric", routes.Metric)
def test_no_way_leads_over_a_link_that_is_down(metric: routes.Metric) -> None:
    """In any metric, though there is no other; up again it does, and down again it does not."""
    edge = keys.EdgeID(OTHER, NODE, keys.EdgeKind.LINK)
    up = relations.Link(1.0, 10.0, cost=1)
    down = relations.Link(1.0, 10.0, relations.DOWN, cost=1)
    made = graph()
    for link in (down, up, down):
        made.apply(delta.Patch().set_edge(edge, link))
        there = link is up
        assert (made.routes.route(OTHER, NODE, metric) is not None) == there
        assert made.routes.knows(metric) == there
        assert np.isfinite(made.routes.latency(NODE)[made.columns.rows["o"]]) == there
        assert (made.routes.hops(NODE)[made.columns.rows["o"]] >= 0) == there


def test_a_copy_elsewhere_knows_it() -> None:
    """Bytes hold it, with a source and without; followers avoid the same nodes, and the same again when it is up."""
    sourced = relations.Link(1.0, 10.0, relations.DOWN, by="networklink/a")
    patch = stated(DOWN, sourced)
    assert codec.decode(codec.encode(patch)) == patch
    vertices, edges = graph(patch).content()
    follower = followers.Follower()

    follower.take(followers.message(delta.Patch(vertices=vertices, edges=edges), epoch=1, base=2, generation=2))
    assert ailing(follower.store) == ["n"]
    follower.take(followers.message(stated(WELL, sourced), epoch=1, base=2, generation=3))
    assert ailing(follower.store) == []
