"""What the election of a leader looks like in metrics; part of `metrics.Metrics`, which declares them.

Comes in: that a term began or ended, that an attempt failed. Goes out: three series, one of which has the name that all
Kubernetes components share, so that alerts on "nobody leads" need no second spelling.
"""

from __future__ import annotations

from collections.abc import Callable

import prometheus_client

Counter = Callable[..., prometheus_client.Counter]
"""Declares a counter: name, help, labels."""
Gauge = Callable[..., prometheus_client.Gauge]
"""Declares a gauge: name, help, labels."""


class Election:
    """Counts for one replica."""

    def __init__(self, counter: Counter, gauge: Gauge) -> None:
        self._status = gauge(
            "leader_election_master_status",
            "Whether this replica leads, by the name of the lease: 1 if it does, 0 if it is a standby. Of all replicas "
            "together exactly one should; there is no series where leader election is switched off.",
            "name",
        )
        changes = counter(
            "graphsched_leader_changes_total",
            "Times this replica began (gained) or ceased (lost) to lead; a lease that is lost while the process goes "
            "on means that it could not be renewed in time.",
            "change",
        )
        self._gained, self._lost = changes.labels("gained"), changes.labels("lost")
        self._failures = counter(
            "graphsched_lease_failures_total",
            "Attempts to read, take or renew the lease that ended by an error; a leader may fail for as long as "
            "leaderElection.renewSeconds before it stops.",
        )

    def stands(self, lease: str) -> None:
        """This replica takes part in the election for this lease, and does not lead."""
        self._status.labels(lease).set(0)

    def leads(self, lease: str, *, now: bool) -> None:
        """This replica begins or ceases to lead."""
        self._status.labels(lease).set(1 if now else 0)
        (self._gained if now else self._lost).inc()

    def failed(self) -> None:
        """An attempt to read, take or renew the lease ended by an error."""
        self._failures.inc()
