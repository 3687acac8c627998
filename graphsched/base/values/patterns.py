"""Regular expressions that somebody else wrote, and that may not keep the program busy.

Python's matcher tries every way to match, and a pattern such as `(a+)+$` has more ways than anybody can wait for. Those
who write HyperNodes think of Go's, which has no such patterns. So what could take long is refused before it is used;
what is left takes some steps for each pair of characters of a name at most, and a name has 253 characters.
"""

from __future__ import annotations

import functools
import re
import warnings

from graphsched.base.values import errors

LENGTH_MAX = 256
ENDLESS_MAX = 2
"""Unbounded repetitions in one pattern, each of which may multiply the time by the length of the name."""
WAYS_MAX = 64
"""What optional parts, choices and bounded repetitions may multiply it by, all together."""
_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?(?:P?<[A-Za-z_]\w*>|:)|[()*+?|]|\{\d+(?:,\d*)?\}|.", re.DOTALL)
_ENDLESS = 1 << 30


@functools.lru_cache(maxsize=4096)
def compiled(pattern: str) -> re.Pattern[str]:
    """The pattern, ready for use.

    Raises:
        InputError: It is none, or one that could take long.
    """
    if len(pattern) > LENGTH_MAX:
        raise errors.InputError(
            problem=f"a pattern has {len(pattern)} characters, more than {LENGTH_MAX}", remedy="shorten it"
        )
    problem = _problem(_TOKEN.findall(pattern))
    if problem:
        remedy = "write it simpler, or name the members one by one"
        raise errors.InputError(problem=f'"{pattern}" {problem}', remedy=remedy)
    try:
        with warnings.catch_warnings():
            # What Python means to read otherwise one day is read otherwise by Go already.
            warnings.simplefilter("error")
            return re.compile(pattern)
    except (re.error, OverflowError, Warning) as error:
        raise errors.InputError(problem=f'"{pattern}" is no pattern: {error}', remedy="correct it") from error


def _problem(parts: list[str]) -> str:
    """Why the pattern could take long; empty when it can not, or is none at all."""
    endless, ways = 0, 1
    choices = [False]
    """For each group that is open, the pattern itself first: whether it holds a repetition or a choice."""
    inner = False
    """Whether what the next repetition repeats does."""
    for number, part in enumerate(parts):
        again = 0 if number and parts[number - 1] in {"*", "+", "?"} else _ways(part)
        if part[0] == "(":
            choices.append(False)
        if part == ")" and len(choices) > 1:
            inner = choices.pop()
            choices[-1] |= inner
            continue
        if again > 1:
            if inner and part != "?":
                return "repeats a group that holds a repetition or a choice itself"
            choices[-1] = True
            # At the very end it can not fail, so it is tried in one way only.
            if again < _ENDLESS:
                ways *= again
            elif number + 1 < len(parts):
                endless += 1
        elif part == "|":
            choices[-1] = True
            ways += 1
        inner = False
    if endless > ENDLESS_MAX:
        return f"has more than {ENDLESS_MAX} unbounded repetitions"
    return "has too many optional parts" if ways > WAYS_MAX else ""


def _ways(part: str) -> int:
    """In how many ways the part lets what is before it match; 1 for what is no repetition."""
    if part == "?":
        return 2
    if part in {"*", "+"}:
        return _ENDLESS
    if part[0] != "{" or len(part) == 1:
        return 1
    low, comma, high = part[1:-1].partition(",")
    if not comma:
        # A fixed number: of a group that holds choices it is still a repetition.
        return 1 if int(low) <= 1 else 2
    return _ENDLESS if not high else max(1, min(int(high) - int(low) + 1, _ENDLESS - 1))
