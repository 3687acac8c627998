"""
The term index counts what a loop over all placed pods would count.

A model that keeps the pods in a dict and loops over them stands beside the index through random sequences of events;
the single cases below it say by name what the rules of counting are.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings, stateful, strategies as st

from graphsched.base.values import keys, labels, pods
from graphsched.graph import matchers, owners, scopes

# A failing example is worth nothing before it is shrunk, which takes longer than any test that passes.
pytestmark = pytest.mark.timeout(600)

NAMES = ("default", "team-a")
ROWS = 5
ANTI = owners.Kind.REQUIRED_ANTI_AFFINITY

values = st.sampled_from(("x", "y"))
label_keys = st.sampled_from(("app", "tier"))
some_labels = st.dictionaries(label_keys, values, min_size=1, max_size=2).map(labels.from_mapping)
requirements = st.one_of(
    st.builds(
        labels.Requirement,
        label_keys,
        st.sampled_from((labels.Operator.IN, labels.Operator.NOT_IN)),
        st.lists(values, max_size=2, unique=True).map(lambda chosen: tuple(sorted(chosen))),
    ),
    st.builds(
        labels.Requirement,
        label_keys,
        st.sampled_from((labels.Operator.EXISTS, labels.Operator.DOES_NOT_EXIST)),
    ),
)
# Most selectors match something, or the counts compared would all be zero.
likely = st.lists(
    st.builds(labels.Requirement, label_keys, st.just(labels.Operator.IN), st.sampled_from((("x",), ("x", "y")))),
    min_size=1,
    max_size=1,
).map(labels.selector)
selectors = st.one_of(
    likely, likely, st.just(labels.Selector()), st.none(), st.lists(requirements, max_size=3).map(labels.selector)
)
some_namespaces = st.lists(st.sampled_from(NAMES), max_size=2, unique=True).map(lambda names: tuple(sorted(names)))
some_scopes = st.one_of(
    st.builds(scopes.Scope, likely, st.just(NAMES)),
    st.builds(scopes.Scope, likely, st.just(()), likely),
    st.builds(scopes.Scope, selectors, some_namespaces, selectors),
)
some_matchers = st.builds(
    matchers.Matcher,
    st.one_of(st.tuples(some_scopes), st.tuples(some_scopes, some_scopes), st.just(())),
    st.sampled_from(matchers.Rule),
)
terms = st.builds(pods.PodTerm, st.sampled_from(("zone", "host")), selectors, some_namespaces, selectors)
wishes = st.builds(pods.PreferredPodTerm, st.integers(1, 2), terms)
specs = st.none() | st.builds(
    pods.Spec,
    pod_anti_affinity=st.lists(terms, max_size=2).map(tuple),
    pod_affinity=st.lists(terms, max_size=1).map(tuple),
    preferred_pod_affinity=st.lists(wishes, max_size=1).map(tuple),
    preferred_pod_anti_affinity=st.lists(wishes, max_size=1).map(tuple),
)
rows = st.one_of(st.integers(0, ROWS - 1), st.integers(-1, ROWS - 1))
placed = st.builds(
    matchers.Placed, st.sampled_from(NAMES), some_labels, st.integers(-1, ROWS - 1), st.booleans(), specs
)
pod_keys = st.integers(0, 5).map(lambda number: keys.pod_key("default", f"pod-{number}"))


class PlainIndex:
    """The same answers by looping over all pods."""

    def __init__(self) -> None:
        self.pods: dict[keys.VertexKey, matchers.Placed] = {}
        self.namespaces: dict[str, labels.Labels] = {}

    def in_scope(self, scope: scopes.Scope, namespace: str, pod_labels: labels.Labels) -> bool:
        """Whether the scope selects such a pod, requirement by requirement."""
        have, around = dict(pod_labels), dict(self.namespaces.get(namespace, ()))
        if scope.selector is None:
            return False
        here = namespace in scope.namespaces or (
            scope.namespace_selector is not None
            and all(part.holds(around.get(part.key)) for part in scope.namespace_selector.requirements)
        )
        return here and all(part.holds(have.get(part.key)) for part in scope.selector.requirements)

    def counts(self, matcher: matchers.Matcher) -> list[int]:
        """Pods per row that the matcher counts."""
        counted = [0] * ROWS
        for pod in self.pods.values():
            if pod.row < 0 or not matcher.scopes:
                continue
            if matcher.rule is matchers.Rule.SPREAD:
                empty = all(scope.selector is None or not scope.selector.requirements for scope in matcher.scopes)
                if pod.deleting or empty:
                    continue
            counted[pod.row] += all(self.in_scope(scope, pod.namespace, pod.labels) for scope in matcher.scopes)
        return counted

    def owned(self, kind: owners.Kind, namespace: str, pod_labels: labels.Labels) -> dict[tuple[str, int], list[int]]:
        """Owners per row of the terms of one kind that select such a pod, by topology key and weight."""
        found: dict[tuple[str, int], list[int]] = {}
        for pod in self.pods.values():
            for term in owners.terms_of(pod.spec) if pod.spec and pod.row >= 0 else ():
                if term.kind is kind and self.in_scope(term.scope, namespace, pod_labels):
                    found.setdefault((term.topology_key, term.weight), [0] * ROWS)[pod.row] += 1
        return found

    def live_keys(self, acquired: list[matchers.Matcher]) -> set[str]:
        """Label keys that an acquired matcher which can count, or an owned term, reads."""
        selected = [scope.selector for matcher in acquired if not matcher.hopeless for scope in matcher.scopes]
        for pod in self.pods.values():
            selected += [term.scope.selector for term in owners.terms_of(pod.spec)] if pod.spec else []
        return {part.key for selector in selected if selector for part in selector.requirements}


class TheIndexAgreesWithALoop(stateful.RuleBasedStateMachine):
    """Whatever happens, in whatever order, the index answers as the loop does."""

    def __init__(self) -> None:
        super().__init__()
        self.index = matchers.MatcherIndex()
        self.index.resize(ROWS)
        self.plain = PlainIndex()
        self.acquired: list[tuple[int, matchers.Matcher]] = []
        self.seen_keys = self.index.live_keys(), self.index.live_keys_version

    @stateful.initialize(
        pods=st.lists(placed, min_size=4, max_size=6),
        used=st.lists(some_matchers, min_size=2, max_size=6),
        described=st.lists(some_labels, min_size=len(NAMES), max_size=len(NAMES)),
    )
    def start_busy(
        self, pods: list[matchers.Placed], used: list[matchers.Matcher], described: list[labels.Labels]
    ) -> None:
        """Nothing interesting happens in an empty index."""
        for number, pod in enumerate(pods):
            self.place(keys.pod_key("default", f"pod-{number}"), pod)
        for matcher in used:
            self.acquire(matcher)
        for name, given in zip(NAMES, described, strict=True):
            self.set_namespace(name, given)

    @stateful.rule(key=pod_keys, pod=placed)
    def place(self, key: keys.VertexKey, pod: matchers.Placed) -> None:
        """Place a pod, move it or give it other labels."""
        self.index.place(key, pod)
        self.plain.pods[key] = pod

    @stateful.rule(key=pod_keys)
    def unplace(self, key: keys.VertexKey) -> None:
        """Remove a pod, or one that is not there."""
        self.index.unplace(key)
        self.plain.pods.pop(key, None)

    @stateful.rule(name=st.sampled_from(NAMES), given=st.none() | some_labels)
    def set_namespace(self, name: str, given: labels.Labels | None) -> None:
        """Describe a namespace, or remove it."""
        self.index.set_namespace(name, given)
        self.plain.namespaces[name] = given or ()

    @stateful.rule(matcher=some_matchers)
    def acquire(self, matcher: matchers.Matcher) -> None:
        """Use a matcher."""
        self.acquired.append((self.index.acquire(matcher), matcher))

    @stateful.precondition(lambda self: self.acquired)
    @stateful.rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        """Give a use back."""
        number, _ = self.acquired.pop(data.draw(st.integers(0, len(self.acquired) - 1)))
        self.index.release(number)

    @stateful.rule(namespace=st.sampled_from(NAMES), pod_labels=some_labels, deleting=st.booleans())
    def ask(self, namespace: str, pod_labels: labels.Labels, *, deleting: bool) -> None:
        """Ask for the matchers and the owned terms that select a newcomer."""
        for kind in owners.Kind:
            hits = self.index.owned(kind, namespace, pod_labels)
            merged: dict[tuple[str, int], list[int]] = {}
            for hit in hits:
                before = merged.get((hit.topology_key, hit.weight), [0] * ROWS)
                merged[hit.topology_key, hit.weight] = [a + b for a, b in zip(before, hit.counts.tolist(), strict=True)]
            assert merged == self.plain.owned(kind, namespace, pod_labels)
        expected = set()
        for number, matcher in self.acquired:
            alone = PlainIndex()
            alone.namespaces = self.plain.namespaces
            alone.pods = {keys.pod_key("a", "b"): matchers.Placed(namespace, pod_labels, 0, deleting)}
            if alone.counts(matcher)[0]:
                expected.add(number)
        assert set(self.index.matching(namespace, pod_labels, deleting=deleting)) == expected

    @stateful.invariant()
    def every_count_is_that_of_the_loop(self) -> None:
        """Counts and totals of all live matchers."""
        for number, matcher in self.acquired:
            expected = self.plain.counts(matcher)
            assert self.index.counts(number).tolist() == expected
            assert self.index.total(number) == sum(expected)

    @stateful.invariant()
    def the_live_keys_are_those_read(self) -> None:
        """Keys of live matchers and owned terms, with a version that moves when they do."""
        live, version = self.index.live_keys(), self.index.live_keys_version
        assert live == self.plain.live_keys([matcher for _, matcher in self.acquired])
        assert version != self.seen_keys[1] or live == self.seen_keys[0]
        self.seen_keys = live, version

    @stateful.invariant()
    def the_audit_finds_nothing(self) -> None:
        """The index agrees with its own slow way."""
        assert not list(self.index.audit())
        assert not [sentence for number in self.index.numbers() for sentence in self.index.audit_one(number)]


TestTheIndexAgreesWithALoop = TheIndexAgreesWithALoop.TestCase
TestTheIndexAgreesWithALoop.settings = settings(max_examples=100, stateful_step_count=20, deadline=None)


def equals(key: str, value: str) -> labels.Selector:
    """The selector `key=value`."""
    return labels.selector([labels.Requirement(key, labels.Operator.IN, (value,))])


def web(row: int, *, deleting: bool = False, spec: pods.Spec | None = None) -> matchers.Placed:
    """A pod labelled app=web in the default namespace."""
    return matchers.Placed("default", (("app", "web"),), row, deleting, spec)


@pytest.fixture
def index() -> matchers.MatcherIndex:
    """An index over three rows with two web pods on row 0, one of them terminating, and one on row 2."""
    made = matchers.MatcherIndex()
    made.resize(3)
    made.place(keys.pod_key("default", "a"), web(0))
    made.place(keys.pod_key("default", "b"), web(0, deleting=True))
    made.place(keys.pod_key("default", "c"), web(2))
    return made


def test_spread_counts_no_terminating_pod(index: matchers.MatcherIndex) -> None:
    """The same scope counts two on row 0 for affinity and one for spreading."""
    scope = scopes.Scope(equals("app", "web"), ("default",))

    affinity = index.acquire(matchers.Matcher((scope,)))
    spread = index.acquire(matchers.Matcher((scope,), matchers.Rule.SPREAD))

    assert index.counts(affinity).tolist() == [2, 0, 1]
    assert index.counts(spread).tolist() == [1, 0, 1]

    index.place(keys.pod_key("default", "c"), web(2, deleting=True))
    assert index.counts(affinity).tolist() == [2, 0, 1]
    assert index.counts(spread).tolist() == [1, 0, 0]


def test_an_empty_selector_counts_all_for_affinity_and_none_for_spread(index: matchers.MatcherIndex) -> None:
    """`{}` selects every pod, and spreading nevertheless counts zero."""
    scope = scopes.Scope(labels.Selector(), ("default",))

    assert index.total(index.acquire(matchers.Matcher((scope,)))) == 3
    assert index.total(index.acquire(matchers.Matcher((scope,), matchers.Rule.SPREAD))) == 0


def test_no_selector_counts_nothing(index: matchers.MatcherIndex) -> None:
    """A missing selector is not the empty one."""
    matcher = matchers.Matcher((scopes.Scope(None, ("default",)),))

    assert index.total(index.acquire(matcher)) == 0


def test_a_pod_counts_only_when_every_term_selects_it(index: matchers.MatcherIndex) -> None:
    """Required affinity is a conjunction, namespaces included."""
    here = scopes.Scope(equals("app", "web"), ("default",))
    elsewhere = scopes.Scope(equals("app", "web"), ("team-a",))

    assert index.total(index.acquire(matchers.Matcher((here, here)))) == 3
    assert index.total(index.acquire(matchers.Matcher((here, elsewhere)))) == 0


def test_a_pod_on_no_row_waits_for_its_node(index: matchers.MatcherIndex) -> None:
    """A pod whose node went is kept, counts nowhere, and counts again when the node is back on another row."""
    number = index.acquire(matchers.Matcher((scopes.Scope(equals("app", "web"), ("default",)),)))

    index.place(keys.pod_key("default", "c"), web(-1))
    assert index.counts(number).tolist() == [2, 0, 0]
    index.place(keys.pod_key("default", "c"), web(1))
    assert index.counts(number).tolist() == [2, 1, 0]


def test_counts_grow_with_the_rows(index: matchers.MatcherIndex) -> None:
    """New rows read zero, and a vector taken before does not move under its reader."""
    number = index.acquire(matchers.Matcher((scopes.Scope(equals("app", "web"), ("default",)),)))
    before = index.counts(number)

    index.resize(200)
    index.place(keys.pod_key("default", "d"), web(199))

    assert len(before) == 3
    assert np.flatnonzero(index.counts(number)).tolist() == [0, 2, 199]


def test_counts_can_not_be_written(index: matchers.MatcherIndex) -> None:
    """A reader that writes would corrupt every later decision."""
    number = index.acquire(matchers.Matcher((scopes.Scope(equals("app", "web"), ("default",)),)))

    with pytest.raises(ValueError, match="read-only"):
        index.counts(number)[0] = 1


def test_equal_matchers_share_a_number_until_the_last_release(index: matchers.MatcherIndex) -> None:
    """Matchers are interned and counted by use."""
    matcher = matchers.Matcher((scopes.Scope(equals("app", "web"), ("default",)),))
    first, second = index.acquire(matcher), index.acquire(matcher)
    assert first == second

    index.release(first)
    assert index.total(second) == 3
    index.release(second)
    with pytest.raises(KeyError):
        index.counts(second)


def test_anti_affinity_of_placed_pods_is_found_by_whom_it_selects(index: matchers.MatcherIndex) -> None:
    """Owners are counted per row, for newcomers in the term's namespaces alone."""
    term = pods.PodTerm("zone", equals("app", "web"), ("default",))
    spec = pods.Spec(pod_anti_affinity=(term,))
    assert index.owned_anti_affinity("default", (("app", "web"),)) == []

    index.place(keys.pod_key("default", "d"), web(1, spec=spec))
    index.place(keys.pod_key("default", "e"), web(1, spec=spec))

    found = index.owned_anti_affinity("default", (("app", "web"),))
    assert [(key, counts.tolist()) for key, counts in found] == [("zone", [0, 2, 0])]
    assert index.owned_anti_affinity("team-a", (("app", "web"),)) == []
    assert index.owned_anti_affinity("default", (("app", "db"),)) == []


