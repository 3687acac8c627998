"""Host ports, resources and the GPU ledger: node by node.

`n1` has 4,000m CPU, 32 GiB and room for 110 pods unless a row says otherwise. U means that evicting pods may help, UAU
that it can not: the request is more than the node offers altogether.
"""

from __future__ import annotations

import pytest

from tests.builders import PodBuilder, make_node, make_pod
from tests.decision import tables
from tests.decision.tables import UAU, Config, Thing, U

OK: tuple[str, ...] = ()
POD = make_pod("web")
N1 = make_node("n1")
PORTS = (U, "NodePorts", "node(s) didn't have free ports for the requested pod ports")
FPGA = "example.com/fpga"
NATIVE = "scheduling.kubernetes.io/tokens"


def short(code: str, *resources: str) -> tuple[str, ...]:
    """What NodeResourcesFit says."""
    return (code, "NodeResourcesFit", *(each if " " in each else f"Insufficient {each}" for each in resources))


def bound(name: str = "old") -> PodBuilder:
    """A pod on n1."""
    return make_pod(name).node("n1")


SIDECAR_PORT = bound().sidecar("proxy").set("spec.initContainers.0.ports", [{"containerPort": 1, "hostPort": 80}])
INIT_PORT = bound().init_container("setup").set("spec.initContainers.0.ports", [{"containerPort": 1, "hostPort": 80}])

HOST_PORTS: dict[str, tuple[PodBuilder, list[Thing], tuple[str, ...]]] = {
    "nobody has the port": (POD.host_port(80), [N1, bound()], OK),
    "another pod has the port": (POD.host_port(80), [N1, bound().host_port(80)], PORTS),
    "another port": (POD.host_port(80), [N1, bound().host_port(81)], OK),
    "another protocol": (POD.host_port(80), [N1, bound().host_port(80, "UDP")], OK),
    "the same protocol, said by one and meant by the other": (
        POD.host_port(80, "TCP"),
        [N1, bound().set("spec.containers.0.ports", [{"containerPort": 80, "hostPort": 80}])],
        PORTS,
    ),
    "two addresses": (POD.host_port(80, ip="10.0.0.1"), [N1, bound().host_port(80, ip="10.0.0.2")], OK),
    "one address": (POD.host_port(80, ip="10.0.0.1"), [N1, bound().host_port(80, ip="10.0.0.1")], PORTS),
    "any address wants what one address has": (POD.host_port(80), [N1, bound().host_port(80, ip="10.0.0.1")], PORTS),
    "one address wants what any address has": (POD.host_port(80, ip="10.0.0.1"), [N1, bound().host_port(80)], PORTS),
    "0.0.0.0 is any address": (
        POD.host_port(80, ip="0.0.0.0"),  # noqa: S104  nothing is bound
        [N1, bound().host_port(80, ip="10.0.0.1")],
        PORTS,
    ),
    "one of two wanted ports is taken": (
        POD.host_port(80).host_port(81),
        [N1, bound().host_port(81)],
        PORTS,
    ),
    "a pod that wants no port meets no conflict": (POD, [N1, bound().host_port(80)], OK),
    "a container port is no host port": (
        POD.set("spec.containers.0.ports", [{"containerPort": 80}]),
        [N1, bound().host_port(80)],
        OK,
    ),
    "a sidecar's port counts": (POD.host_port(80), [N1, SIDECAR_PORT], PORTS),
    "a plain init container's port does not": (POD.host_port(80), [N1, INIT_PORT], OK),
    "a pod that is being deleted still has its port": (
        POD.host_port(80),
        [N1, bound().host_port(80).deleting()],
        PORTS,
    ),
    "ports are looked at before resources": (
        POD.host_port(80).cpu("5"),
        [N1, bound().host_port(80)],
        PORTS,
    ),
}

