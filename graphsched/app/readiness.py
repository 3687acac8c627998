"""Whether a pod can be decided on at once, or waits for work that is done piece by piece.

What rules say of a pod may take long to find out: new rules are compiled, all nodes asked, the ways that are required
searched for in the network, as are those to the pod's partners. Comes in: the pods of a turn, one by one. Goes out: yes
or not yet; those that are not ready go back to where they stood in the queue, while others, of which no such rule
speaks and which have no partners, are decided on.

Rules are compiled and asked as pods come up. Ways are searched for after the decisions of the turn, for `SEARCH_S`, so
that a long search takes nothing from those who do not need it. Asking has `ASK_S` of the decisions' time, the first
`REPAIR_S` of it also for searches, so that a way that is quickly repaired is at hand; once that is used up the next
pods that need something are put off unasked. Once a pod has waited for `PATIENCE_S`, searches have `HURRY_S` of each
turn. A network that changes all the time may undo a search before it is finished, not one that is: for `RESTLESS_S`
after one was undone each turn takes one to its end, whatever that takes. A pod that has waited for `WAIT_S_MAX`, as
where more is asked for than can be kept, is decided on in any case: ways to partners that were not found are unknown,
what rules require is found out in one go.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from graphsched.app import backlog as backlogs, parking
from graphsched.base.kit import clock as clocks
from graphsched.base.values import keys
from graphsched.decision import cycle
from graphsched.graph import routes, store as stores

SEARCH_S = 0.005
ASK_S = 0.005
REPAIR_S = 0.001
HURRY_S = 0.040
PATIENCE_S = 2.0
RESTLESS_S = 2.0
WAIT_S_MAX = 30.0
WAITING_KEPT = 4096
"""So many pods are remembered to wait before it is looked which of them are still there."""


class Turn:
    """One turn. Ask it about each pod that was taken out of the queue.

    Attributes:
        waited: Whether some pod was not ready.
    """

    def __init__(self, ask: Callable[[parking.Entry], bool]) -> None:
        self._ask = ask
        self.entries: list[parking.Entry] = []

    @property
    def waited(self) -> bool:
        """Whether some pod was not ready."""
        return bool(self.entries)

    def __call__(self, entry: parking.Entry) -> bool:
        """Whether to decide on the pod now; otherwise it is put back at the end of the turn."""
        if self._ask(entry):
            return True
        self.entries.append(entry)
        return False


class _Hurry:
    """Whether searches have had enough of a turn."""

    def __init__(self, clock: clocks.Clock, searches: routes.Statistics, *, restless: bool) -> None:
        """With `restless` they have not before one has come to its end."""
        self._clock = clock
        self._due = clock.monotonic() + HURRY_S
        self._searches = searches
        self._owed = searches.finished if restless else -1

    def over(self) -> bool:
        """For what is kept when it is cut off: whether the time is up."""
        return self._clock.monotonic() >= self._due

    def searched_enough(self) -> bool:
        """For searches, which are kept only while nothing changes: whether moreover none is owed.

        A repair pays nothing: where the network never rests all that was found is repaired first, each turn.
        """
        return self._searches.finished != self._owed and self.over()


class Readiness:
    """Sees to it that what decisions need is at hand."""

    def __init__(
        self, store: stores.Store, backlog: backlogs.Backlog, decider: cycle.Decider, *, clock: clocks.Clock
    ) -> None:
        self._store = store
        self._backlog = backlog
        self._decider = decider
        self._clock = clock
        self._since: dict[tuple[keys.VertexKey, str], float] = {}
        """Key and uid of a pod that waits → since when."""
        self._turned = float("-inf")
        """When the last turn ended."""
        self._hurry: _Hurry | None = None
        """Of this turn, once a pod is out of patience."""
        self._undone = store.routes.statistics.undone
        self._restless_until = float("-inf")
        self._asked_s = 0.0
        """Of this turn, what finding out whether pods are ready has taken so far."""

    @contextlib.contextmanager
    def turn(self, begun: float, end: float) -> Iterator[Turn]:
        """A turn between these moments. At its end those that were not ready are back in the queue."""

        def ask(entry: parking.Entry) -> bool:
            return not self._decider.needs(self._store.view(), entry.pod) or self._ready(entry, begun, end)

        self._hurry, self._asked_s = None, 0.0
        if begun - self._turned > PATIENCE_S:
            # Turns follow each other while a pod waits: this replica did not decide for a while, and searched nothing.
            self._since.clear()
        if self._undone != self._store.routes.statistics.undone:
            self._undone, self._restless_until = self._store.routes.statistics.undone, begun + RESTLESS_S
        made = Turn(ask)
        try:
            yield made
        finally:
            for entry in made.entries:
                self._backlog.put_back(entry)
        self._search(made.entries)
        self._turned = self._clock.monotonic()
        if len(self._since) > WAITING_KEPT:
            self._since = {key: since for key, since in self._since.items() if key[0] in self._backlog}

    def _ready(self, entry: parking.Entry, begun: float, end: float) -> bool:
        """Whether the pod is to be decided on: all is known of it, or it has waited for too long."""
        key = entry.pod.key, entry.pod.uid
        waited = begun - self._since.setdefault(key, begun)
        if self._asked_s >= ASK_S:
            return False
        asked = self._clock.monotonic()
        known = self._known(entry, asked, end, patient=waited < PATIENCE_S)
        self._asked_s += self._clock.monotonic() - asked
        if not known and waited < WAIT_S_MAX:
            return False
        del self._since[key]
        return True

    def _known(self, entry: parking.Entry, now: float, end: float, *, patient: bool) -> bool:
        """Whether all is known of the pod, or can be found out now."""
        graph = self._store.view()
        if patient:
            enough = self._until(now + REPAIR_S - self._asked_s)
            return self._decider.prepare(graph, entry.pod, self._until(end), searched_enough=enough)
        if self._hurry is None:
            # One for all pods of a turn.
            restless = now < self._restless_until
            self._hurry = _Hurry(self._clock, graph.routes.statistics, restless=restless)
        hurry = self._hurry
        return self._decider.prepare(graph, entry.pod, hurry.over, searched_enough=hurry.searched_enough)

    def _search(self, entries: list[parking.Entry]) -> None:
        """Search for what they need, the first of them first."""
        expired = self._until(self._clock.monotonic() + SEARCH_S)
        for entry in entries:
            if expired() or not self._decider.prepare(self._store.view(), entry.pod, expired):
                break

    def _until(self, due: float) -> Callable[[], bool]:
        return lambda: self._clock.monotonic() >= due
