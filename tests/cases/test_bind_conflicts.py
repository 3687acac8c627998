"""
Case 035: a binding that is refused, lost or too late leaves nothing behind in the scheduler's mind.

Real: API server, each scheduler. Between scheduler and API server stands `runner/middleman.py`, which holds a binding
while a rival is faster. No kwok: it finishes a deletion by name, not by uid, and under load meets the pod that has been
created under that name since.
"""

import contextlib
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cases.runner import cases, middleman, schedulers
from tests.cluster import scheduling
from tests.controlplane import cluster as clusters, processes

pytestmark = pytest.mark.cluster

CASE = cases.all_cases()["035-lifecycle-bind-conflict-and-deleted-pod"]
NAME = "held-scheduler"
PODS = {pod["metadata"]["name"]: pod for pod in CASE.pending}

WON, CONFLICT, GONE, FAILED = 201, 409, 404, 500


class Story:
    """The cluster, what stands before it, and who is under test."""

    def __init__(self, cluster: clusters.Cluster, between: middleman.Middleman, scheduler: processes.Process) -> None:
        self.cluster = cluster
        self.between = between
        self.scheduler = scheduler

    def create(self, name: str, *, hold: bool = False) -> middleman.Held | None:
        """Create a pod of the case; wait for its binding if that is to be held."""
        if hold:
            self.between.hold(name)
        pod = PODS[name]
        self.cluster.call("POST", scheduling.PODS, {**pod, "spec": {**pod["spec"], "schedulerName": NAME}})
        return self.between.arrived() if hold else None

    def delete(self, name: str) -> None:
        """Delete it at once."""
        self.cluster.call("DELETE", f"{scheduling.PODS}/{name}", {"gracePeriodSeconds": 0})

    def rival(self, name: str, node: str) -> None:
        """Bind it as another scheduler does; the API server does not look at selectors."""
        body = {"metadata": {"name": name}, "target": {"apiVersion": "v1", "kind": "Node", "name": node}}
        self.cluster.call("POST", f"{scheduling.PODS}/{name}/binding", body)

    def robbed(self, name: str, node: str, *, onward: middleman.Onward = middleman.Onward.PASSES) -> int:
        """The scheduler binds the pod, but a rival has done so before; the status that the scheduler gets."""
        held = self.create(name, hold=True)
        assert held is not None
        self.rival(name, node)
        return held.let_go(onward)

    def wait(self, what: str, happened: Any) -> None:
        """Wait for the cluster to show something."""
        scheduling.wait(what, happened, timeout_s=20.0, watched=(self.scheduler,))

    def wait_bound(self, name: str, node: str) -> None:
        """Wait until it is bound; only this node is right."""
        self.wait(f"{name} is bound to {node}", lambda: scheduling.places(self.cluster).get(name))

        assert node == scheduling.places(self.cluster)[name]

    def wait_refused(self, name: str) -> None:
        """Wait until it is told that there is no room."""
        self.wait(f"{name} waits", lambda: "Insufficient cpu" in scheduling.condition(self.cluster, name)[1])


@pytest.mark.parametrize("which", schedulers.BOTH)
def test_a_refused_or_late_binding_leaves_no_trace(
    cluster: clusters.Cluster, tmp_path: pathlib.Path, which: str
) -> None:
    """After rivals, deletions, failures and lost answers the API server is believed, and nobody is bound twice."""
    for node in CASE.objects:
        cluster.call("POST", scheduling.NODES, node)
    with (
        _without_kwok(cluster),
        middleman.Middleman(cluster) as between,
        schedulers.either(which, cluster, name=NAME, server=between.url) as running,
    ):
        story = Story(cluster, between, running.process)
        _a_rival_is_faster(story)
        _the_pod_is_deleted(story)
        _a_deleted_pod_makes_room(story)

        # Not one binding more: neither for a pod that the rival placed, nor for one that is gone.
        assert [("p1", CONFLICT), ("p2", WON), ("p3", GONE), ("p4", WON)] == between.bindings()
        _nothing_works_at_first(story)
        _the_answer_is_lost(story)

        assert len(scheduling.notes(cluster, "p3")) <= 2
        running.process.require_alive()
        assert "Traceback" not in running.process.tail(10_000)


@contextlib.contextmanager
def _without_kwok(cluster: clusters.Cluster) -> Iterator[None]:
    cluster.stop_kwok()
    try:
        yield
    finally:
        cluster.start_kwok()


def _a_rival_is_faster(story: Story) -> None:
    """The room that was assumed for p1 is given back at once: p2 needs all of it."""
    assert CONFLICT == story.robbed("p1", "n2")
    story.create("p2")
    story.wait_bound("p2", "n1")
    story.wait_bound("p1", "n2")


def _the_pod_is_deleted(story: Story) -> None:
    """A binding that comes too late is dropped with its pod."""
    story.delete("p1")
    held = story.create("p3", hold=True)
    assert held is not None
    story.delete("p3")
    assert GONE == held.let_go()


def _a_deleted_pod_makes_room(story: Story) -> None:
    """The node that the rival took is known to be full, and known to be free as soon as it is."""
    story.create("p1")
    story.wait_refused("p1")
    story.rival("p1", "n2")
    story.create("p4")
    story.wait_refused("p4")
    story.delete("p1")
    story.wait_bound("p4", "n2")


def _nothing_works_at_first(story: Story) -> None:
    """A failure is believed to be one: where a rival was faster that shows, and else the pod is tried again."""
    story.delete("p2")
    story.delete("p4")
    assert FAILED == story.robbed("p1", "n2", onward=middleman.Onward.FAILS)
    story.create("p2")
    story.wait_bound("p2", "n1")
    story.delete("p1")
    story.delete("p2")
    held = story.create("p1", hold=True)
    assert held is not None
    assert FAILED == held.let_go(middleman.Onward.FAILS)
    story.wait_bound("p1", "n1")
    assert [("p1", FAILED), ("p2", WON), ("p1", FAILED), ("p1", WON)] == story.between.bindings()[4:]
    story.delete("p1")


def _the_answer_is_lost(story: Story) -> None:
    """The pod is bound although nobody said so; another attempt changes nothing, and the node is charged once."""
    before = len(story.between.bindings())
    held = story.create("p1", hold=True)
    assert held is not None
    assert WON == held.let_go(middleman.Onward.LOSES_ANSWER)
    story.create("p2")
    story.wait_refused("p2")
    assert "n1" == scheduling.places(story.cluster)["p1"]
    story.delete("p1")
    story.wait_bound("p2", "n1")
    asked = story.between.bindings()[before:]
    assert [("p1", WON), ("p2", WON)] == [each for each in asked if each != ("p1", CONFLICT)]
    assert len(asked) <= 3
