"""Rules of GraphPolicies: what they refuse and what they weigh, and that vectors say what a plain loop would."""

from __future__ import annotations

import ipaddress
import typing

import hypothesis
import hypothesis.strategies as some

from graphsched.base.values import keys, labels, nodes, pods, policies, relations
from graphsched.decision import cycle, names
from graphsched.decision.constraints import check
from graphsched.decision.policy import books, expressions, reachability, rulings, words
from graphsched.graph import delta, store, view

NAMES = ("n1", "n2", "n3", "n4")
EXPRESSIONS = (
    "",
    "true",
    "node.metadata.labels['disk'] == 'ssd'",
    "'disk' in node.metadata.labels",
    "node.status.allocatable['cpu'] >= 2000",
    "node.metadata.name",
    "node.spec.taints.exists(taint, taint.key == 't')",
)
OF_PODS = (
    "",
    "pod.spec.priority > 0",
    "pod.metadata.labels['tier'] == 'front'",
    "has(pod.metadata.labels.tier)",
    "pod",
)


def selector(**wanted: str) -> labels.Selector:
    """Labels that must have these values."""
    return labels.selector(labels.Requirement(key, labels.Operator.IN, (value,)) for key, value in wanted.items())


def node(name: str, *, address: str = "", cpu: int = 4000, tainted: bool = False, **named: str) -> nodes.Node:
    """A node."""
    return nodes.Node(
        name,
        labels=labels.from_mapping(named),
        taints=(nodes.Taint("t", "", "PreferNoSchedule"),) if tainted else (),
        allocatable=(("cpu", cpu), ("memory", 1 << 33), ("pods", 100)),
        addresses=(address,) if address else (),
    )


def pod(namespace: str = "default", *, priority: int = 0, **named: str) -> pods.Pod:
    """A pod that waits."""
    key = keys.pod_key(namespace, "p")
    return pods.Pod(key, uid="u", labels=labels.from_mapping(named), priority=priority, scheduler="graph-scheduler")


def rule(number: int = 0, *, name: str = "", **fields: typing.Any) -> policies.Rule:
    """A rule of the policy `edge`."""
    return policies.Rule("edge", number, name or f"r{number}", **fields)


def graph_of(*vertices: delta.Vertex) -> store.Store:
    """A graph."""
    graph = store.Store()
    graph.apply(delta.Patch(vertices={each.key: each for each in vertices}))
    return graph


def subject(given: pods.Pod) -> check.Subject:
    """The pod as rules see it."""
    return check.Subject(given.spec, namespace=given.namespace, labels=given.labels, priority=given.priority)


def ruling(graph: view.View, given: pods.Pod) -> rulings.Ruling:
    """What the rules say of it."""
    return books.of(graph).ruling(graph, subject(given))


def refused(graph: view.View, given: pods.Pod) -> dict[str, set[str]]:
    """Node → reasons."""
    found: dict[str, set[str]] = {}
    for each in ruling(graph, given).refusals:
        for name, row in graph.columns.rows.items():
            if each.mask[row]:
                found.setdefault(name, set()).add(each.reason)
    return found


def weighed(graph: view.View, given: pods.Pod) -> dict[str, int]:
    """Node → points, of those that have any."""
    total = ruling(graph, given).total
    return {} if total is None else {name: int(total[row]) for name, row in graph.columns.rows.items() if total[row]}


# ── one by one ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_denied_node_is_not_chosen_and_the_reason_names_policy_and_rule() -> None:
    """With the node denied the other one is taken; with both denied the pod is refused in one sentence."""
    deny = rule(name="no-gpu", match=policies.Match(nodes=selector(gpu="yes")), action=policies.Action.DENY)
    graph = graph_of(node("n1", gpu="yes"), node("n2"), deny)
    decided = cycle.Decider().decide(graph.view(), pod())
    assert "n2" == decided.node

    graph.apply(delta.Patch().set_vertex(node("n2", gpu="yes")))
    diagnosis = cycle.Decider().decide(graph.view(), pod()).diagnosis
    assert diagnosis is not None
    assert (("node(s) were denied by policy edge rule no-gpu", 2),) == diagnosis.reasons
    assert (names.GRAPH_POLICY,) == diagnosis.plugins


