"""
The inbox: order is kept, nothing is dropped, and who is too fast waits.

Simulated: producers as tasks. Excluded: what the patches say.
"""

import asyncio

import pytest

from graphsched.base.values import nodes
from graphsched.graph import delta
from graphsched.sources import inbox
from tests.fakes import virtual


def patch_of(rows: int, name: str = "n") -> delta.Patch:
    """Make a patch that sets so many nodes."""
    patch = delta.Patch()
    for index in range(rows):
        patch.set_vertex(nodes.Node(f"{name}{index}"))
    return patch


@virtual.timed
async def test_patches_come_out_in_the_order_they_were_put() -> None:
    """First in, first out."""
    box = inbox.Inbox()
    patches = [patch_of(1) for _ in range(5)]

    for patch in patches:
        await box.put(patch)

    assert patches == box.drain()
    assert [] == box.drain()


@virtual.timed
async def test_ready_is_set_exactly_while_patches_wait() -> None:
    """The loop sleeps on it without missing or dreaming up anything."""
    box = inbox.Inbox()
    seen = [box.ready.is_set()]

    await box.put(patch_of(2))
    await box.put(patch_of(2))
    seen.append(box.ready.is_set())
    box.drain(rows_max=2)
    seen.append(box.ready.is_set())
    box.drain(rows_max=2)
    seen.append(box.ready.is_set())

    assert [False, True, True, False] == seen


@virtual.timed
async def test_put_waits_while_the_rows_are_too_many() -> None:
    """The bound holds whatever the number of producers, and all of them get through in the end."""
    box = inbox.Inbox(rows_max=10)
    most = 0
    taken: list[delta.Patch] = []

    async def produce(name: str) -> None:
        for index in range(20):
            await box.put(patch_of(3, f"{name}-{index}-"))

    async with asyncio.TaskGroup() as group:
        producers = [group.create_task(produce(name)) for name in "abc"]
        while not all(producer.done() for producer in producers) or len(box):
            await asyncio.sleep(0.1)
            most = max(most, box.rows)
            taken += box.drain()

    assert (60, 9) == (len(taken), most)
    for name in "abc":
        mine = [next(iter(patch.vertices)) for patch in taken if next(iter(patch.vertices)).startswith(f"node/{name}")]
        assert [f"node/{name}-{index}-0" for index in range(20)] == mine
    assert box.waits > 0


@virtual.timed
async def test_a_patch_larger_than_the_bound_gets_in_alone() -> None:
    """A bound must not become a wall."""
    box = inbox.Inbox(rows_max=10)
    await box.put(patch_of(1))
    waiting = asyncio.create_task(box.put(patch_of(50)))
    await asyncio.sleep(1)
    held_back = not waiting.done()

    box.drain()
    await waiting

    assert held_back
    assert 50 == box.rows


@virtual.timed
async def test_drain_takes_one_patch_at_least_and_no_more_rows_than_asked_for() -> None:
    """A bound on rows bounds the time the loop spends, but never stops it."""
    box = inbox.Inbox()
    for rows in (5, 2, 2, 9):
        await box.put(patch_of(rows))

    sizes = [[len(patch) for patch in box.drain(rows_max=4)] for _ in range(3)]

    assert [[5], [2, 2], [9]] == sizes
    assert 0 == box.rows


@virtual.timed
async def test_a_cancelled_put_leaves_nothing_behind() -> None:
    """A reflector that is stopped while it waits takes its patch with it."""
    box = inbox.Inbox(rows_max=1)
    await box.put(patch_of(1))
    waiting = asyncio.create_task(box.put(patch_of(1)))
    await asyncio.sleep(1)

    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    assert 1 == len(box.drain())
    assert 0 == box.rows
