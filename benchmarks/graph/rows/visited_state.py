"""Visited state: many walkers divide one walk among them; which vertices are taken?"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np

from benchmarks.graph import frame
from benchmarks.plain import visited as plain
from graphsched.graph import visited

NAME = "visited state"
SHAPE = "test and mark of a vertex; 100,000 vertices, 500 concurrent walkers of 4,000 operations each; seed 6"
REFERENCE = "11,700 → 20,400 operations/s; mean latency 42.6 → 21.3 ms"

SEED = 6
ROUNDS = 3


def run(*, quick: bool) -> frame.Outcome:
    """Operations a second, and how long one takes on average, the waiting for others included."""
    vertices, walkers, operations = (1_000, 20, 100) if quick else (100_000, 500, 4_000)
    ways = np.random.default_rng(SEED).integers(0, vertices, (walkers, operations)).tolist()
    equal = True
    throughput: dict[str, list[float]] = {"plain": [], "ours": []}
    latency: dict[str, list[float]] = {"plain": [], "ours": []}
    expected = len({vertex for way in ways for vertex in way})
    for _ in range(1 if quick else ROUNDS):
        for name, make in _BOTH.items():
            seconds, claimed = _walk(make(vertices), ways, timed=False)
            _, again = timed = _walk(make(vertices), ways, timed=True)
            equal = equal and claimed == again == expected
            throughput[name].append(walkers * operations / seconds)
            latency[name].append(timed[0] / (walkers * operations) * 1e6)
    medians = [float(np.median(each)) for each in (*throughput.values(), *latency.values())]
    return frame.Outcome(
        equal=equal,
        measures=(
            frame.Ratio("throughput", "/s", medians[0], medians[1], bar=2, more=True),
            frame.Ratio("mean latency", "µs", medians[2], medians[3], bar=2),
        ),
    )


_BOTH: dict[str, Callable[[int], Callable[[int], bool]]] = {
    "plain": lambda _: plain.Visited().claim,
    "ours": lambda vertices: visited.Shared(vertices, threading.Lock).claim,
}


def _walk(claim: Callable[[int], bool], ways: list[list[int]], *, timed: bool) -> tuple[float, int]:
    """Seconds until all have walked, or, `timed`, of all operations together; and how many vertices were claimed."""
    claimed, spent = [0] * len(ways), [0.0] * len(ways)
    ready = threading.Barrier(len(ways) + 1)

    def go(walker: int) -> None:
        way = ways[walker]
        ready.wait()
        claimed[walker] = sum(map(claim, way))

    def go_timed(walker: int) -> None:
        mine, waited, clock = 0, 0.0, time.perf_counter
        way = ways[walker]
        ready.wait()
        for vertex in way:
            begun = clock()
            mine += claim(vertex)
            waited += clock() - begun
        claimed[walker], spent[walker] = mine, waited

    threads = [threading.Thread(target=go_timed if timed else go, args=(walker,)) for walker in range(len(ways))]
    for thread in threads:
        thread.start()
    ready.wait()
    begun = time.perf_counter()
    for thread in threads:
        thread.join()
    return sum(spent) if timed else time.perf_counter() - begun, sum(claimed)
