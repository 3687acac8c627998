"""The metrics of the policy layer.

`metrics` makes them, with its own declaring functions, so that they stand in its list like all others.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping

import prometheus_client

POLICIES_MAX = 200
"""Policies with a series of their own; the rest are counted together."""
STATES = ("ready", "broken", "failing")
REST = "(others)"


class _Counter(typing.Protocol):
    def __call__(self, name: str, text: str, *labels: str) -> prometheus_client.Counter: ...


class Policies:
    """Rules, what they refuse, and what is written about them."""

    def __init__(self, counter: _Counter, gauge: Callable[..., prometheus_client.Gauge]) -> None:
        """Declare them by these functions."""
        self._rules = gauge(
            "graphsched_policy_rules",
            "Rules of GraphPolicies, by state: ready, failing (in force, but an expression of it could not be "
            "evaluated for some pod or node, which is then denied) or broken (left out).",
            "state",
        )
        for state in STATES:
            self._rules.labels(state).set(0)
        self._refusals = counter(
            "graphsched_policy_refusals_total",
            "Decisions that found no node and in which a rule of this GraphPolicy refused some. Of more than 200 "
            "policies the later ones are counted together.",
            "policy",
        )
        self._notices = counter(
            "graphsched_policy_notices_total",
            "Statuses of GraphPolicies and events about them, by outcome: written, failed, moot (the object is gone, "
            "or this replica does not lead) or dropped (too many waited).",
            "outcome",
        )
        self._named: set[str] = set()

    def set_rules(self, counts: Mapping[str, int]) -> None:
        """How many rules are in each of `STATES`."""
        for state in STATES:
            self._rules.labels(state).set(counts.get(state, 0))

    def refused(self, policy: str) -> None:
        """A pod found no node, and this policy refused some."""
        if len(self._named) < POLICIES_MAX:
            self._named.add(policy)
        self._refusals.labels(policy if policy in self._named else REST).inc()

    def notice(self, outcome: str) -> None:
        """What became of a status or an event."""
        self._notices.labels(outcome).inc()
