"""The failure message is kube-scheduler's, letter for letter."""

import pytest

from graphsched.base.values import keys, pods, status
from graphsched.decision import trace
from graphsched.explain import refusals

CPU = "Insufficient cpu"
TAINT = "node(s) had untolerated taint(s)"


@pytest.mark.parametrize(
    ("diagnosis", "text"),
    [
        pytest.param(trace.Diagnosis(0), "no nodes available to schedule pods", id="an empty cluster"),
        pytest.param(
            trace.Diagnosis(3, ((CPU, 3),)), "0/3 nodes are available: 3 Insufficient cpu.", id="one reason for all"
        ),
        pytest.param(
            trace.Diagnosis(12, ((CPU, 2), (TAINT, 10))),
            "0/12 nodes are available: 10 node(s) had untolerated taint(s), 2 Insufficient cpu.",
            id="sorted as texts, so 10 comes before 2",
        ),
        pytest.param(
            trace.Diagnosis(2, (("Insufficient memory", 2), (CPU, 2))),
            "0/2 nodes are available: 2 Insufficient cpu, 2 Insufficient memory.",
            id="a node counts under each of its reasons",
        ),
        pytest.param(
            trace.Diagnosis(
                5, prefilter=status.Status(status.Code.UNRESOLVABLE, ("pod affinity terms conflict",), "NodeAffinity")
            ),
            "0/5 nodes are available: pod affinity terms conflict.",
            id="the pod as a whole",
        ),
        pytest.param(
            trace.Diagnosis(5, prefilter=status.Status(status.Code.UNRESOLVABLE, ("a", "b"), "X")),
            "0/5 nodes are available: a, b.",
            id="the pod as a whole for two reasons",
        ),
        pytest.param(
            trace.Diagnosis(5, prefilter=status.Status(status.Code.ERROR, ("scoring failed",), "X")),
            "scoring failed",
            id="an attempt that failed says nothing about nodes",
        ),
    ],
)
def test_a_refusal_reads(diagnosis: trace.Diagnosis, text: str) -> None:
    """One row of the table."""
    assert text == refusals.text(diagnosis)


def test_a_pod_that_is_being_deleted_is_passed_over_in_words() -> None:
    """As kube-scheduler says it."""
    pod = pods.Pod(keys.pod_key("shop", "web"))

    assert "skip schedule deleting pod: shop/web" == refusals.deleting(pod)
