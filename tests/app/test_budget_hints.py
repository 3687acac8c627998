"""Who was refused for a ceiling or a reservation wakes when that may have changed, and one speaks for all alike."""

from __future__ import annotations

import hypothesis
import pytest
from hypothesis import strategies as st

from graphsched.app import backlog, hints, rooms, tidings
from graphsched.base.values import keys, labels, nodes, pods
from graphsched.decision import cycle, names, profile
from graphsched.decision.constraints import walk
from graphsched.graph import delta, store
from tests.app.test_way_hints import told
from tests.builders import NodeBuilder, PodBuilder, make_node, make_pod

Event = tidings.Event
BUDGET = (names.BUDGET,)
WEB = make_pod("web", "b").cpu("1")


def noted(**notes: str) -> NodeBuilder:
    """Node n1 of 4 CPUs with annotations of ours, `_` standing for `-`."""
    keyed = {f"graphsched.io/{key.replace('_', '-')}": notes[key] for key in notes}
    return make_node("n1").set("metadata.annotations", keyed)


def changed(before: NodeBuilder | None, after: NodeBuilder) -> tidings.News:
    """News of one node."""
    news = tidings.News()
    news.node(None if before is None else before.build(), after.build())
    return news


def moved(before: PodBuilder | None, after: PodBuilder | None) -> tidings.News:
    """News of one pod."""
    news = tidings.News()
    news.pod(None if before is None else before.build(), None if after is None else after.build())
    return news


OLD = make_pod("old", "a").cpu("2").node("n1")
CEILING, RESERVED = noted(cpu_quota="2"), noted(reserved='{"a": {"cpu": "3500m"}}')


@pytest.mark.parametrize(
    ("news", "event"),
    [
        pytest.param(changed(None, make_node("n1")), Event.NODE_ADDED, id="a node without a budget"),
        pytest.param(changed(None, CEILING), Event.NODE_ADDED, id="a node with a ceiling that is high enough"),
        pytest.param(changed(None, noted(cpu_quota="500m")), None, id="a node with too low a ceiling"),
        pytest.param(changed(None, RESERVED), None, id="a node that keeps too much for others"),
        pytest.param(changed(None, noted(reserved='{"b": {"cpu": "4"}}')), Event.NODE_ADDED, id="a node kept for it"),
        pytest.param(changed(None, noted(reserved='{"a": {"pods": 110}}')), None, id="no place for a pod of others"),
        pytest.param(changed(CEILING, noted(cpu_quota="3")), Event.NODE_ALLOCATABLE, id="a ceiling was raised"),
        pytest.param(changed(CEILING, make_node("n1")), Event.NODE_ALLOCATABLE, id="a ceiling was lifted"),
        pytest.param(changed(noted(cpu_quota="3"), CEILING), None, id="a ceiling was lowered"),
        pytest.param(
            changed(noted(memory_limit_mb="1"), noted(memory_limit_mb="2")), None, id="a ceiling of something else"
        ),
        pytest.param(changed(RESERVED, make_node("n1")), Event.NODE_ALLOCATABLE, id="nothing is kept any more"),
        pytest.param(
            changed(RESERVED, noted(reserved='{"c": {"cpu": "3"}}')), Event.NODE_ALLOCATABLE, id="kept for another"
        ),
        pytest.param(changed(RESERVED.cpu("3"), RESERVED.cpu("8")), Event.NODE_ALLOCATABLE, id="the node grew"),
        pytest.param(changed(CEILING, CEILING.label("a", "b")), None, id="a label of a node"),
        pytest.param(changed(CEILING.taint("t"), CEILING), Event.NODE_TAINTS, id="a taint was lifted"),
        pytest.param(moved(OLD, None), Event.OTHER_GONE, id="a pod left"),
        pytest.param(moved(OLD, OLD.cpu("1")), Event.OTHER_SCALED_DOWN, id="a pod holds less"),
        pytest.param(moved(None, OLD), None, id="a pod came"),
        pytest.param(moved(OLD, OLD.label("app", "x")), Event.OTHER_RELABELLED, id="a pod belongs to somebody else"),
        pytest.param(moved(OLD, OLD.label("x", "y")), None, id="a label that says nothing of that"),
        pytest.param(tidings.News(ways=True, rules=True), None, id="ways and rules"),
    ],
)
def test_a_pod_refused_for_a_budget_wakes_on(news: tidings.News, event: tidings.Event | None) -> None:
    """Whatever may leave more of a node to it, and nothing else."""
    assert hints.hint(BUDGET, news, WEB.build(), None) is event


