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


_SPREAD = _refused("graph-scheduler does not support topology spread constraints yet")
_AFFINITY = _refused("graph-scheduler does not support pod affinity yet")
_ANTI_AFFINITY = _refused("graph-scheduler does not support pod anti-affinity yet")


def _claim(name: str) -> cases.Expectation:
    return _refused(f"graph-scheduler does not support persistentVolumeClaim {name} yet")


def _group(name: str) -> cases.Expectation:
    return _refused(f"graph-scheduler does not support schedulingGroup {name} yet")


WAITING: dict[str, Waiting] = {
    "001-spread-missing-topology-key": Waiting(
        "topology spread constraints", dict.fromkeys(("web-2", "web-3", "web-4"), _SPREAD)
    ),
    "003-spread-node-taints-policy": Waiting(
        "topology spread constraints",
        dict.fromkeys(("app-ignore", "app-affinity-ignored", "app-affinity-honored", "app-honor"), _SPREAD),
    ),
    "005-spread-terminating-pods": Waiting("topology spread constraints", dict.fromkeys(("q-big", "q-small"), _SPREAD)),
    # A score, so that no node is wrong: the emptier one is taken.
    "007-score-default-spread-from-service": Waiting("default spreading", {"front-3": cases.Expectation(node="n1")}),
    "011-affinity-all-terms-one-pod": Waiting(
        "inter-pod affinity",
        {"joined": _AFFINITY, "split": _AFFINITY, "away": _ANTI_AFFINITY, "away-x": _ANTI_AFFINITY},
    ),
    "013-anti-affinity-namespace-notin": Waiting(
        "inter-pod affinity", {"batch-notin": _ANTI_AFFINITY, "batch-in": _ANTI_AFFINITY}
    ),
    # What kube-scheduler does with the gate off, too: such a toleration tolerates nothing.
    "015-taint-numeric-operators": Waiting(
        "the alpha operators Gt and Lt of tolerations",
        dict.fromkeys(("gt-900", "lt-900", "gt-990", "gt-negative"), _refused("5 node(s) had untolerated taint(s)")),
    ),
    "017-labels-unusual-values": Waiting("topology spread constraints", {"cell-1": _SPREAD}),
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
