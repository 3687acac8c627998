"""Why here: the scores beside those of the runners-up, and what was refused."""

from graphsched.base.values import keys, relations
from graphsched.graph import delta
from tests.builders import make_node, make_pod
from tests.explain.worlds import asked, told, world


def test_a_pod_that_runs_is_weighed_as_if_it_came_anew() -> None:
    """Its own load does not count against its node."""
    web = make_pod("web").cpu("2").node("n1")
    graph = world(make_node("n1"), make_node("n2"), make_node("n3").cordoned(), web, make_pod("b").cpu("1").node("n2"))

    expected = [
        "  score of 600             n1     n2",
        "  taints to avoid         300    300",
        # n1: (50 for cpu + 99 for memory) / 2; n2 holds another CPU: (25 + 98) / 2.
        "  room left                74     61",
        # Half of the CPU and no memory: the balance falls from 100 to 75, so 50 + (50 + 75 - 100) / 2.
        "  balance of resources     62     62",
        "  image at hand             0      0",
        "  total                   436    423",
        "  2 fit, 1 do not: 1 cordoned",
    ]

    assert ["web runs on n1: score 436 of 600.", *expected] == told(graph, web)


def test_a_better_node_is_named() -> None:
    """The cluster has changed since, and the operator may want to know."""
    web = make_pod("web").cpu("1").node("n1")
    graph = world(make_node("n1"), make_node("n2"), web, make_pod("b").cpu("2").node("n1"))

    assert "As the cluster is now, n2 would be better" in asked(graph, web).headline


def test_a_node_that_would_be_refused_now_says_why() -> None:
    """A taint came after the pod."""
    web = make_pod("web").node("n1")

    assert (
        "web runs on n1, which would not be chosen now: it is tainted (maintenance)."
        == told(
            world(make_node("n1").taint("maintenance"), make_node("n2"), web),
            web,
        )[0]
    )


def test_equal_nodes_go_by_name() -> None:
    """And it says so, since that is all that decided."""
    web = make_pod("web").node("n1")

    assert asked(world(make_node("n1"), make_node("n2"), web), web).headline.endswith("the first by name of 2 equals.")


def test_the_only_node_needs_no_score() -> None:
    """kube-scheduler does not score then, either."""
    web = make_pod("web").node("n1")

    assert (
        "web runs on n1, the only one of 2 nodes that takes it."
        == told(
            world(make_node("n1"), make_node("n2").cordoned(), web),
            web,
        )[0]
    )


def test_an_unknown_node_is_said_to_be_unknown() -> None:
    """A reference may dangle."""
    web = make_pod("web").node("n9")

    assert "web runs on n9, a node that is not known here." == told(world(make_node("n1"), web), web)[0]


def test_a_pending_pod_that_fits_says_where_it_would_go() -> None:
    """Asked of a snapshot, before anything was decided."""
    found = asked(world(make_node("n1"), make_node("n2"), make_pod("b").cpu("1").node("n1")), make_pod("web").cpu("1"))

    assert ("fits", "n2") == (found.state, found.node)
    assert found.headline.startswith("web is pending and fits: it would go to n2 (score ")


def test_a_pod_promised_a_node_counts_as_running_there() -> None:
    """Between the decision and the cluster's confirmation."""
    web = make_pod("web").build()
    graph = world(make_node("n1"), make_pod("web"))
    edge = keys.EdgeID(web.key, keys.node_key("n1"), keys.EdgeKind.RUNS)
    graph.apply(delta.Patch().set_edge(edge, relations.Runs(web.uid)))

    assert ("runs", "n1") == (asked(graph, web).state, asked(graph, web).node)
