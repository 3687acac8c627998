"""The ledger of link health: what was observed of links, what it does to their health, and how time undoes it.

Sources state links with patches: latency, bandwidth, who says so. Whoever observes a link tells the ledger, which keeps
the damage; the graph gets the product as patches that set the `link` edge with its new health. So a decision reads the
graph alone, and a replay of the patches is exact. Time comes in as an argument, seconds since the epoch.

An observation is worth a factor in (0, 1] for each thing it measured:
- errors: 1 / (1 + e), e errors a second: one error a second halves the health;
- loss: 1 / (1 + loss / 1 %): one percent of lost packets halves it;
- latency: baseline / measured, where it is above the baseline: the link then costs what was measured. The baseline is
  the latency that was stated, or else a running mean of what was measured before;
- reported: a health that somebody else has worked out, taken as it is.

One minus the factor is damage. Each kind of damage halves every half-life of its own: h(t) = 1 - (1 - h0) 2^(-Δt / T).
Of one kind the greatest counts, so repeating an observation changes nothing and their order means nothing; a better
measurement does not heal, only time does. Health is the product over the kinds, never below the floor, unless the link
is stated to be down: then it is that, and the damage goes on to fade beneath. So a signal that nobody renews fades to
1, which is neutral; `at` of the link still says when it was last measured.

Comes in: observations; patches from sources, by `imprint`, which may bring some. Goes out: patches, by `due`.
Invariant: health is in (0, 1].
"""

from __future__ import annotations

import collections
import enum
import itertools
import math
from collections.abc import Callable

import msgspec

from graphsched.base.values import keys, relations
from graphsched.graph import delta

ERRORS_HALVING = 1.0
"""Errors a second that halve the health of a link."""
LOSS_HALVING = 0.01
"""Share of lost packets that halves it."""
BASELINE_SHARE = 0.1
"""What one measurement moves the running mean of the latency by, of its distance to it."""
HEALED = 0.99
"""From here on a link is as good as new: what is left would make patches for a change nobody sees."""
AGE_STEP_S = 30.0
"""A measurement that changes nothing but the age of a link makes a patch when it is so much younger."""
STEP = 1.05
"""A recovering link is patched when its health has grown by this factor: from 0.01 to 1 takes 95 patches."""
LINKS_MAX = 65_536
"""Links of which something is kept; the one observed longest ago makes room."""
ROWS_MAX = 1000
"""Links looked at in one call of `due`: some milliseconds. The others have their turn at the next one."""

Find = Callable[[keys.EdgeID], relations.Edge | None]
"""An edge's attributes in the graph."""


class Kind(enum.Enum):
    """What was observed."""

    ERRORS = "errors"
    LOSS = "loss"
    LATENCY = "latency"
    REPORTED = "reported"


Observation = relations.Observation


class HalfLives(msgspec.Struct, frozen=True, gc=False):
    """Seconds after which half of the damage is gone, by what did it; and the least health of all."""

    errors: float = 60.0
    loss: float = 60.0
    latency: float = 30.0
    reported: float = 120.0
    floor: float = 0.01

    def of(self, kind: Kind) -> float:
        """The half-life of the kind."""
        seconds: float = getattr(self, kind.value)
        return seconds


class _Entry:
    """What is kept of one link.

    Attributes:
        damage: Kind → (damage, when it was as great as that).
        at: When the link was last observed.
        stated: Health that a source states without saying when: it does not heal.
        baseline: Running mean of the latency before `moment`; None before the second moment.
        moment, worst_ms: When latency was last measured, and the greatest of that moment.
        undated: The last observation that said no time, so that hearing it again is no news.
        measured: Whether the link's latency in the graph is the mean, since nobody states one.
    """

    __slots__ = ("at", "baseline", "damage", "measured", "moment", "stated", "undated", "worst_ms")

    def __init__(self) -> None:
        self.damage: dict[Kind, tuple[float, float]] = {}
        self.at = 0.0
        self.stated = 1.0
        self.baseline: float | None = None
        self.moment = 0.0
        self.worst_ms = 0.0
        self.undated: Observation | None = None
        self.measured = False

    @property
    def mean(self) -> float | None:
        """The running mean of the latency, the last moment included; None before it was measured."""
        if not self.moment:
            return None
        if self.baseline is None:
            return self.worst_ms
        return self.baseline + BASELINE_SHARE * (self.worst_ms - self.baseline)


