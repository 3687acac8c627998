"""The ring of recent decisions: bounded, newest first, searchable by pod."""

from graphsched.base.values import keys, status
from graphsched.decision import trace
from graphsched.explain import history


def decided(name: str, node: str = "n1") -> trace.Decision:
    """A decision that placed the pod, or one that refused it where `node` is empty."""
    diagnosis = None if node else trace.Diagnosis(nodes=3, reasons=(("Insufficient cpu", 3),), plugins=("Fit",))
    return trace.Decision(keys.pod_key("default", name), "u", 7, node=node, diagnosis=diagnosis)


def test_the_oldest_makes_room() -> None:
    """Memory is bounded whatever happens."""
    kept = history.History(capacity=3)
    for number in range(10):
        kept.add(decided(f"p{number}"), time=float(number), seconds=0.001)

    assert 3 == len(kept)
    assert ["default/p9", "default/p8"] == [entry.pod for entry in kept.newest(2)]
    assert [] == kept.newest(5, "default/p1")


def test_one_pod_can_be_asked_for() -> None:
    """Newest first, with what refused it."""
    kept = history.History()
    kept.add(decided("a", node=""), time=1.0, seconds=0.001, message="0/3 nodes are available", attempt=1)
    kept.add(decided("b"), time=2.0, seconds=0.001)
    kept.add(decided("a"), time=3.0, seconds=0.001, attempt=2)
    entries = kept.newest(10, "default/a")

    assert [("placed", 2), ("refused", 1)] == [(entry.result, entry.attempt) for entry in entries]
    assert ({"Insufficient cpu": 3}, 3) == (entries[1].refusals, entries[1].nodes)
    assert kept.last_of("default/a") == entries[0]


def test_a_pod_refused_as_a_whole_counts_every_node() -> None:
    """There is no reason node by node."""
    refused = status.Status(status.Code.UNRESOLVABLE, ("not supported",), "GraphUnsupported")
    diagnosis = trace.Diagnosis(nodes=4, plugins=("GraphUnsupported",), prefilter=refused)
    decision = trace.Decision(keys.pod_key("default", "a"), "u", 7, diagnosis=diagnosis)

    assert {"not supported": 4} == history.History().add(decision, time=0.0, seconds=0.0).refusals