def test_the_greatest_priority_decides_and_a_denial_among_equals() -> None:
    """An allow above a deny wins, an allow beside it does not."""
    deny = rule(0, priority=5, action=policies.Action.DENY)
    graph = graph_of(node("n1"), node("n2"), deny)
    graph.apply(
        delta.Patch().set_vertex(
            rule(1, priority=6, match=policies.Match(nodes=selector()), action=policies.Action.ALLOW)
        )
    )
    assert {} == refused(graph.view(), pod())

    graph.apply(delta.Patch().set_vertex(rule(1, priority=5, action=policies.Action.ALLOW)))
    assert {name: {words.denied(deny)} for name in ("n1", "n2")} == refused(graph.view(), pod())


def test_weights_add_up_are_cut_and_may_take_away() -> None:
    """The heavier node is chosen although both are alike; a total may be negative and its score says so."""
    ssd, big = policies.Match(nodes=selector(disk="ssd")), policies.Match(nodes=selector(size="big"))
    graph = graph_of(
        node("n1", disk="ssd"),
        node("n2", disk="ssd", size="big"),
        node("n3"),
        rule(0, match=ssd, action=policies.Action.WEIGHT, weight=-60),
        rule(1, match=big, action=policies.Action.WEIGHT, weight=-60),
    )
    assert {"n1": -60, "n2": -100} == weighed(graph.view(), pod())
    decider = cycle.Decider()
    decided = decider.decide(graph.view(), pod())
    evaluation = decider.evaluate(graph.view(), pod())

    assert "n3" == decided.node
    assert decided.score == evaluation.verdicts["n3"].total
    assert -100 == evaluation.verdicts["n2"].scores[names.GRAPH_POLICY]
    assert evaluation.verdicts["n3"].total - 100 == evaluation.verdicts["n2"].total
    weighing = decider.weigh(graph.view(), pod(), "n1")
    assert (evaluation.verdicts["n1"].total, evaluation.verdicts["n3"].total) == (weighing.total, weighing.best)


def test_what_can_not_be_evaluated_denies_and_a_weight_counts_nothing() -> None:
    """A node without the label that an expression reads is denied, whatever the action, unless it is a preference."""
    match = policies.Match(node_when="node.metadata.labels['disk'] == 'ssd'")
    graph = graph_of(node("n1", disk="ssd"), node("n2"))
    path = policies.Path(keys.node_key("n1"), hops_max=9)
    stated: list[tuple[str, typing.Any]] = [("allow", {}), ("deny", {}), ("require", {"path": path})]
    for action, more in stated:
        failing = rule(action=policies.Action(action), match=match, **more)
        graph.apply(delta.Patch().set_vertex(failing))
        assert {words.undecided(failing)} == refused(graph.view(), pod())["n2"]
    graph.apply(delta.Patch().set_vertex(rule(action=policies.Action.WEIGHT, match=match, weight=7)))
    assert {} == refused(graph.view(), pod())
    assert {"n1": 7} == weighed(graph.view(), pod())
    assert 'Key not found in map : "disk" (node n2)' in books.of(graph.view()).columns[0].failure


def test_a_value_that_is_neither_true_nor_false_is_no_match_and_no_text_counts_as_true() -> None:
    """A text, a number, an error: each denies. The engine's error value is true to Python."""
    for text in ("node.metadata.name", "node.status.allocatable['cpu']", "node.metadata.labels['x'] == 'y'"):
        found = expressions.compiled(expressions.NODE, text)
        assert isinstance(found, expressions.Expression)
        asked = expressions.prepared(expressions.NODE, expressions.facts_of_node(node("n1")))
        assert 2 == found.ask(asked)[0]


def test_an_expression_that_goes_on_and_on_is_stopped_and_denies() -> None:
    """The engine ends it after so many iterations."""
    tens = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
    text = "true"
    for variable in "abcdef":
        text = f"{tens}.all({variable}, {text})"
    found = expressions.compiled(expressions.NODE, text)
    assert isinstance(found, expressions.Expression)
    asked = expressions.prepared(expressions.NODE, expressions.facts_of_node(node("n1")))

    assert (2, "INTERNAL: Iteration budget exceeded") == found.ask(asked)


def test_a_rule_that_does_not_compile_is_left_out_and_says_why() -> None:
    """The other rules hold; the broken one is named with the place of the mistake."""
    broken = rule(0, action=policies.Action.DENY, match=policies.Match(node_when="nod.x == 1"))
    graph = graph_of(node("n1"), broken, rule(1, action=policies.Action.WEIGHT, weight=3))
    assert {} == refused(graph.view(), pod())
    assert {"n1": 3} == weighed(graph.view(), pod())
    assert {broken.key: "when.node: 1:4: undeclared reference to 'nod.x'"} == books.of(graph.view()).broken

    number = rule(0, action=policies.Action.DENY, match=policies.Match(pod_when="1 + 1"))
    graph.apply(delta.Patch().set_vertex(number))
    ruling(graph.view(), pod())
    assert {number.key: "when.pod: it gives a value of type INT, not true or false"} == books.of(graph.view()).broken