class Ledger:
    """Keeps the damage of every link that was observed.

    Attributes:
        half_lives: How fast links recover.
    """

    def __init__(self, half_lives: HalfLives | None = None, *, links_max: int = LINKS_MAX) -> None:
        self.half_lives = half_lives or HalfLives()
        self._links_max = links_max
        self._entries: dict[keys.EdgeID, _Entry] = {}
        self._fresh: dict[keys.EdgeID, None] = {}
        self._recovering: collections.OrderedDict[keys.EdgeID, None] = collections.OrderedDict()

    def __len__(self) -> int:
        """Number of links of which something is kept."""
        return len(self._entries)

    @property
    def fresh(self) -> bool:
        """Whether something was observed since the last call of `due`."""
        return bool(self._fresh)

    @property
    def recovering(self) -> int:
        """How many links time is about to restore."""
        return len(self._recovering)

    def observed(self, edge: keys.EdgeID, seen: Observation, now: float, *, stated_ms: float | None = None) -> None:
        """Take note of an observation; a moment to come counts as now.

        Args:
            edge: The link; it need not be in the graph yet.
            seen: What was observed.
            now: The present time.
            stated_ms: The latency that is stated of the link, where one is.
        """
        entry = self._entry(edge)
        at = seen.at
        if not at > 0:
            if entry.undated == seen:
                return
            entry.undated, at = seen, now
        at = min(at, now)
        entry.at = max(entry.at, at)
        for kind, factor in self._factors(entry, seen, at, stated_ms):
            self._hurt(entry, kind, 1.0 - factor, at)
        self._fresh[edge] = None
        if entry.damage:
            self._recovering[edge] = None

    def health(self, edge: keys.EdgeID, now: float) -> float:
        """The link's health at this time; 1 where nothing is kept of it."""
        entry = self._entries.get(edge)
        return 1.0 if entry is None else self._health(entry, now)

    def link(self, edge: keys.EdgeID, link: relations.Link, now: float) -> relations.Link:
        """The link as the graph should have it, from what a source says of it."""
        if link.seen is not None:
            self.observed(edge, link.seen, now, stated_ms=link.latency_ms)
            link = msgspec.structs.replace(link, seen=None)
        measured = link.at > 0 and not link.down
        if link.health < 1 and measured:
            self.observed(edge, Observation(link.at, health=link.health), now, stated_ms=link.latency_ms)
        entry = self._entry(edge) if link.health < 1 else self._entries.get(edge)
        if entry is None:
            return link
        entry.stated = 1.0 if measured else link.health
        entry.measured = link.latency_ms is None and entry.moment > 0
        return self._dressed(entry, link, self._health(entry, now))

    def imprint(self, patch: delta.Patch, now: float) -> delta.Patch:
        """The patch of a source with the health that its links have."""
        links = {edge: value for edge, value in patch.edges.items() if isinstance(value, relations.Link)}
        if not links:
            return patch
        dressed = {edge: self.link(edge, link, now) for edge, link in links.items()}
        return msgspec.structs.replace(patch, edges={**patch.edges, **dressed})

    def due(self, find: Find, now: float, *, rows_max: int = ROWS_MAX) -> delta.Patch:
        """What has to change in the graph: links observed since the last call, and those that have recovered visibly.

        Args:
            find: The graph's edges.
            now: The present time.
            rows_max: How many links are looked at; those left over come first next time.
        """
        patch = delta.Patch()
        asked = [*itertools.islice(self._fresh, rows_max)]
        asked += itertools.islice((edge for edge in self._recovering if edge not in self._fresh), rows_max - len(asked))
        for edge in asked:
            fresh = edge in self._fresh
            self._fresh.pop(edge, None)
            entry = self._entries.get(edge)
            if entry is None:
                self._recovering.pop(edge, None)
                continue
            link, whole = find(edge), self._whole(entry, now)
            if isinstance(link, relations.Link):
                entry.measured = entry.measured or (link.latency_ms is None and entry.moment > 0)
                health = self._stated(entry, whole)
                dressed = self._dressed(entry, link, health)
                if _differs(link, dressed, news=fresh or health >= entry.stated):
                    patch.set_edge(edge, dressed)
            self._settle(edge, entry, whole)
        return patch

    def _settle(self, edge: keys.EdgeID, entry: _Entry, whole: float) -> None:
        """Forget damage that is gone, and the whole link once nothing is left to know of it."""
        if edge in self._recovering:
            self._recovering.move_to_end(edge)
        if whole == 1:
            entry.damage.clear()
            self._recovering.pop(edge, None)
            if entry.stated == 1 and not entry.moment and entry.undated is None:
                del self._entries[edge]

    def _entry(self, edge: keys.EdgeID) -> _Entry:
        entry = self._entries.pop(edge, None)
        if entry is None:
            entry = _Entry()
            if len(self._entries) >= self._links_max:
                oldest = next(iter(self._entries))
                del self._entries[oldest]
                self._fresh.pop(oldest, None)
                self._recovering.pop(oldest, None)
        self._entries[edge] = entry
        return entry

    def _factors(
        self, entry: _Entry, seen: Observation, at: float, stated_ms: float | None
    ) -> list[tuple[Kind, float]]:
        found = []
        if seen.errors_per_s is not None:
            found.append((Kind.ERRORS, 1.0 / (1.0 + max(0.0, seen.errors_per_s) / ERRORS_HALVING)))
        if seen.loss is not None:
            found.append((Kind.LOSS, 1.0 / (1.0 + min(1.0, max(0.0, seen.loss)) / LOSS_HALVING)))
        if seen.latency_ms is not None and 0 <= seen.latency_ms < math.inf:
            usual = _usual(entry, seen.latency_ms, at) if stated_ms is None else stated_ms
            if seen.latency_ms > usual > 0:
                found.append((Kind.LATENCY, usual / seen.latency_ms))
        if seen.health is not None and not math.isnan(seen.health):
            found.append((Kind.REPORTED, min(1.0, max(self.half_lives.floor, seen.health))))
        return found

    def _hurt(self, entry: _Entry, kind: Kind, damage: float, at: float) -> None:
        """Of one kind the greatest damage counts, all seen from the latest moment."""
        if damage <= 0:
            return
        before, since = entry.damage.get(kind, (0.0, at))
        latest, half_life = max(at, since), self.half_lives.of(kind)
        left = max(_left(before, latest - since, half_life), _left(damage, latest - at, half_life))
        entry.damage[kind] = (left, latest)

    def _health(self, entry: _Entry, now: float) -> float:
        return self._stated(entry, self._whole(entry, now))

    def _stated(self, entry: _Entry, whole: float) -> float:
        """The health of a link of which this share is whole, by what is stated of it."""
        return entry.stated if entry.stated <= relations.DOWN else max(self.half_lives.floor, whole * entry.stated)

    def _whole(self, entry: _Entry, now: float) -> float:
        """What the damage leaves of the link."""
        product = math.prod(
            1.0 - _left(damage, max(0.0, now - since), self.half_lives.of(kind))
            for kind, (damage, since) in entry.damage.items()
        )
        return 1.0 if product >= HEALED else product

    def _dressed(self, entry: _Entry, link: relations.Link, health: float) -> relations.Link:
        latency = entry.mean if entry.measured else link.latency_ms
        return msgspec.structs.replace(link, latency_ms=latency, health=health, at=max(entry.at, link.at))


