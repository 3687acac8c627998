"""The fault table: fault × call × phase, as data.

Every cell is either played by a voyage (`voyage.py`, which plays all phases of a fault and a call one after the other)
or says why it cannot occur. docs/reliability.md is written from here.
"""

import dataclasses
import enum

from tests.fakes import faults
from tests.faults import calls, proxy


class Phase(enum.StrEnum):
    """When a fault strikes."""

    START = "start-up"
    STEADY = "steady state"
    BURST = "burst"
    RESTART = "after a restart"


@dataclasses.dataclass(frozen=True, slots=True)
class Fault:
    """One row.

    Attributes:
        name: Short, also on the command line.
        title: What goes wrong.
        answer: What graphsched does about it.
        kind: Of a call, or None.
        status: Of a refusal.
        retry_after_s: Of a refusal.
        ailment: Of a watch, or None.
    """

    name: str
    title: str
    answer: str
    kind: faults.Kind | None = None
    status: int = 0
    retry_after_s: int | None = None
    ailment: proxy.Ailment | None = None


_PLACE_LOST = (
    "The place is given up: everything is listed again, and what went away unseen is removed from the graph by that "
    "list."
)

FAULTS = (
    Fault(
        "500",
        "500, the server gave up half-way",
        "Whether the call took effect is open: a binding's pod is read before it is tried again; lists, watches, "
        "conditions and events are repeated after a growing pause.",
        kind=faults.Kind.REFUSE,
        status=500,
    ),
    Fault(
        "503",
        "503 with Retry-After",
        "Nothing took effect: the call is repeated, not before the time that the server asked for.",
        kind=faults.Kind.REFUSE,
        status=503,
        retry_after_s=1,
    ),
    Fault(
        "429",
        "429 with Retry-After",
        "As with 503: the server is left alone for as long as it asked, then the call is repeated.",
        kind=faults.Kind.REFUSE,
        status=429,
        retry_after_s=1,
    ),
    Fault(
        "401",
        "401, the token was rotated",
        "Credentials are loaded again, at once and then every 10 s at most, and the call is repeated with them; a pod "
        "that could not be bound meanwhile goes back to the queue.",
        kind=faults.Kind.REFUSE,
        status=401,
    ),
    Fault(
        "403",
        "403, a right is missing",
        "The log names the right in the API server's words. Lists and watches are asked for again, conditions "
        "five times; a pod that may not be bound backs off on its own, and others go on.",
        kind=faults.Kind.REFUSE,
        status=403,
    ),
    Fault(
        "dropped",
        "The connection breaks before the server acted",
        "As after a lost answer: which of the two it was can not be told from here.",
        kind=faults.Kind.DROP,
    ),
    Fault(
        "lost",
        "The answer is lost after the server acted",
        "A binding's pod is read until somebody answers and counts on its node meanwhile; a condition is written "
        "again, which changes nothing; an event is refused as there already.",
        kind=faults.Kind.LOSE,
    ),
    Fault(
        "silent",
        "No answer ever comes",
        "Every call has a deadline (`client.timeoutSeconds`), and after it the answer counts as lost.",
        kind=faults.Kind.HANG,
    ),
    Fault(
        "late",
        "The answer comes late",
        "Nobody waits for it but who asked: other pods are decided on and bound meanwhile.",
        kind=faults.Kind.DELAY,
    ),
    Fault(
        "garbled",
        "Status 200 with a page that is none of the API server's",
        "No success is taken from it: it counts as a lost answer.",
        kind=faults.Kind.GARBLE,
    ),
    Fault(
        "410",
        "410 as HTTP status",
        _PLACE_LOST,
        kind=faults.Kind.REFUSE,
        status=410,
    ),
    Fault("410-event", "410 as an ERROR event", _PLACE_LOST, ailment=proxy.Ailment.EXPIRE),
    Fault(
        "cut",
        "A watch is cut in the middle of a line",
        "The half line is dropped, and the watch is resumed after the last whole one.",
        ailment=proxy.Ailment.CUT,
    ),
    Fault(
        "stalled",
        "A watch stalls without a word",
        "After 150 s without even a bookmark it is opened anew, and listed again if nothing ever came of it.",
        ailment=proxy.Ailment.STALL,
    ),
    Fault(
        "slow",
        "A watch is ended by the server, as for slow reading",
        "It is resumed where it ended; what was not delivered comes then.",
        ailment=proxy.Ailment.END,
    ),
    Fault(
        "deaf",
        "No bookmarks come",
        "A quiet watch counts as stalled and is opened anew; one that has events goes on.",
        ailment=proxy.Ailment.DEAF,
    ),
    Fault(
        "missed",
        "A delete is missed while disconnected",
        "The next list lacks the object, so it leaves the graph and its room is free.",
        ailment=proxy.Ailment.BREAK,
    ),
)

