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


SCATTERED = """
import pathlib
from graphsched.base.kernel import memory

def resident():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096

kept = [bytearray(16_000) for _ in range(2000)]
for block in kept:
    block[:] = bytes(len(block))
full = resident()
del kept[::2]
before = resident()
assert memory.give_back()
print(full - before, before - resident())
"""


def test_what_is_free_between_what_is_used_is_given_back() -> None:
    """Half of 32 MB in blocks of 16 kB, every second one: the C library alone gives none of it back."""
    done = subprocess.run([sys.executable, "-c", SCATTERED], capture_output=True, text=True, check=True, timeout=60)
    alone, asked = map(int, done.stdout.split())

    assert alone < 1_000_000
    assert asked > 8_000_000
