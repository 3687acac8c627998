"""NodeResourceTopologies as descriptions: the NUMA cells of a node, what each has, and how far they are apart.

Written by node agents, one object a node and of its name. The distances between cells are the firmware's own numbers,
10 for a cell itself; they are kept as costs, since they are no time.
"""

from __future__ import annotations

from graphsched.base.kube import naming, requests, wire
from graphsched.base.values import descriptions, errors, keys, labels, nodes, places, relations

KIND = "NodeResourceTopology"
_POLICY = "topologyManagerPolicy"
"""Name of the attribute that says it; older agents say it in `topologyPolicies`."""


class Distance(wire.Body, frozen=True, gc=False):
    """An entry of `costs`."""

    name: str = ""
    value: int = 0


class ZoneResource(wire.Body, frozen=True, gc=False):
    """An entry of `resources`: what the cell has, what of it pods may have, and how much of that is free."""

    name: str = ""
    capacity: wire.Quantity | None = None
    allocatable: wire.Quantity | None = None
    available: wire.Quantity | None = None


class Zone(wire.Body, frozen=True, gc=False):
    """An entry of `zones`."""

    name: str = ""
    type: str = ""
    parent: str = ""
    costs: list[Distance] | None = None
    resources: list[ZoneResource] | None = None


class Attribute(wire.Body, frozen=True, gc=False):
    """An entry of `attributes`."""

    name: str = ""
    value: str = ""


class NodeResourceTopology(wire.Body, frozen=True, gc=False):
    """A NodeResourceTopology; its fields are at the top."""

    metadata: wire.Metadata = wire.Metadata()
    topology_policies: list[str] | None = None
    attributes: list[Attribute] | None = None
    zones: list[Zone] | None = None


CODEC = wire.Codec(KIND, NodeResourceTopology)


def describe(body: NodeResourceTopology) -> descriptions.Description:
    """What the object says.

    Raises:
        InputError: A zone has no name, is there twice or hangs under none, or a number is not what it should be.
    """
    node = naming.name_of(KIND, body.metadata)
    by = f"noderesourcetopology/{node}"
    found: dict[str, places.Place] = {}
    ties: list[descriptions.Tie] = []
    zones = body.zones or []
    told = _policy(body)
    with naming.blaming(KIND, body.metadata):
        names = {zone.name for zone in zones}
        for index, zone in enumerate(zones):
            field = f"zones[{index}]"
            if not zone.name or zone.name in found:
                problem = f'"{zone.name}" is there twice' if zone.name else "is missing"
                raise errors.InputError(f"{field}.name", problem=problem, remedy="give each zone a name of its own")
            if zone.parent and (zone.parent not in names or zone.parent == zone.name):
                problem = f'there is no other zone "{zone.parent}"'
                raise errors.InputError(f"{field}.parent", problem=problem, remedy="name a zone of the object")
            kind = places.NUMA if zone.type in {"", "Node"} else zone.type.lower()
            amounts, available = _amounts(zone, field)
            name = places.cell_name(node, zone.name)
            place = places.Place(name, kind, labels=told, amounts=amounts, available=available)
            found[zone.name] = place
            holder = keys.place_key(places.cell_name(node, zone.parent)) if zone.parent else keys.node_key(node)
            ties.append(descriptions.Tie(holder, place.key, relations.Contains(by)))
            ties += _distances(zone, place.key, node, names, by, field)
    return descriptions.Description(by, places=tuple(found.values()), ties=tuple(ties))


def _policy(body: NodeResourceTopology) -> labels.Labels:
    """How its kubelet aligns, as the label of its places."""
    by_attribute = next((each.value for each in body.attributes or () if each.name == _POLICY and each.value), "")
    policy = by_attribute or ",".join(body.topology_policies or ())
    return ((places.POLICY, policy),) if policy else labels.NO_LABELS


def _distances(
    zone: Zone, source: keys.VertexKey, node: str, names: set[str], by: str, field: str
) -> list[descriptions.Tie]:
    ties = []
    for index, each in enumerate(zone.costs or ()):
        if not 0 <= each.value <= relations.COST_MAX:
            problem = f"{each.value} is out of range"
            remedy = f"use 0 to {relations.COST_MAX}"
            raise errors.InputError(f"{field}.costs[{index}].value", problem=problem, remedy=remedy)
        if each.name in names and each.name != zone.name:
            link = relations.Link(by=by, cost=each.value)
            ties.append(descriptions.Tie(source, keys.place_key(places.cell_name(node, each.name)), link))
    return ties


def _amounts(zone: Zone, field: str) -> tuple[nodes.Amounts, nodes.Amounts]:
    """What pods may have of the zone (its capacity where nobody says how much of it that is), and what is free."""
    whole: dict[str, int] = {}
    free: dict[str, int] = {}
    for index, each in enumerate(zone.resources or ()):
        if not requests.counted(each.name):
            continue
        for amounts, given in ((whole, each.allocatable), (free, each.available)):
            if given is not None:
                amounts[each.name] = requests.milli(given, f"{field}.resources[{index}]")
        if each.allocatable is None and each.capacity is not None:
            whole[each.name] = requests.milli(each.capacity, f"{field}.resources[{index}]")
    return requests.amounts(whole, keep_zeros=True), requests.amounts(free, keep_zeros=True)