def test_a_preferred_term_carries_its_weight(index: matchers.MatcherIndex) -> None:
    """Terms that differ in the weight alone are two."""
    term = pods.PodTerm("zone", equals("app", "web"), ("default",))
    light, heavy = (pods.Spec(preferred_pod_affinity=(pods.PreferredPodTerm(w, term),)) for w in (1, 100))
    index.place(keys.pod_key("default", "d"), web(1, spec=light))
    index.place(keys.pod_key("default", "e"), web(2, spec=heavy))

    hits = index.owned(owners.Kind.PREFERRED_AFFINITY, "default", (("app", "web"),))

    assert [(hit.weight, hit.counts.tolist()) for hit in hits] == [(1, [0, 1, 0]), (100, [0, 0, 1])]


def test_labels_of_a_namespace_decide_whose_pods_count(index: matchers.MatcherIndex) -> None:
    """A namespace selector is resolved again when the namespace's labels change."""
    matcher = matchers.Matcher((scopes.Scope(equals("app", "web"), (), equals("team", "a")),))
    number = index.acquire(matcher)
    assert index.total(number) == 0

    index.set_namespace("default", (("team", "a"),))
    assert index.counts(number).tolist() == [2, 0, 1]
    index.set_namespace("default", None)
    assert index.total(number) == 0


