"""What an operator can set about the election of a leader, and what must be true of it.

`settings` holds the group and has it checked; `leadership` goes by it.
"""

from __future__ import annotations

import re

from graphsched.app import groups
from graphsched.base.values import errors

RETRY_FACTOR = 1.2
"""A standby waits up to so many times `retrySeconds`, so that two of them do not keep step."""
_LEASE_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_IDENTITY = re.compile(r"[!-~]{0,128}")


class LeaderElectionSettings(groups.Group, frozen=True):
    """Which of several replicas decides; the others follow the cluster and wait.

    Attributes:
        enabled: Take part in the election. Without it the program decides at once, so there may be one replica only.
            Mode shadow takes no part, as it writes nothing.
        lease_name: Of the Lease that the replicas share; empty for the scheduler's name.
        namespace: Its namespace, wherever the program runs: all replicas must name the same one.
        lease_seconds: For so long others leave a lease alone that its holder does not renew.
        renew_seconds: A leader that could not renew it for so long stops; the rest of the lease is for late calls.
        retry_seconds: Pause between two attempts to take or to renew it.
        identity: What the lease and events name this replica; empty for the host's name and a random part.
    """

    enabled: bool = True
    lease_name: str = ""
    namespace: str = "kube-system"
    lease_seconds: groups.Count = 15
    renew_seconds: groups.Seconds = 10.0
    retry_seconds: groups.Seconds = 2.0
    identity: str = ""

    def lease_of(self, scheduler: str) -> str:
        """Name of the lease in effect: a scheduler's name may have a prefix and capitals, a lease's may not."""
        return self.lease_name or scheduler.replace("/", ".").replace("_", "-").lower()


def check(election: LeaderElectionSettings, *, scheduler: str, place: str) -> None:
    """The times must leave room for one another, and the names go into a path.

    Raises:
        InputError: They do not, or are none.
    """
    lease, renew, retry = election.lease_seconds, election.renew_seconds, election.retry_seconds
    name = election.lease_of(scheduler)
    for wrong, field, problem, remedy in (
        (lease <= renew, "leaseSeconds", f"{lease} is not more than renewSeconds", f"more than {renew:g}"),
        (
            renew <= retry * RETRY_FACTOR,
            "renewSeconds",
            f"{renew:g} is not more than {RETRY_FACTOR} times retrySeconds",
            f"more than {retry * RETRY_FACTOR:g}",
        ),
        (
            _LEASE_NAME.fullmatch(name) is None,
            "leaseName",
            f'"{name}" is not the name of a lease',
            "lower case letters, digits, dashes and dots, e.g. graph-scheduler",
        ),
        (
            _NAMESPACE.fullmatch(election.namespace) is None,
            "namespace",
            f'"{election.namespace}" is not the name of a namespace',
            "e.g. kube-system",
        ),
        (
            _IDENTITY.fullmatch(election.identity) is None,
            "identity",
            "is not a name",
            "at most 128 letters, digits and signs without spaces, different for each replica",
        ),
    ):
        if wrong:
            raise errors.InputError(place, f"leaderElection.{field}", problem=problem, remedy=remedy)
