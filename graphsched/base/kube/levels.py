"""Objects that name the labels by which nodes are arranged in levels, as descriptions.

The Topology of Kueue and that of KAI list labels, outer to inner; the ClusterNetworkTopology of Koordinator names for
each layer the layer above it. All say the same: the values of these labels are places, each in the one outside it.
"""

from __future__ import annotations

from collections.abc import Sequence

from graphsched.base.kube import naming, selectors, wire
from graphsched.base.values import descriptions, errors

TOPOLOGY = "Topology"
CLUSTER_NETWORK_TOPOLOGY = "ClusterNetworkTopology"
HOSTNAME = "kubernetes.io/hostname"
"""The innermost level of most: the node itself."""
LEVELS_MAX = 16


class Level(wire.Body, frozen=True, gc=False):
    """An entry of spec.levels."""

    node_label: str = ""


class TopologySpec(wire.Body, frozen=True, gc=False):
    """spec of a Topology."""

    levels: list[Level] | None = None


class Topology(wire.Body, frozen=True, gc=False):
    """A Topology, of Kueue or KAI."""

    metadata: wire.Metadata = wire.Metadata()
    spec: TopologySpec = TopologySpec()


class Layer(wire.Body, frozen=True, gc=False):
    """An entry of spec.networkTopologySpec."""

    topology_layer: str = ""
    parent_topology_layer: str = ""
    label_key: list[str] | None = None


class LayersSpec(wire.Body, frozen=True, gc=False):
    """spec of a ClusterNetworkTopology."""

    network_topology_spec: list[Layer] | None = None


class ClusterNetworkTopology(wire.Body, frozen=True, gc=False):
    """A ClusterNetworkTopology, of Koordinator."""

    metadata: wire.Metadata = wire.Metadata()
    spec: LayersSpec = LayersSpec()


TOPOLOGY_CODEC = wire.Codec(TOPOLOGY, Topology)
LAYERS_CODEC = wire.Codec(CLUSTER_NETWORK_TOPOLOGY, ClusterNetworkTopology)


def of_kueue(body: Topology) -> descriptions.Description:
    """What a Topology of Kueue says; raises InputError."""
    return _of_levels(body, "kueue")


def of_kai(body: Topology) -> descriptions.Description:
    """What a Topology of KAI says; raises InputError."""
    return _of_levels(body, "kai")


def _of_levels(body: Topology, whose: str) -> descriptions.Description:
    name = naming.name_of(TOPOLOGY, body.metadata)
    keys_of = [level.node_label for level in body.spec.levels or ()]
    with naming.blaming(TOPOLOGY, body.metadata):
        return _description(f"{whose}/{name}", keys_of, "spec.levels")


def of_koordinator(body: ClusterNetworkTopology) -> descriptions.Description:
    """What a ClusterNetworkTopology says.

    Raises:
        InputError: The layers are no chain.
    """
    name = naming.name_of(CLUSTER_NETWORK_TOPOLOGY, body.metadata)
    field = "spec.networkTopologySpec"
    with naming.blaming(CLUSTER_NETWORK_TOPOLOGY, body.metadata):
        chain = _chain(body.spec.network_topology_spec or [], field)
        # The last one stands for the node, and of several labels the first is the one that counts.
        named = [layer.label_key[0] for layer in chain if layer.label_key]
        return _description(f"koordinator/{name}", named, field)


def _chain(layers: Sequence[Layer], field: str) -> list[Layer]:
    """The layers, outer to inner."""
    inside: dict[str, Layer] = {}
    for layer in layers:
        other = inside.setdefault(layer.parent_topology_layer, layer)
        if other is not layer:
            problem = f'"{layer.topology_layer}" and "{other.topology_layer}" have the same parent'
            raise errors.InputError(field, problem=problem, remedy="arrange the layers in one chain")
    chain: list[Layer] = []
    at = ""
    while at in inside and len(chain) < len(layers):
        chain.append(inside[at])
        at = chain[-1].topology_layer
    if len(chain) < len(layers):
        lost = next(layer for layer in layers if layer not in chain)
        problem = f'"{lost.topology_layer}" hangs under "{lost.parent_topology_layer}", which no chain leads to'
        raise errors.InputError(field, problem=problem, remedy="leave the outermost layer's parent empty")
    return chain


def _description(by: str, label_keys: Sequence[str], field: str) -> descriptions.Description:
    if len(label_keys) > LEVELS_MAX:
        problem = f"holds {len(label_keys)}, more than {LEVELS_MAX}"
        raise errors.InputError(field, problem=problem, remedy="leave some out")
    for index, key in enumerate(label_keys):
        if not selectors.is_label_key(key):
            raise errors.InputError(f"{field}[{index}]", problem=f'"{key}" is no label key', remedy="name a node label")
        if key in label_keys[:index]:
            raise errors.InputError(f"{field}[{index}]", problem=f'"{key}" is there twice', remedy="remove one")
    return descriptions.Description(by, levels=tuple(key for key in label_keys if key != HOSTNAME))
