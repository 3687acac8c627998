"""Rules that take long to follow and ways that take long to find make those pods wait that ask for them, no others."""

import itertools
import typing

import msgspec
import pytest

from graphsched.app import backlog as backlogs, loop, parking, readiness, sights
from graphsched.base.values import keys, labels, pods, policies, relations
from graphsched.decision import cycle
from graphsched.explain import telling, why
from graphsched.graph import delta, distances, routes, store as stores, view
from tests import builders
from tests.app import live
from tests.fakes import virtual

NODES = 60
SEARCHES = 3
NEAR_DB = {"graphsched.io/peers": "app=near;maxLatencyMs=5"}
NEAR = labels.selector([labels.Requirement("app", labels.Operator.IN, ("near",))])


class Ticking:
    """A clock that goes on by a millisecond whenever it is looked at."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        """The time."""
        self.now += 0.001
        return self.now

    def wall(self) -> float:
        """The same."""
        return self.now


def pod(name: str, **named: str) -> pods.Pod:
    """A pod of ours."""
    made = builders.make_pod(name)
    for key, value in named.items():
        made = made.label(key, value)
    return made.build()


def db_on(node: str) -> pods.Pod:
    """What pods with `NEAR_DB` are near to."""
    return builders.make_pod("db").label("app", "near").node(node).build()


def joined(*nodes: str) -> delta.Patch:
    """A chain of links, a millisecond each."""
    patch = delta.Patch()
    for ends in itertools.pairwise(map(keys.node_key, nodes)):
        for start, end in (ends, ends[::-1]):
            patch.set_edge(keys.EdgeID(start, end, keys.EdgeKind.LINK), relations.Link(latency_ms=1.0, by="t"))
    return patch


class Turns:
    """A queue, and a chain of nodes over which rules require ways: a search takes as many rounds as there are nodes."""

    def __init__(self, *, ruled: bool = True) -> None:
        self.clock = Ticking()
        self.store = stores.Store()
        self.backlog = backlogs.Backlog()
        patch = delta.Patch()
        for number in range(NODES):
            patch.set_vertex(builders.make_node(f"n{number:02}").build())
        if ruled:
            path = policies.Path(keys.node_key("n00"), hops_max=5, latency_ms_max=5.0, bandwidth_mbps_min=1.0)
            match = policies.Match(pods=NEAR)
            patch.set_vertex(policies.Rule("p", 0, "near", match=match, action=policies.Action.REQUIRE, path=path))
        self.store.apply(patch)
        for number in range(NODES - 1):
            self.link(number, 1.0)
        self.ready = readiness.Readiness(
            self.store, self.backlog, cycle.Decider(), clock=typing.cast("typing.Any", self.clock)
        )
        self.hasty: list[str] = []

    def link(self, number: int, latency_ms: float) -> None:
        """Join a node to the next one."""
        ends = keys.node_key(f"n{number:02}"), keys.node_key(f"n{number + 1:02}")
        patch = delta.Patch()
        for source, target in (ends, ends[::-1]):
            edge = keys.EdgeID(source, target, keys.EdgeKind.LINK)
            patch.set_edge(edge, relations.Link(latency_ms=latency_ms, bandwidth_mbps=9.0, by="t"))
        self.store.apply(patch)

    def turn(self) -> list[str]:
        """Names of the pods to be decided on, in the order in which they were taken; these leave the queue."""
        found = []
        self.ready.work(self.clock.monotonic())
        while (entry := self.backlog.pop()) is not None:
            answer = self.ready.ask(entry)
            if answer is not readiness.Answer.NOT_YET:
                found.append(entry.pod.name)
                self.backlog.remove(entry.pod.key, 0.0)
                if answer is readiness.Answer.HASTY:
                    self.hasty.append(entry.pod.name)
        return found

    def waiting(self) -> list[tuple[str, int, parking.Pool]]:
        """Name, tries and pool of each pod in the queue."""
        return [(entry.pod.name, entry.attempts, entry.pool) for entry in self.backlog.entries()]


def test_a_pod_waits_for_the_searches_it_needs_and_others_go_on() -> None:
    """No try of it counts, and it is decided on once all of them are done."""
    it = Turns()
    # The first turns go into the rules themselves.
    it.backlog.add(pod("before"), 0.0)
    assert any(it.turn() for _ in range(4))
    it.backlog.add(pod("first", app="near"), 0.0)
    it.backlog.add(pod("free"), 0.0)
    assert ["free"] == it.turn()
    assert [("first", 0, parking.Pool.ASIDE)] == it.waiting()
    it.backlog.add(pod("second", app="near"), 1.0)
    turns, found = 1, it.turn()
    while not found:
        turns, found = turns + 1, it.turn()

    assert ["first", "second"] == (found if len(found) > 1 else found + it.turn())
    assert turns > NODES * SEARCHES / (1000 * (readiness.ASK_POD_S + readiness.SEARCH_S)) / 2
    assert SEARCHES == it.store.routes.statistics.searches


def test_a_pod_waits_for_the_ways_to_its_partners_and_others_go_on() -> None:
    """So that a limit is not taken for broken, nor a partner for out of reach, as the time was up."""
    it = Turns(ruled=False)
    it.store.apply(delta.Patch().set_vertex(builders.make_pod("db").label("app", "near").node("n00").build()))
    peer = pods.Peer("default", selector=NEAR, latency_ms_max=5.0, bandwidth_mbps_min=1.0)
    spec = pods.Spec(graph=pods.GraphDemand(peers=(peer,)))
    it.backlog.add(pods.Pod(keys.pod_key("default", "first"), uid="f", spec=spec), 0.0)
    it.backlog.add(pod("free"), 0.0)
    assert ["free"] == it.turn()
    assert [("first", 0, parking.Pool.ASIDE)] == it.waiting()
    turns = 1
    while not (found := it.turn()):
        turns += 1

    assert ["first"] == found
    searches = it.store.routes.statistics.searches
    assert turns > NODES * searches / (1000 * (readiness.ASK_POD_S + readiness.SEARCH_S)) / 2


def test_a_network_that_never_rests_keeps_no_pod_waiting_for_ever() -> None:
    """What each change undoes is brought to its end after a while."""
    it = Turns()
    it.backlog.add(pod("first", app="near"), 0.0)
    began, found = it.clock.now, list[str]()
    for step in range(1000):
        it.link(0, 1.0 + step % 2)
        found = it.turn()
        if found:
            break

    assert ["first"] == found
    assert not it.hasty
    assert readiness.PATIENCE_S <= it.clock.now - began <= 1.5 * readiness.PATIENCE_S


def peered(turns: Turns, name: str, places: range) -> None:
    """A pod waits that must be near a partner, which has pods at these places."""
    patch = delta.Patch()
    for number in places:
        patch.set_vertex(builders.make_pod(f"{name}-db-{number}").label("app", name).node(f"n{number:02}").build())
    turns.store.apply(patch)
    near = labels.selector([labels.Requirement("app", labels.Operator.IN, (name,))])
    peer = pods.Peer("default", selector=near, latency_ms_max=100.0)
    spec = pods.Spec(graph=pods.GraphDemand(peers=(peer,)))
    turns.backlog.add(pods.Pod(keys.pod_key("default", name), uid=name, spec=spec), 0.0)


@pytest.mark.parametrize("places", [1, 8])
@pytest.mark.parametrize("moves", [0, NODES // 2, NODES - 2])
@pytest.mark.parametrize("often", [1, 7, 100_000])
def test_however_much_pods_ask_for_no_turn_does_all_of_it(
    monkeypatch: pytest.MonkeyPatch, often: int, moves: int, places: int
) -> None:
    """Neither while they have patience nor once they have none, and nothing that was done is done again.

    Where the network never rests one turn a second may do more.
    """
    rounds, step, forced = [0], distances.Search._round, [float("-inf")]

    def counted(search: distances.Search, pending: distances.Intp) -> distances.Intp:
        rounds[-1] += 1
        return step(search, pending)

    monkeypatch.setattr(distances.Search, "_round", counted)
    it, wanting = Turns(ruled=False), {f"p{number:02}" for number in range(0, NODES, places)}
    for name in sorted(wanting):
        peered(it, name, range(int(name[1:]), min(NODES, int(name[1:]) + places)))
    found, began = list[str](), it.clock.now
    while wanting != set(found):
        if len(rounds) % often == 0:
            it.link(moves, 1.0 + len(rounds) % 2)
        rounds.append(0)
        turned = it.clock.now
        found += it.turn()
        # What a pod asks for beside its searches is looked at as often as there are pods.
        looks = 1000 * (it.clock.now - turned) - 6 * (NODES // places)
        if it.clock.now - began < readiness.PATIENCE_S:
            assert looks <= 1000 * (readiness.ASK_S + readiness.SEARCH_S)
        elif looks > 1000 * (readiness.ASK_S + readiness.HURRY_S):
            assert often < 100_000
            assert looks <= 1000 * (readiness.ASK_S + readiness.FORCED_S)
            assert turned - forced[-1] >= readiness.FORCED_EVERY_S
            forced.append(turned)
        assert len(rounds) < 5000
    assert not it.hasty
    assert (NODES, 0) == (it.store.routes.statistics.searches, it.store.routes.statistics.undone)
    if often == 100_000:
        assert sum(rounds) <= NODES * NODES


def test_those_that_need_nothing_have_their_time_beside_many_that_do() -> None:
    """What is asked of pods that wait takes a share of a turn."""
    it = Turns(ruled=False)
    for number in range(NODES):
        peered(it, f"p{number:02}", range(number, number + 1))
    it.backlog.add(pod("free"), 0.0)

    began = it.clock.now
    assert "free" in it.turn()
    assert it.clock.now - began < 2 * (readiness.ASK_S + readiness.SEARCH_S) + 0.001 * NODES
    it.backlog.add(pod("free"), 0.0)
    began = it.clock.now
    assert "free" in it.turn()
    assert it.clock.now - began < 2 * (readiness.ASK_S + readiness.SEARCH_S), "those that wait are not asked again"


def test_a_pod_that_asks_for_more_than_can_be_kept_is_decided_on_with_what_is_known() -> None:
    """Or it would wait for ever, and take of each turn what others could have."""
    it = Turns(ruled=False)
    it.store.routes = routes.Routes(it.store.topology, it.store.columns, bytes_max=1, searches_min=5)
    peered(it, "first", range(20))
    began = it.clock.now
    while not (found := it.turn()):
        it.clock.now += 0.1
        assert it.clock.now - began < 2 * readiness.WAIT_S_MAX

    assert ["first"] == found == it.hasty
    assert it.clock.now - began >= readiness.WAIT_S_MAX
    assert it.store.routes.statistics.evictions > 0


def test_a_pod_whose_ways_never_last_until_it_comes_up_is_decided_on() -> None:
    """All is found each time, and then others are before it and the network changes."""
    it = Turns(ruled=False)
    peered(it, "first", range(4))
    answers = list[readiness.Answer]()
    for step in range(4000):
        it.ready.work(it.clock.monotonic())
        it.link(0, 1.0 + step % 2)
        if (entry := it.backlog.pop()) is not None:
            answers.append(it.ready.ask(entry))
            if answers[-1] is not readiness.Answer.NOT_YET:
                break

    assert readiness.Answer.HASTY is answers[-1]
    assert readiness.Answer.READY not in answers
    assert readiness.WAIT_S_MAX <= it.clock.now <= 1.2 * readiness.WAIT_S_MAX


def test_in_a_network_at_rest_no_pod_is_decided_on_before_all_is_known() -> None:
    """However long it waits behind others that ask for much."""
    it, wanting = Turns(ruled=False), ["p0", "p1", "p2", "p3"]
    for number, name in enumerate(wanting):
        peered(it, name, range(15 * number, 15 * number + 15))
    began, found = it.clock.now, list[str]()
    while len(found) < len(wanting):
        # Others have most of the machine.
        it.clock.now += 2.0
        found += it.turn()

    assert sorted(found) == wanting
    assert it.clock.now - began > 3 * readiness.WAIT_S_MAX
    assert not it.hasty
    assert 60 == it.store.routes.statistics.searches


def test_who_has_little_to_find_out_does_not_wait_for_who_has_much() -> None:
    """Those that come later go first until as much was done on their behalf."""
    it = Turns(ruled=False)
    peered(it, "much", range(NODES))
    began = it.clock.now
    while it.clock.now - began < 1.2 * readiness.PATIENCE_S:
        assert [] == it.turn()
    peered(it, "little", range(1))
    found, turns = list[str](), 0
    while not found:
        found, turns = it.turn(), turns + 1

    assert ["little"] == found
    assert turns <= 3


@pytest.mark.parametrize("uid", ["another", "first"], ids=["a pod of the same name", "the same, after standing by"])
def test_an_hour_later_a_pod_waits_for_its_searches_like_any_other(uid: str) -> None:
    """What was waited before is no reason to decide on it with nothing known, even where the network never rests."""
    it = Turns(ruled=False)
    peered(it, "first", range(20))
    while it.backlog.entries()[0].searched_s < readiness.SERVED_S:
        assert [] == it.turn()
    waiting = it.backlog.entries()[0].pod
    it.store.routes = routes.Routes(it.store.topology, it.store.columns)
    if uid != waiting.uid:
        it.backlog.remove(waiting.key, 0.0)
        it.backlog.add(msgspec.structs.replace(waiting, uid=uid), 0.0)
    it.clock.now += 3600.0
    began, step = it.clock.now, 0
    while not (found := it.turn()):
        it.link(0, 1.0 + step % 2)
        step += 1

    assert ["first"] == found
    assert it.clock.now - began < readiness.WAIT_S_MAX
    assert not it.hasty


def test_one_in_penalty_that_was_taken_in_vain_goes_back_into_it() -> None:
    """With nobody in line, and once all it needs is known; nothing is counted as having entered the queue."""
    it = Turns()
    entry = it.backlog.add(pod("first", app="near"), 0.0)
    assert it.backlog.pop() is entry
    it.backlog.refused(entry, ("GraphPolicy",), 0.0)
    it.backlog.reconsider(0.0)
    assert [("first", 1, parking.Pool.BACKOFF)] == it.waiting()
    it.backlog.moves.clear()
    assert [] == it.turn()
    assert [("first", 1, parking.Pool.ASIDE)] == it.waiting()
    assert 0 == it.backlog.moves.total()
    it.clock.now = 0.0
    while entry.pool is parking.Pool.ASIDE:
        it.ready.work(it.clock.monotonic())
        it.clock.now = 0.0
    assert [("first", 1, parking.Pool.BACKOFF)] == it.waiting()
    assert 0 == it.backlog.moves.total()


@virtual.timed
async def test_the_loop_goes_on_turning_until_all_is_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else happens meanwhile that would wake it."""
    left = iter(range(20))

    def prepare(_: cycle.Decider, __: view.View, pod: pods.Pod, *_args: object, **_named: object) -> bool:
        return pod.name != "slow" or next(left, None) is None

    monkeypatch.setattr(cycle.Decider, "prepare", prepare)
    async with live.scheduler(builders.make_node("n1").cpu("4")) as it:
        it.parts.store.apply(delta.Patch().set_vertex(policies.Rule("p", 0, "r")))
        it.pod(builders.make_pod("slow").cpu("1"))
        await it.bound("slow")
        it.require_sound()

        assert 1 == it.program.loop.decisions


