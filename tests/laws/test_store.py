"""
The laws of the store: what a patch does depends on nothing but the graph and the patch.

The graphs are those that random histories lead to, with rows and indices recycled on the way. `meaning` says what a
patch means in five lines; the store, which keeps everything derived in step, must come to the same content, and to the
same derived state as a store that never saw the history.
"""

from __future__ import annotations

import copy

import pytest
from hypothesis import given, settings, strategies as st

from graphsched.base.values import keys, labels, nodes, pods
from graphsched.graph import audit, codec, delta, levels, matchers, owners, scopes, streams, tallies
from graphsched.graph.store import Store
from tests.laws import meaning, strategies

# A failing law is worth nothing before it is shrunk, which takes longer than any test that passes.
pytestmark = pytest.mark.timeout(600)

MATCHERS = tuple(
    matchers.Matcher((scopes.Scope(selector, strategies.NAMESPACES[:1], elsewhere),), rule)
    for selector in (
        labels.Selector(),
        labels.selector([labels.Requirement("app", labels.Operator.IN, ("a", "b"))]),
        labels.selector([labels.Requirement("tier", labels.Operator.DOES_NOT_EXIST)]),
    )
    for elsewhere in (None, labels.selector([labels.Requirement("app", labels.Operator.EXISTS)]))
    for rule in matchers.Rule
)
NEWCOMERS = tuple(
    (namespace, pod_labels)
    for namespace in strategies.NAMESPACES
    for pod_labels in (labels.NO_LABELS, (("app", "a"),), (("app", "b"), ("tier", "c")))
)


def store_of(history: list[delta.Patch]) -> Store:
    """A store that has taken these patches; matchers are alive from the start, so that events must maintain them."""
    store = Store()
    for matcher in MATCHERS:
        store.matchers.acquire(matcher)
    for patch in history:
        assert isinstance(store.apply(copy.deepcopy(patch)), delta.Applied)
    return store


def derived(store: Store) -> dict[str, object]:
    """Derived state by name, whatever rows and numbers stand behind it."""
    rows = store.columns.rows
    index = store.matchers

    def by_name(counts: tallies.Counts) -> dict[str, int]:
        return {name: int(counts[row]) for name, row in rows.items() if counts[row]}

    graph = store.topology.graph
    return {
        "counts": [by_name(index.counts(index.acquire(matcher))) for matcher in MATCHERS],
        "totals": [index.total(index.acquire(matcher)) for matcher in MATCHERS],
        "owned": [
            sorted((hit.topology_key, hit.weight, sorted(by_name(hit.counts).items())) for hit in hits)
            for kind in owners.Kind
            for hits in (index.owned(kind, *newcomer) for newcomer in NEWCOMERS)
        ],
        "live keys": index.live_keys(),
        "vertices": sorted(graph.nodes()),
        "edges": sorted((graph[start], graph[end], repr(value)) for start, end, value in graph.weighted_edge_list()),
        "ties": store.topology.ties,
        "members": {domain: store.topology.members(domain) for domain in store.topology.domains()},
        "nominated": store.nominated,
        "placements": {name: dict(store.on_node(name)) for name in strategies.NODE_NAMES},
    }


@given(strategies.histories)
def test_the_store_holds_what_the_patches_say(history: list[delta.Patch]) -> None:
    """Patch after patch, the content is what five plain lines make of it."""
    store = Store()
    expected: meaning.Content = {}, {}
    for patch in history:
        assert isinstance(store.apply(patch), delta.Applied)
        expected = meaning.plainly(expected, patch)

        assert store.content() == expected


@given(strategies.histories, strategies.histories)
def test_applying_the_difference_gives_the_other_graph(one: list[delta.Patch], other: list[delta.Patch]) -> None:
    """apply(g, diff(g, h)) == h."""
    store, goal = store_of(one), store_of(other)

    store.apply(delta.diff(store.content(), goal.content()))

    assert store.content() == goal.content()
    assert derived(store) == derived(goal)


@given(strategies.histories, strategies.histories)
def test_the_difference_to_a_later_graph_skips_what_happened_between(
    history: list[delta.Patch], later: list[delta.Patch]
) -> None:
    """A relist after a gap: most is the same, and what was removed and set again may look unchanged."""
    store, goal = store_of(history), store_of([*history, *later])

    store.apply(delta.diff(store.content(), goal.content()))

    assert store.content() == goal.content()
    assert derived(store) == derived(goal)


@given(strategies.histories)
def test_a_graph_does_not_differ_from_itself(history: list[delta.Patch]) -> None:
    """diff(g, g) is empty: a resync of an unchanged cluster costs nothing."""
    content = store_of(history).content()

    assert len(delta.diff(content, content)) == 0


@given(strategies.histories, strategies.patches)
def test_twice_is_once(history: list[delta.Patch], patch: delta.Patch) -> None:
    """apply(apply(g, p), p) == apply(g, p)."""
    once, twice = store_of([*history, patch]), store_of([*history, patch, patch])

    assert once.content() == twice.content()
    assert derived(once) == derived(twice)


@given(strategies.histories, st.lists(strategies.patches, min_size=2, max_size=4))
def test_merged_is_in_order(history: list[delta.Patch], patches: list[delta.Patch]) -> None:
    """apply(g, merge(p, q)) == apply(apply(g, p), q)."""
    merged = delta.merge(copy.deepcopy(patches))

    assert store_of([*history, *patches]).content() == store_of([*history, merged]).content()


