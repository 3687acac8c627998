"""What a pod asks for and what it holds: init containers, sidecars, overhead, pod-level requests, resizes.

The amount is found by experiment: a node that offers exactly the expected amount takes the pod, and one that offers a
unit less does not. For what a placed pod holds, the node has the expected amount and one unit more, and a newcomer that
wants one unit fits, but not one that wants two.
"""

from __future__ import annotations

import typing

import pytest

from tests.builders import PodBuilder, make_node, make_pod
from tests.decision import tables

POD = make_pod("web")
MIB = 1 << 20


class Need(typing.NamedTuple):
    """milli-CPU and MiB."""

    cpu: int
    memory: int = 0


def mem(mebibytes: int) -> dict[str, str]:
    """A request for memory."""
    return {"memory": f"{mebibytes}Mi"}


def cpu(milli: int) -> dict[str, str]:
    """A request for CPU."""
    return {"cpu": f"{milli}m"}


ASKED: dict[str, tuple[PodBuilder, Need]] = {
    "one container": (POD.cpu("300m").memory("5Mi"), Need(300, 5)),
    # 300 + 200
    "containers add up": (POD.cpu("300m").container("b", cpu(200)), Need(500)),
    # max(300, 800) = 800
    "an init container that needs more than the rest": (POD.cpu("300m").init_container("i", cpu(800)), Need(800)),
    # max(300, 200) = 300
    "an init container that needs less": (POD.cpu("300m").init_container("i", cpu(200)), Need(300)),
    # max(300, 500, 400): they run one after the other
    "init containers do not add up": (
        POD.cpu("300m").init_container("i", cpu(500)).init_container("j", cpu(400)),
        Need(500),
    ),
    # cpu max(300, 500), memory max(9, 5): each resource by itself
    "the peak is taken for each resource by itself": (
        POD.cpu("300m").memory("9Mi").init_container("i", {**cpu(500), **mem(5)}),
        Need(500, 9),
    ),
    # 300 + 200
    "a sidecar adds to the containers": (POD.cpu("300m").sidecar("s", cpu(200)), Need(500)),
    # the sidecar runs while the init container does: max(300 + 200, 200 + 400)
    "a sidecar before an init container adds to its peak": (
        POD.cpu("300m").sidecar("s", cpu(200)).init_container("i", cpu(400)),
        Need(600),
    ),
    # not yet started: max(300 + 200, 400)
    "a sidecar after an init container does not": (
        POD.cpu("300m").init_container("i", cpu(400)).sidecar("s", cpu(200)),
        Need(500),
    ),
    # max(100 + 200 + 50, 200 + 50 + 400): both sidecars come before the init container
    "two sidecars before an init container": (
        POD.cpu("100m").sidecar("s", cpu(200)).sidecar("t", cpu(50)).init_container("i", cpu(400)),
        Need(650),
    ),
    # 300 + 50
    "overhead is added": (POD.cpu("300m").overhead(cpu(50)), Need(350)),
    # max(300, 800) + 50 = 850
    "overhead is added to the peak": (POD.cpu("300m").init_container("i", cpu(800)).overhead(cpu(50)), Need(850)),
    "overhead of a resource nobody requests": (POD.cpu("300m").overhead(mem(7)), Need(300, 7)),
    "pod-level requests replace those of containers": (POD.cpu("300m").pod_requests(cpu(700)), Need(700)),
    "pod-level requests may be less": (POD.cpu("300m").pod_requests(cpu(200)), Need(200)),
    "only the resource they name": (POD.cpu("300m").memory("9Mi").pod_requests(cpu(700)), Need(700, 9)),
    "pod-level requests replace the peak too": (
        POD.cpu("300m").init_container("i", cpu(800)).pod_requests(cpu(700)),
        Need(700),
    ),
    # 700 + 50
    "overhead is added on top of them": (POD.cpu("300m").pod_requests(cpu(700)).overhead(cpu(50)), Need(750)),
    "a resize that the status tells of does not change what is asked for": (
        POD.cpu("300m").set("status.containerStatuses", [{"name": "main", "resources": {"requests": {"cpu": "900m"}}}]),
        Need(300),
    ),
}


