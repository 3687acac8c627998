"""A decision keeps to the names that PreFilter narrows to, also where the filter that says the same is off."""

from graphsched.base.values import keys, labels, nodes, pods
from graphsched.decision import cycle, names, profile
from graphsched.graph import delta, store


def test_a_pinned_pod_stays_pinned_without_the_filter() -> None:
    """Decision and evaluation agree: PreFilter runs although the filter of the same plugin is disabled."""
    room = ((nodes.PODS, 10),)
    graph = store.Store()
    graph.apply(
        delta.Patch(vertices={node.key: node for node in (nodes.Node(name, allocatable=room) for name in "ab")})
    )
    pinned = pods.NodeTerm(fields=(labels.Requirement("metadata.name", labels.Operator.IN, ("b",)),))
    pod = pods.Pod(keys.pod_key("default", "p"), spec=pods.Spec(affinity=(pinned,)))
    decider = cycle.Decider(profile.Profile(disabled=frozenset({names.NODE_AFFINITY}), narrows=True))

    decision = decider.decide(graph.view(), pod)

    assert (decision.node, decision.feasible) == ("b", 1)
    assert decider.evaluate(graph.view(), pod).best == ("b",)