@given(strategies.histories, strategies.patches, st.integers(1, 3))
def test_split_in_order_is_whole(history: list[delta.Patch], patch: delta.Patch, rows_max: int) -> None:
    """Parts of any size do together what the whole does."""
    parts = delta.split(copy.deepcopy(patch), rows_max=rows_max)
    assert all(0 < len(part) <= rows_max for part in parts) or not len(patch)

    assert store_of([*history, *parts]).content() == store_of([*history, patch]).content()


@given(strategies.histories, strategies.rough_patches)
def test_a_refused_patch_changes_nothing(history: list[delta.Patch], patch: delta.Patch) -> None:
    """Whether it is refused for its meaning or taken, half of it is never done."""
    store = store_of(history)
    content, state, generation = store.content(), derived(store), store.generation

    if isinstance(store.apply(patch), delta.Refused):
        assert store.content() == content
        assert derived(store) == state
        assert store.generation == generation
    else:
        assert store.content() == meaning.plainly(content, patch)


@given(strategies.histories, strategies.patches)
def test_a_repeated_patch_changes_nothing(history: list[delta.Patch], patch: delta.Patch) -> None:
    """A sequence that was taken is a no-op, even after others have changed the same things."""
    store = store_of([])
    assert store.streams.open("agent", 1) is None
    patch.stream = delta.Stream("agent", 1, 1)
    assert isinstance(store.apply(patch), delta.Applied)
    for between in history:
        store.apply(between)
    content, generation = store.content(), store.generation

    answer = store.apply(patch)

    assert answer == delta.Applied(generation, repeated=True)
    assert store.content() == content
    assert store.streams.position("agent") == streams.Position(1, 1, repeated=1)


@given(strategies.histories, strategies.patches)
def test_a_patch_of_the_wrong_sequence_changes_nothing(history: list[delta.Patch], patch: delta.Patch) -> None:
    """A gap and an unknown life are refused before anything is read."""
    store = store_of(history)
    assert store.streams.open("agent", 1) is None
    content = store.content()

    for stream, reason in ((delta.Stream("agent", 1, 2), "gap"), (delta.Stream("agent", 2, 1), "epoch")):
        patch.stream = stream
        answer = store.apply(patch)
        assert isinstance(answer, delta.Refused)
        assert answer.reason == reason
    assert store.content() == content


@given(strategies.histories, strategies.rough_patches)
def test_undo_takes_a_patch_back(history: list[delta.Patch], patch: delta.Patch) -> None:
    """apply(apply(g, p), undo) == g."""
    store = store_of(history)
    content, state = store.content(), derived(store)

    answer = store.apply(patch, undo=True)
    if isinstance(answer, delta.Refused):
        return
    assert answer.undo is not None
    assert isinstance(store.apply(answer.undo), delta.Applied)

    assert store.content() == content
    assert derived(store) == state


@given(strategies.histories, strategies.patches)
def test_an_inverse_made_beforehand_takes_a_patch_back(history: list[delta.Patch], patch: delta.Patch) -> None:
    """apply(apply(g, p), invert(p, g)) == g, for an inverse that never saw the store."""
    store = store_of(history)
    content, state = store.content(), derived(store)
    back = delta.invert(patch, content)

    assert isinstance(store.apply(patch), delta.Applied)
    assert isinstance(store.apply(back), delta.Applied)

    assert store.content() == content
    assert derived(store) == state


@given(strategies.histories)
def test_a_graph_makes_the_way_to_another_process(history: list[delta.Patch]) -> None:
    """A follower that decodes the encoded state holds the same graph and derives the same from it."""
    store, follower = store_of(history), store_of([])

    state = codec.decode(codec.encode(delta.diff(({}, {}), store.content())))
    assert isinstance(state, delta.Patch)
    follower.apply(state)

    assert follower.content() == store.content()
    assert derived(follower) == derived(store)


@settings(max_examples=200)
@given(st.lists(strategies.patches, max_size=12))
def test_what_is_derived_follows_from_the_content_alone(history: list[delta.Patch]) -> None:
    """After any history, derived state is that of a store built afresh, and the audit finds nothing."""
    store = store_of(history)
    vertices, edges = store.content()
    fresh = store_of([delta.Patch(vertices=vertices, edges=edges)])

    assert derived(store) == derived(fresh)
    assert audit.differences(store) == []


@given(strategies.histories, strategies.some_nodes, strategies.some_pods)
def test_a_node_that_comes_back_gets_its_pods_back(history: list[delta.Patch], node: nodes.Node, pod: pods.Pod) -> None:
    """The pods of a node that left count nowhere, and count again on whatever row it is given."""
    store = store_of(history)
    bound = pods.Pod(pod.key, pod.uid, pod.spec, pod.held, pod.labels, node=node.name)
    store.apply(delta.Patch(vertices={node.key: node, pod.key: bound}))

    store.apply(delta.Patch(removed={node.key}))
    assert audit.differences(store) == []
    # Another node takes the row that became free.
    store.apply(delta.Patch().set_vertex(nodes.Node("squatter")))
    store.apply(delta.Patch().set_vertex(node))

    vertices, edges = store.content()
    assert pod.key in store.on_node(node.name)
    assert audit.differences(store) == []
    assert derived(store) == derived(store_of([delta.Patch(vertices=vertices, edges=edges)]))


def test_levels_are_read_from_the_labels_used_here() -> None:
    """The strategies' labels are ones that make domains, or the laws would not reach the topology."""
    place = levels.place(((strategies.RACK, "b"), (strategies.ZONE, "a")))

    assert [domain.key for domain in place.domains] == [
        keys.domain_key(strategies.ZONE, "a"),
        keys.domain_key(strategies.RACK, "a:b"),
    ]
