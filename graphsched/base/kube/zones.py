"""NodeResourceTopologies as descriptions: the NUMA cells of a node, what each has, and how far they are apart.

Written by node agents, one object a node and of its name. The distances between cells are the firmware's own numbers,
10 for a cell itself; they are kept as costs, since they are no time.
"""

from __future__ import annotations

from graphsched.base.kube import naming, requests, wire
from graphsched.base.values import descriptions, errors, keys, labels, nodes, places, relations

KIND = "NodeResourceTopology"
POLICY = "policy"
"""Label of a place: how the kubelet aligns containers with cells."""


class Distance(wire.Body, frozen=True, gc=False):
    """An entry of `costs`."""

    name: str = ""
    value: int = 0


class ZoneResource(wire.Body, frozen=True, gc=False):
    """An entry of `resources`: what the cell has, and what of it pods may have."""

    name: str = ""
    capacity: wire.Quantity | None = None
    allocatable: wire.Quantity | None = None


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
    told = labels.from_mapping({POLICY: ",".join(body.topology_policies)} if body.topology_policies else {})
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
            kind = "numa" if zone.type in {"", "Node"} else zone.type.lower()
            place = places.Place(_name(node, zone.name), kind, labels=told, amounts=_amounts(zone, field))
            found[zone.name] = place
            holder = keys.place_key(_name(node, zone.parent)) if zone.parent else keys.node_key(node)
            ties.append(descriptions.Tie(holder, place.key, relations.Contains(by)))
            ties += _distances(zone, place.key, node, names, by, field)
    return descriptions.Description(by, places=tuple(found.values()), ties=tuple(ties))


def _name(node: str, zone: str) -> str:
    return f"numa/{node}/{zone}"


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
            ties.append(descriptions.Tie(source, keys.place_key(_name(node, each.name)), link))
    return ties


def _amounts(zone: Zone, field: str) -> nodes.Amounts:
    """What pods may have of the zone; its capacity where nobody says how much of it that is."""
    amounts: dict[str, int] = {}
    for index, each in enumerate(zone.resources or ()):
        given = each.capacity if each.allocatable is None else each.allocatable
        if given is not None and requests.counted(each.name):
            amounts[each.name] = requests.milli(given, f"{field}.resources[{index}]")
    return requests.amounts(amounts, keep_zeros=True)
