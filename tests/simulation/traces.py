"""
What happened, in order: one line for everything that the world, the server and the schedulers did.

Comes in: words. Goes out: lines with the virtual time, to be read by people, and a digest, by which two runs are known
to be the same.
"""

import hashlib
import logging
from collections.abc import Callable


class Trace:
    """The lines so far."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.lines: list[str] = []
        self._now = now

    def add(self, who: str, what: str) -> None:
        """Somebody did something."""
        self.lines.append(f"{self._now():12.6f} {who:<7} {what}")

    @property
    def digest(self) -> str:
        """The same for the same lines."""
        return hashlib.sha256("\n".join(self.lines).encode()).hexdigest()[:16]


class Handler(logging.Handler):
    """Puts what the programs log into the trace, and keeps what they may not say."""

    def __init__(self, trace: Trace, process: Callable[[], str]) -> None:
        super().__init__(logging.INFO)
        #: Records of level error and above.
        self.errors: list[str] = []
        self._trace = trace
        self._process = process

    def emit(self, record: logging.LogRecord) -> None:
        """Take a record."""
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text = f"{text}: {record.exc_info[1]!r}"
        self._trace.add(self._process(), f"log {record.levelname.lower()}: {text}")
        if record.levelno >= logging.ERROR:
            self.errors.append(text)
