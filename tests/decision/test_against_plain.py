"""The engine decides as the plain per-node loops do, on random clusters and after random changes.

What is checked: every verdict, reason, score and count. What is real: the store, its patches, the class cache. What
stands in: clusters of a few nodes, where collisions are likely.
"""

from __future__ import annotations

import hypothesis
import numpy as np
from hypothesis import strategies as st

from graphsched.base.values import pods
from graphsched.decision import classes, cycle, profile, trace
from graphsched.decision.constraints import walk
from graphsched.graph import delta, store
from tests.decision import clusters, companies, plain, plain_cluster


def cluster_of(built: store.Store) -> plain_cluster.Cluster:
    """The same graph for the plain loops."""
    return plain_cluster.Cluster(*built.content())


def assert_decision_follows(
    decision: trace.Decision, pod: pods.Pod, cluster: plain_cluster.Cluster, settings: profile.Profile
) -> None:
    """The decision is what the verdicts of the plain loops lead to."""
    verdicts = plain.evaluate(cluster, pod, settings)
    ranking = plain.ranking(verdicts)

    assert len(ranking) == decision.feasible
    if not ranking:
        assert "" == decision.node
        assert plain.diagnosis(cluster, pod, verdicts, settings) == decision.diagnosis
        return
    assert decision.diagnosis is None
    chosen = pod.nominated if pod.nominated in ranking else ranking[0]
    assert chosen == decision.node
    alone = len(ranking) == 1 or chosen == pod.nominated
    assert (0 if alone else verdicts[chosen].total) == decision.score
    assert ({} if alone else verdicts[chosen].scores) == dict(decision.scores)
    rest = [name for name in ranking if name != chosen]
    assert tuple(rest[: cycle.RUNNERS_UP]) == decision.runners_up
    machine = cluster.machines[chosen]
    assert plain_cluster.choose_devices(machine, pod.spec.gpu) == decision.devices


@hypothesis.given(clusters.stores(), clusters.newcomers(), clusters.profiles)
def test_evaluate_gives_the_verdicts_of_the_plain_loops(
    built: store.Store, pod: pods.Pod, settings: profile.Profile
) -> None:
    """Status, plugin, reasons, scores and total of every node are equal, and so are best nodes and diagnosis."""
    cluster = cluster_of(built)

    found = cycle.Decider(settings).evaluate(built.view(), pod)

    expected = plain.evaluate(cluster, pod, settings)
    assert expected == found.verdicts
    top = max((verdict.total for verdict in expected.values() if verdict.status.ok), default=None)
    best = tuple(name for name, verdict in expected.items() if verdict.status.ok and verdict.total == top)
    assert best == found.best
    assert (None if best else plain.diagnosis(cluster, pod, expected, settings)) == found.diagnosis


@hypothesis.given(
    companies.company_stores(), companies.company_newcomers, st.lists(companies.company_pods(), max_size=2)
)
def test_company_decides_as_in_the_plain_loops(built: store.Store, pod: pods.Pod, others: list[pods.Pod]) -> None:
    """Where nothing but other pods is in the way, every verdict is that of a loop over all of them, before and after
    some of them change.
    """
    settings = profile.Profile()
    decider = cycle.Decider(settings)
    for change in [None, *others]:
        if change is not None:
            built.apply(delta.Patch().set_vertex(change))
        cluster = cluster_of(built)
        found = decider.evaluate(built.view(), pod)
        assert plain.evaluate(cluster, pod, settings) == found.verdicts
        assert_decision_follows(decider.decide(built.view(), pod), pod, cluster, settings)
        for verdict in found.verdicts.values():
            hypothesis.event(verdict.status.reasons[0] if verdict.status.reasons else "passed")


@hypothesis.given(
    clusters.stores(),
    st.lists(clusters.newcomers(), min_size=1, max_size=3),
    st.lists(clusters.patches(), max_size=5),
    clusters.profiles,
)
def test_decide_stays_right_through_any_changes(
    built: store.Store, newcomers: list[pods.Pod], changes: list[delta.Patch], settings: profile.Profile
) -> None:
    """A decider that lives through the changes, its classes brought up to date row by row, agrees after each."""
    decider = cycle.Decider(settings)
    for change in [delta.Patch(), *changes]:
        built.apply(change)
        cluster = cluster_of(built)
        for pod in newcomers:
            assert_decision_follows(decider.decide(built.view(), pod), pod, cluster, settings)


@hypothesis.given(
    clusters.calm_stores(),
    st.lists(clusters.calm_newcomers, min_size=1, max_size=2),
    st.lists(clusters.single_changes, min_size=3, max_size=10),
    st.builds(profile.Profile, pool=clusters.pools, headroom=clusters.headrooms),
)
def test_decide_stays_right_row_by_row(
    built: store.Store, newcomers: list[pods.Pod], changes: list[delta.Patch], settings: profile.Profile
) -> None:
    """One thing changes at a time among a dozen nodes, so classes are brought up to date rather than built."""
    decider = cycle.Decider(settings)
    for change in [delta.Patch(), *changes]:
        built.apply(change)
        cluster = cluster_of(built)
        for pod in newcomers:
            assert_decision_follows(decider.decide(built.view(), pod), pod, cluster, settings)
    statistics = decider.classes.statistics
    hypothesis.event(f"{statistics.builds * 100 // (statistics.builds + statistics.hits) // 25 * 25} % built")


@hypothesis.given(clusters.stores(), st.lists(clusters.newcomers(), min_size=2, max_size=5))
def test_decide_stays_right_when_classes_are_evicted(built: store.Store, newcomers: list[pods.Pod]) -> None:
    """With room for one class only, the answers are those of the plain loops all the same."""
    settings = profile.Profile()
    decider = cycle.Decider(settings, classes_max=1)
    cluster = cluster_of(built)
    for pod in (*newcomers, *newcomers):
        assert_decision_follows(decider.decide(built.view(), pod), pod, cluster, settings)
    assert len(decider.classes) <= 1


@hypothesis.given(clusters.stores(), clusters.newcomers(), clusters.profiles)
def test_a_check_passes_exactly_the_rows_no_refusal_covers(
    built: store.Store, pod: pods.Pod, settings: profile.Profile
) -> None:
    """The fast question and the full one agree, for every check and for any choice of rows."""
    graph = built.view()
    subject = classes.subject_of(pod.spec, settings)
    some = np.arange(0, graph.columns.capacity, 2)
    for check in walk.IN_ORDER:
        if not check.applies(subject):
            continue
        for rows in (slice(None), some):
            live = graph.columns.live[rows]
            refused = np.zeros(len(live), np.bool_)
            for refusal in check.refusals(graph, subject, rows):
                refused |= refusal.mask

            assert (~refused & live).tolist() == (check.passes(graph, subject, rows) & live).tolist(), check.plugin
