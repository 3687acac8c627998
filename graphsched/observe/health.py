"""Is it alive, and may it be trusted with work: named checks that the probes of a kubelet and a person read.

Comes in: probes, each a function that answers an empty text (fine) or what is wrong. Goes out: a `Report` that
`server` turns into an answer in the form all Kubernetes components use. A probe reads state that is already there; it
never calls out, so a slow API server can not get the process killed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

Probe = Callable[[], str]
"""Answers an empty text when all is well, otherwise what is wrong in one sentence."""


class Check(msgspec.Struct, frozen=True):
    """One named probe.

    Attributes:
        name: As shown and as named in `?exclude=`, e.g. `watch/pods`.
        probe: Asked anew for every report.
        live: Whether a failure means that only a restart helps. Others only hold back readiness.
        note: Answers what to say of a check that passed, empty for nothing.
    """

    name: str
    probe: Probe
    live: bool = False
    note: Probe = str


class Report(msgspec.Struct, frozen=True, gc=False):
    """What the checks said.

    Attributes:
        endpoint: `livez`, `readyz` or `healthz`.
        results: (name of the check, what is wrong or an empty text), in the order of the checks.
        notes: Name of a check → what to say of it when it passed.
    """

    endpoint: str
    results: tuple[tuple[str, str], ...]
    notes: Mapping[str, str] = {}

    @property
    def ok(self) -> bool:
        """Whether every check passed."""
        return not any(problem for _, problem in self.results)

    def text(self, *, verbose: bool = False) -> str:
        """The answer's body: `ok`, or the list of checks when asked for or when one failed."""
        if self.ok and not verbose:
            return "ok"
        lines = [
            f"[-]{name} failed: {problem}" if problem else f"[+]{name} ok{self._note(name)}"
            for name, problem in self.results
        ]
        return "\n".join([*lines, f"{self.endpoint} check {'passed' if self.ok else 'failed'}", ""])

    def _note(self, name: str) -> str:
        return f": {self.notes[name]}" if self.notes.get(name) else ""


class Health:
    """All checks of the process. `livez` asks those marked live; `readyz` and `healthz` ask all."""

    def __init__(self, checks: Sequence[Check] = ()) -> None:
        self._checks = list(checks)

    def add(self, check: Check) -> None:
        """One more check, asked after the others."""
        self._checks.append(check)

    def report(self, endpoint: str, *, exclude: Iterable[str] = ()) -> Report:
        """Ask the checks of `endpoint`, except those named."""
        left_out = set(exclude)
        asked = [check for check in self._checks if (check.live or endpoint != "livez") and check.name not in left_out]
        return Report(
            endpoint,
            tuple((check.name, check.probe()) for check in asked),
            {check.name: check.note() for check in asked},
        )
