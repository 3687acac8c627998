"""The queue keeps kube-scheduler's order, pools and wake-ups, and one freed slot costs one try."""

import typing

import pytest

from graphsched.app import backlog, backoff, parking, tidings
from graphsched.base.values import nodes, pods
from tests import builders

FIT = ("NodeResourcesFit",)
Pool = parking.Pool
Event = tidings.Event
BIG = builders.make_pod("big").cpu("64").build().spec
SMALL = builders.make_pod("small").cpu("1").build().spec


def pod(name: str, *, spec: pods.Spec = SMALL, priority: int = 0, **more: typing.Any) -> pods.Pod:
    """A pending pod with an interned spec."""
    made = builders.make_pod(name).priority(priority).build()
    return pods.Pod(made.key, made.uid, spec=spec, priority=priority, **more)


def freed(node: str = "n1") -> tidings.News:
    """News that a pod left the node."""
    news = tidings.News()
    news.left(pod("old"), node)
    return news


def added(name: str = "n2") -> tidings.News:
    """News of a node with room for everybody."""
    news = tidings.News()
    news.node(None, nodes.Node(name, allocatable=(("cpu", 1_000_000), ("pods", 1000))))
    return news


def popped(queue: backlog.Backlog) -> list[str]:
    """Names of all pods that can be popped, in order; they stay out."""
    names = []
    while (entry := queue.pop()) is not None:
        names.append(entry.pod.name)
    return names


def refuse(queue: backlog.Backlog, now: float, plugins: tuple[str, ...] = FIT) -> list[str]:
    """Pop and refuse every pod; returns their names."""
    names = []
    while (entry := queue.pop()) is not None:
        names.append(entry.pod.name)
        queue.refused(entry, plugins, now)
    return names


def test_higher_priority_then_longer_waiting_goes_first() -> None:
    """The active queue's order."""
    queue = backlog.Backlog()
    for now, (name, priority) in enumerate([("a", 0), ("b", 5), ("c", 0), ("d", 5), ("e", -1)]):
        queue.add(pod(name, priority=priority), float(now))

    assert ["b", "d", "a", "c", "e"] == popped(queue)


def test_a_failure_puts_a_pod_behind_its_equals() -> None:
    """Waiting is counted from the return, not from the creation."""
    queue = backlog.Backlog(backoff.Policy(max_s=0.0))
    queue.add(pod("a"), 0.0)
    queue.add(pod("b"), 1.0)
    first = queue.pop()
    assert first is not None
    queue.failed(first, 2.0)

    assert ["b", "a"] == popped(queue)


def test_a_pod_whose_node_moved_goes_before_its_equals_a_few_times() -> None:
    """At once and without a penalty, but not before the more important; after that it waits as after an error."""
    queue = backlog.Backlog()
    loser = queue.add(pod("loser"), 1.0)
    assert loser is queue.pop()
    queue.add(pod("older"), 0.0)
    for loss in range(backlog.LOSSES_MAX):
        queue.placed(loser, 2.0)
        queue.lost(loser, 2.0)
        queue.add(pod(f"urgent{loss}", priority=1), 3.0)
        first = queue.pop()
        assert first is not None
        assert f"urgent{loss}" == first.pod.name
        assert loser is queue.pop()

    queue.placed(loser, 4.0)
    queue.lost(loser, 4.0)
    assert Pool.ERRORS is loser.pool
    assert ["older"] == popped(queue)


def test_a_gated_pod_waits_for_its_last_gate_and_starts_afresh() -> None:
    """It is in no line before, and its waiting time counts from then."""
    queue = backlog.Backlog()
    queue.add(pod("a", gates=("x", "y")), 0.0)
    queue.update(pod("a", gates=("y",)), 5.0)
    assert [] == popped(queue)
    assert 1 == queue.counts()[Pool.GATED]

    queue.update(pod("a"), 9.0)

    entry = queue.pop()
    assert entry is not None
    assert (9.0, 1) == (entry.added, entry.attempts)
    assert 1 == queue.moves["active", Event.POD_UNGATED]


def test_a_refused_pod_sleeps_until_news_that_may_help() -> None:
    """Neither time nor unrelated news wake it."""
    queue = backlog.Backlog()
    queue.add(pod("a"), 0.0)
    refuse(queue, 0.0)
    news = tidings.News()
    news.node(nodes.Node("n1"), nodes.Node("n1", labels=(("a", "b"),)))
    queue.tell(news)
    queue.ask(100.0)
    queue.tick(100.0)
    assert not queue.ready

    queue.tell(freed())
    queue.ask(100.0)

    assert ["a"] == popped(queue)


