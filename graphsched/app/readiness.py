"""Whether a pod can be decided on at once, or waits for work that is done piece by piece.

What rules say of a pod may take long to find out: new rules are compiled, all nodes asked, the ways that are required
searched for in the network, as are those to the pod's partners. Comes in: the pods of a turn, one by one. Goes out: yes
or not yet; those that are not ready go back to where they stood in the queue, while others, of which no such rule
speaks and which have no partners, are decided on.

Rules are compiled and asked as pods come up. Ways are searched for after the decisions of the turn, for `SEARCH_S`, so
that a long search takes nothing from those who do not need it. A network that changes all the time may undo what was
searched before it is finished; a pod that has waited for `PATIENCE_S` is decided on in any case, and what it needs is
found out in one go.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator

from graphsched.app import backlog as backlogs, parking
from graphsched.base.kit import clock as clocks
from graphsched.base.values import keys
from graphsched.decision import cycle
from graphsched.graph import store as stores

SEARCH_S = 0.005
PATIENCE_S = 2.0
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


class Readiness:
    """Sees to it that what decisions need is at hand."""

    def __init__(
        self, store: stores.Store, backlog: backlogs.Backlog, decider: cycle.Decider, *, clock: clocks.Clock
    ) -> None:
        self._store = store
        self._backlog = backlog
        self._decider = decider
        self._clock = clock
        self._since: dict[keys.VertexKey, float] = {}
        """Pod that waits → since when."""

    @contextlib.contextmanager
    def turn(self, begun: float, end: float) -> Iterator[Turn]:
        """A turn between these moments. At its end those that were not ready are back in the queue."""

        def ask(entry: parking.Entry) -> bool:
            return not self._decider.needs(self._store.view(), entry.pod) or self._ready(entry, begun, end)

        made = Turn(ask)
        try:
            yield made
        finally:
            for entry in made.entries:
                self._backlog.put_back(entry)
        self._search(made.entries)
        if len(self._since) > WAITING_KEPT:
            self._since = {key: since for key, since in self._since.items() if key in self._backlog}

    def _ready(self, entry: parking.Entry, begun: float, end: float) -> bool:
        """Whether all is known of the pod; one that is out of patience waits for no search."""
        key = entry.pod.key
        since = self._since.setdefault(key, begun)
        patient = begun - since < PATIENCE_S
        if not self._prepare(entry, due=end if patient else math.inf, search=not patient):
            return False
        del self._since[key]
        return True

    def _search(self, entries: list[parking.Entry]) -> None:
        """Search for what they need, the first of them first."""
        due = self._clock.monotonic() + SEARCH_S
        for entry in entries:
            if not self._prepare(entry, due=due, search=True):
                break

    def _prepare(self, entry: parking.Entry, *, due: float, search: bool) -> bool:
        def expired() -> bool:
            return self._clock.monotonic() >= due

        return self._decider.prepare(self._store.view(), entry.pod, expired, search=search)
