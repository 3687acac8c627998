"""Simulated cache misses of one walk, counted by valgrind's cachegrind on a machine whose caches are written down here.

A program builds a graph, walks it once so that everything is loaded, and splits in two: one half ends, the other walks
again and ends. What the second counted more than the first is the second walk alone, without interpreter start, imports
and building. `python -m benchmarks.graph.cachegrind WAY SHAPE VERTICES` is that program.
"""

from __future__ import annotations

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import msgspec

from benchmarks.graph import shapes
from benchmarks.plain import adjacency as plain
from graphsched.graph import adjacency, walks

CACHES = ("--I1=32768,8,64", "--D1=32768,8,64", "--LL=33554432,16,64")
"""First level 32 kB each, last level 32 MB, lines of 64 bytes: a common server core and its socket."""
WALK_S_MAX = 1800


class Misses(msgspec.Struct, frozen=True):
    """What one walk did to the data caches.

    Attributes:
        accesses: Reads and writes.
        last_level: Those that the first level did not hold, so that the last level was asked.
        memory: Those that the last level did not hold either.
    """

    accesses: int
    last_level: int
    memory: int

    @property
    def rate(self) -> float:
        """Share of the questions to the last level that it could not answer, in per cent."""
        return 100 * self.memory / self.last_level if self.last_level else 0.0


def available() -> bool:
    """Whether valgrind is installed; as root on a Debian-like machine it is installed now."""
    if shutil.which("valgrind") is None and os.geteuid() == 0 and shutil.which("apt-get") is not None:
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(
            ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "valgrind"],
            env=environment,
            check=False,
            capture_output=True,
            timeout=600,
        )
    return shutil.which("valgrind") is not None


def measure(way: str, shape: str, vertices: int) -> Misses:
    """Count the misses of one walk `plain` or `ours` over a shape."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=cachegrind", "--cache-sim=yes", *CACHES, "--trace-children=no"]
        command += [f"--cachegrind-out-file={folder}/%p", "--log-file=/dev/null"]
        command += [sys.executable, "-m", "benchmarks.graph.cachegrind", way, shape, str(vertices)]
        # One thread of numpy: others would only spin under the simulation.
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
        subprocess.run(command, env=environment, check=True, capture_output=True, timeout=WALK_S_MAX)
        counted = sorted((read(path.read_text()) for path in pathlib.Path(folder).iterdir()), key=lambda each: each[0])
        before, after = counted
        return Misses(*(one - other for one, other in zip(after, before, strict=True)))


def read(text: str) -> tuple[int, int, int]:
    """Data accesses, misses of the first level and of the last level in a file that cachegrind wrote."""
    events = re.search(r"^events: (.*)$", text, flags=re.MULTILINE)
    summary = re.search(r"^summary: (.*)$", text, flags=re.MULTILINE)
    if events is None or summary is None:
        message = "cachegrind's output has no totals"
        raise ValueError(message)
    totals = dict(zip(events[1].split(), map(int, summary[1].split()), strict=True))
    return totals["Dr"] + totals["Dw"], totals["D1mr"] + totals["D1mw"], totals["DLmr"] + totals["DLmw"]


def main(way: str, shape: str, vertices: int) -> None:
    """Build, walk, split in two, and walk again in one half."""
    edges = shapes.BY_NAME[shape](vertices)
    if way == "plain":
        columns = (edges.sources, edges.targets, edges.weights, edges.kinds)
        graph = plain.build(edges.vertices, zip(*(column.tolist() for column in columns), strict=True))

        def walk() -> object:
            return plain.breadth_first(graph, 0)

    else:
        picture = adjacency.pack(range(edges.vertices), *edges[1:])
        space = walks.Space()

        def walk() -> object:
            return walks.breadth_first(picture, [0], space=space)

    walk()
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    else:
        walk()
    # Without the interpreter's own end, which would take everything apart and be counted.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
