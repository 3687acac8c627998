"""The custom resources that describe a network or groups of workloads, and what each of their objects says.

None of them needs to be installed: each is followed where it is. An object becomes several rows, see `surveys`.
"""

from __future__ import annotations

import typing
from collections.abc import Callable

from graphsched.base.kube import diktyo, hypernodes, levels, networklinks, wire, zones
from graphsched.base.values import descriptions, keys
from graphsched.sources import collection

Describe = Callable[[typing.Any], descriptions.Description]


def _resource(
    name: str,
    api: str,
    codec: wire.Codec[typing.Any],
    describe: Describe,
    *,
    prefix: str,
    namespaced: bool = False,
    versions: tuple[str, ...] = (),
) -> collection.Resource[typing.Any]:
    group = api.partition("/")[0]

    def key(metadata: wire.Metadata) -> keys.VertexKey:
        return keys.VertexKey(
            f"{prefix}/{metadata.namespace}/{metadata.name}" if namespaced else f"{prefix}/{metadata.name}"
        )

    return collection.Resource(
        name=name,
        path=f"/apis/{api}/{name.partition('.')[0]}",
        key=key,
        decode=codec.decode,
        convert=describe,
        optional=True,
        custom=True,
        described=True,
        others=tuple(f"/apis/{group}/{version}/{name.partition('.')[0]}" for version in versions),
    )


NETWORK_LINKS = _resource(
    "networklinks", "graphsched.io/v1alpha1", networklinks.CODEC, networklinks.describe, prefix="networklink"
)
HYPER_NODES = _resource(
    "hypernodes", "topology.volcano.sh/v1alpha1", hypernodes.CODEC, hypernodes.describe, prefix="hypernode"
)
KUEUE_TOPOLOGIES = _resource(
    "topologies.kueue.x-k8s.io",
    "kueue.x-k8s.io/v1beta1",
    levels.TOPOLOGY_CODEC,
    levels.of_kueue,
    prefix="kueue",
    versions=("v1beta2", "v1alpha1"),
)
KAI_TOPOLOGIES = _resource(
    "topologies.kai.scheduler", "kai.scheduler/v1alpha1", levels.TOPOLOGY_CODEC, levels.of_kai, prefix="kai"
)
NETWORK_TOPOLOGIES = _resource(
    "networktopologies",
    "networktopology.diktyo.x-k8s.io/v1alpha1",
    diktyo.TOPOLOGY_CODEC,
    diktyo.of_topology,
    prefix="diktyo",
    namespaced=True,
)
APP_GROUPS = _resource(
    "appgroups",
    "appgroup.diktyo.x-k8s.io/v1alpha1",
    diktyo.GROUP_CODEC,
    diktyo.of_group,
    prefix="appgroup",
    namespaced=True,
)
NODE_RESOURCE_TOPOLOGIES = _resource(
    "noderesourcetopologies",
    "topology.node.k8s.io/v1alpha2",
    zones.CODEC,
    zones.describe,
    prefix="noderesourcetopology",
)
CLUSTER_NETWORK_TOPOLOGIES = _resource(
    "clusternetworktopologies",
    "scheduling.koordinator.sh/v1alpha1",
    levels.LAYERS_CODEC,
    levels.of_koordinator,
    prefix="koordinator",
)

ALL = (
    NETWORK_LINKS,
    HYPER_NODES,
    KUEUE_TOPOLOGIES,
    KAI_TOPOLOGIES,
    NETWORK_TOPOLOGIES,
    APP_GROUPS,
    NODE_RESOURCE_TOPOLOGIES,
    CLUSTER_NETWORK_TOPOLOGIES,
)

KINDS: dict[tuple[str, str], tuple[wire.Codec[typing.Any], Describe]] = {
    ("graphsched.io", networklinks.KIND): (networklinks.CODEC, networklinks.describe),
    ("topology.volcano.sh", hypernodes.KIND): (hypernodes.CODEC, hypernodes.describe),
    ("kueue.x-k8s.io", levels.TOPOLOGY): (levels.TOPOLOGY_CODEC, levels.of_kueue),
    ("kai.scheduler", levels.TOPOLOGY): (levels.TOPOLOGY_CODEC, levels.of_kai),
    ("networktopology.diktyo.x-k8s.io", diktyo.NETWORK_TOPOLOGY): (diktyo.TOPOLOGY_CODEC, diktyo.of_topology),
    ("appgroup.diktyo.x-k8s.io", diktyo.APP_GROUP): (diktyo.GROUP_CODEC, diktyo.of_group),
    ("topology.node.k8s.io", zones.KIND): (zones.CODEC, zones.describe),
    ("scheduling.koordinator.sh", levels.CLUSTER_NETWORK_TOPOLOGY): (levels.LAYERS_CODEC, levels.of_koordinator),
}
"""(group, kind) as manifests write them → how to read one, and what it says."""
