"""The runner of the cases reads them whole, tells right from wrong, and lists what waits truthfully."""

import pytest

from tests.cases.runner import cases, verdicts, waiting

TEXT = """
source: somewhere#1
kind: filter
why: because
objects:
  - {apiVersion: v1, kind: Pod, metadata: {name: old}, spec: {nodeName: n1}}
pending:
  - {apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {}}
expect:
  p: {node: n1}
"""


def _pod(*, name: str = "p", node: str = "", reason: str = "", message: str = "") -> cases.Object:
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    return {
        "metadata": {"name": name},
        "spec": {"nodeName": node} if node else {},
        "status": {"conditions": [condition] if reason else []},
    }


REFUSED = _pod(reason="Unschedulable", message="0/2 nodes are available: 2 Insufficient cpu.")


def test_every_case_is_read_and_names_its_source() -> None:
    """Twenty files, each saying where the trap was met."""
    found = cases.all_cases()

    assert 20 == len(found)
    assert all("#" in case.source for case in found.values())


@pytest.mark.parametrize("wrong", ["volumes: {a: b}", "nodes: n1", "reason: typo"])
def test_an_expectation_that_nobody_would_look_at_is_an_error(wrong: str) -> None:
    """An unknown field, or one of the wrong type."""
    with pytest.raises(ValueError, match="at `"):
        cases.decode(f"{TEXT}  q: {{{wrong}}}\n", name="x")


def test_a_pod_without_an_expectation_is_an_error() -> None:
    """Nothing is created for nothing."""
    with pytest.raises(ValueError, match=r"x: pods \['p'\], but expectations for \['q'\]"):
        cases.decode(TEXT.replace("  p: {", "  q: {"), name="x")


@pytest.mark.parametrize(
    ("pod", "expected", "problem"),
    [
        (_pod(node="n1"), cases.Expectation(node="n1"), ""),
        (_pod(node="n2"), cases.Expectation(nodes=("n1", "n2"), prefer_with_topology="n1"), ""),
        (_pod(node="n2"), cases.Expectation(node="n1"), "must be on n1, is on n2"),
        (REFUSED, cases.Expectation(node="n1"), "must be on n1, is refused: 0/2 nodes"),
        (REFUSED, cases.Expectation(unschedulable=True, reasons=("2 Insufficient cpu",), message="0/2 nodes"), ""),
        (REFUSED, cases.Expectation(unschedulable=True, reasons=("memory",)), '"memory" is missing in'),
        (REFUSED, cases.Expectation(unschedulable=True, message="0/3"), 'must start with "0/3"'),
        (REFUSED, cases.Expectation(unschedulable=True, nominated="n1"), "must be nominated to n1, is to none"),
        (REFUSED, cases.Expectation(gated=True), "the reason must be SchedulingGated, is Unschedulable"),
        (_pod(reason="SchedulingGated"), cases.Expectation(gated=True), ""),
        (_pod(node="n1"), cases.Expectation(unschedulable=True), "must not be placed, is on n1"),
        (_pod(), cases.Expectation(unschedulable=True), "the reason must be Unschedulable, is missing"),
    ],
)
def test_a_decision_is_compared_with_the_expectation(
    pod: cases.Object, expected: cases.Expectation, problem: str
) -> None:
    """One line says what is wrong; none where nothing is."""
    found = verdicts.problems(pod, expected)

    assert bool(problem) == bool(found)
    assert problem in "".join(found)


def test_a_refusal_ends_the_wait_unless_the_pod_is_to_be_placed_after_an_eviction() -> None:
    """A nomination comes before the binding."""
    placed, refused = cases.Expectation(node="n1"), cases.Expectation(unschedulable=True)

    assert verdicts.decided(REFUSED, placed, patient=False)
    assert not verdicts.decided(REFUSED, placed, patient=True)
    assert verdicts.decided(REFUSED, refused, patient=True)
    assert not verdicts.decided(_pod(), placed, patient=False)


def test_a_pod_of_the_case_that_is_gone_or_leaving_was_evicted() -> None:
    """Of the objects and of the pending pods alike."""
    case = cases.decode(TEXT, name="x")
    old, new = _pod(name="old", node="n1"), _pod(node="n1")
    leaving = {**old, "metadata": {"name": "old", "deletionTimestamp": "now"}}

    assert [] == verdicts.evicted(case, [old, new])
    assert ["old"] == verdicts.evicted(case, [leaving, new])
    assert ["p"] == verdicts.evicted(case, [old])


def test_what_waits_is_a_case_and_its_pods_are_the_cases() -> None:
    """A row can not outlive what it is about."""
    found = cases.all_cases()

    assert set(waiting.WAITING) <= set(found)
    for name, row in waiting.WAITING.items():
        assert row.reason
        assert set(row.instead) <= set(found[name].expect)
        assert row.expect(found[name]) != found[name].expect