def test_an_incoming_terms_negative_namespace_selector_covers_every_namespace() -> None:
    """kube-scheduler evaluates it against no labels as well, which NotIn alone accepts."""
    absent = labels.selector([labels.Requirement("team", labels.Operator.NOT_IN, ("a",))])
    term = pods.PodTerm("zone", equals("app", "web"), (), absent)

    assert scopes.of_incoming(term).covers("team-a", (("team", "a"),))
    assert not scopes.of_term(term).covers("team-a", (("team", "a"),))


def test_an_audit_names_a_count_that_is_wrong(index: matchers.MatcherIndex) -> None:
    """The audit would find a lost event."""
    number = index.acquire(matchers.Matcher((scopes.Scope(equals("app", "web"), ("default",)),)))
    index._live[number].tally.add(1, 1)

    assert [sentence for sentence in index.audit() if f"matcher {number} counts" in sentence]


WEB = matchers.Matcher((scopes.Scope(equals("app", "web"), ("default",)),))


def test_one_matcher_is_audited_alone(index: matchers.MatcherIndex) -> None:
    """A count that is wrong is told of its own matcher only, and nothing is changed by the telling."""
    good = index.acquire(matchers.Matcher(WEB.scopes, matchers.Rule.SPREAD))
    bad = index.acquire(WEB)
    index._live[bad].tally.add(2, 3)

    expected = ["it counts 6 pods, there are 3; rows that are wrong: 1; on row 2 it counts 4, there are 1"]
    assert [[], expected, expected] == [index.audit_one(number) for number in (good, bad, bad)]


