"""The term index: how many placed pods a selector counts on each node, without ever looping over pods.

A `Matcher` says which pods count; equal ones are interned, reference-counted and carry one count per node. The store
reports each pod that is placed, moved or removed, and only the matchers that the pod concerns are touched: pods of one
namespace and one set of labels form a profile, which knows its matchers, and a new profile finds them through the
inverted label index. `owners` holds the opposite direction, the terms that placed pods own.

Comes in: pod and namespace events, from `store`; matchers, from the classes that decisions compile. Goes out: count
vectors per row, which the decision sums over domains. Invariant: every count equals what a loop over all placed pods
would count (`audit` does that loop, and the tests compare after any sequence of events; `audit_one` looks at a single
matcher, quickly enough for a scheduler at work).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator

import msgspec
import numpy as np

from graphsched.base.values import keys, labels, pods
from graphsched.graph import inverted, owners, placements, scopes, tallies

PROFILES_JUDGED = 256
"""Profiles whose selection `audit_one` judges anew: evaluating a selector takes 2 µs, and there may be 100,000."""


Scopes = tuple[scopes.Scope, ...]


class Rule(enum.IntEnum):
    """Who counts among the pods selected."""

    COUNT_ALL = 0
    """All of them: affinity."""
    SPREAD = 1
    """Those that are not terminating; an empty selector counts none: topology spread."""


class Matcher(msgspec.Struct, frozen=True, gc=False):
    """Which placed pods count: those in every one of the scopes, under a rule. Without scopes none does.

    Attributes:
        scopes: A pod has to be in all of them.
        rule: Who of these counts.
        without: A pod that is in one of these does not count.
    """

    scopes: Scopes
    rule: Rule = Rule.COUNT_ALL
    without: Scopes = ()

    @property
    def hopeless(self) -> bool:
        """Whether no pod can ever count."""
        if not self.scopes or any(scope.selector is None for scope in self.scopes):
            return True
        return self.rule is Rule.SPREAD and not self.requirements

    @property
    def requirements(self) -> tuple[labels.Requirement, ...]:
        """What a pod's labels must meet, over all scopes."""
        chosen = (scope.selector for scope in self.scopes)
        return tuple(requirement for selector in chosen if selector for requirement in selector.requirements)

    @property
    def by_namespace_labels(self) -> bool:
        """Whether the labels of namespaces play a part."""
        return any(scope.namespace_selector is not None for scope in (*self.scopes, *self.without))

    @property
    def label_keys_apart(self) -> frozenset[str]:
        """Keys of the labels that keep pods from counting."""
        chosen = (scope.selector for scope in self.without)
        return frozenset(part.key for selector in chosen if selector for part in selector.requirements)

    def excludes(self, pod_labels: labels.Labels, *, namespace: str, namespace_labels: labels.Labels) -> bool:
        """Whether such a pod does not count, whatever scopes it is in."""
        return any(
            scope.selects(pod_labels, namespace=namespace, namespace_labels=namespace_labels) for scope in self.without
        )

    def covers(self, namespace: str, namespace_labels: labels.Labels) -> bool:
        """Whether pods of this namespace may count."""
        return all(scope.covers(namespace, namespace_labels) for scope in self.scopes)

    def selects(self, pod_labels: labels.Labels, *, namespace: str, namespace_labels: labels.Labels) -> bool:
        """Whether a pod that is not terminating counts."""
        if self.hopeless or self.excludes(pod_labels, namespace=namespace, namespace_labels=namespace_labels):
            return False
        return all(
            scope.selects(pod_labels, namespace=namespace, namespace_labels=namespace_labels) for scope in self.scopes
        )


class Placed(msgspec.Struct, frozen=True, gc=False):
    """What the index needs to know of a pod that has a node, bound or assumed.

    Attributes:
        namespace: Its namespace.
        labels: Its labels, interned.
        row: The row of its node; -1 when the node is not known: such a pod is kept and counts nowhere.
        deleting: Whether it is terminating.
        spec: Its spec, interned; read for the terms it owns, None for none.
    """

    namespace: str
    labels: labels.Labels
    row: int
    deleting: bool = False
    spec: pods.Spec | None = None


class _Live:
    """A matcher with the number of its users and its counts."""

    __slots__ = ("matcher", "number", "spread", "tally", "uses")

    def __init__(self, number: int, matcher: Matcher) -> None:
        self.number = number
        self.matcher = matcher
        self.spread = matcher.rule is Rule.SPREAD
        self.uses = 1
        self.tally = tallies.Tally()