@virtual.timed
async def test_those_that_wait_keep_no_other_from_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where more of them are before it than one turn asks."""

    def prepare(_: cycle.Decider, __: view.View, pod: pods.Pod, *_args: object) -> bool:
        return not pod.name.startswith("slow")

    monkeypatch.setattr(cycle.Decider, "prepare", prepare)
    async with live.scheduler(builders.make_node("n1").cpu("4")) as it:
        it.parts.store.apply(delta.Patch().set_vertex(policies.Rule("p", 0, "r")))
        for number in range(2 * loop.DECISIONS_A_TURN):
            it.pod(builders.make_pod(f"slow{number}"))
        it.pod(builders.make_pod("free"))
        await it.bound("free")
        assert 2 * loop.DECISIONS_A_TURN == it.parts.backlog.counts()[parking.Pool.ASIDE]
        monkeypatch.setattr(sights, "SEARCHED_S", 0.0)
        explained = await it.program.sights.explain("default/slow0")
        assert isinstance(explained, why.Explanation)
        assert "  Aside for 0ms: ways to its partners, or what rules say of it, are still being found out." in (
            telling.text(explained).splitlines()
        )


@virtual.timed
async def test_an_explanation_is_searched_for_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others have the loop in between."""
    pieces, prepare = list[bool](), cycle.Decider.prepare

    def in_pieces(decider: cycle.Decider, graph: view.View, pod: pods.Pod, *_args: object) -> bool:
        pieces.append(prepare(decider, graph, pod, itertools.cycle((False, True)).__next__))
        return pieces[-1]

    async with live.scheduler(*(builders.make_node(f"n{number}").cpu("4") for number in range(9))) as it:
        it.parts.store.apply(joined(*(f"n{number}" for number in range(9))).set_vertex(db_on("n8")))
        it.pod(builders.make_pod("web").set("metadata.annotations", NEAR_DB))
        await it.bound("web")
        it.parts.store.routes = routes.Routes(it.parts.store.topology, it.parts.store.columns)
        monkeypatch.setattr(cycle.Decider, "prepare", in_pieces)
        explained = await it.program.sights.explain("default/web")

        assert isinstance(explained, why.Explanation)
        assert pieces.count(False) > 3
        assert pieces[-1]
        assert explained.ways