def test_every_filter_has_a_hint() -> None:
    """Without one, every change anywhere would wake each of the pods it refused, one after the other."""
    assert hints.BY_KIND >= {check.plugin for check in walk.IN_ORDER}


def test_its_own_labels_and_requests_wake_it() -> None:
    """As whom it belongs to and what it asks for count."""
    pod = WEB.build()

    assert hints.own_hint(BUDGET, pod, WEB.label("app", "db").build()) is Event.POD_RELABELLED
    assert hints.own_hint(BUDGET, pod, WEB.cpu("500m").build()) is Event.POD_SCALED_DOWN
    assert hints.own_hint(BUDGET, pod, WEB.tolerate("t").build()) is None


# ── no chance is missed ─────────────────────────────────────────────────────────────────────────────────────────────

BUDGETS = st.builds(
    nodes.Budget,
    ceilings=st.sampled_from(((), (("cpu", 1),), (("cpu", 3),), (("cpu", 6),), (("pods", 1),), (("pods", 3),))),
    reserved=st.lists(
        st.tuples(
            st.sampled_from(("a", "b", "a/x", "b/x")),
            st.sampled_from(((("cpu", 1),), (("cpu", 3),), (("cpu", 2), ("pods", 1)))),
        ),
        max_size=2,
        unique_by=lambda entry: entry[0],
    ).map(tuple),
)
some_nodes = st.builds(
    lambda name, cpu, budget: nodes.Node(name, allocatable=(("cpu", cpu), ("pods", 4)), budget=budget),
    st.sampled_from(("n1", "n2")),
    st.integers(1, 6),
    BUDGETS,
)


def made(number: int, namespace: str, app: str, cpu: int, node: str) -> pods.Pod:
    """A pod, bound where a node is named."""
    spec = pods.Spec(demand=pods.Demand(amounts=(("cpu", cpu),)))
    marks: labels.Labels = (("app", app),) if app else ()
    key = keys.pod_key(namespace, f"p{number}")
    return pods.Pod(key, f"u{number}", labels=marks, spec=spec, node=node, held=spec.demand)


def some_pods(number: st.SearchStrategy[int], node: st.SearchStrategy[str]) -> st.SearchStrategy[pods.Pod]:
    """Pods of few owners."""
    return st.builds(made, number, st.sampled_from("ab"), st.sampled_from(("", "x")), st.integers(1, 3), node)


bound = some_pods(st.integers(0, 3), st.sampled_from(("n1", "n2")))
changes = (
    bound.map(lambda pod: delta.Patch(vertices={pod.key: pod}))
    | bound.map(lambda pod: delta.Patch(removed={pod.key}))
    | some_nodes.map(lambda node: delta.Patch(vertices={node.key: node}))
)


