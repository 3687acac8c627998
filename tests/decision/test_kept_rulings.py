"""Rulings that are kept: shared by pods of which the rules say the same, bounded by what they hold, and never stale."""

from __future__ import annotations

import gc
import tracemalloc
import typing

import hypothesis
import hypothesis.strategies as some
import pytest

from graphsched.base.values import pods, policies
from graphsched.decision.policy import books, rulings
from graphsched.graph import store
from tests.decision.test_policies import (
    changes,
    given_pods,
    graph_of,
    happen,
    node,
    pod,
    rule,
    ruling,
    selector,
    subject,
)

DENY, WEIGHT = policies.Action.DENY, policies.Action.WEIGHT


def crowd(nodes: int, *rules: policies.Rule) -> store.Store:
    """So many nodes, each with one of ten values of `slot`, and these rules."""
    return graph_of(*(node(f"n{number}", slot=f"s{number % 10}") for number in range(nodes)), *rules)


def for_slot(number: int, app: str = "") -> policies.Match:
    """Nodes of one slot, for pods of an app or for all."""
    return policies.Match(pods=selector(app=app) if app else None, nodes=selector(slot=f"s{number}"))


def test_a_thousand_kinds_of_pods_with_the_same_answers_hold_one_ruling() -> None:
    """They differ in a label that no rule reads: one object for all, and memory that does not grow with them."""
    several = [rule(each, match=for_slot(each), action=DENY) for each in range(9)]
    graph = crowd(5000, *several, rule(9, match=for_slot(9), action=WEIGHT, weight=5)).view()
    first = ruling(graph, pod(index="first"))
    gc.collect()
    tracemalloc.start()
    try:
        found = [ruling(graph, pod(index=f"i{number}")) for number in range(1000)]
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert {id(first)} == {id(each) for each in found}
    assert 9 == len(first.refusals)
    assert first.size >= 10 * 5000
    assert held < 100 * first.size, "a ruling for each kind would hold a thousand times as much"


def test_pods_that_a_rule_tells_apart_have_rulings_of_their_own() -> None:
    """And each has its own again when asked in turns."""
    graph = crowd(20, rule(0, match=for_slot(0, "web"), action=DENY), rule(1, match=for_slot(1, "db"), action=DENY))
    web, other = ruling(graph.view(), pod(app="web")), ruling(graph.view(), pod(app="db"))

    assert [0] == [each.rule.number for each in web.refusals]
    assert [1] == [each.rule.number for each in other.refusals]
    assert rulings.NOTHING is ruling(graph.view(), pod())
    assert ruling(graph.view(), pod(app="web", index="2")) is web


def test_what_rulings_hold_together_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The least recently asked for goes; the last one stays even where it alone is too much."""
    graph = crowd(100, *(rule(each, match=for_slot(each, f"a{each}"), action=DENY) for each in range(10))).view()
    wanted = [pod(app=f"a{number}") for number in range(10)]
    size = ruling(graph, wanted[0]).size
    monkeypatch.setattr(books, "RULINGS_BYTES_MAX", 3 * size)
    found = [ruling(graph, each) for each in wanted]

    assert [size] * 10 == [each.size for each in found]
    assert [True] * 3 == [ruling(graph, wanted[each]) is found[each] for each in (7, 8, 9)]
    assert [False] * 7 == [ruling(graph, wanted[each]) is found[each] for each in range(7)]
    monkeypatch.setattr(books, "RULINGS_BYTES_MAX", 1)
    assert ruling(graph, wanted[0]) is ruling(graph, wanted[0])


def test_their_number_is_bounded_where_they_hold_next_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small cluster has many rulings to the byte, so they are counted as well."""
    graph = crowd(10, *(rule(each, match=for_slot(each, f"a{each}"), action=DENY) for each in range(10))).view()
    monkeypatch.setattr(books, "RULINGS_MAX", 2)
    first, second, third = (ruling(graph, pod(app=f"a{each}")) for each in range(3))

    assert second is ruling(graph, pod(app="a1"))
    assert third is ruling(graph, pod(app="a2"))
    assert first is not ruling(graph, pod(app="a0"))


def said(found: rulings.Ruling) -> tuple[object, ...]:
    """All of a ruling, in values that can be compared."""
    return (
        [(each.rule, each.reason, each.mask.tolist()) for each in found.refusals],
        [(each.rule, each.mask.tolist()) for each in found.weights],
        None if found.allowed is None else found.allowed.tolist(),
        None if found.total is None else found.total.tolist(),
    )


@hypothesis.given(changes, some.lists(given_pods, min_size=2, max_size=4))
@hypothesis.settings(max_examples=40, deadline=None)
def test_a_ruling_that_is_shared_says_what_one_made_anew_for_the_pod_says(
    happened: list[tuple[str, dict[str, typing.Any] | None, list[dict[str, typing.Any]]]], given: list[pods.Pod]
) -> None:
    """However nodes and rules came, changed and went, and whoever asked before."""
    graph = store.Store()
    for name, made, stated in happened:
        happen(graph, name, made, stated)
        seen = graph.view()
        for each in given * 2:
            assert said(books.Book().ruling(seen, subject(each))) == said(ruling(seen, each))