def test_a_requirement_holds_whatever_is_allowed_and_unknown_is_refused() -> None:
    """An allow of greater priority does not lift it; a node from which no way is known is refused as unknown."""
    zone = "topology.kubernetes.io/zone"
    at: typing.Any = {zone: "a"}
    near = policies.Path(keys.node_key("n1"), hops_max=2, same_domain=zone)
    graph = graph_of(
        node("n1", **at),
        node("n2", **at),
        node("n3"),
        rule(0, action=policies.Action.REQUIRE, path=near),
        rule(1, action=policies.Action.ALLOW, priority=99),
    )
    short = {reason.partition(": ")[2] for reason in refused(graph.view(), pod())["n3"]}
    assert {"unknown number of hops to node n1", f"another {zone} than node n1"} == short
    assert {"n3"} == set(refused(graph.view(), pod()))

    slow = policies.Path(keys.node_key("n1"), latency_ms_max=1.0)
    graph.apply(delta.Patch().set_vertex(rule(0, action=policies.Action.REQUIRE, path=slow)))
    assert {"n2", "n3"} == set(refused(graph.view(), pod()))


def test_a_domain_is_found_by_the_value_of_its_label_whatever_holds_it() -> None:
    """Zone a of region r is meant by `zone=a`, and by the whole of its key."""
    zone, region = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
    one: typing.Any = {zone: "a", region: "r"}
    other: typing.Any = {zone: "b", region: "r"}
    graph = graph_of(node("n1", **one), node("n2", **other))
    whole = keys.domain_key(zone, "r/a")

    assert [whole] == reachability.goals_of(graph.view(), keys.domain_key(zone, "a"))
    assert [whole] == reachability.goals_of(graph.view(), whole)
    assert "zone=a" == reachability.title(keys.domain_key(zone, "a"))


def test_reasons_can_be_taken_apart() -> None:
    """What is written is read again, and nothing else is."""
    one = rule(name="near")
    assert ("edge", "near", "") == words.told(words.denied(one))
    assert ("edge", "near", "unknown: way") == words.told(words.unmet(one, "unknown: way"))
    assert words.told("node(s) were unschedulable") is None


def test_refresh_can_be_cut_short_and_goes_on_where_it_was() -> None:
    """With no time at all nothing is done; piece by piece it ends where one go would."""
    match = policies.Match(node_when="node.metadata.name == 'n7'")
    many = [node(f"n{number}") for number in range(200)]
    graph = graph_of(*many, rule(action=policies.Action.DENY, match=match)).view()
    book = books.Book()
    assert not book.refresh(graph, lambda: True)
    rounds = 0
    times = iter(range(1000))
    while not book.refresh(graph, lambda: next(times) % 2 == 1):
        rounds += 1

    assert rounds > 1
    assert ["n7"] == [name for name, row in graph.columns.rows.items() if book.columns[0].answers[row]]


# ── against a plain loop ─────────────────────────────────────────────────────────────────────────────────────────────

selectors = some.none() | some.builds(
    lambda key, value: selector(**{key: value}),
    some.sampled_from(["disk", "tier"]),
    some.sampled_from(["ssd", "front"]),
)
matches = some.builds(
    policies.Match,
    pods=selectors,
    namespaces=some.sampled_from([(), ("default",), ("other",)]),
    nodes=selectors,
    cidrs=some.sampled_from([(), ("10.0.0.0/8",), ("10.1.0.0/16", "fd00::/8")]),
    pod_when=some.sampled_from(OF_PODS),
    node_when=some.sampled_from(EXPRESSIONS),
)
rules = some.lists(
    some.builds(
        lambda match, action, priority, weight: {
            "match": match,
            "action": action,
            "priority": priority,
            "weight": weight if action is policies.Action.WEIGHT else 0,
        },
        matches,
        some.sampled_from([policies.Action.ALLOW, policies.Action.DENY, policies.Action.WEIGHT]),
        some.integers(0, 2),
        some.integers(-100, 100),
    ),
    max_size=6,
)
a_node = some.builds(
    lambda named, address, cpu, tainted: {"address": address, "cpu": cpu, "tainted": tainted, **named},
    some.dictionaries(some.sampled_from(["disk", "tier"]), some.sampled_from(["ssd", "front"])),
    some.sampled_from(["", "10.1.2.3", "10.9.9.9", "192.168.0.1", "fd00::1"]),
    some.sampled_from([1000, 4000]),
    some.booleans(),
)
changes = some.lists(some.tuples(some.sampled_from(NAMES), some.none() | a_node, rules), min_size=1, max_size=4)
given_pods = some.builds(
    lambda namespace, priority, named: pod(namespace, priority=priority, **named),
    some.sampled_from(["default", "other"]),
    some.integers(0, 1),
    some.dictionaries(some.just("tier"), some.sampled_from(["front", "back"])),
)


