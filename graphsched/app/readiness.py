"""Whether a pod can be decided on at once, or waits aside for work that is done piece by piece.

What rules say of a pod may take long to find out: new rules are compiled, all nodes asked, the ways that are required
searched for in the network, as are those to the pod's partners. Comes in: the pods that were taken out of the queue,
one by one. Goes out: yes or not yet; those that are not ready wait aside (`backlog.Backlog.set_aside`), while others,
of which no such rule speaks and which have no partners, are decided on.

A turn begins with work for those aside, one after the other (`parking.Entry.aside_order`), and whoever has all it needs
by then may be decided on in the same turn, before anything changes again. The work has `SEARCH_S`; once somebody has
waited for `PATIENCE_S` on end it has `HURRY_S`. Whatever was done is kept, also where the network changes meanwhile, so
in a network at rest everybody's turn comes, unless together they ask for more than can be kept. One that changes all
the time may change faster than that: each `FORCED_EVERY_S` a turn has `FORCED_S` there. Who has waited for `WAIT_S_MAX`
there, or where more is asked for than can be kept, is decided on in haste: ways to partners that were not found are
unknown, what rules require is found out in one go.
"""

from __future__ import annotations

import enum
from collections.abc import Callable

from graphsched.app import backlog as backlogs, parking
from graphsched.base.kit import clock as clocks
from graphsched.decision import cycle
from graphsched.graph import store as stores

SEARCH_S = 0.005
ASK_S = 0.005
"""Of the decisions of each turn, for pods that come up for the first time."""
ASK_POD_S = 0.001
"""Of that for one of them: what is quickly found out, or repaired, makes no pod wait."""
PATIENCE_S = 2.0
HURRY_S = 0.040
FORCED_S = 0.250
FORCED_EVERY_S = 1.0
RESTLESS_S = 2.0
"""For so long after the network last undid something it counts as one that changes all the time."""
WAIT_S_MAX = 30.0
SERVED_S = 1.0
"""So much of it was spent on the pod itself before it is given up, so that nobody is for standing behind others."""


class Answer(enum.Enum):
    """What becomes of a pod.

    `HASTY` ones are decided on without all that they need, `NOT_YET` ones were set aside.
    """

    READY = "ready"
    HASTY = "hasty"
    NOT_YET = "not yet"


class Readiness:
    """Sees to it that what decisions need is at hand."""

    def __init__(
        self, store: stores.Store, backlog: backlogs.Backlog, decider: cycle.Decider, *, clock: clocks.Clock
    ) -> None:
        self._store = store
        self._backlog = backlog
        self._decider = decider
        self._clock = clock
        self._since: float | None = None
        """Since when somebody waits on end; None where nobody does."""
        self._worked = float("-inf")
        """When the work of the last turn ended."""
        self._undone = self._count_undone()
        self._restless_until = float("-inf")
        self._forced_due = float("-inf")
        self._asked_s = 0.0
        """Of this turn, what finding out whether pods are ready has taken so far."""

    @property
    def waiting(self) -> bool:
        """Whether somebody waits aside, so that another turn is of use."""
        return self._backlog.first_aside() is not None

    def work(self, now: float) -> None:
        """Begin a turn: find out what those aside need, for as long as a turn may, and let those go that have it."""
        self._asked_s = 0.0
        if not self.waiting:
            self._since = None
            return
        if self._since is None or now - self._worked > PATIENCE_S:
            # Turns follow each other while somebody waits: this replica did not decide for a while.
            self._since = now
        self._worked, over = now, now + self._allowed_s(now)
        while self._worked < over and (entry := self._backlog.first_aside()) is not None:
            began = self._worked
            expired = self._until(min(over, began + entry.slice_s))
            known = self._decider.prepare(self._store.view(), entry.pod, expired)
            self._worked = self._clock.monotonic()
            self._backlog.searched(entry, self._worked - began)
            entry.hasty = not known and self._in_vain(entry, self._worked)
            if known or entry.hasty:
                self._backlog.let_go(entry, self._worked)
            elif self._worked == began:
                break

    def ask(self, entry: parking.Entry) -> Answer:
        """What becomes of a pod that was taken out of the queue."""
        hasty, entry.hasty = entry.hasty, False
        if not hasty and self._decider.needs(self._store.view(), entry.pod) and not self._known(entry):
            now = self._clock.monotonic()
            if not self._in_vain(entry, now):
                self._backlog.set_aside(entry, now)
                return Answer.NOT_YET
            # It had all it needs, and more than once, but not when it came up behind others.
            hasty = True
        entry.aside, entry.searched_s = None, 0.0
        return Answer.HASTY if hasty else Answer.READY

    def _known(self, entry: parking.Entry) -> bool:
        """Whether all is known of the pod, or can be found out in what is left of the turn."""
        if self._asked_s >= ASK_S:
            return False
        began = self._clock.monotonic()
        due = began + min(ASK_POD_S, ASK_S - self._asked_s)
        known = self._decider.prepare(self._store.view(), entry.pod, self._until(due))
        taken = self._clock.monotonic() - began
        self._asked_s += taken
        entry.searched_s += taken
        return known

    def _allowed_s(self, now: float) -> float:
        """How long this turn may work for those aside."""
        if self._since is None or now - self._since < PATIENCE_S:
            return SEARCH_S
        if now < self._forced_due or not self._restless(now):
            return HURRY_S
        self._forced_due = now + FORCED_EVERY_S
        return FORCED_S

    def _in_vain(self, entry: parking.Entry, now: float) -> bool:
        """Whether there is no telling that waiting on will help the pod, which has had a turn of its own."""
        if entry.aside is None or self._since is None or entry.searched_s < SERVED_S:
            return False
        return now - max(entry.aside, self._since) >= WAIT_S_MAX and self._restless(now)

    def _restless(self, now: float) -> bool:
        """Whether what was found does not last."""
        undone = self._count_undone()
        if undone != self._undone:
            self._undone, self._restless_until = undone, now + RESTLESS_S
        return now < self._restless_until

    def _count_undone(self) -> int:
        """Counts up whenever something that was found, or half found, had to be found anew."""
        found = self._store.routes.statistics
        return found.undone + found.repairs + found.evictions

    def _until(self, due: float) -> Callable[[], bool]:
        return lambda: self._clock.monotonic() >= due
