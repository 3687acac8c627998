"""The store keeps the rules of the policy layer and counts their changes."""

from graphsched.base.values import policies
from graphsched.graph import delta, store


def rule(number: int, *, policy: str = "a", priority: int = 0) -> policies.Rule:
    """A rule."""
    return policies.Rule(policy, number, f"r{number}", priority)


def test_rules_come_out_by_priority_then_policy_then_number() -> None:
    """Whatever order they came in."""
    graph = store.Store()
    graph.apply(delta.Patch().set_vertex(rule(1)).set_vertex(rule(0, policy="b", priority=9)).set_vertex(rule(0)))

    assert [("b", 0), ("a", 0), ("a", 1)] == [(each.policy, each.number) for each in graph.view().rules.all()]
    assert graph.audit() == []


def test_only_a_change_counts_as_one() -> None:
    """A rule set again as it was leaves the version, one that is replaced or removed does not."""
    graph = store.Store()
    graph.apply(delta.Patch().set_vertex(rule(0)))
    before = graph.rules.version
    graph.apply(delta.Patch().set_vertex(rule(0)))
    assert before == graph.rules.version
    graph.apply(delta.Patch().set_vertex(rule(0, priority=1)))
    graph.apply(delta.Patch().remove(rule(0).key))

    assert before + 2 == graph.rules.version
    assert len(graph.rules) == 0
