"""What a check answers: a value, never an exception.

A constraint returns a `Status`; `decision` folds many of them into one verdict, `explain` turns them into words and
`action` writes those words to the cluster. The codes are kube-scheduler's, since what they mean to preemption and to
the queue is part of its semantics (reference: kube-scheduler framework, `Code`).
"""

from __future__ import annotations

import enum

import msgspec


class Code(enum.IntEnum):
    """How a check ended. The numbers are stable: numpy columns and traces hold them as int8."""

    SUCCESS = 0
    """The node, or the pod as a whole, passed."""
    UNSCHEDULABLE = 1
    """Refused, and evicting pods from the node may help."""
    UNRESOLVABLE = 2
    """Refused, and evicting pods from the node can not help."""
    PENDING = 3
    """Something outside must happen first; a retry costs no backoff."""
    ERROR = 4
    """The check itself failed: the whole attempt is abandoned and retried with error backoff."""

    @property
    def title(self) -> str:
        """The name the machine interface uses, e.g. `UnschedulableAndUnresolvable`."""
        return _TITLES[self]


_TITLES = {
    Code.SUCCESS: "Success",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.PENDING: "Pending",
    Code.ERROR: "Error",
}


class Status(msgspec.Struct, frozen=True, gc=False):
    """The answer of one check.

    Attributes:
        code: How it ended.
        reasons: What a user reads, each counted on its own in "0/N nodes are available"; empty on success.
        by: Name of the plugin that refused; empty on success, and for nodes cut away by a set of node names.
    """

    code: Code
    reasons: tuple[str, ...] = ()
    by: str = ""

    @property
    def ok(self) -> bool:
        """Whether the check passed."""
        return self.code is Code.SUCCESS


SUCCESS = Status(Code.SUCCESS)
