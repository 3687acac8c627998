"""Whatever happens in whatever order, no pod is lost, none is in two places, and none sleeps through its chance."""

import hypothesis
import hypothesis.strategies as st
from hypothesis import stateful

from graphsched.app import backlog, backoff, parking, tidings
from graphsched.base.values import keys, nodes, pods

Pool = parking.Pool
SPECS = tuple(pods.Spec(demand=pods.Demand(amounts=(("cpu", 1000 * size),))) for size in (1, 3))
PLUGINS = (("NodeResourcesFit",), ("NodeResourcesFit", "TaintToleration"), ("InterPodAffinity",), ("Unheard-of",))
NUMBERS = st.integers(0, 5)


class Queue(stateful.RuleBasedStateMachine):
    """Drives the queue as the loop does, beside a set of what must be in it."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = backlog.Backlog(backoff.Policy(initial_s=1.0, max_s=4.0), leftover_s=60.0)
        self.now = 0.0
        self.alive: dict[keys.VertexKey, pods.Pod] = {}
        self.out: list[parking.Entry] = []
        self.serial = 0

    def made(self, number: int, spec: int, priority: int, gates: int) -> pods.Pod:
        """A new pod under one of few names."""
        self.serial += 1
        key = keys.pod_key("d", f"p{number}")
        return pods.Pod(key, f"u{self.serial}", spec=SPECS[spec], priority=priority, gates=("g",) * gates)

    @stateful.rule(number=NUMBERS, spec=st.integers(0, 1), priority=st.integers(0, 1), gates=st.integers(0, 1))
    def create(self, number: int, spec: int, priority: int, gates: int) -> None:
        """A pod is created, perhaps in another one's place."""
        pod = self.made(number, spec, priority, gates)
        self.alive[pod.key] = pod
        self.queue.add(pod, self.now)

    @stateful.rule(number=NUMBERS, spec=st.integers(0, 1), priority=st.integers(0, 1), again=st.booleans())
    def change(self, number: int, spec: int, priority: int, again: bool) -> None:
        """A pod loses its gates or is otherwise updated; updates of unknown pods do nothing."""
        key = keys.pod_key("d", f"p{number}")
        known = self.alive.get(key)
        uid = known.uid if known is not None else "stranger"
        pod = pods.Pod(key, uid, spec=SPECS[spec], priority=priority)
        if known is not None:
            self.alive[key] = pod
        (self.queue.add if again and known is not None else self.queue.update)(pod, self.now)

    @stateful.rule(number=NUMBERS)
    def delete(self, number: int) -> None:
        """A pod is deleted or bound by somebody else."""
        key = keys.pod_key("d", f"p{number}")
        assert (self.alive.pop(key, None) is None) == (self.queue.remove(key, self.now) is None)

    @stateful.rule()
    def pop(self) -> None:
        """A decision begins, on the first of those that may be decided on."""
        active = [entry for entry in self.queue._entries.values() if entry.pool is Pool.ACTIVE]
        entry = self.queue.pop()
        if active:
            assert entry is min(active, key=lambda one: one.order)
        if entry is not None:
            assert entry.pool is Pool.DECIDING
            self.out.append(entry)

    @stateful.rule(
        which=st.integers(0, 7),
        fate=st.sampled_from(("refused", "pending", "failed", "hopeless", "placed", "lost")),
        plugins=st.sampled_from(PLUGINS),
    )
    def end(self, which: int, fate: str, plugins: tuple[str, ...]) -> None:
        """A decision ends, or a binding does."""
        if not self.out:
            return
        entry = self.out.pop(which % len(self.out))
        if fate == "placed" and entry.pool is Pool.DECIDING:
            self.queue.placed(entry, self.now)
            self.out.append(entry)
        elif fate == "lost" and entry.pool is Pool.BINDING:
            self.queue.lost(entry, self.now)
        elif fate in {"failed", "hopeless", "lost"} or entry.pool is Pool.BINDING:
            self.queue.failed(entry, self.now, refused=fate == "hopeless")
        elif fate != "placed":
            self.queue.refused(entry, plugins, self.now, pending=fate == "pending")

    @stateful.rule(which=st.integers(0, 7))
    def set_aside(self, which: int) -> None:
        """What a decision takes is not at hand."""
        deciding = [entry for entry in self.out if entry.pool is Pool.DECIDING]
        if deciding:
            entry = deciding[which % len(deciding)]
            self.out.remove(entry)
            self.queue.set_aside(entry, self.now)

    @stateful.rule(seconds=st.floats(0.0, 40.0), known=st.booleans())
    def search(self, seconds: float, known: bool) -> None:
        """Work is done for the one whose turn it is, and perhaps it is all there was to do."""
        aside = [entry for entry in self.queue._entries.values() if entry.pool is Pool.ASIDE]
        entry = self.queue.first_aside()
        assert entry is (min(aside, key=lambda one: one.aside_order) if aside else None)
        if entry is not None:
            self.queue.searched(entry, seconds)
            if known:
                self.queue.let_go(entry, self.now)
                assert entry.pool in {Pool.ACTIVE, Pool.BACKOFF}

    @stateful.rule()
    def refuse_all(self) -> None:
        """The cluster is full: one pod after the other is turned away."""
        while (entry := self.queue.pop()) is not None:
            self.queue.refused(entry, PLUGINS[0], self.now)

    @stateful.rule(kind=st.sampled_from(("freed", "node", "taint")), at_once=st.booleans())
    def news(self, kind: str, at_once: bool) -> None:
        """Something happens in the cluster."""
        news = tidings.News()
        node = nodes.Node("n1", allocatable=(("cpu", 2500), ("pods", 10)))
        if kind == "freed":
            news.left(pods.Pod(keys.pod_key("d", "old")), "n1")
        elif kind == "node":
            news.node(None, node)
        else:
            news.node(nodes.Node("n1", taints=(nodes.Taint("t", "", "NoSchedule"),)), node)
        self.queue.tell(news)
        if at_once:
            self.ask()

    @stateful.rule()
    def ask(self) -> None:
        """The loop acts on the news."""
        while self.queue.ask(self.now):
            pass

    @stateful.rule(seconds=st.floats(0.0, 40.0))
    def wait(self, seconds: float) -> None:
        """Time passes, seen whenever the queue asked to be called."""
        end = self.now + seconds
        while (due := self.queue.next_due()) is not None and due <= end:
            self.now = max(self.now, due)
            self.queue.tick(self.now)
        self.now = end

    @stateful.invariant()
    def nothing_is_lost(self) -> None:
        """The queue holds what it should, each pod in one pool, and every structure says the same."""
        entries = self.queue._entries
        assert entries.keys() == self.alive.keys()
        assert all(entries[key].pod == pod for key, pod in self.alive.items())
        pools = {pool: {key for key, entry in entries.items() if entry.pool is pool} for pool in Pool}
        assert {pool: len(members) for pool, members in pools.items()} == self.queue.counts()
        assert pools[Pool.ACTIVE] == set(self.queue._active._orders)
        assert pools[Pool.ASIDE] == set(self.queue._aside._orders)
        assert pools[Pool.BACKOFF] == set(self.queue._backoff._ends)
        assert pools[Pool.ERRORS] == set(self.queue._errors._ends)
        grouped = [key for group in self.queue._groups.values() for key in group.members]
        assert sorted(pools[Pool.UNSCHEDULABLE]) == sorted(grouped)

    @stateful.invariant()
    def every_group_has_a_live_envoy_or_none(self) -> None:
        """A group whose envoy is out and can not answer would sleep for ever."""
        for key, group in self.queue._groups.items():
            assert group.members or group.released is not None
            if group.released is not None:
                envoy = self.queue._entries[group.released]
                assert envoy.group == key
                assert envoy.pool in {Pool.ACTIVE, Pool.ASIDE, Pool.BACKOFF, Pool.DECIDING}

    def teardown(self) -> None:
        """In the end everybody gets a turn: gates open, decisions fail, time passes."""
        for key, pod in list(self.alive.items()):
            self.queue.update(pods.Pod(key, pod.uid, spec=pod.spec, priority=pod.priority), self.now)
        for unanswered in self.out:
            self.queue.failed(unanswered, self.now)
        self.now += 1000.0
        self.queue.tick(self.now)
        while (aside := self.queue.first_aside()) is not None:
            self.queue.let_go(aside, self.now)
        seen = set()
        while (entry := self.queue.pop()) is not None:
            seen.add(entry.pod.key)
        assert seen == self.alive.keys()


TestQueue = Queue.TestCase
TestQueue.settings = hypothesis.settings(max_examples=150, stateful_step_count=40, deadline=None)
