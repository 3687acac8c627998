"""Kubernetes quantities as exact integers.

`"1500m"`, `"12Gi"` and `"1e3"` come in as text, from manifests or from the API; an int64 in the unit asked for goes
out, rounded up as the API's `Value()` and `MilliValue()` do. Nothing passes through a float: 2**53 bytes are 9 PB, but
the law that adding and removing a pod leaves a node's sum where it was must not depend on that.
"""

from __future__ import annotations

import functools
import re

from graphsched.base.values import errors

_TEXT = re.compile(r"([+-]?)(\d+(?:\.\d*)?|\.\d+)(?:(Ki|Mi|Gi|Ti|Pi|Ei|[numkMGTPE])|[eE]([+-]?\d{1,3}))?", re.ASCII)
_BINARY = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40, "Pi": 1 << 50, "Ei": 1 << 60}
_DECIMAL_EXPONENT = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
INT64_MAX = (1 << 63) - 1
_LENGTH_MAX = 64
"""Longer texts are no quantities anyone wrote; the bound keeps the integer arithmetic cheap."""


def parse_units(text: str | float) -> int:
    """The quantity in whole units (bytes, devices, pods), rounded up.

    Raises:
        QuantityError: It is no quantity, or does not fit 64 bits.
    """
    return _scaled(str(text), 0)


def parse_milli(text: str | float) -> int:
    """The quantity in thousandths (milli-CPU), rounded up.

    Raises:
        QuantityError: It is no quantity, or does not fit 64 bits.
    """
    return _scaled(str(text), 3)


@functools.lru_cache(maxsize=4096)
def _scaled(text: str, exponent: int) -> int:
    matched = _TEXT.fullmatch(text) if len(text) <= _LENGTH_MAX else None
    if matched is None:
        shown = text if len(text) <= _LENGTH_MAX else text[: _LENGTH_MAX - 1] + "…"
        raise errors.QuantityError(problem=f'"{shown}" is not a quantity', remedy="use e.g. 12, 500m, 1.5Gi")
    sign, number, suffix, power = matched.groups()
    whole, _, fraction = number.partition(".")
    digits = int((whole + fraction) or "0")
    if suffix in _BINARY:
        digits *= _BINARY[suffix]
        exponent -= len(fraction)
    else:
        exponent += (int(power) if power else _DECIMAL_EXPONENT[suffix or ""]) - len(fraction)
    scale: int = 10 ** abs(exponent)
    amount = digits * scale if exponent >= 0 else -(-digits // scale)
    if sign == "-":
        # The API rounds away from zero, so the magnitude is rounded first and the sign put on last.
        amount = -amount
    if abs(amount) > INT64_MAX:
        raise errors.QuantityError(problem=f'"{text}" does not fit 64 bits', remedy=f"use at most {INT64_MAX}")
    return amount


def format_milli(amount: int) -> str:
    """Milli-units as the API prints them: `1500m`, `2`."""
    return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"


def format_bytes(amount: int) -> str:
    """Bytes with the largest binary suffix that leaves no fraction: `512Mi`, `1000`."""
    for suffix, size in reversed(_BINARY.items()):
        if amount and amount % size == 0:
            return f"{amount // size}{suffix}"
    return str(amount)