def plain_answer(one: policies.Rule, given: pods.Pod, on: nodes.Node) -> str:
    """Whether a rule matches: yes, no or failed, asked without anything kept."""
    match, have = one.match, dict(on.labels)
    if match.namespaces and given.namespace not in match.namespaces:
        return "no"
    if match.pods is not None and not match.pods.matches(given.labels):
        return "no"
    if match.nodes is not None and not all(each.holds(have.get(each.key)) for each in match.nodes.requirements):
        return "no"
    networks = [ipaddress.ip_network(text) for text in match.cidrs]
    if networks and not any(ipaddress.ip_address(text) in network for text in on.addresses for network in networks):
        return "no"
    told = set()
    for variable, text, facts in (
        (expressions.POD, match.pod_when, expressions.facts_of_pod(subject(given))),
        (expressions.NODE, match.node_when, expressions.facts_of_node(on)),
    ):
        if text:
            compiled = expressions.compiled(variable, text)
            assert isinstance(compiled, expressions.Expression)
            told.add(("no", "yes", "failed")[compiled.ask(expressions.prepared(variable, facts))[0]])
    return "no" if "no" in told else "failed" if "failed" in told else "yes"


def plain(every: list[policies.Rule], given: pods.Pod, on: nodes.Node) -> tuple[bool, int]:
    """Whether the node is refused, and what it weighs: the rules read one after the other."""
    told = [(one, plain_answer(one, given, on)) for one in every]
    deciding = [(one, answer) for one, answer in told if one.action is not policies.Action.WEIGHT and answer != "no"]
    top = [each for each in deciding if each[0].priority == max(one.priority for one, _ in deciding)]
    denied = any(one.action is policies.Action.DENY or answer == "failed" for one, answer in top)
    weights = [one.weight for one, answer in told if one.action is policies.Action.WEIGHT and answer == "yes"]
    return denied, max(-100, min(100, sum(weights)))


def happen(
    graph: store.Store, name: str, made: dict[str, typing.Any] | None, stated: list[dict[str, typing.Any]]
) -> list[policies.Rule]:
    """One of `changes`: a node comes, changes or goes, and these rules take the place of all others."""
    patch = delta.Patch(removed=set(graph.vertex_keys("rule/")))
    if made is None:
        patch.remove(keys.node_key(name))
    else:
        patch.set_vertex(node(name, **made))
    every = [rule(number, **fields) for number, fields in enumerate(stated)]
    for one in every:
        patch.set_vertex(one)
    graph.apply(patch)
    return every


@hypothesis.given(changes, given_pods)
@hypothesis.settings(max_examples=60, deadline=None)
def test_vectors_say_what_a_plain_loop_says(
    happened: list[tuple[str, dict[str, typing.Any] | None, list[dict[str, typing.Any]]]], given: pods.Pod
) -> None:
    """However nodes and rules came, changed and went, each node is refused and weighed as a plain reading has it."""
    graph = store.Store()
    for name, made, stated in happened:
        every = happen(graph, name, made, stated)
        seen = graph.view()
        found, weights = refused(seen, given), weighed(seen, given)
        for there in seen.columns.rows:
            on = seen.node(there)
            assert on is not None
            assert plain(every, given, on) == (there in found, weights.get(there, 0))


# ── in pieces ────────────────────────────────────────────────────────────────────────────────────────────────────────


def chain(length: int) -> store.Store:
    """Nodes n0, n1, … each joined to the next, 1 ms apart: a search from one end takes as many rounds."""
    graph = graph_of(*(node(f"n{number}") for number in range(length)))
    patch = delta.Patch()
    for number in range(length - 1):
        join(patch, number, 1.0)
    graph.apply(patch)
    return graph