@hypothesis.given(
    st.lists(some_nodes, min_size=1, max_size=2),
    st.lists(bound, max_size=4),
    some_pods(st.just(9), st.just("")),
    st.lists(changes, min_size=1, max_size=4),
)
def test_no_change_that_lets_a_pod_be_placed_leaves_it_asleep(
    there: list[nodes.Node], running: list[pods.Pod], pod: pods.Pod, story: list[delta.Patch]
) -> None:
    """Asked after each change, as long as it says no; where the pod would be placed then, it was woken."""
    graph, decider = store.Store(), cycle.Decider()
    first, everything = delta.Patch(), list[nodes.Node | pods.Pod]()
    everything += there
    everything += running
    for each in everything:
        first.set_vertex(each)
    graph.apply(first)
    refused = decider.decide(graph.view(), pod)
    if refused.diagnosis is None:
        return
    room = rooms.Rooms(graph, profile.Profile())
    for patch in story:
        event = hints.hint(refused.diagnosis.plugins, told(graph, patch), pod, room)
        if event is not None:
            return
        assert not decider.decide(graph.view(), pod).placed


# ── a crowd ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def crowded(node: NodeBuilder, *there: PodBuilder) -> store.Store:
    """A graph of this node and these pods."""
    graph, patch = store.Store(), delta.Patch()
    patch.set_vertex(node.build())
    for pod in there:
        patch.set_vertex(pod.build())
    assert isinstance(graph.apply(patch), delta.Applied)
    return graph


def decided(queue: backlog.Backlog, graph: store.Store, now: float) -> int:
    """Decide on all that are ready, as the loop does; returns how many decisions that took."""
    decider, room, count = cycle.Decider(), rooms.Rooms(graph, profile.Profile()), 0
    while queue.ask(now, room):
        pass
    while (entry := queue.pop()) is not None:
        count += 1
        decision = decider.decide(graph.view(), entry.pod)
        if decision.diagnosis is None:
            queue.placed(entry, now)
            patch = delta.Patch()
            patch.set_vertex(pods.Pod(entry.pod.key, "p", spec=entry.pod.spec, node="n1", held=entry.pod.spec.demand))
            graph.apply(patch)
        else:
            assert decision.diagnosis.plugins == BUDGET
            queue.refused(entry, decision.diagnosis.plugins, now, room=room)
    return count


@pytest.mark.parametrize("node", [noted(cpu_quota="3"), noted(reserved='{"z": {"cpu": "1"}}')], ids=["ceiling", "kept"])
def test_ten_thousand_over_a_budget_cost_one_try_for_each_departure(node: NodeBuilder) -> None:
    """Each has a label of its own, as pods of an indexed Job do; a pod too small to make room costs none at all."""
    small, big = make_pod("small").cpu("500m").node("n1"), make_pod("big").cpu("2").node("n1")
    graph, queue, spec = crowded(node, small, big), backlog.Backlog(), WEB.build().spec
    for number in range(10_000):
        marks = (("app", "web"), ("index", str(number)))
        queue.add(pods.Pod(keys.pod_key("b", f"p{number}"), f"u{number}", spec=spec, labels=marks), 0.0)
    while (entry := queue.pop()) is not None:
        queue.refused(entry, BUDGET, 0.0)

    for turn, (gone, tries) in enumerate([(make_pod("nobody").node("n1"), 0), (small, 2), (big, 3)]):
        queue.tell(told(graph, delta.Patch(removed={gone.build().key})) if tries else moved(gone, None))
        assert decided(queue, graph, 100.0 + turn) == tries


def test_an_envoy_speaks_for_nobody_whose_labels_had_a_part() -> None:
    """Grouped by whom they belong to, pods may differ in labels that pod affinity reads: then the next one tries."""
    queue = backlog.Backlog()
    for index in "ab":
        marks = (("app", "web"), ("index", index))
        queue.add(pods.Pod(keys.pod_key("b", index), index, spec=WEB.build().spec, labels=marks), 0.0)
    for plugins, tried in ((BUDGET, 2), ((names.BUDGET, names.INTER_POD_AFFINITY), 2)):
        queue.tell(moved(OLD, None))
        queue.ask(100.0)
        count = 0
        while (entry := queue.pop()) is not None:
            count += 1
            queue.refused(entry, plugins, 100.0)
        assert count == tried
