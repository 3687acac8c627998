"""What wakes a pod that rules refused."""

import pytest

from graphsched.app import hints, tidings
from graphsched.base.values import keys, nodes, pods
from graphsched.decision import names

POD = pods.Pod(keys.pod_key("default", "p"))
NODE = nodes.Node("n1")


def news(**fields: bool) -> tidings.News:
    """News of one sort."""
    found = tidings.News()
    for name, value in fields.items():
        setattr(found, name, value)
    return found


@pytest.mark.parametrize(
    ("happened", "event"),
    [
        (news(rules=True), tidings.Event.RULES),
        (news(ways=True), tidings.Event.WAYS),
        (news(addresses=True), tidings.Event.NODE_ADDRESSES),
        (tidings.News(added=[(None, NODE)]), tidings.Event.NODE_ADDED),
        (tidings.News(labels=[(NODE, NODE)]), tidings.Event.NODE_LABELS),
        (tidings.News(freed={"n1": None}), None),
    ],
)
def test_a_refusal_by_a_rule_wakes_on_rules_and_nodes_and_on_no_pod(
    happened: tidings.News, event: tidings.Event | None
) -> None:
    """What rules read may have changed, or not."""
    assert event == hints.hint((names.GRAPH_POLICY,), happened, POD, None)


def test_news_of_rules_is_news_and_is_kept_when_news_are_merged() -> None:
    """A change of rules alone makes the queue ask."""
    first, second = tidings.News(), news(rules=True, addresses=True)
    assert not first
    first.merge(second)

    assert first
    assert first.rules
    assert first.addresses
    assert not first.ways


def test_other_addresses_are_noted() -> None:
    """Of a node that is there already."""
    found = tidings.News()
    found.node(NODE, nodes.Node("n1", addresses=("10.0.0.1",)))

    assert found.addresses
    assert names.GRAPH_POLICY not in hints.BY_SPEC
