"""Large blocks go back to the system, also after larger ones have."""

import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, sys
from graphsched.base.kernel import memory

class Counts(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "a b c d mapped f g h i j".split()]

library = ctypes.CDLL(None)
library.mallinfo2.restype = Counts
held = memory.hold_still(dict(pair.split("=") for pair in sys.argv[1:]))
large = bytearray(20 << 20)
del large
before = library.mallinfo2().mapped
later = bytearray(1 << 20)
print(held, library.mallinfo2().mapped - before >= 1 << 20)
"""


@pytest.mark.parametrize(
    ("environ", "told"), [((), "True True"), (("MALLOC_MMAP_THRESHOLD_=1000000000",), "False False")]
)
def test_a_freed_list_does_not_make_later_buffers_come_from_the_heap(environ: tuple[str, ...], told: str) -> None:
    """By itself glibc takes the size of the largest freed block for the least that is worth a mapping of its own."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, *environ], capture_output=True, text=True, check=True)

    assert told == done.stdout.strip()
