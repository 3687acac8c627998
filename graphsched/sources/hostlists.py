"""Hostlist expressions, as Slurm writes many names in one: `n[1-4,7]`, `rack[0-1]node[00-15],login1`.

A number range in brackets stands for each of its numbers, with as many digits at least as its first one has. Brackets
may stand several times in a name, and combine in order, the last one fastest. What is between commas outside of
brackets is one expression.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from graphsched.base.values import errors

NAMES_MAX = 100_000
"""Names of one expression: a slip of the finger in a range must not fill the memory."""
_PART = re.compile(r"\[([^\[\]]*)\]|([^\[\],\s]+)")
_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")
_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?")


def expand(expression: str) -> list[str]:
    """The names, in the order of the expression; one that is there twice stays there twice.

    Raises:
        InputError: It is no such expression, or holds too many names.
    """
    names: list[str] = []
    for one in _apart(expression):
        parts = _parts(one)
        count = 1
        for part in parts:
            count *= len(part)
        if len(names) + count > NAMES_MAX:
            raise errors.InputError(problem=f'"{_short(one)}" holds too many names', remedy=f"use {NAMES_MAX} at most")
        names += ["".join(each) for each in itertools.product(*parts)]
    for name in names:
        if not _NAME.fullmatch(name):
            raise errors.InputError(problem=f'"{_short(name)}" is no name', remedy="use letters, digits and - _ .")
    return names


def _apart(expression: str) -> Iterator[str]:
    """The expressions between the commas that stand outside of brackets."""
    depth = start = 0
    for index, letter in enumerate(expression):
        if letter == "[":
            depth += 1
        elif letter == "]":
            depth -= 1
        if depth not in {0, 1}:
            break
        if letter == "," and not depth:
            yield expression[start:index]
            start = index + 1
    if depth:
        problem = f'"{_short(expression)}" has brackets that do not match'
        raise errors.InputError(problem=problem, remedy="write e.g. n[1-4,7]")
    yield expression[start:]


def _parts(expression: str) -> list[list[str]]:
    """For each part of a name the texts that it stands for."""
    parts: list[list[str]] = []
    at = 0
    for found in _PART.finditer(expression):
        if found.start() != at:
            break
        at = found.end()
        ranges, plain = found.groups()
        parts.append([plain] if plain is not None else _numbers(ranges, expression))
    if at != len(expression) or not parts:
        problem = f'"{_short(expression)}" is no name or range of names' if expression else "a name is missing"
        raise errors.InputError(problem=problem, remedy="write e.g. n[1-4,7]")
    return parts


def _numbers(ranges: str, expression: str) -> list[str]:
    """The numbers in a pair of brackets, as texts."""
    numbers: list[str] = []
    for each in ranges.split(","):
        found = _RANGE.fullmatch(each)
        if found is None:
            problem = f'"[{_short(ranges)}]" in "{_short(expression)}" is no range'
            raise errors.InputError(problem=problem, remedy="write e.g. [1-4,7]")
        first, last = found[1], found[2] or found[1]
        if int(last) < int(first):
            raise errors.InputError(problem=f'"{each}" counts down', remedy=f"write {int(last)}-{int(first)}")
        if int(last) - int(first) >= NAMES_MAX - len(numbers):
            raise errors.InputError(problem=f'"{each}" holds too many names', remedy=f"use {NAMES_MAX} at most")
        numbers += [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
    return numbers


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"
