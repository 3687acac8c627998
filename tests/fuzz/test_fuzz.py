"""graphsched against kube-scheduler's own plugins, on scenarios that come from a fixed seed.

Also the parts of the comparison: series are the same everywhere, differences are found, and failures shrink.
"""

import copy
import typing
from collections.abc import Iterator

import msgspec
import pytest

from tests.controlplane import binaries
from tests.fuzz import comparing, coverage, scenarios, shrinking
from tests.oracle import program

SEED = 20260
SCENARIOS = 1500
PART = 300

Json = dict[str, typing.Any]


@pytest.fixture(scope="module")
def oracle() -> Iterator[program.Oracle]:
    """The oracle, built where it is missing."""
    with program.Oracle(binaries.ensure_oracle()) as running:
        yield running


def shown(compared: comparing.Compared) -> str:
    """What to look at, and what to pipe into both."""
    lines = [str(difference) for difference in compared.differences]
    return "\n".join([*lines, msgspec.json.encode(compared.request).decode()])


@pytest.mark.cluster
@pytest.mark.parametrize("first", range(0, SCENARIOS, PART))
def test_graphsched_says_what_the_oracle_says(oracle: program.Oracle, first: int) -> None:
    """Node by node, plugin by plugin: verdict, reasons, scores, choice and message. And the scenarios are sound."""
    invalid = 0
    for number in range(first, first + PART):
        compared = comparing.compare(oracle, scenarios.scenario(SEED, number))
        invalid += compared.invalid
        assert compared.invalid or not compared.differences, shown(compared)
    assert invalid <= PART // 50


@pytest.mark.cluster
def test_the_scenarios_meet_every_plugin_and_reason(oracle: program.Oracle) -> None:
    """Nothing that is compared is compared on cases that never come up."""
    met = coverage.Coverage(scenarios.ALL_EXTRAS)
    for number in range(SCENARIOS // 2):
        met.add(oracle.ask(scenarios.scenario(SEED, number)))

    assert [] == met.zeros()


@pytest.mark.cluster
def test_the_oracle_ends_where_the_scheduler_ends() -> None:
    """A node the scheduler's own SchedulePod could choose, or its message word by word."""
    extras = frozenset(scenarios.EXTRAS)
    with program.Oracle(binaries.ensure_oracle(), checked=True) as checked:
        for number in range(PART):
            answer = checked.ask(scenarios.scenario(SEED, number, extras=extras))
            assert "error" not in answer, answer["error"]


@pytest.mark.cluster
def test_the_oracle_answers_whatever_it_is_sent(oracle: program.Oracle) -> None:
    """A line that is no request, one without a pod, a gate nobody knows: each gets its error, and it goes on."""
    oracle.send(b"nonsense")
    assert "not a request" in oracle.receive()["error"]
    assert "pod" in oracle.ask({"id": 1, "objects": []})["error"]
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "app"}]}}
    assert "NoSuchGate" in oracle.ask({"id": 2, "pod": pod, "featureGates": {"NoSuchGate": True}})["error"]

    answer = oracle.ask({"id": 3, "pod": pod})

    assert [3, "no nodes available to schedule pods"] == [answer["id"], answer["results"][0]["message"]]


def test_a_series_is_the_same_every_time() -> None:
    """A seed and a number name a scenario, wherever it is made."""
    assert scenarios.scenario(3, 14) == scenarios.scenario(3, 14)
    assert scenarios.scenario(3, 14) != scenarios.scenario(3, 15)


def test_extras_can_be_left_out() -> None:
    """Plugins that look at other pods may be left out of a comparison; nobody who does not say so leaves them out."""
    nothing: frozenset[str] = frozenset()
    plain = b"".join(msgspec.json.encode(scenarios.scenario(1, number, extras=nothing)) for number in range(50))
    rich = b"".join(msgspec.json.encode(scenarios.scenario(1, number)) for number in range(50))

    for field in (b"topologySpreadConstraints", b"podAffinity", b"podAntiAffinity"):
        assert field not in plain
        assert field in rich


def _answer(**node: object) -> Json:
    nodes = {"n1": {"status": "Success", "scores": {"NodeResourcesFit": 50}, "total": 50, **node}}
    return {"id": 1, "warnings": [], "results": [{"pod": "default/p", "outcome": "scheduled", "nodes": nodes}]}


def test_a_difference_names_field_and_both_values() -> None:
    """A score apart is told from one that is missing, and equal answers have none."""
    assert [] == list(comparing.differences(_answer(), _answer()))

    found = list(comparing.differences(_answer(), _answer(scores={"NodeResourcesFit": 51}, total=51)))

    assert ["nodes.total", "nodes.scores.NodeResourcesFit"] == [each.kind for each in found]
    assert "results[0].nodes.n1.scores.NodeResourcesFit: graphsched 50, oracle 51" == str(found[1])
    (lacking,) = comparing.differences(_answer(), _answer(scores={"NodeResourcesFit": 50, "ImageLocality": 0}))
    assert "graphsched nothing, oracle 0" in str(lacking)


def test_nothing_is_compared_after_pods_went_apart() -> None:
    """The second pod met another cluster."""
    ours, theirs = _answer(), _answer()
    for answer, node in ((ours, "n1"), (theirs, "n2")):
        answer["results"][0]["selected"] = node
        answer["results"].append({"pod": "default/q", "outcome": node})

    assert ["selected"] == [each.kind for each in comparing.differences(ours, theirs)]


def test_a_failure_shrinks_to_what_it_needs() -> None:
    """Here: one node's label and one pod's selector."""
    request = scenarios.scenario(5, 7)
    node = {"kind": "Node", "metadata": {"name": "here", "labels": {"zone": "a", "more": "b"}}, "spec": {}}
    request["objects"].append(node)
    request["pods"].append({"metadata": {"name": "this"}, "spec": {"nodeSelector": {"zone": "a", "more": "c"}}})
    before = copy.deepcopy(request)

    def fails(candidate: Json) -> bool:
        labelled = any(each.get("metadata", {}).get("labels", {}).get("zone") == "a" for each in candidate["objects"])
        asked = any(
            isinstance(each, dict) and each.get("spec", {}).get("nodeSelector", {}).get("zone") == "a"
            for each in candidate["pods"]
        )
        return labelled and asked

    small = shrinking.shrink(request, fails)

    assert before == request
    assert (1, 1) == (len(small["objects"]), len(small["pods"]))
    assert {"nodeSelector": {"zone": "a"}} == small["pods"][0]["spec"]