class _Profile:
    """Namespace and labels that some placed pods share, with the matchers that select them."""

    __slots__ = ("labels", "matched", "namespace", "number", "pods")

    def __init__(self, number: int, namespace: str, pod_labels: labels.Labels, matched: list[_Live]) -> None:
        self.number = number
        self.namespace = namespace
        self.labels = pod_labels
        self.matched = matched
        self.pods = 0


class MatcherIndex:
    """Matchers with their counts, and the terms that placed pods own."""

    def __init__(self) -> None:
        self._rows = 0
        self._namespaces: dict[str, labels.Labels] = {}
        self._live_keys = inverted.LiveKeys()
        self._numbers: dict[Matcher, int] = {}
        self._live: dict[int, _Live] = {}
        self._next = 0
        self._selectors = inverted.SelectorIndex(self._live_keys)
        self._owners = owners.OwnerIndex(self._live_keys)
        self._placements = placements.Placements()
        self._specs: dict[keys.VertexKey, pods.Spec] = {}
        self._profiles: dict[tuple[str, labels.Labels], _Profile] = {}
        self._profile_at: list[_Profile | None] = []
        self._profile_free: list[int] = []

    # Events, from the store.

    @property
    def rows(self) -> int:
        """Length of every vector of counts."""
        return self._rows

    def namespace_labels(self, name: str) -> labels.Labels:
        """Labels of the namespace; none for one nobody has described."""
        return self._namespaces.get(name, labels.NO_LABELS)

    def resize(self, rows: int) -> None:
        """There are `rows` rows now; counts grow with zeros."""
        self._rows = rows

    def place(self, key: keys.VertexKey, pod: Placed) -> None:
        """The pod is placed, or is known to be elsewhere or otherwise than before."""
        profile = self._profile(pod.namespace, pod.labels)
        record = placements.Record(profile.number, pod.row, pod.deleting)
        spec = pod.spec if pod.spec is not None and owners.has_terms(pod.spec) else None
        if self._placements.get(key) == record and self._specs.get(key) is spec:
            return
        profile.pods += 1
        self.unplace(key)
        self._placements.put(key, record)
        self._count(profile, pod.row, 1, deleting=pod.deleting)
        if spec is not None:
            self._specs[key] = spec
            self._owners.hold(spec, pod.row)

    def unplace(self, key: keys.VertexKey) -> None:
        """The pod is placed no more; nothing happens for one that was not."""
        record = self._placements.pop(key)
        if record is None:
            return
        profile = self._profile_at[record.profile]
        assert profile is not None  # noqa: S101  a profile lives as long as its pods
        self._count(profile, record.row, -1, deleting=record.deleting)
        spec = self._specs.pop(key, None)
        if spec is not None:
            self._owners.drop(spec, record.row)
        profile.pods -= 1
        if not profile.pods:
            del self._profiles[profile.namespace, profile.labels]
            self._profile_at[profile.number] = None
            self._profile_free.append(profile.number)

    def set_namespace(self, name: str, namespace_labels: labels.Labels | None) -> None:
        """The namespace has these labels; None when it is gone, which is the same as having none."""
        before = self.namespace_labels(name)
        if namespace_labels:
            self._namespaces[name] = namespace_labels
        else:
            self._namespaces.pop(name, None)
        if before == self.namespace_labels(name):
            return
        moved: dict[int, _Live] = {}
        concerned = [
            live for live in self._live.values() if live.matcher.by_namespace_labels and not live.matcher.hopeless
        ]
        for profile in self._profiles.values() if concerned else ():
            if profile.namespace == name:
                self._resolve_again(profile, concerned, moved)
        for live in moved.values():
            self._recount(live, (profile for profile in self._profiles.values() if live in profile.matched))

    # Matchers, from the classes that decisions compile.

    def acquire(self, matcher: Matcher) -> int:
        """The number of this matcher, which stays alive until it is released as often as it was acquired.

        The first time, all placed pods are counted once.
        """
        number = self._numbers.get(matcher)
        if number is not None:
            self._live[number].uses += 1
            return number
        number = self._next
        self._next += 1
        self._numbers[matcher] = number
        live = self._live[number] = _Live(number, matcher)
        if not matcher.hopeless:
            self._selectors.add(number, matcher.requirements)
            self._live_keys.use(matcher.label_keys_apart)
            selected = [profile for profile in self._profiles.values() if self._selects(live, profile)]
            for profile in selected:
                profile.matched.append(live)
            self._recount(live, selected)
        return number

    def release(self, number: int) -> None:
        """Give one use of the matcher back.

        Raises:
            KeyError: It is not alive: a bug of the caller.
        """
        live = self._live[number]
        live.uses -= 1
        if live.uses:
            return
        del self._live[number]
        del self._numbers[live.matcher]
        if not live.matcher.hopeless:
            self._selectors.remove(number)
            self._live_keys.drop(live.matcher.label_keys_apart)
            for profile in self._profiles.values():
                if live in profile.matched:
                    profile.matched.remove(live)

    def counts(self, number: int) -> tallies.Counts:
        """Pods that the matcher counts per row, shape (rows,), int32, read-only; it follows later events in place."""
        return self._live[number].tally.dense(self._rows)

    def total(self, number: int) -> int:
        """Pods that the matcher counts on all rows."""
        return self._live[number].tally.total

    def matching(self, namespace: str, pod_labels: labels.Labels, *, deleting: bool = False) -> list[int]:
        """Numbers of the live matchers that would count such a pod, ascending."""
        known = self._profiles.get((namespace, pod_labels))
        matched = self._matched(namespace, pod_labels) if known is None else known.matched
        return sorted(live.number for live in matched if not (deleting and live.spread))

    # Audits.

    def numbers(self) -> list[int]:
        """Numbers of the live matchers, ascending."""
        return list(self._live)

    def matcher(self, number: int) -> Matcher:
        """The live matcher under this number."""
        return self._live[number].matcher

    def audit_one(self, number: int, *, first: int = 0) -> list[str]:
        """Count one live matcher's pods again, from their records and in vectors; nothing is changed.

        It takes a millisecond at 100,000 pods, and seven when no two of them are alike. Whom the matcher selects is
        judged anew for `PROFILES_JUDGED` profiles only, so that a full round takes several calls.

        Args:
            number: The matcher.
            first: The profile to begin with; any number not negative, taken modulo the number of profiles.

        Returns:
            At most one sentence about whom it selects and one about its counts; empty when all is well.

        Raises:
            KeyError: It is not alive: a bug of the caller.
        """
        live, size = self._live[number], len(self._profile_at)
        judged = (self._profile_at[(first + step) % size] for step in range(min(size, PROFILES_JUDGED)))
        astray = [
            profile
            for profile in judged
            if profile is not None and self._selects_plainly(live, profile) != (live in profile.matched)
        ]
        found = []
        if astray:
            one = astray[0]
            verb = "selects, and does not count," if live not in one.matched else "counts, and does not select,"
            found.append(
                f'it {verb} pods in namespace "{one.namespace}" with labels {dict(one.labels)}; '
                f"profiles that are wrong: {len(astray)} of {min(size, PROFILES_JUDGED)} judged"
            )
        matched = [profile.number for profile in self._profiles.values() if live in profile.matched]
        due = self._placements.counts(matched, rows=self._rows, deleting_too=not live.spread)
        have = live.tally.dense(len(due))
        wrong = np.flatnonzero(have != due)
        if len(wrong) or live.tally.total != due.sum():
            where = f"; on row {wrong[0]} it counts {have[wrong[0]]}, there are {due[wrong[0]]}" if len(wrong) else ""
            found.append(
                f"it counts {live.tally.total} pods, there are {due.sum()}; rows that are wrong: {len(wrong)}{where}"
            )
        return found

    def mend(self, number: int) -> None:
        """Find anew whom the matcher selects, the slow way, and count them; vectors handed out before are void.

        Raises:
            KeyError: It is not alive: a bug of the caller.
        """
        live = self._live[number]
        selected = [profile for profile in self._profiles.values() if self._selects_plainly(live, profile)]
        for profile in self._profiles.values():
            if live in profile.matched:
                profile.matched.remove(live)
        for profile in selected:
            profile.matched.append(live)
        self._recount(live, selected)

    # Terms of placed pods.

    def owned(self, kind: owners.Kind, namespace: str, pod_labels: labels.Labels) -> list[owners.Hit]:
        """Terms of this kind, owned by placed pods, that select a pod with this namespace and these labels."""
        return self._owners.select(
            kind,
            pod_labels,
            namespace=namespace,
            namespace_labels=self.namespace_labels(namespace),
            rows=self._rows,
        )

    def owned_anti_affinity(self, namespace: str, pod_labels: labels.Labels) -> list[tuple[str, tallies.Counts]]:
        """Topology key and owners per row of the required anti-affinity terms that such a pod would violate."""
        return [
            (hit.topology_key, hit.counts)
            for hit in self.owned(owners.Kind.REQUIRED_ANTI_AFFINITY, namespace, pod_labels)
        ]

    # Label keys that decide.

    def live_keys(self) -> frozenset[str]:
        """Pod label keys that a live matcher or an owned term reads: pods that differ in others alone are alike."""
        return self._live_keys.frozen()

    @property
    def live_keys_version(self) -> int:
        """Moves when `live_keys` does."""
        return self._live_keys.version

    # Inside.

    def audit(self) -> Iterator[str]:
        """Count everything again, the slow way; yield one sentence for each difference."""
        for number, live in self._live.items():
            expected: dict[int, int] = {}
            for record in self._placements.records():
                profile = self._profile_at[record.profile]
                if profile is None:
                    yield f"a placed pod has profile {record.profile}, which is gone"
                elif record.row >= 0 and self._selects_plainly(live, profile) and not (live.spread and record.deleting):
                    expected[record.row] = expected.get(record.row, 0) + 1
            if live.tally.as_dict() != expected or live.tally.total != sum(expected.values()):
                yield f"matcher {number} counts {live.tally.as_dict()} per row, there are {expected}"
        owned: dict[owners.OwnedTerm, dict[int, int]] = {}
        for key, spec in self._specs.items():
            held = self._placements.get(key)
            for term in owners.terms_of(spec):
                per_row = owned.setdefault(term, {})
                if held is not None and held.row >= 0:
                    per_row[held.row] = per_row.get(held.row, 0) + 1
        if owned != self._owners.counts():
            yield f"owned terms are counted as {self._owners.counts()}, there are {owned}"

    def _profile(self, namespace: str, pod_labels: labels.Labels) -> _Profile:
        profile = self._profiles.get((namespace, pod_labels))
        if profile is None:
            number = self._profile_free.pop() if self._profile_free else len(self._profile_at)
            profile = _Profile(number, namespace, pod_labels, self._matched(namespace, pod_labels))
            self._profiles[namespace, pod_labels] = profile
            if number == len(self._profile_at):
                self._profile_at.append(profile)
            else:
                self._profile_at[number] = profile
        return profile

    def _matched(self, namespace: str, pod_labels: labels.Labels) -> list[_Live]:
        namespace_labels = self.namespace_labels(namespace)
        chosen = (self._live[number] for number in self._selectors.matching(pod_labels))
        return [live for live in chosen if _reaches(live.matcher, namespace, pod_labels, namespace_labels)]

    def _selects(self, live: _Live, profile: _Profile) -> bool:
        return self._selectors.matches(live.number, profile.labels) and _reaches(
            live.matcher, profile.namespace, profile.labels, self.namespace_labels(profile.namespace)
        )

    def _selects_plainly(self, live: _Live, profile: _Profile) -> bool:
        return live.matcher.selects(
            profile.labels,
            namespace=profile.namespace,
            namespace_labels=self.namespace_labels(profile.namespace),
        )

    def _resolve_again(self, profile: _Profile, concerned: list[_Live], moved: dict[int, _Live]) -> None:
        """Let a profile whose namespace changed find its matchers among those concerned; note those that changed."""
        for live in concerned:
            selects = self._selects(live, profile)
            if selects == (live in profile.matched):
                continue
            if selects:
                profile.matched.append(live)
            else:
                profile.matched.remove(live)
            moved[live.number] = live

    def _recount(self, live: _Live, selected: Iterable[_Profile]) -> None:
        numbers = [profile.number for profile in selected]
        live.tally = tallies.Tally(self._placements.counts(numbers, rows=self._rows, deleting_too=not live.spread))

    @staticmethod
    def _count(profile: _Profile, row: int, amount: int, *, deleting: bool) -> None:
        if row < 0:
            return
        for live in profile.matched:
            if not (deleting and live.spread):
                live.tally.add(row, amount)


def _reaches(matcher: Matcher, namespace: str, pod_labels: labels.Labels, namespace_labels: labels.Labels) -> bool:
    """Whether pods that its selectors match are in the right namespace, and not kept from counting."""
    if not matcher.covers(namespace, namespace_labels):
        return False
    return not matcher.excludes(pod_labels, namespace=namespace, namespace_labels=namespace_labels)