def status_of(container: str, *, actuated: int, allocated: int | None = None) -> dict[str, typing.Any]:
    """What the kubelet says a container has."""
    found: dict[str, typing.Any] = {"name": container, "resources": {"requests": cpu(actuated)}}
    if allocated is not None:
        found["allocatedResources"] = cpu(allocated)
    return found


PLACED = make_pod("old").node("n1").cpu("300m")
INFEASIBLE = [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]
DEFERRED = [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]
STATUSES = "status.containerStatuses"

HELD: dict[str, tuple[PodBuilder, int]] = {
    "as its spec says": (PLACED, 300),
    # max(spec 300, actuated 900)
    "shrinking: what it still has": (PLACED.set(STATUSES, [status_of("main", actuated=900)]), 900),
    # max(spec 300, actuated 100)
    "growing: what it will have": (PLACED.set(STATUSES, [status_of("main", actuated=100)]), 300),
    # max(300, 100, 500) = 500
    "what the kubelet has promised": (PLACED.set(STATUSES, [status_of("main", actuated=100, allocated=500)]), 500),
    # max(actuated 100, allocated 200): the spec's 300 will never come
    "a resize that can not be": (
        PLACED.set(STATUSES, [status_of("main", actuated=100, allocated=200)]).set("status.conditions", INFEASIBLE),
        200,
    ),
    # max(300, 100, 200) = 300
    "a resize that is put off": (
        PLACED.set(STATUSES, [status_of("main", actuated=100, allocated=200)]).set("status.conditions", DEFERRED),
        300,
    ),
    # 300 + max(200, 700) = 1000
    "a sidecar that shrinks": (
        PLACED.sidecar("s", cpu(200)).set("status.initContainerStatuses", [status_of("s", actuated=700)]),
        1000,
    ),
    # max(300, 200): the status of a plain init container is not looked at
    "an init container that has run": (
        PLACED.init_container("i", cpu(200)).set("status.initContainerStatuses", [status_of("i", actuated=900)]),
        300,
    ),
    "pod-level requests": (PLACED.pod_requests(cpu(700)), 700),
    # max(spec 700, actuated 900)
    "pod-level requests that shrink": (
        PLACED.pod_requests(cpu(700)).set("status.resources", {"requests": cpu(900)}),
        900,
    ),
    # max(700, 100, 800) = 800
    "pod-level requests the kubelet has promised": (
        PLACED.pod_requests(cpu(700))
        .set("status.resources", {"requests": cpu(100)})
        .set("status.allocatedResources", cpu(800)),
        800,
    ),
    "overhead": (PLACED.overhead(cpu(50)), 350),
    "a pod that is being deleted": (PLACED.deleting(), 300),
    "a status without resources": (PLACED.set(STATUSES, [{"name": "main"}]), 300),
    "a status of another container": (PLACED.set(STATUSES, [status_of("gone", actuated=900)]), 300),
}


@pytest.mark.parametrize("name", ASKED)
def test_table_of_what_a_pod_asks_for(name: str) -> None:
    """The pod fits where exactly that is offered, and not where it is a unit less, which no eviction changes."""
    pod, need = ASKED[name]
    node = make_node("n1").cpu(f"{need.cpu}m").memory(f"{need.memory}Mi")

    assert () == tables.ask(pod, [node])["n1"].refusal

    less = tables.ask(pod, [node.cpu(f"{need.cpu - 1}m")])["n1"]
    assert (tables.UAU, "NodeResourcesFit", "Insufficient cpu") == less.refusal
    if need.memory:
        less = tables.ask(pod, [node.memory(str(need.memory * MIB - 1))])["n1"]
        assert (tables.UAU, "NodeResourcesFit", "Insufficient memory") == less.refusal


@pytest.mark.parametrize("name", HELD)
def test_table_of_what_a_placed_pod_holds(name: str) -> None:
    """Beside it there is room for one milli-CPU on a node that has one more than it holds, and not for two."""
    old, held = HELD[name]
    cluster: list[tables.Thing] = [make_node("n1").cpu(f"{held + 1}m"), old]

    assert () == tables.ask(POD.cpu("1m"), cluster)["n1"].refusal
    assert (tables.U, "NodeResourcesFit", "Insufficient cpu") == tables.ask(POD.cpu("2m"), cluster)["n1"].refusal
