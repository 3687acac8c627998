"""How the C library hands memory back to the system.

glibc serves large blocks by mmap and returns them at once, but raises the size from which it does so to that of the
largest block ever freed. A scheduler reads lists of megabytes at the start; from then on every buffer comes from the
heap, small survivors settle between large ones, and the process keeps growing for hours though no more is in use.
Measured in a soak with 10 bindings a second: 11 MB of 44 MB of heap free and scattered after six minutes, and rising;
with the sizes held still, 1 MB of 20.

Comes in: nothing. Goes out: nothing but the C library's settings. What the operator has set in the environment stays.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
MMAP_BYTES = 128 * 1024
"""glibc's own first value. Columns of 16,000 nodes are below it: they are made and dropped at each decision, and a
system call for each would be seen."""
TRIM_BYTES = 512 * 1024
_CHOSEN_BY_OPERATOR = ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES", "LD_PRELOAD")


def hold_still(environ: Mapping[str, str] = os.environ) -> bool:
    """Keep these sizes from rising; whether there was anything to set (another C library has no such settings)."""
    if any(name in environ for name in _CHOSEN_BY_OPERATOR):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    mallopt.argtypes, mallopt.restype = (ctypes.c_int, ctypes.c_int), ctypes.c_int
    return bool(mallopt(_M_MMAP_THRESHOLD, MMAP_BYTES) and mallopt(_M_TRIM_THRESHOLD, TRIM_BYTES))


def give_back() -> bool:
    """Return to the system what is free between what is used; whether there is a way to.

    For after work that took much for a while: the C library itself only gives back what is free at the end of its heap.
    Some milliseconds for a heap of 30 MB.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is None:
        return False
    trim.argtypes, trim.restype = (ctypes.c_size_t,), ctypes.c_int
    trim(0)
    return True
