"""The fault table has no empty cell, and its page says what the tests play."""

import pathlib
import re

import pytest

from graphsched.app import operator
from scripts import reliability_page
from tests.faults import calls, table


def test_every_cell_is_played_or_says_why_it_cannot_occur() -> None:
    """What is not played has a reason in words, and what is played is part of a voyage."""
    played = {(fault.name, call) for fault, call in table.voyages()}

    for fault in table.FAULTS:
        for call in table.CALLS:
            for phase in table.Phase:
                reason = table.reason_against(fault, call, phase)
                assert reason or (fault.name, call) in played
    for disaster in table.DISASTERS:
        name, _, test = disaster.test.partition("::")
        text = (pathlib.Path(__file__).parent / name).read_text(encoding="utf-8")
        assert f"def {test or 'test_'}" in text
        assert all(disaster.reasons.values())
    for deed in table.DEEDS:
        assert (deed.name, table.BETWEEN) in played


def test_every_row_says_what_goes_wrong_and_what_is_done_about_it() -> None:
    """A name of its own, a title and an answer of a sentence, and exactly one thing that strikes."""
    assert len(table.FAULTS) + len(table.DEEDS) == len(table.BY_NAME)
    for fault in table.FAULTS:
        assert (fault.kind is None) != (fault.ailment is None)
    for fault in table.BY_NAME.values():
        assert fault.title
        assert fault.answer.endswith(".")


def test_the_page_is_fresh() -> None:
    """docs/reliability.md is what `python -m scripts.reliability_page` writes."""
    assert reliability_page.page() == reliability_page.PAGE.read_text(encoding="utf-8")


def test_the_page_has_no_empty_cell() -> None:
    """Every line of every table is full."""
    for line in reliability_page.page().splitlines():
        if line.startswith("|") and not line.startswith("|---"):
            assert all(cell.strip() for cell in line.strip("|").split("|")), line


@pytest.mark.parametrize(
    ("method", "path", "query", "name"),
    [
        ("GET", "/api/v1/pods", {"limit": "500"}, "list pods"),
        ("GET", "/apis/apps/v1/statefulsets", {"watch": "true"}, "watch statefulsets"),
        ("GET", "/api/v1/namespaces", {}, "list namespaces"),
        ("GET", "/api/v1/namespaces/default/pods/web", {}, calls.GET),
        ("POST", "/api/v1/namespaces/default/pods/web/binding", {}, calls.BIND),
        ("PATCH", "/api/v1/namespaces/default/pods/web/status", {}, calls.STATUS),
        ("POST", "/apis/events.k8s.io/v1/namespaces/default/events", {}, calls.EVENT),
        ("PATCH", "/apis/events.k8s.io/v1/namespaces/default/events/web.1", {}, calls.SERIES),
        ("PUT", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/graphsched", {}, calls.LEASE),
    ],
)
def test_calls_are_told_apart(method: str, path: str, query: dict[str, str], name: str) -> None:
    """By what they are for."""
    assert name == calls.of(method, path, query).name


KOPF = operator.USER_AGENT
LIST = "/apis/graphsched.io/v1alpha1/graphpolicies"


@pytest.mark.parametrize(
    ("method", "path", "query", "agent", "name"),
    [
        ("GET", LIST, {}, "graphsched/1", "list graphpolicies"),
        ("GET", LIST, {}, KOPF, "list graphpolicies by kopf"),
        ("GET", LIST, {"watch": "true"}, KOPF, "watch graphpolicies"),
        ("PATCH", f"{LIST}/one/status", {}, "", calls.POLICY_STATUS),
        ("GET", "/apis", {}, KOPF, "discovery by kopf"),
        ("GET", "/api/v1", {}, KOPF, "discovery by kopf"),
        ("GET", "/apis/graphsched.io/v1alpha1", {}, "graphsched/1", calls.DISCOVERY),
        ("GET", "/apis/topology.volcano.sh/v1alpha1/hypernodes", {"watch": "true"}, "", "watch hypernodes"),
    ],
)
def test_what_kopf_asks_is_told_from_what_the_scheduler_asks(
    method: str, path: str, query: dict[str, str], agent: str, name: str
) -> None:
    """By the user agent, as in the logs of the API server."""
    assert name == calls.of(method, path, query, agent).name


def test_two_seeds_play_all_that_a_column_stands_for() -> None:
    """Each custom resource; the scheduler's own calls and those of kopf."""
    for column in ("list customs", "watch customs", "list policies", calls.DISCOVERY):
        assert 2 == len({table.drawn(column, seed) for seed in range(2)})


def test_a_call_that_nobody_knows_is_an_error() -> None:
    """So that a new one gets its column."""
    with pytest.raises(calls.UnknownCallError, match=re.escape("DELETE /api/v1/nodes/n1")):
        calls.of("DELETE", "/api/v1/nodes/n1", {})
