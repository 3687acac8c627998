"""Time as a collaborator, so that whoever needs it can be given another one.

`RealClock` goes to the programs, `VirtualClock` to simulations and tests. Pure code takes neither: there time comes in
as a number.

Invariant: `monotonic()` never goes back; only differences of it mean anything.
"""

from __future__ import annotations

import time
import typing

_BOOT: int | None = getattr(time, "CLOCK_BOOTTIME", None)
"""Linux' clock that goes on while the machine is suspended; where there is none, the usual one has to do."""


class Clock(typing.Protocol):
    """What tells the time."""

    def monotonic(self) -> float:
        """Seconds since some fixed moment; never goes back."""
        ...

    def wall(self) -> float:
        """Seconds since the epoch, as the world counts them; may jump."""
        ...


class RealClock:
    """The machine's time."""

    def monotonic(self) -> float:
        """Seconds since the machine started, those it slept for included: a lease runs out meanwhile."""
        return time.monotonic() if _BOOT is None else time.clock_gettime(_BOOT)

    def wall(self) -> float:
        """Seconds since the epoch."""
        return time.time()


class VirtualClock:
    """Time that moves only when told to."""

    def __init__(self, *, wall: float = 0.0) -> None:
        """Start at `monotonic() == 0.0` and the given seconds since the epoch."""
        self._elapsed = 0.0
        self._wall = wall

    def monotonic(self) -> float:
        """Seconds it was advanced by so far."""
        return self._elapsed

    def wall(self) -> float:
        """Seconds since the epoch."""
        return self._wall + self._elapsed

    def advance(self, seconds: float) -> None:
        """Move on.

        Raises:
            ValueError: `seconds` is negative.
        """
        if seconds < 0:
            raise ValueError(f"time does not go back ({seconds} s)")
        self._elapsed += seconds
