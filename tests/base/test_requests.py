"""Requests of a pod are added up as kube-scheduler adds them up."""

import dataclasses
import typing

import hypothesis
import pytest
from hypothesis import strategies

from graphsched.base.kube import requests, wire
from graphsched.base.values import errors, pods

MIB = 1 << 20
DEFAULT = (100, 200 * MIB)

Amounts = dict[str, str]


def container(name: str, needs: Amounts | None = None, **fields: typing.Any) -> dict[str, typing.Any]:
    """A container of a manifest."""
    return {"name": name, "resources": {"requests": needs or {}}, **fields}


def sidecar(name: str, needs: Amounts | None = None) -> dict[str, typing.Any]:
    """An init container that keeps running."""
    return container(name, needs, restartPolicy="Always")


def measure(spec: dict[str, typing.Any], status: dict[str, typing.Any]) -> tuple[pods.Demand, pods.Demand]:
    """Demand and holdings of a pod with this spec and status."""
    body = wire.POD.convert({"metadata": {"name": "p"}, "spec": spec, "status": status})
    return requests.measure(body.spec, body.status)


@dataclasses.dataclass
class Row:
    """A pod's spec, what it takes, and what it scores as."""

    about: str
    spec: dict[str, typing.Any]
    amounts: dict[str, int]
    scored: tuple[int, int]
    held_scored: tuple[int, int] | None = None


