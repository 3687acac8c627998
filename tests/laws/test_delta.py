"""
The laws of patches as values, without a store: merge, split and diff mean what they say.

Graphs are drawn from a handful of vertices and edges, so that two of them agree on much, and edges dangle.
"""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, strategies as st

from graphsched.base.values import keys, nodes, relations
from graphsched.graph import delta
from tests.laws import meaning, strategies

VERTICES: tuple[delta.Vertex, ...] = tuple(
    nodes.Node(name, gpus=gpus) for name in strategies.NODE_NAMES[:3] for gpus in (0, 1)
)
EDGES = tuple(
    keys.EdgeID(keys.node_key(source), keys.node_key(target), keys.EdgeKind.LINK)
    for source in strategies.NODE_NAMES[:3]
    for target in strategies.NODE_NAMES[:3]
)
LINKS = st.sampled_from((relations.Link(1.0, 10.0), relations.Link(2.0, 10.0)))

graphs = st.tuples(
    st.sets(st.sampled_from(VERTICES)).map(lambda chosen: {vertex.key: vertex for vertex in chosen}),
    st.dictionaries(st.sampled_from(EDGES), LINKS),
)
patches = st.builds(
    lambda removed, cut, graph: delta.Patch(removed, cut, *graph),
    st.sets(st.sampled_from(VERTICES).map(lambda vertex: vertex.key)),
    st.sets(st.sampled_from(EDGES)),
    graphs,
)


@given(graphs, graphs)
def test_the_difference_leads_from_one_graph_to_the_other(one: meaning.Content, other: meaning.Content) -> None:
    """apply(g, diff(g, h)) == h, dangling edges included."""
    assert meaning.plainly(one, delta.diff(one, other)) == other


@given(graphs, graphs)
def test_the_difference_says_nothing_that_is_so_already(one: meaning.Content, other: meaning.Content) -> None:
    """Leaving out any row of the difference leads elsewhere."""
    patch = delta.diff(one, other)

    for field in ("removed", "cut", "vertices", "edges"):
        for row in list(getattr(patch, field)):
            shorter = copy.deepcopy(patch)
            rows = getattr(shorter, field)
            rows.remove(row) if isinstance(rows, set) else rows.pop(row)
            assert meaning.plainly(one, shorter) != other


@given(graphs, patches)
def test_what_is_inverted_is_taken_back(graph: meaning.Content, patch: delta.Patch) -> None:
    """apply(apply(g, p), invert(p, g)) == g, whatever the patch says, dangling edges included."""
    back = delta.invert(patch, graph)

    assert meaning.plainly(meaning.plainly(graph, patch), back) == graph


@given(graphs, patches)
def test_inverting_twice_is_the_patch_where_it_matters(graph: meaning.Content, patch: delta.Patch) -> None:
    """The inverse of the inverse leads where the patch led."""
    after = meaning.plainly(graph, patch)
    again = delta.invert(delta.invert(patch, graph), after)

    assert meaning.plainly(graph, again) == after


def test_an_edge_that_loses_its_vertex_is_set_again() -> None:
    """Removing the vertex takes the edge along, although both graphs have it."""
    node, edge, link = VERTICES[0], EDGES[0], relations.Link(1.0, 10.0)

    patch = delta.diff(({node.key: node}, {edge: link}), ({}, {edge: link}))

    assert patch == delta.Patch(removed={node.key}, edges={edge: link})


@given(graphs, st.lists(patches, max_size=4))
def test_merged_is_in_order(graph: meaning.Content, several: list[delta.Patch]) -> None:
    """merge(p, q) means p, then q."""
    expected = graph
    for patch in several:
        expected = meaning.plainly(expected, patch)

    assert meaning.plainly(graph, delta.merge(several)) == expected


@given(patches, patches, patches)
def test_merging_is_associative(one: delta.Patch, two: delta.Patch, three: delta.Patch) -> None:
    """It does not matter which neighbours are merged first."""
    assert delta.merge([delta.merge([one, two]), three]) == delta.merge([one, delta.merge([two, three])])


@given(st.lists(patches, max_size=3))
def test_merging_leaves_its_patches_alone(several: list[delta.Patch]) -> None:
    """A queue may merge what it still holds."""
    before = copy.deepcopy(several)
    delta.merge(several)

    assert several == before


@given(graphs, patches, st.integers(1, 5))
def test_split_in_order_is_whole(graph: meaning.Content, patch: delta.Patch, rows_max: int) -> None:
    """Parts are small, and together mean the whole."""
    parts = delta.split(patch, rows_max=rows_max)
    expected = graph
    for part in parts:
        assert len(part) <= rows_max
        expected = meaning.plainly(expected, part)

    assert meaning.plainly(graph, patch) == expected
    assert sum(map(len, parts)) == len(patch)


def test_no_part_can_be_empty() -> None:
    """A bound below one row is a bug of the caller."""
    with pytest.raises(ValueError, match="not positive"):
        delta.split(delta.Patch(), rows_max=0)


@given(graphs, st.lists(st.tuples(st.sampled_from(("set", "remove", "link", "cut")), st.integers(0, 8)), max_size=8))
def test_building_step_by_step_is_merging_the_steps(graph: meaning.Content, steps: list[tuple[str, int]]) -> None:
    """`set_vertex`, `remove`, `set_edge` and `cut_edge` in any order mean what one patch for each would."""
    built = delta.Patch()
    singles: list[delta.Patch] = []
    for name, number in steps:
        vertex, edge = VERTICES[number % len(VERTICES)], EDGES[number]
        link = relations.Link(float(len(singles)), 1.0)
        match name:
            case "set":
                built.set_vertex(vertex)
                singles.append(delta.Patch(vertices={vertex.key: vertex}))
            case "remove":
                built.remove(vertex.key)
                singles.append(delta.Patch(removed={vertex.key}))
            case "link":
                built.set_edge(edge, link)
                singles.append(delta.Patch(edges={edge: link}))
            case _:
                built.cut_edge(edge)
                singles.append(delta.Patch(cut={edge}))

    assert meaning.plainly(graph, built) == meaning.plainly(graph, delta.merge(singles))