@virtual.timed
async def test_a_pod_placed_in_haste_is_bound_although_its_ways_are_still_not_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where something has changed since, so that the node is looked at once more."""
    monkeypatch.setattr(readiness.Readiness, "ask", lambda *_: readiness.Answer.HASTY)
    monkeypatch.setattr(routes.Routes, "prepared", lambda *_: False)
    async with live.scheduler(builders.make_node("n1").cpu("4"), builders.make_node("n2").cpu("4")) as it:
        it.parts.store.apply(joined("n1", "n2").set_vertex(db_on("n1")))
        for name in ("first", "second", "third"):
            it.pod(builders.make_pod(name).set("metadata.annotations", {"graphsched.io/peers": "app=near"}))
        await it.bound("first", "second", "third")

        assert 3 == it.program.loop.decisions


@virtual.timed
async def test_a_pod_refused_in_haste_is_tried_again_without_any_news(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing happens in a network at rest that would tell that the way to its partner is known by now."""
    answers = iter((readiness.Answer.HASTY, *5 * (readiness.Answer.READY,)))
    monkeypatch.setattr(readiness.Readiness, "ask", lambda *_: next(answers))
    with monkeypatch.context() as patched:
        patched.setattr(routes.Routes, "prepared", lambda *_: False)
        async with live.scheduler(builders.make_node("n1").cpu("4"), builders.make_node("n2").cpu("4")) as it:
            it.parts.store.apply(joined("n1", "n2").set_vertex(db_on("n1")))
            it.pod(builders.make_pod("web").set("metadata.annotations", NEAR_DB))
            await it.until(lambda: it.parts.backlog.counts()[parking.Pool.ERRORS] == 1)
            patched.undo()
            await it.bound("web")