TINY = N1.cpu("1").memory("1Gi")
FITTING: dict[str, tuple[PodBuilder, list[Thing], tuple[str, ...]]] = {
    "exactly what is there": (POD.cpu("1").memory("1Gi"), [TINY], OK),
    "1m CPU more than there is": (POD.cpu("1001m"), [TINY], short(UAU, "cpu")),
    "a byte more than there is": (POD.memory("1073741825"), [TINY], short(UAU, "memory")),
    "a fraction of a milli is rounded up": (POD.cpu("1000.1m"), [TINY], short(UAU, "cpu")),
    "exactly what is left": (POD.cpu("600m"), [TINY, bound().cpu("400m")], OK),
    "1m more than is left": (POD.cpu("601m"), [TINY, bound().cpu("400m")], short(U, "cpu")),
    "two are short and both are named": (
        POD.cpu("601m").memory("1Gi"),
        [TINY, bound().cpu("400m").memory("1")],
        short(U, "cpu", "memory"),
    ),
    "one of the two is more than there is at all": (
        POD.cpu("601m").memory("2Gi"),
        [TINY, bound().cpu("400m").memory("1")],
        short(UAU, "cpu", "memory"),
    ),
    "no request asks for nothing, however full the node": (POD, [TINY, bound().cpu("3").memory("5Gi")], OK),
    "a request of zero asks for nothing": (POD.cpu("0").memory("0"), [TINY, bound().cpu("3").memory("5Gi")], OK),
    "only what is requested is looked at": (POD.memory("1"), [TINY, bound().cpu("3")], OK),
    "over-committed before": (POD.cpu("1m"), [TINY, bound().cpu("3")], short(U, "cpu")),
    "a node that offers no CPU": (POD.cpu("1m"), [N1.without("cpu")], short(UAU, "cpu")),
    "a node that offers nothing, and a pod that asks for nothing": (
        POD,
        [N1.without("cpu").without("memory")],
        OK,
    ),
    "the last place": (POD, [N1.pods(2), bound()], OK),
    "no place left": (POD, [N1.pods(1), bound()], short(U, "Too many pods")),
    "a node that takes no pods is full, never too small": (POD, [N1.pods(0)], short(U, "Too many pods")),
    "a node that does not say how many pods it takes": (POD, [N1.without("pods")], short(U, "Too many pods")),
    "full, and too small as well": (
        POD.cpu("2"),
        [TINY.pods(1), bound()],
        short(UAU, "cpu", "Too many pods"),
    ),
    "full, and short of CPU": (
        POD.cpu("1"),
        [TINY.pods(1), bound().cpu("1m")],
        short(U, "cpu", "Too many pods"),
    ),
    "pods that are being deleted still count": (POD, [N1.pods(1), bound().deleting()], short(U, "Too many pods")),
    "pods on another node do not": (POD, [N1.pods(1), make_pod("far").node("n2")], OK),
    "ephemeral storage is a resource": (
        POD.request("ephemeral-storage", "11"),
        [N1.resource("ephemeral-storage", "20"), bound().request("ephemeral-storage", "10")],
        short(U, "ephemeral-storage"),
    ),
    "an extended resource": (POD.request(FPGA, "1"), [N1.resource(FPGA, "1")], OK),
    "all of an extended resource is taken": (
        POD.request(FPGA, "1"),
        [N1.resource(FPGA, "1"), bound().request(FPGA, "1")],
        short(U, FPGA),
    ),
    "an extended resource the node has not": (POD.request(FPGA, "1"), [N1], short(UAU, FPGA)),
    "an extended resource of zero": (POD.request(FPGA, "0"), [N1], OK),
    "huge pages by size": (
        POD.request("hugepages-2Mi", "4Mi"),
        [N1.resource("hugepages-2Mi", "2Mi")],
        short(UAU, "hugepages-2Mi"),
    ),
    "attachable volumes": (
        POD.request("attachable-volumes-x", "2"),
        [N1.resource("attachable-volumes-x", "2"), bound().request("attachable-volumes-x", "1")],
        short(U, "attachable-volumes-x"),
    ),
    "a resource of Kubernetes' own": (POD.request(NATIVE, "2"), [N1.resource(NATIVE, "1")], short(UAU, NATIVE)),
    "a name that is no resource is passed over": (POD.request("bananas", "2"), [N1], OK),
    "reasons come sorted": (
        POD.request(FPGA, "1").request("hugepages-2Mi", "2Mi").cpu("9"),
        [N1],
        short(UAU, "cpu", FPGA, "hugepages-2Mi"),
    ),
}

IGNORING: dict[str, tuple[Config, PodBuilder, tuple[str, ...]]] = {
    "an ignored resource": ({"ignoredResources": [FPGA]}, POD.request(FPGA, "1"), OK),
    "another resource": ({"ignoredResources": ["example.com/other"]}, POD.request(FPGA, "1"), short(UAU, FPGA)),
    "a group": ({"ignoredResourceGroups": ["example.com"]}, POD.request(FPGA, "1"), OK),
    "part of a group's name is another group": (
        {"ignoredResourceGroups": ["example"]},
        POD.request(FPGA, "1"),
        short(UAU, FPGA),
    ),
    "what Kubernetes names itself can not be ignored": (
        {"ignoredResources": [NATIVE], "ignoredResourceGroups": ["scheduling.kubernetes.io"]},
        POD.request(NATIVE, "1"),
        short(UAU, NATIVE),
    ),
    "huge pages can not be ignored": (
        {"ignoredResources": ["hugepages-2Mi"]},
        POD.request("hugepages-2Mi", "2Mi"),
        short(UAU, "hugepages-2Mi"),
    ),
    "CPU can not be ignored": ({"ignoredResources": ["cpu"]}, POD.cpu("9"), short(UAU, "cpu")),
}

