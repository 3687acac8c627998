"""A rule that allows a node which rules of lower priority would deny is told of that node."""

import msgspec
import pytest

from graphsched.base.values import keys, labels, nodes, pods, policies
from graphsched.decision import cycle
from graphsched.explain import rulings, telling, why
from graphsched.graph import delta, store

POD = pods.Pod(keys.pod_key("default", "web"), uid="u", scheduler="graph-scheduler")
GPUS = policies.Match(nodes=labels.selector([labels.Requirement("gpu", labels.Operator.IN, ("yes",))]))
UNDECIDED = policies.Match(node_when="node.metadata.labels['gone'] == 'x'")
DENY = policies.Rule("edge", 0, "keep-gpus", 100, match=GPUS, action=policies.Action.DENY)
ALLOW = policies.Rule("site", 0, "lend-gpus", 200, match=GPUS)


def world(*rules: policies.Rule, roomy: str = "g1") -> store.Store:
    """Two nodes with GPUs and one without, of which one has more room than the others."""
    graph = store.Store()
    patch = delta.Patch()
    for name in ("g1", "g2", "plain"):
        amounts = (("cpu", 8000 if name == roomy else 4000), ("memory", 1 << 33), ("pods", 9))
        marks = labels.from_mapping({} if name == "plain" else {"gpu": "yes"})
        patch.set_vertex(nodes.Node(name, labels=marks, allocatable=amounts))
    for rule in rules:
        patch.set_vertex(rule)
    graph.apply(patch)
    return graph


def told(graph: store.Store, pod: pods.Pod = POD) -> why.Explanation:
    """The explanation of the pod."""
    wanting = msgspec.structs.replace(pod, spec=pods.Spec(demand=pods.Demand((("cpu", 1000),))))
    return why.explain(graph.view(), wanting, cycle.Decider())


def test_the_rule_that_allows_and_the_one_it_goes_before_are_told_of_the_node_taken() -> None:
    """In the value, its JSON and the text; of a runner-up only where everything is asked for."""
    found = told(world(DENY, ALLOW))
    denial = {"policy": "edge", "rule": "keep-gpus", "priority": 100}
    line = "by policy site rule lend-gpus (priority 200), which goes before deny of policy edge rule keep-gpus"

    assert "g1" == found.node
    assert [
        {"node": node, "policy": "site", "rule": "lend-gpus", "priority": 200, "over": [denial]}
        for node in ("g1", "g2")
    ] == msgspec.json.decode(msgspec.json.encode(found))["allowed"]
    assert f"  Allowed {line}." in telling.text(found).splitlines()
    assert "g2 is allowed" not in telling.text(found)
    assert f"    g2 is allowed {line}" in telling.text(found, verbose=True).splitlines()
    assert "plain is allowed" not in telling.text(found, verbose=True)


def test_of_a_pod_that_runs_it_is_told_as_well() -> None:
    """As the rules are now."""
    graph = world(DENY, ALLOW, roomy="plain")
    bound = msgspec.structs.replace(POD, node="g2")
    graph.apply(delta.Patch().set_vertex(bound))

    assert "  Allowed by policy site rule lend-gpus (priority 200), which goes before" in telling.text(
        told(graph, bound)
    )


def test_every_denial_that_does_not_count_is_named() -> None:
    """One that is about the node, or of which nobody can tell whether it is; the greatest priority first."""
    low = policies.Rule("a", 0, "low", 1, action=policies.Action.DENY)
    failing = policies.Rule("b", 3, priority=50, match=UNDECIDED, action=policies.Action.DENY)
    second = msgspec.structs.replace(ALLOW, number=1, name="second", priority=150)
    other = policies.Rule("c", 0, "others", 60, match=policies.Match(namespaces=("x",)), action=policies.Action.DENY)
    unsure = policies.Rule("d", 0, "unsure", 70, match=UNDECIDED)
    (first, _) = told(world(low, failing, DENY, ALLOW, second, other, unsure)).allowed

    assert ("lend-gpus", [("edge", "keep-gpus"), ("b", "3"), ("a", "low")]) == (
        first.rule,
        [(each.policy, each.rule) for each in first.over],
    )
    assert str(first).endswith(
        "deny of policy edge rule keep-gpus, deny of policy b rule 3 and deny of policy a rule low"
    )


@pytest.mark.parametrize(
    "rules",
    [
        (),
        (ALLOW,),
        (DENY,),
        (msgspec.structs.replace(DENY, priority=200), ALLOW),
        (msgspec.structs.replace(DENY, priority=300), ALLOW),
        (msgspec.structs.replace(DENY, match=UNDECIDED), msgspec.structs.replace(ALLOW, match=UNDECIDED)),
    ],
)
def test_where_nothing_is_overruled_nothing_is_told(rules: tuple[policies.Rule, ...]) -> None:
    """Nor where a denial counts, on a node where the pod runs all the same."""
    graph = world(*rules)
    bound = msgspec.structs.replace(POD, node="g1")
    graph.apply(delta.Patch().set_vertex(bound))

    assert () == rulings.allowed(graph.view(), POD, ["g1", "g2", "plain", "none"])
    assert () == told(graph, bound).allowed
