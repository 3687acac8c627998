"""Attributes of edges, one struct per kind of edge."""

from __future__ import annotations

import msgspec

COST_MAX = 1 << 31
"""Most that a link costs; the sum over a way of a million links still fits 64 bits."""

DOWN = 1e-6
"""Health of a link that is stated to be down: far below what any observation leaves, so that whoever knows nothing of
it takes the link for one to avoid before all others. From here down a link is part of no way."""


class Contains(msgspec.Struct, frozen=True, gc=False):
    """One place holds another place or a node.

    Attributes:
        by: Who says so, e.g. `hypernode`, `slurm`.
    """

    by: str = ""


class Observation(msgspec.Struct, frozen=True, gc=False):
    """What was seen of a link at a moment; None where nothing was measured, which is not the same as 0.

    Attributes:
        at: When, seconds since the epoch; 0 where nobody says: then it is when it was first told.
        errors_per_s: Errors a second.
        loss: Share of packets lost, 0 to 1.
        latency_ms: One way.
        health: What somebody else makes of it all, in (0, 1].
    """

    at: float = 0.0
    errors_per_s: float | None = None
    loss: float | None = None
    latency_ms: float | None = None
    health: float | None = None


class Link(msgspec.Struct, frozen=True, gc=False):
    """Data can go from one place to another; a link counts in both directions only if it is patched in twice.

    Attributes:
        latency_ms: One way; None where nobody knows: it is then neither near nor far.
        bandwidth_mbps: Likewise.
        health: In (0, 1], 1 being perfect; as of the patch that brought it. `DOWN` of a link that is down.
        at: When this was last measured, seconds since the epoch; 0 for what was stated and never measured.
        by: Who says so, e.g. `networklink/a-b`.
        seen: What its source has seen of it, on the way to the ledger of link health; None in the graph.
        cost: What an operator weighs it with, in units of their own (Diktyo's networkCost): no time, and comparable
            with nothing but other costs. None where nobody says.
    """

    latency_ms: float | None = None
    bandwidth_mbps: float | None = None
    health: float = 1.0
    at: float = 0.0
    by: str = ""
    cost: int | None = None
    seen: Observation | None = None

    @property
    def down(self) -> bool:
        """Whether nothing goes over it, as somebody states."""
        return self.health <= DOWN


class Runs(msgspec.Struct, frozen=True, gc=False):
    """A decision put the pod on the node and the cluster has not confirmed it yet.

    Attributes:
        uid: UID of the pod that was decided on: the edge counts for no other pod of the same key.
        devices: Indices of the shareable GPUs it was given.
    """

    uid: str
    devices: tuple[int, ...] = ()


Edge = Contains | Link | Runs
