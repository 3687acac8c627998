"""How long a decision with affinity takes in a large cluster: from the term index, or from a scan of the pods.

Each decision is whole: filters, scores, the choice among all nodes, and what the choice changes. Both ways must choose
the same nodes, so a difference anywhere shows.
"""

from __future__ import annotations

import random
import statistics
import time

from benchmarks.graph import frame, twins
from benchmarks.plain import scans
from graphsched.decision import cycle

NAME = "mean decision latency"
SHAPE = "10,000 nodes in 10 zones, 20,000 pods of 50 applications, affinity and anti-affinity; 100 decisions; seed 2"
REFERENCE = "−37 %"
RATIO = 10.0
"""Nine tenths less."""
SEED = 2
_WARM = 5
"""Decisions before the clock runs, of other applications: what is loaded once is loaded."""


def run(*, quick: bool) -> frame.Outcome:
    """Decide both ways, in turn."""
    number, running, deciding = (30, 60, 10) if quick else (10_000, 20_000, 100)
    world, waiting = _world(number, running, deciding + _WARM)
    decider = cycle.Decider()
    ours_s: list[float] = []
    plain_s: list[float] = []
    equal = True
    for twin in waiting:
        begun = time.perf_counter()
        decision = decider.decide(world.graph.view(), twin.ours)
        if decision.placed:
            world.place_ours(twin.ours, decision.node)
        ours_s.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        node = scans.decide(world.plain, twin.plain)
        if node is not None:
            world.place_plain(twin.plain, node.name)
        plain_s.append(time.perf_counter() - begun)
        equal = equal and decision.node == (node.name if node is not None else "")
    ours, plain = (statistics.fmean(taken[_WARM:]) * 1e3 for taken in (ours_s, plain_s))
    worst = max(ours_s[_WARM:]) * 1e3
    return frame.Outcome(
        equal=equal,
        measures=(frame.Ratio("mean decision latency", "ms", plain, ours, bar=RATIO),),
        notes=(f"{(1 - ours / plain) * 100:.1f} % less; our slowest decision took {worst:.3g} ms",),
    )


def _world(number: int, running: int, deciding: int) -> tuple[twins.Twins, list[twins.Twin]]:
    """The cluster with its running pods, and the pods that arrive."""
    rng = random.Random(SEED)
    world = twins.Twins(number, zones=10, racks=max(3, number // 20), cpu=32_000, memory=128 << 30)
    kinds = []
    for index in range(max(3, running // 400)):
        app = f"app-{index:02d}"
        # Each wants its own zone or that of another, likes its own rack, and every other one shares no node.
        near = (twins.Wish(app if index % 2 else f"app-{max(0, index - 1):02d}", twins.ZONE),)
        apart = (twins.Wish(app, twins.HOSTNAME),) if index % 2 else ()
        liked = (twins.Wish(app, twins.RACK, 1 + index % 100),)
        cpu, memory = rng.choice((250, 500, 1000)), rng.choice((1, 2, 4)) << 30
        kinds.append(twins.Replicas(twins.Shape(app, cpu, memory, near=near, apart=apart, liked=liked)))
    placed, taken = [], set()
    for _ in range(running):
        kind = rng.randrange(len(kinds))
        node = rng.randrange(number)
        while (kind, node) in taken:
            node = rng.randrange(number)
        taken.add((kind, node))
        placed.append((kinds[kind].next(), f"node-{node:05d}"))
    world.load(placed)
    return world, [rng.choice(kinds).next() for _ in range(deciding)]
