"""
The one list of cases that graphsched does not fully honour yet, each with the reason and what it does instead.

Comes in: nothing. Goes out: for each such case, what the pods that depend on the missing part meet. These are
expectations like any other: a pod that needs what is missing is refused with words that say so, never placed wrongly,
and the row falls with the first release that can do more.
"""

import dataclasses
from collections.abc import Mapping

from tests.cases.runner import cases


@dataclasses.dataclass(frozen=True, slots=True)
class Waiting:
    """Why a case waits, and what its pods meet until then; pods that are not named meet what the case says."""

    reason: str
    instead: Mapping[str, cases.Expectation]

    def expect(self, case: cases.Case) -> dict[str, cases.Expectation]:
        """What holds for now."""
        return {**case.expect, **self.instead}


def _refused(*reasons: str) -> cases.Expectation:
    return cases.Expectation(unschedulable=True, reasons=reasons)


def _claim(name: str) -> cases.Expectation:
    return _refused(f"graph-scheduler does not support persistentVolumeClaim {name} yet")


def _group(name: str) -> cases.Expectation:
    return _refused(f"graph-scheduler does not support schedulingGroup {name} yet")


WAITING: dict[str, Waiting] = {
    # What kube-scheduler does with the gate off, too: such a toleration tolerates nothing.
    "015-taint-numeric-operators": Waiting(
        "the alpha operators Gt and Lt of tolerations",
        dict.fromkeys(("gt-900", "lt-900", "gt-990", "gt-negative"), _refused("5 node(s) had untolerated taint(s)")),
    ),
    "025-volume-zone-labels": Waiting(
        "volumes",
        {
            "uses-multi": _claim("multi"),
            "uses-beta": _claim("beta"),
            "multi-on-n3": _claim("multi"),
            "multi-and-beta": _claim("multi"),
        },
    ),
    "027-volume-csi-attach-limit": Waiting(
        "volumes", {"shares-a": _claim("vol-a"), "wants-e": _claim("vol-e"), "shares-c": _claim("vol-c")}
    ),
    "029-preempt-pdb-node-choice": Waiting("preemption", {"urgent": _refused("2 Insufficient cpu")}),
    "033-gang-one-member-cannot-fit": Waiting(
        "gangs",
        dict.fromkeys(("t-0", "t-1", "t-2"), _group("trio")) | dict.fromkeys(("d-0", "d-1", "d-2"), _group("duo")),
    ),
}