def join(patch: delta.Patch, number: int, latency_ms: float) -> None:
    """A node of the chain and the next one."""
    ends = keys.node_key(f"n{number}"), keys.node_key(f"n{number + 1}")
    for source, target in (ends, ends[::-1]):
        edge = keys.EdgeID(source, target, keys.EdgeKind.LINK)
        patch.set_edge(edge, relations.Link(latency_ms=latency_ms, bandwidth_mbps=10.0, by="test"))


FAR = policies.Path(keys.node_key("n0"), hops_max=9, latency_ms_max=5.0, bandwidth_mbps_min=1.0)


def test_all_searches_that_rules_require_are_prepared_in_pieces() -> None:
    """Each piece ends when the time is up, the next goes on from there; what follows searches for nothing any more."""
    graph = chain(30)
    graph.apply(delta.Patch().set_vertex(rule(action=policies.Action.REQUIRE, path=FAR)))
    seen, book = graph.view(), books.of(graph.view())
    pieces = 0
    while not book.prepare(seen, subject(pod()), times_out_after(4)):
        pieces += 1
    searches = graph.routes.statistics.searches
    found = refused(seen, pod())

    assert pieces > 5
    assert (3, 3) == (searches, graph.routes.statistics.searches)
    assert {f"n{number}" for number in range(6, 30)} == set(found)
    assert {words.unmet(rule(), "more than 9 hops to node n0"), words.unmet(rule(), "more than 5 ms to node n0")} == (
        found["n20"]
    )


def times_out_after(looks: int) -> typing.Callable[[], bool]:
    """A deadline that is there after so many looks at the time."""
    left = iter(range(looks))
    return lambda: next(left, None) is None


def test_a_pod_no_rule_requires_anything_of_is_ready_while_ways_are_searched_for() -> None:
    """And what is required of the other is found out anew when a link changes, and only then."""
    graph = chain(30)
    match = policies.Match(pods=selector(app="near"))
    graph.apply(delta.Patch().set_vertex(rule(action=policies.Action.REQUIRE, match=match, path=FAR)))
    book = books.of(graph.view())
    assert not book.prepare(graph.view(), subject(pod(app="near")), times_out_after(4))
    assert book.prepare(graph.view(), subject(pod()), times_out_after(4))
    assert book.prepare(graph.view(), subject(pod(app="near")), lambda: False)
    assert book.prepare(graph.view(), subject(pod(app="near")), lambda: True)

    patch = delta.Patch()
    join(patch, 0, 4.5)
    graph.apply(patch)
    assert not book.prepare(graph.view(), subject(pod(app="near")), lambda: True)
    assert {f"n{number}" for number in range(2, 30)} == set(refused(graph.view(), pod(app="near")))


def test_thousands_of_rules_are_compiled_in_pieces_and_a_change_compiles_what_is_new() -> None:
    """Until all of them are, none is taken for it; rules that stay keep what nodes answered."""
    expression = policies.Match(node_when="node.metadata.name == 'n1'")
    graph = graph_of(node("n1"), *(rule(each, match=expression, action=policies.Action.DENY) for each in range(2000)))
    book, pieces = books.of(graph.view()), 0
    while not book.refresh(graph.view(), times_out_after(500)):
        pieces += 1
    assert pieces >= 8
    assert 2000 == len(book.columns)
    before = set(map(id, book.columns))
    graph.apply(delta.Patch().set_vertex(rule(7, match=expression, action=policies.Action.ALLOW)))
    assert book.refresh(graph.view(), times_out_after(500))
    assert 1999 == len(before & set(map(id, book.columns)))


def test_an_expression_that_is_stopped_again_and_again_is_not_asked_any_more() -> None:
    """Every node that it is about is denied then, those that it could be asked about as well; the status says why."""
    tens = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
    text = "true"
    for variable in "abcdef":
        text = f"{tens}.all({variable}, {text})"
    match = policies.Match(node_when=f"node.metadata.name == 'quick' || {text}")
    graph = graph_of(node("quick"), *(node(f"n{number:02}") for number in range(40)))
    graph.apply(delta.Patch().set_vertex(rule(action=policies.Action.ALLOW, match=match)))
    found = refused(graph.view(), pod())
    (column,) = books.of(graph.view()).columns

    assert 41 == len(found)
    assert "it went on until it was stopped 8 times, and is not asked any more" in column.failure
