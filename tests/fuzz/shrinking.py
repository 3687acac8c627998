"""The smallest scenario that still fails.

A failing request comes in, a smaller one that fails in the same way comes out, printable as one line of JSON. Greedy:
parts are left out, large ones first, for as long as the failure stays.

Invariant: the result fails; it is asked for at most `TRIALS` answers.
"""

from __future__ import annotations

import copy
import typing
from collections.abc import Callable, Iterator

from tests.fuzz.wishes import Json

TRIALS = 1500

Path = tuple[str | int, ...]


def shrink(request: Json, fails: Callable[[Json], bool], *, trials: int = TRIALS) -> Json:
    """Leave out what the failure does not need."""
    current = copy.deepcopy(request)
    left = trials
    changed = True
    while changed and left > 0:
        changed = False
        for path in sorted(_parts(current), key=len):
            if left <= 0:
                break
            smaller = _without(current, path)
            if smaller is None:
                continue
            left -= 1
            if fails(smaller):
                current, changed = smaller, True
    return current


def _parts(value: object, path: Path = ()) -> Iterator[Path]:
    """The places of all parts below; of a list the last first, so that places stay right when one is left out."""
    entries: list[tuple[str | int, object]] = []
    if isinstance(value, dict):
        entries = list(value.items())
    elif isinstance(value, list):
        entries = list(reversed(list(enumerate(value))))
    for key, part in entries:
        if path or key in {"objects", "events", "pods"}:
            if path and key not in {"kind", "apiVersion", "name", "do", "of"}:
                yield (*path, key)
            yield from _parts(part, (*path, key))


def _without(request: Json, path: Path) -> Json | None:
    """A copy without that part; None where it is gone already, or is the last pod."""
    smaller = copy.deepcopy(request)
    holder: typing.Any = smaller
    for key in path[:-1]:
        if not _holds(holder, key):
            return None
        holder = holder[key]
    if not _holds(holder, path[-1]):
        return None
    del holder[path[-1]]
    return smaller if smaller["pods"] else None


def _holds(holder: object, key: str | int) -> bool:
    if isinstance(holder, dict):
        return key in holder
    return isinstance(holder, list) and isinstance(key, int) and key < len(holder)
