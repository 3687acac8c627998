"""Diktyo's NetworkTopology and AppGroup, as descriptions.

A NetworkTopology weighs the ways between regions or zones with costs, which are numbers without a unit, and with
bandwidths in bits a second. The lists in it have two sets of names, those of its schema and those of its examples, and
both are read:

    weights[].topologyList[].originList[].costList[]         weights[].costList[].originCosts[].costs[]

An AppGroup names workloads and on which others each depends; pods say by two labels to which of them they belong.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator

from graphsched.base.kube import naming, selectors, wire
from graphsched.base.values import descriptions, errors, groups, labels, quantities, relations

NETWORK_TOPOLOGY = "NetworkTopology"
APP_GROUP = "AppGroup"
GROUP_LABEL = "appgroup.diktyo.x-k8s.io"
"""On a pod: the name of its AppGroup."""
WORKLOAD_LABEL = "appgroup.diktyo.x-k8s.io.workload"
"""On a pod: the `selector` of its workload."""
_PREFERRED = "UserDefined"
"""Of several sets of weights, the one that an operator wrote."""

_Item = typing.TypeVar("_Item")


class Cost(wire.Body, frozen=True, gc=False):
    """What the way to one destination costs."""

    destination: str = ""
    network_cost: int | None = None
    bandwidth_capacity: wire.Quantity | None = None


class Origin(wire.Body, frozen=True, gc=False):
    """The ways from one origin; either list."""

    origin: str = ""
    cost_list: list[Cost] | None = None
    costs: list[Cost] | None = None


class Level(wire.Body, frozen=True, gc=False):
    """The ways between the domains of one label; either list."""

    topology_key: str = ""
    origin_list: list[Origin] | None = None
    origin_costs: list[Origin] | None = None


class Weights(wire.Body, frozen=True, gc=False):
    """One set of weights; either list."""

    name: str = ""
    topology_list: list[Level] | None = None
    cost_list: list[Level] | None = None


class TopologySpec(wire.Body, frozen=True, gc=False):
    """spec of a NetworkTopology."""

    weights: list[Weights] | None = None


class NetworkTopology(wire.Body, frozen=True, gc=False):
    """A NetworkTopology."""

    metadata: wire.Metadata = wire.Metadata()
    spec: TopologySpec = TopologySpec()


class WorkloadInfo(wire.Body, frozen=True, gc=False):
    """`workload` of an entry of an AppGroup."""

    kind: str = ""
    name: str = ""
    selector: str = ""
    namespace: str = ""


class DependencyInfo(wire.Body, frozen=True, gc=False):
    """An entry of `dependencies`."""

    workload: WorkloadInfo = WorkloadInfo()
    min_bandwidth: wire.Quantity | None = None
    max_network_cost: int | None = None


class Workload(wire.Body, frozen=True, gc=False):
    """An entry of spec.workloads."""

    workload: WorkloadInfo = WorkloadInfo()
    dependencies: list[DependencyInfo] | None = None


class GroupSpec(wire.Body, frozen=True, gc=False):
    """spec of an AppGroup."""

    num_members: int | None = None
    topology_sorting_algorithm: str = ""
    workloads: list[Workload] | None = None


class AppGroup(wire.Body, frozen=True, gc=False):
    """An AppGroup."""

    metadata: wire.Metadata = wire.Metadata()
    spec: GroupSpec = GroupSpec()


TOPOLOGY_CODEC = wire.Codec(NETWORK_TOPOLOGY, NetworkTopology)
GROUP_CODEC = wire.Codec(APP_GROUP, AppGroup)


def of_topology(body: NetworkTopology) -> descriptions.Description:
    """What a NetworkTopology says: one link for each cost, from origin to destination.

    Of several sets of weights the one called UserDefined counts, or else the first that knows a way.

    Raises:
        InputError: A cost or a bandwidth is not what it should be.
    """
    by = f"diktyo/{naming.namespace_of(body.metadata)}/{naming.name_of(NETWORK_TOPOLOGY, body.metadata)}"
    ordered = sorted(enumerate(body.spec.weights or ()), key=lambda pair: (pair[1].name != _PREFERRED, pair[0]))
    ties: list[descriptions.Tie] = []
    with naming.blaming(NETWORK_TOPOLOGY, body.metadata):
        for rank, (index, weights) in enumerate(ordered):
            for label, origin, cost, field in _costs(weights, f"spec.weights[{index}]"):
                ends = descriptions.Domain(label, origin), descriptions.Domain(label, cost.destination)
                ties.append(descriptions.Tie(*ends, _link(by, cost, field), rank))
    return descriptions.Description(by, ties=tuple(ties))


def _costs(weights: Weights, field: str) -> Iterator[tuple[str, str, Cost, str]]:
    """Label, origin, cost and the place of each cost."""
    for level_at, level in _either(weights.topology_list, weights.cost_list, field, "topologyList", "costList"):
        if not selectors.is_label_key(level.topology_key):
            problem = f'"{level.topology_key}" is no label key'
            remedy = "name a node label, e.g. topology.kubernetes.io/zone"
            raise errors.InputError(f"{level_at}.topologyKey", problem=problem, remedy=remedy)
        for origin_at, origin in _either(level.origin_list, level.origin_costs, level_at, "originList", "originCosts"):
            for cost_at, cost in _either(origin.cost_list, origin.costs, origin_at, "costList", "costs"):
                if not origin.origin or not cost.destination:
                    problem = "has no origin" if not origin.origin else "has no destination"
                    raise errors.InputError(cost_at, problem=problem, remedy="name a value of the label")
                if origin.origin != cost.destination:
                    yield level.topology_key, origin.origin, cost, cost_at


def _either(
    first: list[_Item] | None, second: list[_Item] | None, field: str, first_name: str, second_name: str
) -> Iterator[tuple[str, _Item]]:
    """The items of whichever list is there, with the place of each."""
    for items, name in ((first, first_name), (second, second_name)):
        for index, item in enumerate(items or ()):
            yield f"{field}.{name}[{index}]", item


def _link(by: str, cost: Cost, field: str) -> relations.Link:
    if cost.network_cost is not None and not 0 <= cost.network_cost <= relations.COST_MAX:
        problem = f"{cost.network_cost} is out of range"
        raise errors.InputError(f"{field}.networkCost", problem=problem, remedy=f"use 0 to {relations.COST_MAX}")
    bandwidth = _mbps(cost.bandwidth_capacity, f"{field}.bandwidthCapacity")
    return relations.Link(bandwidth_mbps=bandwidth, by=by, cost=cost.network_cost)


def _mbps(quantity: wire.Quantity | None, field: str) -> float | None:
    """A quantity of bits a second in megabits."""
    if quantity is None:
        return None
    try:
        bits = quantities.parse_units(quantity)
    except errors.InputError as error:
        raise error.within(field) from error
    if bits < 0:
        raise errors.InputError(field, problem=f"{quantity} is negative", remedy="use e.g. 1Gi")
    return bits / 1e6


def of_group(body: AppGroup) -> descriptions.Description:
    """What an AppGroup says: one group.

    Raises:
        InputError: A workload has no name, one is there twice, or a number is not what it should be.
    """
    name, namespace = naming.name_of(APP_GROUP, body.metadata), naming.namespace_of(body.metadata)
    workloads: dict[str, groups.Workload] = {}
    with naming.blaming(APP_GROUP, body.metadata):
        for index, entry in enumerate(body.spec.workloads or ()):
            field = f"spec.workloads[{index}]"
            workload = _workload(name, entry, field)
            if workload.name in workloads:
                problem = f'workload "{workload.name}" is there twice'
                raise errors.InputError(field, problem=problem, remedy="remove or rename one")
            workloads[workload.name] = workload
    group = groups.Group(namespace, name, tuple(workloads.values()), body.spec.topology_sorting_algorithm)
    return descriptions.Description(f"appgroup/{namespace}/{name}", groups=(group,))


def _workload(group: str, entry: Workload, field: str) -> groups.Workload:
    info = entry.workload
    wanted = {GROUP_LABEL: group, WORKLOAD_LABEL: info.selector or info.name}
    requirements = (labels.Requirement(key, labels.Operator.IN, (value,)) for key, value in wanted.items())
    dependencies = tuple(
        _dependency(each, f"{field}.dependencies[{index}]") for index, each in enumerate(entry.dependencies or ())
    )
    return groups.Workload(_called(info, field), labels.selector(requirements), dependencies)


def _called(info: WorkloadInfo, field: str) -> str:
    """What the workload is known by in its group: its name, or the selector of one that has none."""
    called = info.name or info.selector
    if not called:
        raise errors.InputError(f"{field}.workload.name", problem="is missing", remedy="name the workload")
    return called


def _dependency(entry: DependencyInfo, field: str) -> groups.Dependency:
    most = entry.max_network_cost
    if most is not None and not 0 <= most <= relations.COST_MAX:
        problem = f"{most} is out of range"
        raise errors.InputError(f"{field}.maxNetworkCost", problem=problem, remedy=f"use 0 to {relations.COST_MAX}")
    return groups.Dependency(
        _called(entry.workload, field),
        bandwidth_mbps_min=_mbps(entry.min_bandwidth, f"{field}.minBandwidth"),
        cost_max=most,
    )
