"""Nodes cross watermarks with hysteresis, whatever becomes of their rows."""

from graphsched.base.values import keys
from graphsched.graph import delta, store, watermarks
from tests.builders import make_node, make_pod

MARKS = {"cpu": watermarks.Marks(75, 50), "pods": watermarks.Marks(90, 80)}


class Bench:
    """A graph that is looked at after each change."""

    def __init__(self) -> None:
        self.graph = store.Store()
        self.marks = watermarks.Watermarks(MARKS)

    def apply(self, patch: delta.Patch) -> list[tuple[str, str, bool]]:
        """Apply it; what was crossed."""
        assert isinstance(self.graph.apply(patch), delta.Applied)
        crossed = self.marks.look(self.graph.columns, self.graph.view().budgets)
        return [(each.node, each.resource, each.up) for each in crossed]

    def request(self, quantity: str) -> list[tuple[str, str, bool]]:
        """Let the one pod of n1, which has 4 CPUs, request so much."""
        return self.apply(delta.Patch().set_vertex(make_pod("p").cpu(quantity).node("n1").build()))


def test_a_node_is_above_from_the_high_mark_until_below_the_low_one() -> None:
    """At the high mark, not under it; and nothing between the two says anything."""
    it = Bench()
    it.apply(delta.Patch().set_vertex(make_node("n1").build()))

    assert it.request("2999m") == []
    assert it.request("3") == [("n1", "cpu", True)]
    assert it.request("2500m") == []
    assert it.request("3500m") == []
    assert it.request("2") == []
    assert it.marks.above == {"cpu": 1, "pods": 0}
    assert it.request("1999m") == [("n1", "cpu", False)]
    assert it.request("2500m") == []
    assert it.marks.above == {"cpu": 0, "pods": 0}


def test_a_ceiling_is_what_may_be_used() -> None:
    """Where an operator grants less than the node offers."""
    it = Bench()
    node = make_node("n1").set("metadata.annotations", {"graphsched.io/cpu-quota": "2"}).build()
    it.apply(delta.Patch().set_vertex(node))
    (crossing,) = [*it.request("1500m")]

    assert crossing == ("n1", "cpu", True)


def test_a_node_is_above_wherever_its_row_is() -> None:
    """Rows move when nodes come and go; the node that takes the row of one that was above is not."""
    it = Bench()
    it.apply(delta.Patch().set_vertex(make_node("n0").build()).set_vertex(make_node("n1").build()))
    assert it.request("4") == [("n1", "cpu", True)]
    grown = delta.Patch()
    for number in range(50):
        grown.set_vertex(make_node(f"m{number}").build())
    assert it.apply(grown) == []
    assert it.apply(delta.Patch().remove(keys.node_key("n0"))) == []
    assert it.marks.above == {"cpu": 1, "pods": 0}
    swapped = delta.Patch().remove(keys.node_key("n1")).set_vertex(make_node("n2").build())

    assert it.apply(swapped) == []
    assert it.marks.above == {"cpu": 0, "pods": 0}


def test_a_node_that_offers_nothing_is_not_above() -> None:
    """A kubelet that has not reported yet; also one that stops offering what it offered."""
    it = Bench()
    it.apply(delta.Patch().set_vertex(make_node("n1").build()))
    it.request("4")

    assert it.apply(delta.Patch().set_vertex(make_node("n1").without("cpu").build())) == [("n1", "cpu", False)]


def test_pods_are_counted_by_number() -> None:
    """9 of 10."""
    it = Bench()
    patch = delta.Patch().set_vertex(make_node("n1").pods(10).build())
    for number in range(9):
        patch.set_vertex(make_pod(f"p{number}").node("n1").build())

    assert it.apply(patch) == [("n1", "pods", True)]
