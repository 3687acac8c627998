"""The profile: weights and arguments of the plugins, fixed for the life of a `Decider`.

The defaults are kube-scheduler 1.36's default profile. `app/settings` and `evaluate` make other ones out of a
KubeSchedulerConfiguration; what this version can not honour is refused there, with the field's name.
"""

from __future__ import annotations

import msgspec

from graphsched.base.values import nodes, pods
from graphsched.decision import names
from graphsched.graph import routes

DEFAULT_WEIGHTS: dict[str, int] = {
    names.TAINT_TOLERATION: 3,
    names.NODE_AFFINITY: 2,
    names.POD_TOPOLOGY_SPREAD: 2,
    names.INTER_POD_AFFINITY: 2,
    names.NODE_RESOURCES_FIT: 1,
    names.BALANCED_ALLOCATION: 1,
    names.IMAGE_LOCALITY: 1,
}

GRAPH_WEIGHTS: dict[str, int] = {
    names.GRAPH_DISTANCE: 10,
    names.GRAPH_PEERS: 5,
    names.GRAPH_HEALTH: 5,
    names.HEADROOM: 1,
}
"""Scores of our own. They skip unless a pod, its group, a link or a headroom gives them a reason. A difference of one
hop is worth ten points, as is a tenth of the room on a node."""

ON_REQUEST: dict[str, int] = {names.GRAPH_BANDWIDTH: 1, names.GRAPH_TAINTS: 1, names.GRAPH_CELLS: 1}
"""Scores that count only where a profile enables them, with the weight they have where it gives none."""

SYSTEM_SPREAD = (
    pods.SpreadConstraint(max_skew=3, topology_key="kubernetes.io/hostname", hard=False, selector=None),
    pods.SpreadConstraint(max_skew=5, topology_key="topology.kubernetes.io/zone", hard=False, selector=None),
)
"""How a pod without constraints of its own is spread where nobody says otherwise."""

ResourceWeights = tuple[tuple[str, int], ...]


class Profile(msgspec.Struct, frozen=True, gc=False):
    """How one schedulerName decides.

    Attributes:
        scheduler_name: The schedulerName it serves.
        weights: Plugin → weight of its score; a plugin with weight 0 or left out does not score.
        disabled: Plugins whose filters do not run.
        narrows: Whether required affinity to node names narrows the search, which NodeAffinity does before its filter
            and apart from it; None: where that filter runs.
        allocation: Resource → weight of the least-allocated score.
        balance: Resources whose balance is scored.
        ignored_resources: Extended resources the fit filter passes over.
        ignored_groups: Prefixes (before the `/`) of such resources.
        added_affinity: Node affinity every pod must satisfy as well; None for none.
        added_preferred: Preferred node affinity added to every pod's.
        hard_affinity_weight: What a running pod's required affinity term that selects the newcomer is worth.
        ignore_existing_preferences: Whether preferred terms of running pods count only for pods with some of their own.
        default_spread: Constraints of pods without any of their own, among the pods that the pod's Services and
            controller select; their own selectors are not read. None: `SYSTEM_SPREAD`, under which nodes that lack a
            key are scored as well.
        pool: Label (key, value) of the only nodes that are candidates; None: all nodes are.
        headroom: Percent of what every node offers that is kept free.
        sick_below: Links less healthy than this are avoided. Of the graph that is decided on, whose maker asks for it.
    """

    scheduler_name: str = "graph-scheduler"
    weights: dict[str, int] = msgspec.field(default_factory=lambda: {**DEFAULT_WEIGHTS, **GRAPH_WEIGHTS})
    disabled: frozenset[str] = frozenset()
    narrows: bool | None = None
    allocation: ResourceWeights = ((nodes.CPU, 1), (nodes.MEMORY, 1))
    balance: tuple[str, ...] = (nodes.CPU, nodes.MEMORY)
    ignored_resources: frozenset[str] = frozenset()
    ignored_groups: frozenset[str] = frozenset()
    added_affinity: tuple[pods.NodeTerm, ...] | None = None
    added_preferred: tuple[pods.PreferredNodeTerm, ...] = ()
    hard_affinity_weight: int = 1
    ignore_existing_preferences: bool = False
    default_spread: tuple[pods.SpreadConstraint, ...] | None = None
    pool: tuple[str, str] | None = None
    headroom: int = 0
    sick_below: float = routes.SICK_BELOW

    @property
    def spread_by_default(self) -> tuple[pods.SpreadConstraint, ...]:
        """The constraints of pods without any of their own, whoever says them."""
        return SYSTEM_SPREAD if self.default_spread is None else self.default_spread