def test_penalties_grow_with_refusals_and_end_on_the_second() -> None:
    """Woken too early, a pod waits in backoff; there it yields to all that are not in penalty."""
    queue = backlog.Backlog()
    queue.add(pod("a"), 0.5)
    ends = []
    for now in (0.5, 10.5, 20.5, 40.5, 60.5, 80.5):
        entry = queue.pop()
        assert entry is not None
        queue.refused(entry, FIT, now)
        ends.append(entry.end - (now - 0.5))
        queue.tell(freed())
        queue.ask(now + 0.1)
        assert Pool.BACKOFF is entry.pool
        assert entry.end + 1.0 == queue.next_due() or queue.next_due() == queue._leftovers_due

    assert [1.0, 2.0, 4.0, 8.0, 10.0, 10.0] == ends


def test_an_idle_scheduler_takes_pods_out_of_their_penalty() -> None:
    """Backoff orders, it does not idle; errors do wait."""
    queue = backlog.Backlog()
    for name in ("a", "b", "c"):
        queue.add(pod(name, spec=BIG if name == "a" else SMALL), 0.0)
    a, b, _ = (queue.pop() for _ in range(3))
    assert a is not None
    assert b is not None
    queue.refused(a, FIT, 0.0)
    queue.failed(b, 0.0)
    queue.tell(freed())
    queue.ask(0.1)

    assert ["a"] == popped(queue)
    assert Pool.ERRORS is b.pool
    queue.tick(2.0)
    assert ["b"] == popped(queue)
    assert 1 == queue.moves["active", Event.BACKOFF_SKIPPED]


def test_errors_count_apart_from_refusals_and_a_refusal_ends_their_series() -> None:
    """The error series doubles on its own and starts again."""
    queue = backlog.Backlog()
    entry = queue.add(pod("a"), 0.0)
    for times in (1, 2, 3):
        assert entry is queue.pop()
        queue.failed(entry, 0.0)
        assert 2.0 ** (times - 1) == entry.end
        queue.tick(100.0)
    assert entry is queue.pop()
    queue.refused(entry, FIT, 0.0)

    assert (0, 1, 1.0) == (entry.failures, entry.refusals, entry.end)


def test_a_server_that_asks_for_patience_gets_it() -> None:
    """Retry-After lengthens the penalty."""
    queue = backlog.Backlog()
    entry = queue.add(pod("a"), 0.0)
    queue.pop()
    queue.failed(entry, 0.0, at_least_s=30.0)

    queue.tick(30.9)
    assert 1 == queue.counts()[Pool.ERRORS]
    queue.tick(31.0)
    assert 1 == queue.counts()[Pool.ACTIVE]


def test_a_pending_refusal_is_retried_without_penalty() -> None:
    """What waits for something outside goes straight to the line once it has happened."""
    queue = backlog.Backlog()
    entry = queue.add(pod("a"), 0.0)
    queue.pop()
    queue.refused(entry, FIT, 0.0, pending=True)
    queue.tell(freed())
    queue.ask(0.0)

    assert Pool.ACTIVE is entry.pool


def test_pods_refused_long_ago_are_tried_again() -> None:
    """After five minutes, looked for every thirty seconds, whatever happened meanwhile."""
    queue = backlog.Backlog()
    queue.tick(0.0)
    queue.add(pod("a"), 1.0)
    queue.add(pod("b"), 1.0)
    refuse(queue, 1.0)
    for now in range(30, 301, 30):
        queue.tick(float(now))
    assert not queue.ready

    queue.tick(330.0)

    assert ["a", "b"] == popped(queue)
    assert 2 == queue.moves["active", Event.LEFTOVER]


def test_news_during_a_decision_are_not_missed() -> None:
    """A pod that comes back is asked about what happened while it was out, its own update included."""
    queue = backlog.Backlog()
    first, second, third = (queue.add(pod(name), 0.0) for name in ("a", "b", "c"))
    for _ in range(3):
        queue.pop()
    queue.tell(freed())
    queue.refused(first, FIT, 0.0)
    queue.refused(second, ("TaintToleration",), 0.0)
    smaller = builders.make_pod("c").cpu("500m").build()
    queue.update(pod("c", spec=smaller.spec), 0.0)
    queue.refused(third, FIT, 0.0)

    assert [Pool.BACKOFF, Pool.UNSCHEDULABLE, Pool.BACKOFF] == [entry.pool for entry in (first, second, third)]


