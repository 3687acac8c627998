"""The queue of pods that wait for a node: kube-scheduler's, with one representative for pods that are alike.

Comes in: pods as the watch shows them, what became of each try, and news of the cluster. Goes out: the next pod to
decide on. `loop` calls in and decides; `hints` says which news may help whom, `backoff` how long a penalty lasts. Pure:
time is an argument, in seconds of any clock that never goes back.

    add ──▶ ACTIVE ──pop──▶ DECIDING ──placed──▶ BINDING ──done──▶ out
              ▲ ▲ ▲             │                   │
              │ │ └── ASIDE ◀───┤ not ready         │
              │ └── BACKOFF ◀───┤ refused           │ failed
              │        ▲        ▼                   ▼
              │        └─ UNSCHEDULABLE           ERRORS
              └───────────── penalty over ───────────┘          GATED ──gates gone──▶ ACTIVE

Pods that no event can tell apart (same spec, priority, nomination and refusing plugins; where company had a part in it
the same namespace and labels as well) wait in one group. News that may help releases only the one that waits longest;
when it is placed the next is released, when it is refused the others would have been as well and stay, and wait for
what refused it too. So one freed slot costs one decision per group, whatever the number of pods.

Invariant: a pod that was added and not removed is in exactly one pool. Bounds: some 500 bytes a pod; one waiting round
of news, itself bounded (`tidings.News`).
"""

from __future__ import annotations

import collections
import itertools
from collections.abc import Iterator, Mapping

from graphsched.app import backoff, hints, parking, tidings
from graphsched.base.values import keys, pods

LEFTOVER_CHECK_S = 30.0
"""How often pods that were refused long ago are looked for."""
GROUPS_A_ROUND = 512
"""Groups asked about news in one call: at 5 to 10 µs each a few milliseconds."""
FIRST_OF = 256
"""Where the queue is ordered, so many members of a group are looked through for the first: a tenth of a millisecond."""
LOSSES_MAX = 3
"""So often a pod whose node moved is tried again without a penalty."""
NEWS_KEPT = 64
"""Turns of news kept for pods that are being decided; a pod that missed some is retried in any case."""


