"""What placed pods count to and demand, as a view shows it: a what-if equals doing it, and kept answers stay right."""

from __future__ import annotations

import hypothesis
from hypothesis import strategies as st

from graphsched.base.values import keys, labels, nodes, pods
from graphsched.graph import callers, delta, interest, matchers, owners, scopes, store, view
from tests.decision import clusters

some_matchers = st.builds(
    matchers.Matcher,
    st.lists(clusters.pod_terms.map(scopes.of_incoming), min_size=1, max_size=2).map(tuple),
    st.just(matchers.Rule.COUNT_ALL),
)
spread_matchers = st.builds(
    matchers.Matcher,
    st.lists(clusters.pod_terms.map(scopes.of_incoming), min_size=1, max_size=1).map(tuple),
    st.just(matchers.Rule.SPREAD),
)
TEMPLATE = "default", (("app", "x"),)


def counts(graph: view.View, matcher: matchers.Matcher) -> dict[str, int]:
    """Node → count."""
    found = graph.crowd.counts(matcher)
    return {name: int(found[row]) for name, row in graph.columns.rows.items()}


def owned(graph: view.View, kind: owners.Kind) -> dict[tuple[str, int, str], int]:
    """Topology key, weight and node → owners there of terms that select a certain pod; none where there are none."""
    namespace, own = TEMPLATE
    found: dict[tuple[str, int, str], int] = {}
    for hit in graph.crowd.owned(kind, namespace, own):
        for name, row in graph.columns.rows.items():
            at = hit.topology_key, hit.weight, name
            found[at] = found.get(at, 0) + int(hit.counts[row])
    return {at: number for at, number in found.items() if number}


@hypothesis.given(clusters.stores(), st.data(), st.lists(some_matchers, min_size=1, max_size=4))
def test_a_what_if_equals_doing_it(built: store.Store, data: st.DataObject, asked: list[matchers.Matcher]) -> None:
    """Some pods off their nodes and others on: the counts and terms are those of a store where it happened."""
    graph = built.view()
    vertices, _ = built.content()
    placed = [key for key, each in vertices.items() if isinstance(each, pods.Pod) and graph.placement(key) is not None]
    gone = data.draw(st.lists(st.sampled_from(placed), unique=True)) if placed else []
    free = [keys.pod_key("default", f"extra{number}") for number in range(2)]
    newcomers = [
        pods.Pod(key, uid="u1", spec=each.spec, labels=each.labels, node="n1")
        for key, each in zip(free, data.draw(st.lists(clusters.pod_values(), max_size=2)), strict=False)
    ]
    hypothesis.assume("n1" in graph.columns.rows)
    supposed = graph.with_changes(removed=gone, added=[(each, "n1") for each in newcomers])
    expected = [counts(supposed, matcher) for matcher in asked]
    terms = [owned(supposed, kind) for kind in owners.Kind]

    patch = delta.Patch()
    for key in gone:
        patch.remove(key)
    for each in newcomers:
        patch.set_vertex(each)
    built.apply(patch)

    assert expected == [counts(built.view(), matcher) for matcher in asked]
    assert terms == [owned(built.view(), kind) for kind in owners.Kind]


def test_a_pod_supposed_to_be_there_counts_for_spread_whatever_it_is() -> None:
    """kube-scheduler passes over terminating pods and empty selectors when it counts, not when it adds one."""
    built = store.Store()
    patch = delta.Patch()
    for name in ("n1", "n2"):
        patch.set_vertex(nodes.Node(name))
    built.apply(patch)
    everybody = matchers.Matcher((scopes.Scope(labels.Selector(), ("default",)),), matchers.Rule.SPREAD)
    ending = pods.Pod(keys.pod_key("default", "a"), uid="u1", node="n1", deleting=True)

    supposed = built.view().with_changes(added=[(ending, "n1")])
    assert {"n1": 1, "n2": 0} == counts(supposed, everybody)
    built.apply(delta.Patch().set_vertex(ending))
    assert {"n1": 0, "n2": 0} == counts(built.view(), everybody)


@hypothesis.given(
    clusters.stores(),
    st.lists(st.tuples(some_matchers | spread_matchers, clusters.patches()), min_size=1, max_size=6),
    st.lists(st.integers(0, 5), min_size=4, max_size=12),
)
def test_kept_answers_equal_fresh_ones(
    built: store.Store, asked: list[tuple[matchers.Matcher, delta.Patch]], order: list[int]
) -> None:
    """With room for two matchers and patches between the questions, every answer is that of a new index."""
    kept = interest.Interest(built.matchers, matchers_max=2)
    for turn in order:
        matcher, patch = asked[turn % len(asked)]
        built.apply(patch)
        fresh = interest.Interest(built.matchers)
        assert fresh.counts(matcher).tolist() == kept.counts(matcher).tolist()
        assert len(kept) <= 2
        assert not list(built.matchers.audit())


def test_what_was_not_asked_for_longest_makes_room() -> None:
    """A matcher that is asked for again stays, and one put out is released."""
    built = store.Store()
    kept = interest.Interest(built.matchers, matchers_max=2)
    one, two, three = (matchers.Matcher((scopes.Scope(labels.Selector(), (name,)),)) for name in ("a", "b", "c"))
    kept.counts(one)
    kept.counts(two)
    kept.counts(one)
    kept.counts(three)

    assert [one, three] == list(kept._numbers)
    assert {one, three} == {live.matcher for live in built.matchers._live.values()}


def test_a_what_if_knows_who_names_whom() -> None:
    """A pod that calls another is counted among the callers where it is supposed to be, and nowhere else."""
    wanted = pods.GraphDemand(peers=(pods.Peer("default", "cache"),))
    caller = pods.Pod(keys.pod_key("default", "web"), uid="u", spec=pods.Spec(graph=wanted), node="n1")
    built = store.Store()
    built.apply(delta.Patch().set_vertex(nodes.Node("n1")).set_vertex(nodes.Node("n2")).set_vertex(caller))
    (call,) = callers.calls_of(wanted)
    making = matchers.Matcher((call.makers,))

    assert counts(built.view(), making) == {"n1": 1, "n2": 0}
    assert counts(built.view().with_changes(removed=[caller.key]), making) == {"n1": 0, "n2": 0}
    assert counts(built.view().with_changes(added=[(caller, "n2")]), making) == {"n1": 1, "n2": 1}
    apart = matchers.Matcher((call.makers,), without=(call.makers,))
    assert counts(built.view().with_changes(added=[(caller, "n2")]), apart) == {"n1": 0, "n2": 0}
