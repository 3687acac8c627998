"""How long a scheduler's loop waits while its whole graph is handed out.

A size comes in, an `Answer` goes out. Done is what `/debug/graph` does: the tables are copied on the loop and encoded
in a thread, beside a task that does nothing but look at the clock; whatever lies between two of its looks is what
anything else on the loop would have waited. With `rows_max` the graph is encoded in several patches instead, to
compare.
"""

from __future__ import annotations

import asyncio
import gc
import time

import msgspec

from benchmarks.codec import patches
from graphsched.base.values import keys, nodes, relations
from graphsched.graph import codec, delta, store

ROUNDS = 5
PROMISED = 200
IMAGES = 20


class Answer(msgspec.Struct, frozen=True):
    """What was measured; times in milliseconds, the middle of the rounds unless said otherwise.

    Attributes:
        nodes, pods, patches, bytes: How much it was.
        copy_ms: Copying the tables.
        all_ms: Until everything was encoded.
        wait_ms: The longest wait on the loop.
        worst_wait_ms: The longest of all rounds.
    """

    nodes: int
    pods: int
    patches: int
    bytes: int
    copy_ms: float
    all_ms: float
    wait_ms: float
    worst_wait_ms: float


def graph(*, nodes_count: int, pods_count: int) -> store.Store:
    """A graph of nodes with labels and images, pods of a few workloads, and some promises."""
    patch = patches.pods_of_workloads(pods_count)
    for number in range(nodes_count):
        name = f"n{number}"
        patch.set_vertex(
            nodes.Node(
                name,
                f"00000000-0000-4000-9000-{number:012d}",
                (("kubernetes.io/hostname", name), ("topology.kubernetes.io/zone", f"z{number % 3}")),
                allocatable=(("cpu", 64_000), ("memory", 1 << 38), ("pods", 110)),
                images=tuple(
                    nodes.Image((f"app-{image}:1", f"app-{image}@sha256:{image:064x}"), image << 20)
                    for image in range(number % 7, number % 7 + IMAGES)
                ),
            )
        )
    for pod in list(patch.vertices.values())[:PROMISED]:
        edge = keys.EdgeID(pod.key, keys.node_key("n0"), keys.EdgeKind.RUNS)
        patch.set_edge(edge, relations.Runs(str(getattr(pod, "uid", ""))))
    made = store.Store()
    applied = made.apply(patch)
    assert isinstance(applied, delta.Applied)
    return made


def measure(*, nodes_count: int, pods_count: int, rows_max: int = 0) -> Answer:
    """Hand out a graph of this size, in one patch or in patches of `rows_max` rows."""
    made = graph(nodes_count=nodes_count, pods_count=pods_count)
    # As the live scheduler does once it has taken its first lists.
    gc.collect()
    gc.freeze()
    try:
        rounds = [asyncio.run(_hand_out(made, rows_max)) for _ in range(ROUNDS)]
    finally:
        gc.unfreeze()
    copies, totals, waits = (sorted(column) for column in zip(*(each[:3] for each in rounds), strict=True))
    middle = ROUNDS // 2
    parts = rounds[0][3]
    return Answer(
        nodes=nodes_count,
        pods=pods_count,
        patches=len(parts),
        bytes=sum(parts),
        copy_ms=round(copies[middle] * 1e3, 2),
        all_ms=round(totals[middle] * 1e3, 1),
        wait_ms=round(waits[middle] * 1e3, 1),
        worst_wait_ms=round(waits[-1] * 1e3, 1),
    )


async def _hand_out(made: store.Store, rows_max: int) -> tuple[float, float, float, list[int]]:
    """Seconds for the copy, for all, and of the longest wait; the sizes of the patches."""
    waited, done = 0.0, asyncio.Event()

    async def look() -> None:
        nonlocal waited
        last = time.perf_counter()
        while not done.is_set():
            # Through the selector, as everything that waits for a socket goes.
            await asyncio.sleep(0.0005)
            now = time.perf_counter()
            waited, last = max(waited, now - last), now

    looking = asyncio.create_task(look())
    await asyncio.sleep(0.01)
    start = time.perf_counter()
    vertices, edges = made.content()
    copied = time.perf_counter()
    whole = delta.Patch(vertices=vertices, edges=edges)
    parts = delta.split(whole, rows_max=rows_max) if rows_max else [whole]
    sizes = [len(await asyncio.to_thread(codec.encode, part)) for part in parts]
    end = time.perf_counter()
    done.set()
    await looking
    return copied - start, end - start, waited, sizes