class Backlog:
    """The queue.

    Attributes:
        moves: (name of the queue, event) → pods that entered it since the caller last cleared it.
    """

    def __init__(self, policy: backoff.Policy = backoff.Policy(), *, leftover_s: float = 300.0) -> None:  # noqa: B008
        self._policy = policy
        self._leftover_s = leftover_s
        self._entries: dict[keys.VertexKey, parking.Entry] = {}
        self._counts = dict.fromkeys(parking.Pool, 0)
        self._serial = 0
        self._active = backoff.Line()
        self._aside = backoff.Line()
        self._backoff = backoff.Waiting()
        self._errors = backoff.Waiting()
        self._groups: dict[parking.GroupKey, parking.Group] = {}
        self._leftovers_due = float("-inf")
        self._news = tidings.News()
        self._round: list[parking.GroupKey] = []
        self._round_news = tidings.News()
        self._turn = 0
        self._history: collections.deque[tidings.News] = collections.deque(maxlen=NEWS_KEPT)
        self._rank = 0
        self.moves: collections.Counter[tuple[str, tidings.Event]] = collections.Counter()

    # ── the pods ───────────────────────────────────────────────────────────────────────────────────────────────────

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: keys.VertexKey) -> bool:
        return key in self._entries

    def get(self, key: keys.VertexKey) -> parking.Entry | None:
        """The pod's entry."""
        return self._entries.get(key)

    def entries(self) -> list[parking.Entry]:
        """Every pod in the queue, those that came first to the front. Not to be changed."""
        return list(self._entries.values())

    def counts(self) -> dict[parking.Pool, int]:
        """Number of pods in each pool."""
        return dict(self._counts)

    def refusals(self) -> dict[str, int]:
        """Number of waiting pods by the plugin that refused them; one pod counts under each."""
        found: collections.Counter[str] = collections.Counter()
        for group in self._groups.values():
            for plugin in group.plugins:
                found[plugin] += len(group.members)
        return dict(found)

    def add(self, pod: pods.Pod, now: float) -> parking.Entry:
        """A pod is there to be placed; of one that is known already this is an update."""
        known = self._entries.get(pod.key)
        if known is not None:
            if known.pod.uid == pod.uid:
                self.update(pod, now)
                return known
            self.remove(pod.key, now)
        self._serial += 1
        entry = self._entries[pod.key] = parking.Entry(pod, self._serial, added=now, since=now, rank=self._rank)
        self._counts[entry.pool] += 1
        self._enter(entry, parking.Pool.GATED if pod.gates else parking.Pool.ACTIVE, tidings.Event.POD_ADDED)
        return entry

    def update(self, pod: pods.Pod, now: float) -> None:
        """A waiting pod changed; nothing happens for one that is not here."""
        entry = self._entries.get(pod.key)
        if entry is None:
            return
        before, entry.pod = entry.pod, pod
        if before.spec != pod.spec and entry.pool is not parking.Pool.UNSCHEDULABLE:
            # What becomes of it now says nothing about its old siblings.
            self._pass_on(entry, now)
        if entry.pool is parking.Pool.GATED and not pod.gates:
            entry.added = entry.since = now
            self._enter(entry, parking.Pool.ACTIVE, tidings.Event.POD_UNGATED)
        elif entry.pool is parking.Pool.DECIDING:
            entry.changed = entry.changed or before
        elif entry.pool is parking.Pool.UNSCHEDULABLE:
            event = hints.own_hint(entry.plugins, before, pod)
            if event is not None:
                self._requeue(entry, event, now)
            elif parking.group_key(entry) != entry.group:
                self._enter(entry, parking.Pool.UNSCHEDULABLE, tidings.Event.POD_UPDATED)
        elif before.priority != pod.priority and entry.pool is not parking.Pool.BINDING:
            self._enter(entry, entry.pool, tidings.Event.POD_UPDATED)

    def remove(self, key: keys.VertexKey, now: float) -> parking.Entry | None:
        """A pod is gone, bound, or no business of ours any more; returns what was known of it."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._leave(entry)
            self._counts[entry.pool] -= 1
            self._pass_on(entry, now)
        return entry

    def rank(self, ranks: Mapping[keys.VertexKey, int], *, otherwise: int) -> None:
        """Put pods of equal priority in order: a smaller rank first, `otherwise` for those not named or yet to come."""
        self._rank = otherwise
        for key, entry in self._entries.items():
            rank = ranks.get(key, otherwise)
            if rank != entry.rank:
                entry.rank = rank
                self._place(entry)

    # ── one try ────────────────────────────────────────────────────────────────────────────────────────────────────

    def pop(self) -> parking.Entry | None:
        """The next pod to decide on; None when nobody waits for a decision.

        With nobody in line the next pod in penalty is taken: a penalty orders, it does not idle the scheduler. Pods
        that failed by an error do wait to its end.
        """
        key, skipping = self._active.take(), False
        if key is None:
            key, skipping = self._backoff.take(), True
            if key is None:
                return None
            self.moves["active", tidings.Event.BACKOFF_SKIPPED] += 1
        entry = self._entries[key]
        entry.skipping = skipping
        self._settle(entry, parking.Pool.DECIDING)
        entry.attempts += 1
        entry.urgent = False
        entry.popped, entry.changed = self._turn, None
        return entry

    def set_aside(self, entry: parking.Entry, now: float) -> None:
        """Nothing was decided, as what it takes is not at hand yet: the try does not count, and others go on."""
        if self._entries.get(entry.pod.key) is not entry:
            return
        entry.attempts -= 1
        if entry.skipping:
            self.moves["active", tidings.Event.BACKOFF_SKIPPED] -= 1
        entry.aside = now if entry.aside is None else entry.aside
        self._settle(entry, parking.Pool.ASIDE)
        self._place(entry)

    def first_aside(self) -> parking.Entry | None:
        """Whose turn it is of those that wait aside; None where nobody does."""
        key = self._aside.first()
        return None if key is None else self._entries[key]

    def searched(self, entry: parking.Entry, seconds: float) -> None:
        """So long was spent on what the first of those aside waits for."""
        step = entry.step
        entry.searched_s += seconds
        if entry.step != step:
            self._place(entry)

    def let_go(self, entry: parking.Entry, now: float) -> None:
        """What a decision takes is at hand: back to where the pod was before it was set aside."""
        penalised = entry.skipping and self._backs_off(entry, now)
        self._leave(entry)
        self._settle(entry, parking.Pool.BACKOFF if penalised else parking.Pool.ACTIVE)
        self._place(entry)

    def placed(self, entry: parking.Entry, now: float) -> None:
        """The pod found a node and its binding is under way; its siblings may try."""
        if self._entries.get(entry.pod.key) is entry:
            self._settle(entry, parking.Pool.BINDING)
            self._pass_on(entry, now)

    def refused(
        self,
        entry: parking.Entry,
        plugins: tuple[str, ...],
        now: float,
        *,
        pending: bool = False,
        room: hints.Room | None = None,
    ) -> None:
        """The pod found no node; it waits for news that may change the mind of one of `plugins`.

        Args:
            entry: What `pop` gave.
            plugins: Who refused; must not be empty.
            now: The present.
            pending: Retry without penalty once such news has come.
            room: See `hints.hint`; used on the news that came while the decision was made.
        """
        if self._entries.get(entry.pod.key) is not entry:
            return
        entry.refusals += 1
        entry.failures = 0
        entry.plugins, entry.pending = plugins, pending
        self._punish(entry, entry.refusals, now)
        event = self._missed(entry, room)
        if event is not None:
            self._requeue(entry, event, now)
            return
        if self._speaks_for_all(entry):
            self._instruct(entry)
            self._retire(entry)
        else:
            # Its labels or namespace had a part in it, so its siblings may fare better.
            self._pass_on(entry, now)
        self._enter(entry, parking.Pool.UNSCHEDULABLE, tidings.Event.FAILURE)

    def lost(self, entry: parking.Entry, now: float) -> None:
        """The pod's node moved before the binding: it is tried again at once, before all others of its priority.

        A pod that has lost so `LOSSES_MAX` times waits as after an error, so that it does not keep others waiting.
        """
        if self._entries.get(entry.pod.key) is not entry:
            return
        entry.losses += 1
        if entry.losses > LOSSES_MAX:
            self.failed(entry, now)
            return
        entry.plugins, entry.pending = (), False
        entry.end = float("-inf")
        self._pass_on(entry, now)
        entry.urgent = True
        self._enter(entry, parking.Pool.ACTIVE, tidings.Event.FAILURE)

    def failed(self, entry: parking.Entry, now: float, *, refused: bool = False, at_least_s: float = 0.0) -> None:
        """An error ended the try; it is repeated after a penalty, whatever happens.

        Args:
            entry: What `pop` gave.
            now: The present.
            refused: The error will most likely repeat itself, see `backoff.Policy.refused_max_s`.
            at_least_s: Not before so many seconds, when the API server asked for it.
        """
        if self._entries.get(entry.pod.key) is not entry:
            return
        entry.failures += 1
        entry.plugins, entry.pending = (), False
        self._punish(entry, entry.failures, now, refused=refused)
        if at_least_s > 0:
            entry.end = max(entry.end, backoff.align(now + at_least_s))
        self._pass_on(entry, now)
        self._enter(
            entry, parking.Pool.ERRORS if self._backs_off(entry, now) else parking.Pool.ACTIVE, tidings.Event.FAILURE
        )

    # ── what wakes ─────────────────────────────────────────────────────────────────────────────────────────────────

    def tell(self, news: tidings.News) -> None:
        """Take note of what changed; `ask` acts on it."""
        if not news:
            return
        self._turn += 1
        if self._counts[parking.Pool.DECIDING]:
            self._history.append(news)
        if self._groups:
            self._news.merge(news)

    def ask(self, now: float, room: hints.Room | None = None) -> bool:
        """Release pods that the news may help, group by group.

        Returns:
            Whether there is more to ask: the work is cut into rounds so that no turn of the loop gets long.
        """
        if not self._round and self._news:
            self._round_news, self._news = self._news, tidings.News()
            everybody = self._round_news.beyond_company
            self._round = [
                key for key, group in self._groups.items() if everybody or not hints.COMPANY.isdisjoint(group.plugins)
            ]
        for key in self._round[-GROUPS_A_ROUND:]:
            group = self._groups.get(key)
            if group is None or group.released is not None or not group.members:
                continue
            first = self._entries[next(iter(group.members))]
            event = hints.hint(group.plugins, self._round_news, first.pod, room)
            if event is not None:
                self._release(key, event, now)
        del self._round[-GROUPS_A_ROUND:]
        return bool(self._round or self._news)

    def tick(self, now: float) -> None:
        """Let those go whose penalty is over, and those that were refused too long ago."""
        for waiting in (self._backoff, self._errors):
            for key in waiting.take_due(now):
                self._enter(self._entries[key], parking.Pool.ACTIVE, tidings.Event.BACKOFF_OVER)
        if now >= self._leftovers_due:
            self._leftovers_due = now + LEFTOVER_CHECK_S
            for entry in list(self._old(now - self._leftover_s)):
                self._requeue(entry, tidings.Event.LEFTOVER, now)

    def reconsider(self, now: float) -> None:
        """Try all that were refused once more, as a scheduler that has just started does."""
        for entry in list(self._old(float("inf"))):
            self._requeue(entry, tidings.Event.LEFTOVER, now)

    def next_due(self) -> float | None:
        """When `tick` next has something to do; None while nobody waits for time to pass."""
        ends = [
            end + backoff.WINDOW_S for end in (self._backoff.first_end(), self._errors.first_end()) if end is not None
        ]
        if self._counts[parking.Pool.UNSCHEDULABLE]:
            ends.append(self._leftovers_due)
        return min(ends, default=None)

    @property
    def ready(self) -> bool:
        """Whether `pop` would return a pod; those that wait aside are not asked."""
        return bool(len(self._active) or len(self._backoff))

    # ── inside ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def _old(self, before: float) -> Iterator[parking.Entry]:
        for group in self._groups.values():
            for key in group.members:
                entry = self._entries[key]
                if entry.since >= before:
                    break
                yield entry

    def _punish(self, entry: parking.Entry, times: int, now: float, *, refused: bool = False) -> None:
        entry.since = now
        length = self._policy.duration_s(times, refused=refused)
        entry.end = backoff.align(now + length) if length else float("-inf")

    def _backs_off(self, entry: parking.Entry, now: float) -> bool:
        return entry.end >= backoff.align(now)

    def _missed(self, entry: parking.Entry, room: hints.Room | None) -> tidings.Event | None:
        """The event that happened while the pod was being decided and may have changed the answer."""
        if entry.changed is not None:
            event = hints.own_hint(entry.plugins, entry.changed, entry.pod)
            if event is not None:
                return event
        count = self._turn - entry.popped
        if count > len(self._history):
            return tidings.Event.FAILURE
        for news in list(self._history)[len(self._history) - count :]:
            event = hints.hint(entry.plugins, news, entry.pod, room)
            if event is not None:
                return event
        return None

    def _requeue(self, entry: parking.Entry, event: tidings.Event, now: float) -> None:
        late = self._backs_off(entry, now) and not entry.pending
        self._enter(entry, parking.Pool.BACKOFF if late else parking.Pool.ACTIVE, event)

    def _release(self, key: parking.GroupKey, event: tidings.Event, now: float) -> None:
        """Let the first of the group try on behalf of all; it stays their envoy until something became of it."""
        group = self._groups[key]
        entry = self._first(group)
        group.released = entry.pod.key
        self._requeue(entry, event, now)
        entry.group = key

    def _first(self, group: parking.Group) -> parking.Entry:
        """The one that waits longest, or, where the queue is ordered, the first in order of those that do."""
        if not self._rank:
            return self._entries[next(iter(group.members))]
        longest = itertools.islice(group.members, FIRST_OF)
        return min((self._entries[key] for key in longest), key=lambda entry: entry.order)

    def _retire(self, entry: parking.Entry) -> parking.GroupKey | None:
        """Call the envoy of a group back; returns the group's key if others are left in it."""
        key = entry.group
        group = None if key is None else self._groups.get(key)
        if key is None or group is None or group.released != entry.pod.key:
            return None
        group.released = entry.group = None
        if group.members:
            return key
        del self._groups[key]
        return None

    def _speaks_for_all(self, entry: parking.Entry) -> bool:
        """Whether the members of the group that sent this entry would have been refused as well."""
        if hints.BY_SPEC.issuperset(entry.plugins):
            return True
        group = None if entry.group is None else self._groups.get(entry.group)
        if group is None or hints.BY_SPEC.issuperset(group.plugins):
            return False
        # Pods that a budget refused are grouped by whom they belong to, and those that other company refused, by
        # namespace and labels, which tell that as well.
        alike = hints.BY_HOLDER if hints.BY_HOLDER.issuperset(group.plugins) else hints.BY_KIND
        return alike.issuperset(entry.plugins)

    def _instruct(self, entry: parking.Entry) -> None:
        """Let those the envoy answered for wait for what it waits for, as well as for what they already do."""
        group = None if entry.group is None else self._groups.get(entry.group)
        if group is not None and group.released == entry.pod.key and not set(entry.plugins) <= set(group.plugins):
            group.plugins = tuple(sorted({*group.plugins, *entry.plugins}))

    def _pass_on(self, entry: parking.Entry, now: float) -> None:
        """The envoy will not answer for its group, or answered well: the next one goes."""
        key = self._retire(entry)
        if key is not None:
            self._release(key, tidings.Event.SIBLING, now)

    def _place(self, entry: parking.Entry) -> None:
        """Put the pod where its order says, if it is in a pool that has an order."""
        key = entry.pod.key
        if entry.pool is parking.Pool.ACTIVE:
            self._active.put(key, entry.order)
        elif entry.pool is parking.Pool.ASIDE:
            self._aside.put(key, entry.aside_order)
        elif entry.pool is parking.Pool.BACKOFF:
            self._backoff.put(key, end=entry.end, order=entry.order)
        elif entry.pool is parking.Pool.ERRORS:
            self._errors.put(key, end=entry.end, order=entry.order)

    def _enter(self, entry: parking.Entry, pool: parking.Pool, event: tidings.Event) -> None:
        """Move the pod into a pool, from whichever it is in."""
        self._leave(entry)
        self._settle(entry, pool)
        self._place(entry)
        key = entry.pod.key
        if pool is parking.Pool.UNSCHEDULABLE:
            entry.group = parking.group_key(entry)
            group = self._groups.get(entry.group)
            if group is None:
                group = self._groups[entry.group] = parking.Group(entry.plugins, entry.pod.spec)
            group.members[key] = None
        self.moves[parking.QUEUES[pool], event] += 1

    def _leave(self, entry: parking.Entry) -> None:
        key = entry.pod.key
        if entry.pool is parking.Pool.ACTIVE:
            self._active.discard(key)
        elif entry.pool is parking.Pool.ASIDE:
            self._aside.discard(key)
        elif entry.pool is parking.Pool.BACKOFF:
            self._backoff.discard(key)
        elif entry.pool is parking.Pool.ERRORS:
            self._errors.discard(key)
        elif entry.pool is parking.Pool.UNSCHEDULABLE and entry.group is not None:
            group = self._groups[entry.group]
            del group.members[key]
            if not group.members and group.released is None:
                del self._groups[entry.group]
            entry.group = None

    def _settle(self, entry: parking.Entry, pool: parking.Pool) -> None:
        self._counts[entry.pool] -= 1
        self._counts[pool] += 1
        entry.pool = pool
        if not self._counts[parking.Pool.DECIDING]:
            self._history.clear()
