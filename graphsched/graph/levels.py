"""Where a node hangs: from its labels to the topology domains that hold it.

Clouds and fabrics label nodes with the place they are in, each with keys of its own and not always counting the same
way. The tables below put them in one order, outer to inner. Region and zone form the *trunk*; every other family of
labels is a chain of its own under the innermost known part of the trunk, so a node in a rack and in an NVLink domain
hangs under both, and neither is taken to hold the other.

A domain's identity includes what holds it, because a value may be shared by unrelated parents: zone `a` of two regions
are two zones. `path` writes that identity into the key (values of the chain, outer to inner):

    domain/topology.kubernetes.io/zone=us-east/a              zone a of region us-east
    domain/topology.kubernetes.io/zone=a                      zone a, region not known
    domain/topology.k8s.aws/network-node-layer-3=us-east/a:n1/n2/n3
    domain/topology.k8s.aws/network-node-layer-3=us-east/a:n1//n3        layer 2 not known
    domain/nvidia.com/gpu.clique=us-east/:7f.0                           zone not known
    domain/network.topology.nvidia.com/leaf=core-1/spine-3/leaf-12       neither region nor zone known

Comes in: labels. Goes out: chains of domains, to `topology`. Invariant: a missing or empty label makes no domain; what
it would have held hangs under the nearest outer level that is known.
"""

from __future__ import annotations

import typing

from graphsched.base.values import keys, labels

REGION = "topology.kubernetes.io/region"
ZONE = "topology.kubernetes.io/zone"

Level = tuple[str, ...]
"""One step of a chain: the label keys that name it, the first present one counting."""

TRUNK: tuple[Level, ...] = ((REGION,), (ZONE,))
"""Well-known labels of Kubernetes. `kubernetes.io/hostname` is the node itself."""

FAMILIES: tuple[tuple[Level, ...], ...] = (
    # Racks as operators label them beside the well-known labels.
    (("topology.kubernetes.io/rack",),),
    # AWS instance topology; layer 1 is the spine and the highest number is nearest to the node.
    tuple((f"topology.k8s.aws/network-node-layer-{layer}",) for layer in (1, 2, 3, 4)),
    # AWS: nodes that share an NVLink domain, and nodes bought together.
    (("topology.k8s.aws/ultraserver-id",),),
    (("topology.k8s.aws/capacity-block-id",),),
    # GKE on GPU machines; a subblock is the NVLink domain where there is one, a host holds several nodes.
    (
        ("cloud.google.com/gce-topology-block",),
        ("cloud.google.com/gce-topology-subblock",),
        ("cloud.google.com/gce-topology-host",),
    ),
    (("cloud.google.com/gke-placement-group",),),
    # OCI RDMA clusters, and the newer labels of the same fabric; the host id names the node's own machine.
    (
        ("oci.oraclecloud.com/rdma.hpc_island_id",),
        ("oci.oraclecloud.com/rdma.network_block_id",),
        ("oci.oraclecloud.com/rdma.local_block_id",),
        ("oci.oraclecloud.com/rdma.host_id",),
    ),
    (
        ("oci.oraclecloud.com/host.network_block_id",),
        ("oci.oraclecloud.com/host.rack_id",),
        ("oci.oraclecloud.com/host.id",),
    ),
    # Azure proximity placement group.
    (("kubernetes.azure.com/ppg",),),
    # CoreWeave: InfiniBand, the Ethernet backend, the rack, the NVLink domain.
    (("ib.coreweave.cloud/fabric",), ("ib.coreweave.cloud/superpod",), ("ib.coreweave.cloud/leafgroup",)),
    (
        ("backend.coreweave.cloud/flavor",),
        ("backend.coreweave.cloud/fabric",),
        ("backend.coreweave.cloud/leafgroup",),
    ),
    (("node.coreweave.cloud/rack",),),
    (("ds.coreweave.com/nvlink.domain",),),
    # Crusoe: the InfiniBand partition and the pod of machines in it.
    (("crusoe.ai/ib.partition.id",), ("crusoe.ai/pod.id",)),
    # NVIDIA GPU feature discovery: cluster UUID and clique of a multi-node NVLink domain; absent on other hardware.
    (("nvidia.com/gpu.clique",),),
    # Topograph: core, spine and leaf; datacenter, spine and block in its earlier form.
    (
        ("network.topology.nvidia.com/core", "network.topology.nvidia.com/datacenter"),
        ("network.topology.nvidia.com/spine",),
        ("network.topology.nvidia.com/leaf", "network.topology.nvidia.com/block"),
    ),
    (("network.topology.nvidia.com/accelerator",),),
    # Topograph from 1.0 on: tiers of switches, 0 nearest to the node, and accelerator domains.
    tuple((f"fabric.topograph.run/tier-{tier}",) for tier in range(7, -1, -1)),
    (("accelerator.topograph.run/domain",), ("accelerator.topograph.run/sub-domain",)),
)

_FAMILY_OF = {label: number for number, family in enumerate((TRUNK, *FAMILIES)) for level in family for label in level}
"""Known label → its chain: 0 the trunk, else one more than its place in `FAMILIES`."""
_ESCAPES = str.maketrans({"%": "%25", "/": "%2F", ":": "%3A"})


class Domain(typing.NamedTuple):
    """One topology domain: its label, its key with the chain that qualifies it, and the domain next outside."""

    label: str
    key: keys.VertexKey
    parent: keys.VertexKey | None


class Place(typing.NamedTuple):
    """All domains that hold a node, and the innermost ones, which hold it directly.

    Attributes:
        domains: Trunk first, then family by family, each outer to inner; a parent comes before what it holds.
        parents: The innermost domain of each family; the trunk's own where the node has no other.
    """

    domains: tuple[Domain, ...]
    parents: tuple[keys.VertexKey, ...]


NOWHERE = Place((), ())


def place(node_labels: labels.Labels) -> Place:
    """The domains that hold a node with these labels."""
    values = {label: value for label, value in node_labels if value and label in _FAMILY_OF}
    if not values:
        return NOWHERE
    trunk, prefix = _chain(TRUNK, values, prefix="", parent=None)
    domains = list(trunk)
    outer = trunk[-1].key if trunk else None
    if prefix and not values.get(ZONE):
        prefix += "/"
    parents: list[keys.VertexKey] = []
    for number in sorted({_FAMILY_OF[label] for label in values} - {0}):
        chain, _ = _chain(FAMILIES[number - 1], values, prefix=f"{prefix}:" if prefix else "", parent=outer)
        domains += chain
        parents.append(chain[-1].key)
    if not parents and outer is not None:
        parents.append(outer)
    return Place(tuple(domains), tuple(parents))


def escaped(value: str) -> str:
    """A label's value as it stands in the path of a domain."""
    return value.translate(_ESCAPES)


def innermost(path: str) -> str:
    """The value of a domain's own label, escaped, out of its path."""
    return path.rpartition(":")[2].rpartition("/")[2]


def _chain(
    family: tuple[Level, ...], values: dict[str, str], *, prefix: str, parent: keys.VertexKey | None
) -> tuple[list[Domain], str]:
    """The known domains of one family, outer to inner, and the path of the last one.

    Paths line up at their inner end: an unknown level leaves an empty place, unless nothing outside it is known.
    """
    chain: list[Domain] = []
    path = known = ""
    for level in family:
        label = next((label for label in level if label in values), None)
        value = "" if label is None else escaped(values[label])
        path = f"{path}/{value}" if path else value
        if label is not None:
            known = path
            key = keys.domain_key(label, prefix + path)
            chain.append(Domain(label, key, parent))
            parent = key
    return chain, known
