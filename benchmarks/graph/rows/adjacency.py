"""Adjacency: packed records beside a dict of lists, and beside rustworkx."""

from __future__ import annotations

import concurrent.futures
import itertools
import os
from collections.abc import Callable, Iterator

import rustworkx

from benchmarks.graph import cachegrind, frame, shapes
from benchmarks.plain import adjacency as plain
from graphsched.graph import adjacency, walks

NAME = "adjacency"
SHAPE = "100,000 vertices, 1,000,000 edges with weight and kind: random, and a 1,000-long ring of clusters; seed 6"
REFERENCE = "memory −37 %; last-level hit rate 42 → 79 %"

VERTICES, QUICK_VERTICES = 100_000, 1_000


def run(*, quick: bool) -> frame.Outcome:
    """Memory, a full walk in breadth, and its cache misses, on both shapes."""
    measures: list[frame.Ratio | frame.Limit] = []
    notes: list[str] = []
    equal = True
    for name, shape in shapes.BY_NAME.items():
        edges = shape(QUICK_VERTICES if quick else VERTICES)
        same, found = _walked(name, edges, rounds=1 if quick else 7)
        equal = equal and same
        measures += found
    if not quick and cachegrind.available():
        measures += _simulated()
    elif not quick:
        # Without the simulation the row is not whole, and does not pass.
        equal = False
        notes.append("valgrind is missing: apt-get install valgrind (as root)")
    return frame.Outcome(equal=equal, measures=tuple(measures), notes=tuple(notes))


def _simulated() -> Iterator[frame.Ratio]:
    """Cache misses of the walks. The simulations run side by side: they count, and what they count takes no time."""
    asked = list(itertools.product(shapes.BY_NAME, ("plain", "ours")))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        counted = pool.map(lambda each: cachegrind.measure(each[1], each[0], VERTICES), asked)
        found = dict(zip(asked, counted, strict=True))
    for name in shapes.BY_NAME:
        before, after = found[name, "plain"], found[name, "ours"]
        yield frame.Ratio(f"{name}: last-level miss rate", "%", before.rate, after.rate, bar=1)
        yield frame.Ratio(f"{name}: misses to memory", "", before.memory, after.memory, bar=0)
        yield frame.Ratio(f"{name}: data accesses", "", before.accesses, after.accesses, bar=0)


def _walked(name: str, edges: shapes.Edges, *, rounds: int) -> tuple[bool, list[frame.Ratio | frame.Limit]]:
    columns = (edges.sources, edges.targets, edges.weights, edges.kinds)

    def build() -> plain.Edges:
        return plain.build(edges.vertices, zip(*(column.tolist() for column in columns), strict=True))

    def pack() -> adjacency.Adjacency[int]:
        return adjacency.pack(range(edges.vertices), *columns)

    memory = frame.held_bytes(build), frame.held_bytes(pack)
    graph, picture, space = build(), pack(), walks.Space()
    theirs: rustworkx.PyDiGraph[None, None] = rustworkx.PyDiGraph()
    theirs.add_nodes_from([None] * edges.vertices)
    theirs.add_edges_from_no_data(list(zip(edges.sources.tolist(), edges.targets.tolist(), strict=True)))

    def ours() -> walks.Walk:
        return walks.breadth_first(picture, [0], space=space)

    def layers() -> object:
        return rustworkx.bfs_layers(theirs, [0])

    walk = ours()
    bounds = walk.levels.tolist()
    expected = [set(walk.rows[begin:end].tolist()) for begin, end in itertools.pairwise(bounds)]
    equal = walk.rows.tolist() == plain.breadth_first(graph, 0)
    equal = equal and expected == [set(layer) for layer in rustworkx.bfs_layers(theirs, [0]) if layer]
    slow: Callable[[], object] = lambda: plain.breadth_first(graph, 0)  # noqa: E731  as the others
    by_dict, mine = frame.race(slow, ours, rounds=rounds)
    by_rust, again = frame.race(layers, ours, rounds=rounds)
    return equal, [
        frame.Ratio(f"{name}: memory", "MB", memory[0] / 1e6, memory[1] / 1e6, bar=5),
        frame.Ratio(f"{name}: full BFS, dict of lists", "ms", by_dict * 1e3, mine * 1e3, bar=1),
        frame.Ratio(f"{name}: full BFS, rustworkx", "ms", by_rust * 1e3, again * 1e3, bar=1),
    ]
