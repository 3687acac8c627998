"""Keeps a copy of a running scheduler's graph, or of its affinity graph, up to date from another process.

Comes in: a scheduler's address. Goes out: questions to one of its pages, and their answers to a copy (see
`graph/followers.py`), which checks and applies them. Invariant: whatever is answered, the copy is some generation of
the graph, whole; a follower that has lost its place begins again. Each question says why the answer before was of no
use, so that the scheduler can count it.
"""

from __future__ import annotations

import enum
import typing

from graphsched.app import asking
from graphsched.base.values import errors
from graphsched.graph import followers

GRAPH = "/debug/graph"
AFFINITY = "/debug/affinity"
WAIT_S = 20
"""How long a question waits for news."""
_SLACK_S = 20.0
"""For the answer itself, beyond what it waited: a whole graph has some MiB."""
_NO_LONGER_KEPT = 410
EXPIRED = "expired"
"""Why a copy begins again that was told to; other reasons are `followers.Refusal`."""


class Step(enum.StrEnum):
    """What one question led to."""

    BEGUN = "begun"
    """The copy is a whole graph, fresh from the scheduler."""
    CHANGED = "changed"
    """What happened since was applied."""
    UNCHANGED = "unchanged"
    """Nothing happened while it was waited for."""
    LOST = "lost"
    """The scheduler can not tell what happened since: the next question begins again."""
    REFUSED = "refused"
    """The answer was not taken; `Following.problem` says why."""


Held = typing.TypeVar("Held", bound=followers.Copy)


class Following(typing.Generic[Held]):
    """Asks again and again.

    Attributes:
        copy: Holds the copy, and counts what was refused.
        problem: Why the last answer was not taken; empty when it was.
    """

    def __init__(self, server: asking.Server, copy: Held, *, page: str = GRAPH, wait_s: int = WAIT_S) -> None:
        """Ask that page of the server; a question without news waits `wait_s` seconds for some."""
        self.copy = copy
        self.problem = ""
        self._server = server
        self._page = page
        self._wait_s = wait_s
        self._because = ""
        """What the next question says of the last answer; empty when it was applied."""

    def path(self) -> str:
        """The next question."""
        because = f"&because={self._because}" if self._because else ""
        if self.copy.lost:
            return f"{self._page}?follow{because}"
        return f"{self._page}?after={self.copy.generation}&epoch={self.copy.epoch}&wait={self._wait_s}{because}"

    def step(self) -> Step:
        """Ask once, and wait for the answer.

        Raises:
            InputError, ClusterError: As `asking.get`: nobody answered, or refused to.
        """
        begins = self.copy.lost
        try:
            data = asking.get(
                self._server,
                self.path(),
                timeout_s=self._wait_s + _SLACK_S,
                bytes_max=self.copy.limits.bytes_max,
                instead="start one, or name its address",
            )
        except asking.TooLongError as error:
            self.copy.refused[followers.Refusal.OVERSIZED] += 1
            self.problem, self._because = str(error), followers.Refusal.OVERSIZED
            return Step.REFUSED
        except errors.ClusterError as error:
            if error.status != _NO_LONGER_KEPT:
                raise
            self.copy.lost = True
            self.problem, self._because = str(error), EXPIRED
            return Step.LOST
        if not data and not begins:
            self.problem = self._because = ""
            return Step.UNCHANGED
        taken = self.copy.take(data)
        if isinstance(taken, followers.NotTaken):
            self.problem, self._because = f"{taken.reason}: {taken.detail}", taken.reason
            return Step.REFUSED
        self.problem = self._because = ""
        return Step.BEGUN if taken.whole else Step.CHANGED
