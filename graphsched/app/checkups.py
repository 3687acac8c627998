"""Checkups of the term index in a running scheduler: now and then, is what one matcher counts what there is?

The index is kept in step by events, and the tests prove it for histories that they think of. A running scheduler also
looks at histories that nobody thought of: each audit (`auditing`) examines some matchers, drawn by lot, and one that
logs for developers (level debug) has `loop` call `Checkup.look` when it has nothing else to do, every few seconds.

Comes in: the time, at idle moments. Goes out: nothing, as a rule; else errors in the log, a metric that moves and a
matcher that counts what there is. Invariant: a look that finds nothing takes a millisecond or a few, never more than a
turn of the loop may; mending is slower, and never due unless there is a bug.
"""

from __future__ import annotations

import logging
import random

from graphsched.app import findings
from graphsched.explain import wording
from graphsched.graph import matchers, scopes
from graphsched.observe import metrics

_log = logging.getLogger(__name__)

EVERY_S = 5.0
"""A matcher is counted anew at most so often."""
_PLACES = 1 << 31
"""More than there are profiles of pods, so that each may be where an audit begins."""


class Checkup:
    """Audits matchers by lot, one at a time."""

    def __init__(self, index: matchers.MatcherIndex, meters: metrics.Metrics, *, rng: random.Random) -> None:
        self._index = index
        self._meters = meters
        self._rng = rng
        self._due = 0.0

    def look(self, now: float) -> None:
        """Audit one matcher, and mend it if need be; nothing happens when the last time was a moment ago."""
        if now >= self._due and self._index.numbers():
            self._due = now + EVERY_S
            self.examine()

    def examine(self) -> list[str]:
        """Audit one matcher, and mend it if need be; returns a sentence for each thing that was wrong with it."""
        numbers = self._index.numbers()
        if not numbers:
            return []
        number = self._rng.choice(numbers)
        found = self._index.audit_one(number, first=self._rng.randrange(_PLACES))
        if not found:
            return []
        words = in_words(self._index.matcher(number))
        for sentence in found:
            _log.error("the count of %s was wrong and is mended: %s", words, sentence)
        self._meters.audits.found(findings.Kind.TERMS.value, len(found))
        self._index.mend(number)
        return [f"{words}: {sentence}" for sentence in found]


def in_words(matcher: matchers.Matcher) -> str:
    """Which pods a matcher counts: `pods app=web in namespaces default, terminating ones left out`."""
    if matcher.hopeless:
        return "no pods"
    left_out = ", terminating ones left out" if matcher.rule is matchers.Rule.SPREAD else ""
    return f"pods {' and '.join(_scope(scope) for scope in matcher.scopes)}{left_out}"


def _scope(scope: scopes.Scope) -> str:
    chosen = "" if scope.selector is None else wording.selector(scope.selector)
    places = [f"namespaces {wording.both(scope.namespaces)}"] if scope.namespaces else []
    if scope.namespace_selector is not None:
        further = wording.selector(scope.namespace_selector)
        places.append(f"namespaces labelled {further}" if further else "any namespace")
    return f"{chosen or 'with any labels'} in {wording.either(places) or 'no namespace'}"