def test_a_decision_that_missed_too_much_is_repeated() -> None:
    """The memory of news is bounded; beyond it the pod is retried in any case."""
    queue = backlog.Backlog()
    entry = queue.add(pod("a"), 0.0)
    queue.pop()
    for _ in range(backlog.NEWS_KEPT + 1):
        queue.tell(freed())
    queue.refused(entry, ("TaintToleration",), 0.0)

    assert Pool.BACKOFF is entry.pool


def test_one_freed_slot_costs_one_try_among_ten_thousand() -> None:
    """The one that waits longest tries; refused, it speaks for all."""
    queue = backlog.Backlog()
    for number in range(10_000):
        queue.add(pod(f"p{number}"), 0.0)
    assert 10_000 == len(refuse(queue, 1.0))

    tries = []
    for turn in range(50):
        queue.tell(freed())
        queue.ask(100.0 + turn)
        tries += refuse(queue, 100.0 + turn)

    assert [f"p{number}" for number in range(50)] == tries


def test_where_one_fits_the_next_one_tries() -> None:
    """A new node takes as many as fit, in order, without further news."""
    queue = backlog.Backlog()
    for name in "abcd":
        queue.add(pod(name), 0.0)
    refuse(queue, 0.0)
    queue.tell(added())
    queue.ask(100.0)

    placed: list[str] = []
    while (entry := queue.pop()) is not None:
        if len(placed) == 3:
            queue.refused(entry, FIT, 100.0)
        else:
            placed.append(entry.pod.name)
            queue.placed(entry, 100.0)

    assert ["a", "b", "c"] == placed
    assert {Pool.BINDING: 3, Pool.UNSCHEDULABLE: 1} == {p: n for p, n in queue.counts().items() if n}


@pytest.mark.parametrize("fate", ["removed", "failed", "respecified"])
def test_an_envoy_that_can_not_answer_is_replaced(fate: str) -> None:
    """Whatever becomes of the one that was let go, its siblings do not sleep through the chance."""
    queue = backlog.Backlog()
    entries = [queue.add(pod(name), 0.0) for name in "ab"]
    refuse(queue, 0.0)
    queue.tell(added())
    queue.ask(100.0)
    if fate == "removed":
        queue.remove(entries[0].pod.key, 100.0)
    elif fate == "failed":
        assert entries[0] is queue.pop()
        queue.failed(entries[0], 100.0)
    else:
        queue.update(pod("a", spec=BIG), 100.0)

    assert "b" in popped(queue)


def test_different_priorities_and_refusals_do_not_speak_for_each_other() -> None:
    """Only pods that no event can tell apart share an envoy."""
    queue = backlog.Backlog()
    for name, priority in (("a", 0), ("b", 1), ("c", 0)):
        queue.add(pod(name, priority=priority), 0.0)
    b, a, c = (queue.pop() for _ in range(3))
    assert a is not None
    assert b is not None
    assert c is not None
    queue.refused(a, FIT, 0.0)
    queue.refused(b, FIT, 0.0)
    queue.refused(c, ("NodePorts", "NodeResourcesFit"), 0.0)
    queue.tell(added())
    queue.ask(100.0)

    assert ["b", "a", "c"] == popped(queue)


def test_labels_keep_groups_apart_where_refusals_read_them() -> None:
    """Anti-affinity of others selects by label, so one pod's refusal says nothing about another label's."""
    queue = backlog.Backlog()
    for name in "ab":
        queue.add(pod(name, labels=(("app", name),)), 0.0)
    refuse(queue, 0.0, ("InterPodAffinity",))
    queue.tell(added())
    queue.ask(100.0)

    assert ["a", "b"] == popped(queue)


def test_an_envoy_refused_for_its_labels_does_not_speak_for_others() -> None:
    """Waiting for room together, they may be told apart when there is some."""
    queue = backlog.Backlog()
    for name in "abc":
        queue.add(pod(name, labels=(("app", name),)), 0.0)
    refuse(queue, 0.0)
    queue.tell(added())
    queue.ask(100.0)
    assert ["a"] == [entry.pod.name for entry in queue._entries.values() if entry.pool is Pool.ACTIVE]

    assert ["a", "b", "c"] == refuse(queue, 100.0, ("InterPodAffinity", *FIT))


def test_a_pod_created_anew_under_its_name_is_another_pod() -> None:
    """The old one's attempts and penalties are gone with it."""
    queue = backlog.Backlog()
    queue.add(pod("a"), 0.0)
    refuse(queue, 0.0)
    made = builders.make_pod("a").uid("second").build()
    entry = queue.add(made, 1.0)

    assert (Pool.ACTIVE, 0, 1) == (entry.pool, entry.refusals, len(queue))


