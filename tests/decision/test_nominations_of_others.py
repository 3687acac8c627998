"""Room that another scheduler made for its pod is not taken from it.

kube-scheduler sees only the nominations of its own pods. Beside another scheduler that would mean taking the place for
which that one has just evicted somebody, so here every nomination counts: a deliberate difference.
"""

from __future__ import annotations

import pytest

from graphsched.base.values import keys, nodes, pods
from graphsched.decision import cycle
from graphsched.graph import delta, store


def _pod(name: str, *, scheduler: str, nominated: str = "", priority: int = 0) -> pods.Pod:
    demand = pods.Demand(((nodes.CPU, 600),), 600, 0)
    return pods.Pod(
        keys.pod_key("default", name),
        uid=name,
        spec=pods.Spec(demand=demand),
        held=demand,
        scheduler=scheduler,
        nominated=nominated,
        priority=priority,
    )


@pytest.mark.parametrize("other", ["default-scheduler", "graph-scheduler"])
def test_room_nominated_by_any_scheduler_counts_as_taken(other: str) -> None:
    """The only node has room for one of the two pods, and it was promised to the other one."""
    graph = store.Store()
    node = nodes.Node("n1", allocatable=((nodes.CPU, 1000), (nodes.PODS, 10)))
    ours = _pod("ours", scheduler="graph-scheduler")
    theirs = _pod("theirs", scheduler=other, nominated="n1", priority=1)
    graph.apply(delta.Patch().set_vertex(node).set_vertex(ours).set_vertex(theirs))

    decision = cycle.Decider().decide(graph.view(), ours)

    assert decision.diagnosis is not None
    assert (("Insufficient cpu", 1),) == decision.diagnosis.reasons