def test_an_audit_of_one_sees_a_wrong_total(index: matchers.MatcherIndex) -> None:
    """The sum is kept apart from the rows, and is looked at as well."""
    number = index.acquire(WEB)
    index._live[number].tally.total = 4

    assert ["it counts 4 pods, there are 3; rows that are wrong: 0"] == index.audit_one(number)


def test_an_audit_of_one_sees_pods_that_it_was_not_told_of(index: matchers.MatcherIndex) -> None:
    """Counts that agree with a wrong selection are found through the selection."""
    number = index.acquire(WEB)
    (profile,) = index._profiles.values()
    profile.matched.clear()
    index._recount(index._live[number], [])

    (sentence,) = index.audit_one(number)
    assert sentence == (
        "it selects, and does not count, pods in namespace \"default\" with labels {'app': 'web'}; "
        "profiles that are wrong: 1 of 1 judged"
    )


def test_an_audit_of_one_that_counts_nothing_finds_nothing() -> None:
    """Neither a matcher without hope nor an index without pods is a special case."""
    empty = matchers.MatcherIndex()

    assert [] == empty.audit_one(empty.acquire(WEB))
    assert [] == empty.audit_one(empty.acquire(matchers.Matcher(())))


def test_a_mended_matcher_counts_what_there_is(index: matchers.MatcherIndex) -> None:
    """Selection, rows and total are right again, and later events keep them so."""
    number = index.acquire(WEB)
    (profile,) = index._profiles.values()
    profile.matched.clear()
    index._live[number].tally.add(1, 7)

    index.mend(number)
    index.place(keys.pod_key("default", "d"), web(1))

    assert ([2, 1, 1], 4) == (index.counts(number).tolist(), index.total(number))
    assert [] == [*index.audit(), *index.audit_one(number)]


def test_an_audit_of_one_judges_a_bounded_number_of_profiles() -> None:
    """The selection of one profile among many is judged in the calls whose stretch it lies in, and in no other."""
    made = matchers.MatcherIndex()
    made.resize(1)
    size = 3 * matchers.PROFILES_JUDGED
    for place in range(size):
        labelled = (("app", "web"), ("index", str(place)))
        made.place(keys.pod_key("default", f"p{place}"), matchers.Placed("default", labelled, 0))
    number = made.acquire(WEB)
    lost = made._profile_at[10]
    assert lost is not None
    lost.matched.clear()
    made._live[number].tally.add(0, -1)

    finds = [first for first in range(size) if made.audit_one(number, first=first)]
    assert [*range(11), *range(size - matchers.PROFILES_JUDGED + 11, size)] == finds
    assert made.audit_one(number, first=size + 10)


def test_only_live_matchers_are_audited(index: matchers.MatcherIndex) -> None:
    """Those that can be chosen are listed; another number is a bug of the caller."""
    first, second = index.acquire(WEB), index.acquire(matchers.Matcher(()))
    index.release(first)

    assert [second] == index.numbers()
    with pytest.raises(KeyError):
        index.audit_one(first)
