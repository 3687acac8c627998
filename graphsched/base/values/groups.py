"""Groups of workloads that exchange data: the hyperedges of the workload layer.

An AppGroup names workloads and on which others each depends. A pod belongs to the workload whose selector it matches,
and is drawn to the pods of the workloads it exchanges data with.
"""

from __future__ import annotations

import msgspec

from graphsched.base.values import keys, labels


class Dependency(msgspec.Struct, frozen=True, gc=False):
    """One workload calls another of the same group.

    Attributes:
        workload: Name of the other one.
        rate: Its weight among all that the workload calls, e.g. calls a second; positive.
        latency_ms_max: The longest way to a pod of it; None for any.
        bandwidth_mbps_min: The least bandwidth on the way; None for any.
        cost_max: The greatest network cost on the way, in Diktyo's units; None for any.
    """

    workload: str
    rate: float = 1.0
    latency_ms_max: float | None = None
    bandwidth_mbps_min: float | None = None
    cost_max: int | None = None


class Workload(msgspec.Struct, frozen=True, gc=False):
    """Some pods of a group.

    Attributes:
        name: Unique within the group.
        selector: Which pods of the group's namespace; None for none.
        dependencies: What it calls.
    """

    name: str
    selector: labels.Selector | None = None
    dependencies: tuple[Dependency, ...] = ()


class Group(msgspec.Struct, frozen=True, gc=False):
    """Workloads and who calls whom.

    Attributes:
        namespace, name: Of the object.
        workloads: In the order of the object.
        order: In which its pods are best placed, as an algorithm's name (KahnSort …); empty for the default.
    """

    namespace: str
    name: str
    workloads: tuple[Workload, ...] = ()
    order: str = ""

    @property
    def key(self) -> keys.VertexKey:
        """Its vertex key."""
        return keys.group_key(self.namespace, self.name)
