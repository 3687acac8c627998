"""What is kept for whom on a node, and what is left of it, follows from the node and the pods on it."""

import pytest
from hypothesis import given, strategies as st

from graphsched.base.values import keys, nodes, pods
from graphsched.graph import budgets, delta, store
from tests.builders import NodeBuilder, make_node, make_pod

RESERVED = '{"a": {"cpu": "2", "pods": 3}, "a/web": {"cpu": "1"}, "b": {"memory": "1Gi"}}'


def reserving(name: str = "n1", text: str = RESERVED, **more: str) -> NodeBuilder:
    """A node that keeps something."""
    notes = {"graphsched.io/reserved": text, **{f"graphsched.io/{key.replace('_', '-')}": more[key] for key in more}}
    return make_node(name).set("metadata.annotations", notes)


def there(name: str, namespace: str = "a", node: str = "n1", app: str = "") -> pods.Pod:
    """A pod of 500m on a node."""
    builder = make_pod(name, namespace).cpu("500m").node(node)
    return (builder.label("app", app) if app else builder).build()


def graph_of(*vertices: delta.Vertex) -> store.Store:
    """A graph of these."""
    graph = store.Store()
    for vertex in vertices:
        assert isinstance(graph.apply(delta.Patch().set_vertex(vertex)), delta.Applied)
    return graph


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ((), ("a",)),
        ((("app", "web"),), ("a/web", "a")),
        ((("app", "x"), ("app.kubernetes.io/name", "web")), ("a/web", "a")),
        ((("app", ""),), ("a",)),
    ],
)
def test_a_pod_belongs_to_its_workload_and_its_namespace(
    labels: tuple[tuple[str, str], ...], expected: tuple[str, ...]
) -> None:
    """The narrower holder first."""
    assert budgets.holders("a", labels) == expected


def test_pods_use_up_what_is_kept_for_them() -> None:
    """The narrowest reservation that there is; what others use changes nothing, and no amount goes below 0."""
    pods_there = [there("p1"), there("p2", app="web"), there("p3", "c"), there("p4", app="db")]

    assert budgets.left(reserving().build().budget.reserved, pods_there) == {
        "a": {"cpu": 1000, "pods": 1},
        "a/web": {"cpu": 500},
        "b": {"memory": 1 << 30},
    }


def test_what_is_kept_from_a_pod_is_what_is_left_for_others() -> None:
    """For a stranger everything, for a holder all but its own."""
    graph = graph_of(reserving().build(), there("p1"))
    granted, row = graph.view().budgets, graph.columns.rows["n1"]

    def kept(resource: str, *mine: str) -> int:
        column = granted.kept_from(resource, mine)
        return 0 if column is None else int(column[row])

    assert kept("cpu", "c") == 2500
    assert kept("cpu", "a/web", "a") == 0
    assert kept("cpu", "a") == 1000
    assert kept("memory", "a") == 1 << 30
    assert kept("example.com/gpu", "c") == 0


steps = st.one_of(
    st.tuples(st.just("node"), st.sampled_from(("n1", "n2")), st.sampled_from((RESERVED, '{"b": {"cpu": 1}}', "{}"))),
    st.tuples(st.just("gone"), st.sampled_from(("n1", "n2"))),
    st.tuples(
        st.just("pod"),
        st.sampled_from(("p", "q", "r")),
        st.sampled_from(("n1", "n2")),
        st.sampled_from(("a", "b")),
        st.sampled_from(("", "web")),
    ),
    st.tuples(st.just("left"), st.sampled_from(("p", "q", "r")), st.sampled_from(("a", "b"))),
)


@given(history=st.lists(steps, max_size=20), asked=st.booleans())
def test_columns_are_what_a_fresh_count_says(*, history: list[tuple[str, ...]], asked: bool) -> None:
    """After any history, whether or not somebody asked on the way."""
    graph = store.Store()
    for step in history:
        match step:
            case ("node", name, text):
                graph.apply(delta.Patch().set_vertex(reserving(name, text, cpu_quota="3").build()))
            case ("gone", name):
                graph.apply(delta.Patch().remove(keys.node_key(name)))
            case ("pod", name, node, namespace, app):
                graph.apply(delta.Patch().set_vertex(there(name, namespace, node, app)))
            case (_, name, namespace):
                graph.apply(delta.Patch().remove(keys.pod_key(namespace, name)))
        if asked:
            assert graph.view().budgets is graph.budgets
    granted = graph.view().budgets
    for known in graph.columns.rows:
        value = graph.node(known)
        assert value is not None
        due = budgets.left(value.budget.reserved, [each.pod for each in graph.on_node(known).values()])
        have = granted.row(known)
        assert have["ceilings"] == {"cpu": 3000}
        assert have["kept for"] == {
            holder: kept
            for holder, amounts in due.items()
            if (kept := {resource: amount for resource, amount in amounts.items() if amount})
        }
    assert bool(granted) == bool(graph.columns.rows)
    assert [] == graph.audit()


def test_a_view_with_changes_counts_the_pods_of_the_change() -> None:
    """Those that left use nothing any more, newcomers do; the graph itself does not change."""
    graph = graph_of(reserving().build(), there("p1"), there("p2", "b"))
    view = graph.view()
    twin = view.with_changes(removed=[keys.pod_key("a", "p1")], added=[(there("p3", app="web", node=""), "n1")])
    again = twin.with_changes(added=[(there("p4", app="web", node=""), "n1")])

    def kept(each: budgets.Budgets) -> object:
        found = each.row("n1")["kept for"]
        assert isinstance(found, dict)
        return found["a"]["cpu"], found.get("a/web", {}).get("cpu", 0)

    assert kept(view.budgets) == (1500, 1000)
    assert kept(twin.budgets) == (2000, 500)
    assert kept(again.budgets) == (2000, 0)
    assert kept(graph.view().budgets) == (1500, 1000)


def test_nothing_is_kept_where_nobody_sets_a_limit() -> None:
    """Capacity alone is no limit."""
    graph = graph_of(make_node("n1").set("status.capacity", {"cpu": "8"}).build(), there("p1"))

    assert not graph.view().budgets
    assert graph.node("n1") is not None
    assert graph_of(reserving().build(), nodes.Node("n1")).budgets.kept == {}