NO_MODEL = "node(s) had no GPU of a requested model"
NO_ROOM = "node(s) didn't have enough free GPU devices"


def gpus(code: str, reason: str) -> tuple[str, ...]:
    """What the ledger of devices says."""
    return (code, "GraphDevices", reason)


HALF = bound().gpu(1, 500)
LEDGER: dict[str, tuple[PodBuilder, list[Thing], tuple[str, ...]]] = {
    "a whole device": (POD.gpu(1), [N1.gpus(1)], OK),
    "no device": (POD.gpu(1), [N1], gpus(UAU, NO_MODEL)),
    "both devices": (POD.gpu(2), [N1.gpus(2)], OK),
    "more devices than there are": (POD.gpu(3), [N1.gpus(2)], gpus(UAU, NO_ROOM)),
    "a device is taken": (POD.gpu(2), [N1.gpus(2), bound().gpu(1).devices(0)], gpus(U, NO_ROOM)),
    "a fraction beside a fraction": (POD.gpu(1, 500), [N1.gpus(1), HALF.devices(0)], OK),
    "a thousandth too much": (POD.gpu(1, 501), [N1.gpus(1), HALF.devices(0)], gpus(U, NO_ROOM)),
    "two halves on two devices are no whole": (
        POD.gpu(1),
        [N1.gpus(2), HALF.devices(0), make_pod("other").node("n1").gpu(1, 500).devices(1)],
        gpus(U, NO_ROOM),
    ),
    "a fraction finds the other device": (POD.gpu(1, 600), [N1.gpus(2), HALF.devices(0)], OK),
    "two whole ones need two untouched": (POD.gpu(2), [N1.gpus(3), HALF.devices(1)], OK),
    "the model asked for": (POD.gpu(1, 1000, "T4"), [N1.gpus(1, "T4")], OK),
    "one of the models asked for": (POD.gpu(1, 1000, "A100", "T4"), [N1.gpus(1, "T4")], OK),
    "another model": (POD.gpu(1, 1000, "A100"), [N1.gpus(1, "T4")], gpus(UAU, NO_MODEL)),
    "any model": (POD.gpu(1), [N1.gpus(1, "T4")], OK),
    "a model is asked for and the node names none": (POD.gpu(1, 1000, "T4"), [N1.gpus(1)], gpus(UAU, NO_MODEL)),
    "resources are looked at before devices": (POD.gpu(1).cpu("5"), [N1], short(UAU, "cpu")),
    "a pod without GPUs does not care": (POD, [N1.gpus(1), bound().gpu(1).devices(0)], OK),
    "room nominated to another pod is taken": (
        POD.gpu(1),
        [N1.gpus(1), make_pod("boss").gpu(1).nominated("n1")],
        gpus(U, NO_ROOM),
    ),
}


@pytest.mark.parametrize("name", HOST_PORTS)
def test_table_of_host_ports(name: str) -> None:
    """NodePorts."""
    pod, cluster, expected = HOST_PORTS[name]
    assert expected == tables.ask(pod, cluster)["n1"].refusal


@pytest.mark.parametrize("name", FITTING)
def test_table_of_resources(name: str) -> None:
    """NodeResourcesFit as a filter."""
    pod, cluster, expected = FITTING[name]
    assert expected == tables.ask(pod, cluster)["n1"].refusal


@pytest.mark.parametrize("name", IGNORING)
def test_table_of_ignored_resources(name: str) -> None:
    """NodeResourcesFit with ignoredResources and ignoredResourceGroups, on a node that offers none of them."""
    args, pod, expected = IGNORING[name]
    config = tables.plugin_config("NodeResourcesFit", **args)
    assert expected == tables.ask(pod, [N1], config)["n1"].refusal


@pytest.mark.parametrize("name", LEDGER)
def test_table_of_shareable_gpus(name: str) -> None:
    """The ledger of devices, which no manifest can express: the engine alone is asked."""
    pod, cluster, expected = LEDGER[name]
    assert expected == tables.ask(pod, cluster)["n1"].refusal