C = container
ROWS = [
    Row("no containers at all", {}, {}, (0, 0)),
    Row("a container without requests scores with defaults", {"containers": [C("a")]}, {}, DEFAULT),
    Row("two of them score twice", {"containers": [C("a"), C("b")]}, {}, (200, 400 * MIB)),
    Row("CPU alone", {"containers": [C("a", {"cpu": "250m"})]}, {"cpu": 250}, (250, 200 * MIB)),
    Row("memory alone", {"containers": [C("a", {"memory": "1Mi"})]}, {"memory": MIB}, (100, MIB)),
    Row(
        "an explicit 0 stays 0 and leaves no amount",
        {"containers": [C("a", {"cpu": "0", "memory": "0"})]},
        {},
        (0, 0),
    ),
    Row(
        "0 beside a missing key",
        {"containers": [C("a", {"cpu": "0"}), C("b")]},
        {},
        (100, 400 * MIB),
    ),
    Row(
        "regular containers add up",
        {"containers": [C("a", {"cpu": "1", "memory": "1Mi"}), C("b", {"cpu": "500m", "memory": "2Mi"})]},
        {"cpu": 1500, "memory": 3 * MIB},
        (1500, 3 * MIB),
    ),
    Row("nano-CPU is rounded up", {"containers": [C("a", {"cpu": "1n"})]}, {"cpu": 1}, (1, 200 * MIB)),
    Row(
        "parts of a byte are added before they are rounded",
        {"containers": [C(name, {"memory": "100m"}) for name in "abc"]},
        {"memory": 1},
        (300, 1),
    ),
    Row(
        "eleven tenths of a byte are two bytes",
        {"containers": [C(str(index), {"memory": "100m"}) for index in range(11)]},
        {"memory": 2},
        (1100, 2),
    ),
    Row(
        "memory beyond what thousandths can hold",
        {"containers": [C("a", {"memory": "4Ei"})]},
        {"memory": 4 << 60},
        (100, 4 << 60),
    ),
    Row(
        "an init container below the sum does not show",
        {"containers": [C("a", {"cpu": "2"})], "initContainers": [C("i", {"cpu": "1"})]},
        {"cpu": 2000},
        (2000, 200 * MIB),
    ),
    Row(
        "an init container above the sum is the peak, per resource",
        {
            "containers": [C("a", {"cpu": "2", "memory": "1Mi"})],
            "initContainers": [C("i", {"cpu": "1", "memory": "3Mi"}), C("j", {"cpu": "3"})],
        },
        {"cpu": 3000, "memory": 3 * MIB},
        (3000, 200 * MIB),
    ),
    Row(
        "a sidecar counts beside the regular ones",
        {"containers": [C("a", {"cpu": "1"})], "initContainers": [sidecar("s", {"cpu": "500m"})]},
        {"cpu": 1500},
        (1500, 400 * MIB),
    ),
    Row(
        "an init container peaks on top of the sidecars before it",
        {
            "containers": [C("a", {"cpu": "1"})],
            "initContainers": [sidecar("s", {"cpu": "1"}), C("i", {"cpu": "2"})],
        },
        {"cpu": 3000},
        (3000, 400 * MIB),
    ),
    Row(
        "and not of the sidecars after it",
        {
            "containers": [C("a", {"cpu": "1"})],
            "initContainers": [C("i", {"cpu": "2"}), sidecar("s", {"cpu": "1"})],
        },
        {"cpu": 2000},
        (2000, 400 * MIB),
    ),
    Row(
        "overhead is on top",
        {"containers": [C("a", {"cpu": "1"})], "overhead": {"cpu": "250m", "memory": "1Mi"}},
        {"cpu": 1250, "memory": MIB},
        (1250, 201 * MIB),
    ),
    Row(
        "pod-level requests replace what they name; the scorer of the incoming pod does not see them",
        {"containers": [C("a", {"cpu": "1", "memory": "1Mi"})], "resources": {"requests": {"cpu": "3"}}},
        {"cpu": 3000, "memory": MIB},
        (1000, MIB),
        (3000, MIB),
    ),
    Row(
        "pod-level requests may be below the sum",
        {"containers": [C("a", {"cpu": "4"})], "resources": {"requests": {"cpu": "3", "memory": "5Mi"}}},
        {"cpu": 3000, "memory": 5 * MIB},
        (4000, 200 * MIB),
        (3000, 5 * MIB),
    ),
    Row(
        "a default applies on the node only to what is absent everywhere",
        {"containers": [C("a"), C("b")], "resources": {"requests": {"cpu": "1"}}},
        {"cpu": 1000},
        (200, 400 * MIB),
        (1000, 400 * MIB),
    ),
    Row(
        "a container that names it stops the default of the other",
        {"containers": [C("a", {"memory": "1Mi"}), C("b")], "resources": {"requests": {"cpu": "1"}}},
        {"cpu": 1000, "memory": MIB},
        (200, 201 * MIB),
        (1000, MIB),
    ),
    Row(
        "overhead is on top of pod-level requests",
        {"containers": [C("a")], "resources": {"requests": {"cpu": "1"}}, "overhead": {"cpu": "1"}},
        {"cpu": 2000},
        (1100, 200 * MIB),
        (2000, 200 * MIB),
    ),
    Row(
        "huge pages may be asked for by the pod",
        {"containers": [C("a", {"cpu": "1"})], "resources": {"requests": {"hugepages-2Mi": "4Mi"}}},
        {"cpu": 1000, "hugepages-2Mi": 4 * MIB},
        (1000, 200 * MIB),
    ),
    Row(
        "other resources may not",
        {"containers": [C("a", {"cpu": "1"})], "resources": {"requests": {"example.com/gpu": "4"}}},
        {"cpu": 1000},
        (1000, 200 * MIB),
    ),
    Row(
        "scalars count in whole units, rounded up",
        {"containers": [C("a", {"cpu": "1", "example.com/gpu": "1", "ephemeral-storage": "1500m"})]},
        {"cpu": 1000, "ephemeral-storage": 2, "example.com/gpu": 1},
        (1000, 200 * MIB),
    ),
    Row(
        "what is no resource is not counted",
        {"containers": [C("a", {"cpu": "1", "pods": "3", "gpu": "1", "requests.cpu": "1"})]},
        {"cpu": 1000},
        (1000, 200 * MIB),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.about)
def test_a_pod_takes_what_kube_scheduler_counts(row: Row) -> None:
    """Rows: spec, amounts, and CPU and memory as the score counts them, pending and placed."""
    demand, held = measure(row.spec, {})

    amounts = tuple(sorted(row.amounts.items()))
    assert demand == pods.Demand(amounts, *row.scored)
    assert held == pods.Demand(amounts, *(row.held_scored or row.scored))


def status(name: str, actuated: Amounts | None, allocated: Amounts | None = None) -> dict[str, typing.Any]:
    """The status of a container."""
    found: dict[str, typing.Any] = {"name": name}
    if actuated is not None:
        found["resources"] = {"requests": actuated}
    if allocated is not None:
        found["allocatedResources"] = allocated
    return found


INFEASIBLE = {"conditions": [{"type": "PodResizePending", "reason": "Infeasible"}]}
DEFERRED = {"conditions": [{"type": "PodResizePending", "reason": "Deferred"}]}
ONE = {"containers": [C("a", {"cpu": "2"})]}
RESIZES = [
    ("no report", ONE, {"containerStatuses": [status("a", None, {"cpu": "5"})]}, 2000),
    ("shrinking: what it still has", ONE, {"containerStatuses": [status("a", {"cpu": "4"})]}, 4000),
    ("growing: what it will have", ONE, {"containerStatuses": [status("a", {"cpu": "1"})]}, 2000),
    ("what was promised", ONE, {"containerStatuses": [status("a", {"cpu": "1"}, {"cpu": "3"})]}, 3000),
    ("deferred counts the wish", ONE, {"containerStatuses": [status("a", {"cpu": "1"})], **DEFERRED}, 2000),
    ("infeasible does not", ONE, {"containerStatuses": [status("a", {"cpu": "1"})], **INFEASIBLE}, 1000),
    ("a stranger's status", ONE, {"containerStatuses": [status("b", {"cpu": "9"})]}, 2000),
    (
        "a sidecar is resized",
        {"containers": [C("a", {"cpu": "1"})], "initContainers": [sidecar("s", {"cpu": "1"})]},
        {"initContainerStatuses": [status("s", {"cpu": "3"})]},
        4000,
    ),
    (
        "an init container is not",
        {"containers": [C("a", {"cpu": "1"})], "initContainers": [C("i", {"cpu": "1"})]},
        {"initContainerStatuses": [status("i", {"cpu": "3"})]},
        1000,
    ),
    (
        "the pod as a whole",
        {**ONE, "resources": {"requests": {"cpu": "3"}}},
        {"resources": {"requests": {"cpu": "5"}}, "allocatedResources": {"cpu": "4"}},
        5000,
    ),
    (
        "the pod as a whole, infeasible",
        {**ONE, "resources": {"requests": {"cpu": "9"}}},
        {"resources": {"requests": {"cpu": "5"}}, "allocatedResources": {"cpu": "6"}, **INFEASIBLE},
        6000,
    ),
]


@pytest.mark.parametrize(("about", "spec", "report", "cpu"), RESIZES, ids=[row[0] for row in RESIZES])
def test_a_resize_counts_on_the_node_and_not_for_the_incoming_pod(
    about: str,
    spec: dict[str, typing.Any],
    report: dict[str, typing.Any],
    cpu: int,
) -> None:
    """Rows: spec, status, milli-CPU held."""
    asked, _ = measure(spec, {})
    demand, held = measure(spec, report)

    assert asked == demand
    assert cpu == dict(held.amounts)["cpu"]


@pytest.mark.parametrize(
    ("name", "counted"),
    [
        ("example.com/gpu", True),
        ("nvidia.com/gpu", True),
        ("hugepages-1Gi", True),
        ("attachable-volumes-aws-ebs", True),
        ("scheduling.kubernetes.io/foo", True),
        ("gpu", False),
        ("requests.example.com/gpu", False),
        ("Example.com/gpu", False),
        ("example.com/", False),
        ("example.com/a/b", False),
        ("a" * 250 + ".com/gpu", False),
        ("example.com/" + "g" * 64, False),
        ("storage", False),
    ],
)
def test_scalars_are_told_from_names_nobody_counts(name: str, counted: bool) -> None:
    """Extended, huge page, prefixed native and attachable names count."""
    assert requests.is_scalar(name) is counted


def test_a_bad_quantity_names_its_field() -> None:
    """Which container and which resource."""
    with pytest.raises(errors.InputError) as caught:
        measure({"containers": [C("a"), C("b", {"cpu": "12Gx"})]}, {})

    expected = 'spec.containers[1].resources.requests.cpu: "12Gx" is not a quantity (use e.g. 12, 500m, 1.5Gi)'
    assert expected == str(caught.value)


def test_a_negative_request_is_refused() -> None:
    """It would make room on a node."""
    with pytest.raises(errors.InputError, match=r'initContainers\[0\].resources.requests.cpu: "-1" is negative'):
        measure({"initContainers": [C("a", {"cpu": "-1"})]}, {})


amount = strategies.integers(min_value=0, max_value=10_000)
needs = strategies.dictionaries(strategies.sampled_from(["cpu", "memory"]), amount.map(lambda value: f"{value}m"))


@hypothesis.given(strategies.lists(needs, max_size=4), strategies.lists(needs, max_size=4))
def test_more_init_containers_never_take_less(regular: list[Amounts], initial: list[Amounts]) -> None:
    """The peak is a maximum: each init container can only raise it, and alone sets the least."""
    containers = [C(str(index), entry) for index, entry in enumerate(regular)]
    without, _ = measure({"containers": containers}, {})
    demand, _ = measure({"containers": containers, "initContainers": [C("i", entry) for entry in initial]}, {})

    assert all(dict(demand.amounts)[name] >= value for name, value in without.amounts)
    assert demand.scored_cpu >= without.scored_cpu
