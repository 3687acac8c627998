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
    """Puts what the programs log into the trace, and keeps what they may not say.

    `due` is whether an error of a process is what it ought to say: something is wrong there that it has not done.
    """

    def __init__(self, trace: Trace, process: Callable[[], str], due: Callable[[str, str], bool]) -> None:
        super().__init__(logging.INFO)
        #: Records of level error and above that nothing explains.
        self.errors: list[str] = []
        self._trace = trace
        self._process = process
        self._due = due

    def emit(self, record: logging.LogRecord) -> None:
        """Take a record."""
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text = f"{text}: {record.exc_info[1]!r}"
        process = self._process()
        self._trace.add(process, f"log {record.levelname.lower()}: {text}")
        if record.levelno >= logging.ERROR and not self._due(process, text):
            self.errors.append(text)