def pictured(patch: delta.Patch) -> delta.Patch:
    """The patch with links as they were at the moment of the newest observation that it brings; others stay as is."""
    seen = {
        edge: value
        for edge, value in patch.edges.items()
        if isinstance(value, relations.Link) and value.seen is not None
    }
    if not seen:
        return patch
    ledger, now = Ledger(), max(link.seen.at for link in seen.values() if link.seen is not None)
    dressed = {edge: ledger.link(edge, link, now) for edge, link in seen.items()}
    return msgspec.structs.replace(patch, edges={**patch.edges, **dressed})


def _left(damage: float, seconds: float, half_life: float) -> float:
    return damage * math.exp2(-seconds / half_life)


def _usual(entry: _Entry, latency_ms: float, at: float) -> float:
    """The running mean before this moment, to which the measurement is then added; the measurement where it is first.

    Of several in one moment the greatest counts once, so that their order means nothing; an older one teaches nothing.
    """
    if at > entry.moment:
        entry.baseline = entry.mean
        entry.moment, entry.worst_ms = at, latency_ms
    elif at == entry.moment:
        entry.worst_ms = max(entry.worst_ms, latency_ms)
    return latency_ms if entry.baseline is None else entry.baseline


def _differs(have: relations.Link, due: relations.Link, *, news: bool) -> bool:
    """Whether the change is worth a patch; of `news`, an observation or the end of a recovery, every change is."""
    if (have.health, have.latency_ms) == (due.health, due.latency_ms):
        return due.at - have.at >= AGE_STEP_S
    if news or have.latency_ms != due.latency_ms:
        return True
    return not 1 / STEP < due.health / have.health < STEP
