"""Of every node the health of its best link is known, whatever came first."""

import numpy as np
from hypothesis import given, strategies as st

from graphsched.base.values import keys, relations
from graphsched.graph import delta, store
from tests.builders import make_node

NAMES = ("a", "b", "c")
ends = st.sampled_from([*(keys.node_key(name) for name in NAMES), keys.place_key("s1")])
edges = st.builds(keys.EdgeID, ends, ends, st.just(keys.EdgeKind.LINK))
steps = st.one_of(
    st.tuples(st.just("node"), st.sampled_from(NAMES)),
    st.tuples(st.just("gone"), st.sampled_from(NAMES)),
    st.tuples(st.just("link"), edges, st.sampled_from((relations.DOWN, 0.01, 0.4, 1.0))),
    st.tuples(st.just("cut"), edges),
)


def patch_of(step: tuple[object, ...]) -> delta.Patch:
    """The patch of one step."""
    match step:
        case ("node", str() as name):
            return delta.Patch().set_vertex(make_node(name).build())
        case ("gone", str() as name):
            return delta.Patch().remove(keys.node_key(name))
        case ("link", keys.EdgeID() as edge, float() as health):
            return delta.Patch().set_edge(edge, relations.Link(health=health))
        case (_, keys.EdgeID() as edge):
            return delta.Patch().cut_edge(edge)
        case _:
            raise AssertionError(step)


@given(st.lists(steps, max_size=20))
def test_the_column_is_what_the_links_say(history: list[tuple[object, ...]]) -> None:
    """After any history, for every node, with the numbers that metrics show."""
    graph = store.Store()
    for step in history:
        assert isinstance(graph.apply(patch_of(step)), delta.Applied)
    links = {edge: value for edge, value in graph.content()[1].items() if isinstance(value, relations.Link)}
    best = {
        name: max((link.health for edge, link in links.items() if keys.node_key(name) in edge[:2]), default=None)
        for name in graph.columns.rows
    }
    column = {name: graph.links.column[row] for name, row in graph.columns.rows.items()}

    assert {name: None if np.isnan(health) else health for name, health in column.items()} == best
    assert graph.links.total == len(links)
    assert graph.links.unwell == {edge: link.health for edge, link in links.items() if link.health < 1}
    assert [] == graph.audit()


def test_one_sound_link_is_enough() -> None:
    """The best link counts, in either direction; a node without one has none."""
    graph = store.Store()
    patch = delta.Patch()
    for name in NAMES:
        patch.set_vertex(make_node(name).build())
    a, b, s = keys.node_key("a"), keys.node_key("b"), keys.place_key("s1")
    patch.set_edge(keys.EdgeID(a, s, keys.EdgeKind.LINK), relations.Link(health=0.1))
    patch.set_edge(keys.EdgeID(s, b, keys.EdgeKind.LINK), relations.Link(health=0.1))
    patch.set_edge(keys.EdgeID(b, s, keys.EdgeKind.LINK), relations.Link(health=1.0))
    graph.apply(patch)
    best = {name: found.health for name in NAMES if (found := graph.links.best(name)) is not None}

    assert best == {"a": 0.1, "b": 1.0}
    assert graph.links.best("c") is None
