"""Attributes of edges, one struct per kind of edge."""

from __future__ import annotations

import msgspec


class Link(msgspec.Struct, frozen=True, gc=False):
    """Two places can exchange data. `health` lies in (0, 1], 1 being perfect; a link counts in both directions only if
    it is patched in twice.
    """

    latency_ms: float
    bandwidth_mbps: float
    health: float = 1.0


class Runs(msgspec.Struct, frozen=True, gc=False):
    """A decision put the pod on the node and the cluster has not confirmed it yet.

    Attributes:
        uid: UID of the pod that was decided on: the edge counts for no other pod of the same key.
        devices: Indices of the shareable GPUs it was given.
    """

    uid: str
    devices: tuple[int, ...] = ()


Edge = Link | Runs
