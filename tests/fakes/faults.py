"""
What goes wrong between a client and the fake API server, in the order that a test has scripted.

Comes in: rules, each for so many requests of a method and a path. Goes out: for each request the first rule that is
for it.

Invariant: nothing goes wrong by chance; a rule that has served its times is gone.
"""

import dataclasses
import enum
import re
from collections.abc import Mapping

from tests.fakes import storage

ANY: Mapping[str, str] = {}


class Kind(enum.Enum):
    """What happens to the request."""

    REFUSE = enum.auto()
    """An error is the answer, and nothing is done."""
    DELAY = enum.auto()
    """The answer comes late."""
    HANG = enum.auto()
    """No answer ever comes; nothing is done."""
    DROP = enum.auto()
    """The connection breaks before anything is done."""
    LOSE = enum.auto()
    """All is done, and then the connection breaks before the answer."""
    GARBLE = enum.auto()
    """The answer is another text than asked for, with status 200."""


@dataclasses.dataclass
class Fault:
    """One rule."""

    kind: Kind
    method: str
    path: re.Pattern[str]
    query: Mapping[str, str]
    times: int
    refusal: storage.Refusal | None = None
    seconds: float = 0.0
    text: bytes = b""

    def is_for(self, method: str, path: str, query: Mapping[str, str]) -> bool:
        """Whether it is meant for this request; a query value of `*` stands for any."""
        return (
            self.method in {"*", method}
            and self.path.fullmatch(path) is not None
            and all(name in query and value in {"*", query[name]} for name, value in self.query.items())
        )


class Faults:
    """The script. `path` is a regular expression for the whole path, `query` what must be in the query."""

    def __init__(self) -> None:
        self._rules: list[Fault] = []

    def refuse(
        self,
        method: str,
        path: str,
        status: int,
        *,
        reason: str = "",
        message: str = "as scripted",
        retry_after_s: int | None = None,
        times: int = 1,
        query: Mapping[str, str] = ANY,
    ) -> None:
        """Answer with an error."""
        refusal = storage.Refusal(status, reason, message, retry_after_s=retry_after_s)
        self._add(Kind.REFUSE, method, path, times, query, refusal=refusal)

    def delay(self, method: str, path: str, seconds: float, *, times: int = 1, query: Mapping[str, str] = ANY) -> None:
        """Answer `seconds` late."""
        self._add(Kind.DELAY, method, path, times, query, seconds=seconds)

    def hang(self, method: str, path: str, *, times: int = 1, query: Mapping[str, str] = ANY) -> None:
        """Never answer."""
        self._add(Kind.HANG, method, path, times, query)

    def drop(self, method: str, path: str, *, times: int = 1, query: Mapping[str, str] = ANY) -> None:
        """Break the connection instead of doing anything."""
        self._add(Kind.DROP, method, path, times, query)

    def lose(self, method: str, path: str, *, times: int = 1, query: Mapping[str, str] = ANY) -> None:
        """Do it, and break the connection instead of saying so."""
        self._add(Kind.LOSE, method, path, times, query)

    def garble(self, method: str, path: str, text: bytes, *, times: int = 1, query: Mapping[str, str] = ANY) -> None:
        """Answer with this text and status 200."""
        self._add(Kind.GARBLE, method, path, times, query, text=text)

    def clear(self) -> None:
        """From now on all goes well."""
        self._rules.clear()

    def take(self, method: str, path: str, query: Mapping[str, str]) -> Fault | None:
        """Return the rule for this request, and count it as used."""
        for rule in self._rules:
            if rule.is_for(method, path, query):
                rule.times -= 1
                if rule.times <= 0:
                    self._rules.remove(rule)
                return rule
        return None

    def _add(
        self,
        kind: Kind,
        method: str,
        path: str,
        times: int,
        query: Mapping[str, str],
        *,
        refusal: storage.Refusal | None = None,
        seconds: float = 0.0,
        text: bytes = b"",
    ) -> None:
        self._rules.append(Fault(kind, method, re.compile(path), query, times, refusal, seconds, text))