def test_a_late_answer_about_a_pod_that_went_changes_nothing() -> None:
    """Removed while it was being decided or bound, it does not come back."""
    queue = backlog.Backlog()
    entries = [queue.add(pod(name), 0.0) for name in "abc"]
    for entry in entries:
        queue.pop()
        queue.remove(entry.pod.key, 0.0)
    queue.refused(entries[0], FIT, 0.0)
    queue.failed(entries[1], 0.0)
    queue.placed(entries[2], 0.0)

    assert 0 == len(queue)
    assert not any(queue.counts().values())


def test_asking_is_cut_into_rounds() -> None:
    """However many groups there are, one call asks a bounded number, and none is forgotten."""
    queue = backlog.Backlog()
    count = 2 * backlog.GROUPS_A_ROUND + 1
    for number in range(count):
        queue.add(pod(f"p{number}", priority=number), 0.0)
    refuse(queue, 0.0)
    queue.tell(added())

    rounds = []
    while True:
        more = queue.ask(100.0)
        rounds.append(queue.counts()[Pool.ACTIVE])
        if not more:
            break

    assert [backlog.GROUPS_A_ROUND, 2 * backlog.GROUPS_A_ROUND, count] == rounds


def test_refusals_are_counted_by_plugin() -> None:
    """One pod counts under each plugin that refused it."""
    queue = backlog.Backlog()
    queue.add(pod("a"), 0.0)
    queue.add(pod("b"), 0.0)
    refuse(queue, 0.0, ("NodePorts", "NodeResourcesFit"))

    assert {"NodePorts": 2, "NodeResourcesFit": 2} == queue.refusals()


def test_pods_alike_in_all_that_company_reads_have_one_envoy() -> None:
    """Same spec, namespace and labels: when the envoy is refused again, the others stay where they are."""
    queue = backlog.Backlog()
    for name in "abc":
        queue.add(pod(name, labels=(("app", "x"),)), 0.0)
    assert ["a", "b", "c"] == refuse(queue, 0.0, ("PodTopologySpread",))
    queue.tell(added())
    queue.ask(100.0)

    assert ["a"] == refuse(queue, 100.0, ("PodTopologySpread",))
    assert 3 == queue.counts()[Pool.UNSCHEDULABLE]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (("TaintToleration",), ("NodeResourcesFit", "TaintToleration")),
        (("InterPodAffinity",), ("InterPodAffinity", "NodeResourcesFit")),
    ],
)
def test_what_an_envoy_learns_holds_for_its_siblings(first: tuple[str, ...], then: tuple[str, ...]) -> None:
    """Once the envoy is refused for another reason, news about that reason wakes those it spoke for as well."""
    queue = backlog.Backlog()
    for name in "abc":
        queue.add(pod(name), 0.0)
    assert ["a", "b", "c"] == refuse(queue, 0.0, first)
    news = tidings.News()
    tainted = nodes.Node("n1", labels=(("zone", "a"),), taints=(nodes.Taint("k", "v", "NoSchedule"),))
    news.node(tainted, nodes.Node("n1"))
    queue.tell(news)
    queue.ask(100.0)
    assert ["a"] == refuse(queue, 100.0, then)
    queue.tell(freed())
    queue.ask(200.0)

    tried = []
    while (entry := queue.pop()) is not None:
        tried.append(entry.pod.name)
        queue.placed(entry, 200.0)

    assert ["a", "b", "c"] == sorted(tried)


def test_a_pod_with_room_kept_for_it_needs_nobody_to_speak_for_it() -> None:
    """What is kept for a nominated pod counts against its like and not against itself, so they may be told apart."""
    queue = backlog.Backlog()
    queue.add(pod("a"), 0.0)
    queue.add(pod("b", nominated="n1"), 0.0)
    refuse(queue, 0.0)
    queue.tell(freed())
    queue.ask(100.0)

    assert ["a", "b"] == refuse(queue, 100.0)


def test_news_of_company_are_for_those_who_read_them() -> None:
    """A pod that was bound makes no room: only those refused because of others are asked."""
    near = builders.make_pod("near").near("zone", builders.selecting(app="db")).build().spec
    queue = backlog.Backlog()
    queue.add(pod("full"), 0.0)
    refuse(queue, 0.0)
    queue.add(pod("lonely", spec=near), 0.0)
    refuse(queue, 0.0, ("InterPodAffinity",))
    friend = builders.make_pod("db").label("app", "db")
    news = tidings.News()
    news.pod(friend.build(), friend.node("n1").build())
    queue.tell(news)
    queue.ask(100.0)

    assert ["lonely"] == popped(queue)