DEEDS = (
    Fault(
        "node-deleted",
        "The node is deleted",
        "The API server takes the binding all the same, and whoever collects the pods of lost nodes deletes the pod. "
        "Until then it counts on that node, also if the node comes back empty.",
    ),
    Fault(
        "node-cordoned",
        "The node is cordoned",
        "What was decided before holds; nothing more goes there.",
    ),
    Fault("pod-deleted", "The pod is deleted", "404: its room is free again at once."),
    Fault(
        "pod-ending",
        "The pod is marked for deletion and kept by a finalizer",
        "409 and a look: its room is free again, and it is not tried again.",
    ),
    Fault(
        "pod-again",
        "The pod is deleted and another one made under its name",
        "The binding names the UID, so the API server refuses it; the new pod is decided on for itself.",
    ),
    Fault(
        "pod-gated",
        "The same, and the new one has a scheduling gate",
        "It is not bound before the gate is gone.",
    ),
    Fault(
        "bound-by-other",
        "Somebody else binds the pod",
        "409 and a look: the pod counts where it is, and `graphsched_conflicts_total` counts the race.",
    ),
    Fault("clock-ahead", "The wall clock jumps ahead", "Nothing but the times in conditions and events goes by it."),
    Fault("clock-back", "The wall clock jumps back", "As above: waits, backoff and deadlines are monotonic time."),
)
"""What happens between a decision and its binding, or to the machine."""
BY_NAME = {fault.name: fault for fault in (*FAULTS, *DEEDS)}

OF_NETWORK = ("list customs", "watch customs")
"""Columns of custom resources that describe the network."""
OF_POLICIES = ("list policies", "watch policies", calls.POLICY_STATUS, calls.DISCOVERY)
"""Columns of a scheduler that follows policies."""
MAIN = ("list nodes", "list pods", "list others", "watch nodes", "watch pods", "watch others")
LISTS = tuple(call for call in (*MAIN, *OF_NETWORK, *OF_POLICIES) if call.startswith("list "))
WATCHES = tuple(call for call in (*MAIN, *OF_NETWORK, *OF_POLICIES) if call.startswith("watch "))
WRITES = (calls.BIND, calls.STATUS, calls.EVENT)
CALLS = (*MAIN, calls.GET, *WRITES, calls.LEASE, *OF_NETWORK, *OF_POLICIES)
"""The columns; `others` is one of `calls.OTHERS`, drawn by the seed, as `drawn` does the rest."""


@dataclasses.dataclass(frozen=True, slots=True)
class Disaster:
    """What is no single call's fault and has a test of its own.

    Attributes:
        title: What goes wrong.
        answer: What graphsched does about it.
        test: The test that plays it, below tests/faults.
        reasons: Phase → why it cannot occur then; all others are played.
    """

    title: str
    answer: str
    test: str
    reasons: dict[Phase, str] = dataclasses.field(default_factory=dict)


DISASTERS = (
    Disaster(
        "The API server is killed and comes back",
        "Nothing is decided that could not be sent; watches resume where they were, and bindings whose answers were "
        "lost are looked at.",
        "test_disasters.py::test_an_api_server_killed_in_any_phase_costs_nothing_but_time",
    ),
    Disaster(
        "The database is rolled back to an older copy",
        "A place in the future is given up; everything is listed again, whatever its version, and the graph is what "
        "there is now.",
        "test_disasters.py::test_a_database_rolled_back_in_any_phase_is_taken_as_it_is",
        {Phase.START: "whoever has read nothing yet has nothing to be rolled back"},
    ),
    Disaster(
        "Admission refuses one pod's binding for ever",
        "That pod backs off on its own, up to `queue.maxRefusedBackoffSeconds`; no other pod waits for it.",
        "test_admission.py::test_a_pod_whose_binding_is_refused_for_ever_starves_nobody",
    ),
    Disaster(
        "10,000 pods wait that fit nowhere",
        "Pods that are alike wait as one group: at rest nothing is decided, news costs one decision, and conditions "
        "are written at a bounded rate.",
        "test_crowd.py::test_ten_thousand_pods_that_fit_nowhere_are_no_storm",
    ),
    Disaster(
        "The disk for the log is full",
        "Lines are lost and counted (`graphsched_log_lines_lost_total`); scheduling goes on.",
        "test_full_disk.py::test_a_full_disk_for_the_log_stops_nothing",
    ),
    Disaster(
        "A right is missing for good, or a token is replaced",
        "Rights to nodes, pods, namespaces and priority classes are waited for and named by `/readyz`; services and "
        "controllers are done without; events, conditions and bindings are given up one by one and said in the log.",
        "test_lasting.py",
    ),
)

BETWEEN = "between decision and binding"
"""The one column of the deeds."""

NO_WATCH = "only a watch can suffer it"
NO_VERSION = "only a call that asks for a version of the past is answered so, and this one asks for none"


def reason_against(fault: Fault, call: str, phase: Phase) -> str:
    """Why the cell cannot occur; empty for one that is played."""
    if fault.ailment is not None and call not in WATCHES:
        return NO_WATCH
    if fault.status == 410 and call not in {*LISTS, *WATCHES}:
        return NO_VERSION
    return ""


def drawn(call: str, seed: int) -> str:
    """The call that is struck where a column stands for several: in turns, so that two seeds play both."""
    custom, who = calls.CUSTOMS[seed % 2], ("", calls.BY_KOPF)[seed % 2]
    turns = {
        "list customs": f"list {custom}",
        "watch customs": f"watch {custom}",
        "list policies": f"list {calls.POLICIES}{who}",
        "watch policies": f"watch {calls.POLICIES}",
        calls.DISCOVERY: f"{calls.DISCOVERY}{who}",
    }
    return turns.get(call, call)


def voyages() -> list[tuple[Fault, str]]:
    """Every fault and call of which some phase is played, then every deed."""
    played = [
        (fault, call)
        for fault in FAULTS
        for call in CALLS
        if any(not reason_against(fault, call, each) for each in Phase)
    ]
    return [*played, *((deed, BETWEEN) for deed in DEEDS)]
