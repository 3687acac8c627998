"""
Fifteen thousand patches that are not what they should be: none is applied in part, none raises.

Five thousand have wrong values, as a source with a bug would send them: these go to a live store and, where they can be
encoded, to a follower, and both say the same of each. Ten thousand are damaged messages, each a good one changed by one
to three random strokes: bits flipped, bytes cut off or put in, blocks exchanged, lengths and counts that lie,
identifiers and formats of others. Half of them get a checksum that fits the damage, so that it reaches the checks
behind.
The seeds are fixed.
"""

from __future__ import annotations

import collections
import random
import struct
import typing
import zlib
from collections.abc import Callable

import numpy as np
import pytest

from graphsched.base.values import keys, nodes
from graphsched.graph import codec, delta, edge_codec, edges, envelope, followers
from tests.graph import encoded, estranged
from tests.laws import meaning

MESSAGES = 5000
"""Of each of three kinds: patches, changes of edge tables, and patches with wrong values."""
HEAD = envelope.HEADER_BYTES
EPOCH = 5


def flip(data: bytearray, rng: random.Random) -> None:
    """Some bits are others."""
    for _ in range(rng.randint(1, 4)):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def cut(data: bytearray, rng: random.Random) -> None:
    """The end is missing, or a piece amid."""
    start = rng.randrange(len(data))
    del data[start : rng.choice([len(data), start + rng.randint(1, 16)])]


def put(data: bytearray, rng: random.Random) -> None:
    """There is something that was not."""
    at = rng.randrange(len(data) + 1)
    data[at:at] = rng.randbytes(rng.randint(1, 16))


def exchange(data: bytearray, rng: random.Random) -> None:
    """Two blocks have changed places."""
    size = rng.choice([4, 8, 16, 32])
    if len(data) < 2 * size + 8:
        return
    one, other = (rng.randrange(len(data) - size) & ~3 for _ in range(2))
    data[one : one + size], data[other : other + size] = data[other : other + size], data[one : one + size]


def lie(data: bytearray, rng: random.Random) -> None:
    """A count, length, offset or number is another one."""
    if len(data) < 8:
        return
    at = rng.randrange(len(data) - 4) & ~3
    value = rng.choice([0, 1, 2, 7, 255, 65_536, 0x7FFFFFFF, 0xFFFFFFFF, rng.getrandbits(32)])
    data[at : at + 4] = struct.pack("<I", value)


def estrange(data: bytearray, rng: random.Random) -> None:
    """The header is that of something else."""
    data[0:8] = rng.choice(
        [b"GSEC\x01\0\0\0", b"GSDG\x03\0\0\0", b"GSDG\xff\xff\0\0", b"PK\x03\x04\0\0\0\0", b"<html>\0\0"]
    )


STROKES: tuple[Callable[[bytearray, random.Random], None], ...] = (flip, cut, put, exchange, lie, estrange)


def damaged(good: bytes, rng: random.Random) -> bytes:
    """A message after some strokes, with length and checksum made right in every other one."""
    data = bytearray(good)
    for _ in range(rng.randint(1, 3)):
        rng.choice(STROKES)(data, rng)
        if not data:
            return b""
    if rng.random() < 0.5 and len(data) > HEAD:
        struct.pack_into("<II", data, 8, len(data) - HEAD, zlib.crc32(data[HEAD:]))
    return bytes(data)


def copy() -> followers.Follower:
    """A follower at generation 3, of a graph that meets the example in some places."""
    patch = encoded.example()
    patch.removed, patch.cut, patch.stream = set(), set(), None
    patch.set_vertex(nodes.Node("n0", allocatable=(("cpu", 1000),)))
    follower = followers.Follower()
    taken = follower.take(followers.message(patch, epoch=EPOCH, base=3, generation=3))
    assert isinstance(taken, followers.Taken)
    return follower


@pytest.mark.parametrize("seed", range(5))
def test_no_damaged_patch_is_applied_in_part(seed: int) -> None:
    """Refused, the copy is what it was; taken, it is what the whole of the message says."""
    rng, follower = random.Random(seed), copy()
    patch = encoded.example().set_vertex(nodes.Node("n2", gpus=1))
    good = followers.message(patch, epoch=EPOCH, base=3, generation=4)
    before = follower.store.content()
    told: collections.Counter[str] = collections.Counter()
    for _ in range(MESSAGES // 5):
        data = damaged(good, rng)
        answer = follower.take(data)
        if isinstance(answer, followers.NotTaken):
            told[answer.reason] += 1
            assert follower.store.content() == before
            continue
        told["taken"] += 1
        read = codec.decode(data)
        assert isinstance(read, delta.Patch)
        if answer.whole:
            expected: typing.Any = read.vertices, read.edges
        else:
            expected = before if answer.repeated else meaning.plainly(before, read)
        assert follower.store.content() == expected
        assert follower.store.audit() == []
        follower = copy()
    # The damage reaches every check, or the test would prove little.
    assert {reason for reason in followers.Refusal if told[reason]} >= {
        followers.Refusal.TRUNCATED,
        followers.Refusal.CORRUPTED,
        followers.Refusal.FOREIGN,
    }
    assert told["taken"] < MESSAGES // 50


@pytest.mark.parametrize("seed", range(5))
def test_no_patch_with_wrong_values_is_applied_in_part(seed: int) -> None:
    """The store and a follower refuse it whole or take it whole, and what was taken can be taken back."""
    rng = random.Random(f"values {seed}")
    live, follower = copy().store, copy()
    before = live.content()
    good = encoded.example().set_vertex(nodes.Node("n2", gpus=1))
    told: collections.Counter[str] = collections.Counter()
    struck: collections.Counter[str] = collections.Counter()
    for number in range(MESSAGES // 5):
        patch = estranged.patch(good, rng, struck)
        generation = live.generation
        answer = live.apply(patch, undo=True)
        refused = isinstance(answer, delta.Refused)
        told["refused" if refused else "taken"] += 1
        expected = before if refused else meaning.plainly(before, patch)
        assert live.content() == expected
        if number % 10 == 0:
            follower = _told_as_well(patch, follower, expected, refused=refused, told=told)
        if isinstance(answer, delta.Refused):
            assert answer.detail
            assert live.generation == generation
            continue
        assert live.audit() == []
        assert answer.undo is not None
        assert isinstance(live.apply(answer.undo), delta.Applied)
        assert live.content() == before
    # Each is met often, or the test would prove little.
    assert min(told["taken"], told["refused"], 10 * told["sent"]) > MESSAGES // 50
    rows = {type(value).__name__ for value in (*good.vertices.values(), *good.edges.values())}
    assert rows | {"Budget", "Demand", "Workload", "Dependency", "Match", "Path", "Taint", "Image"} <= struck.keys()


def _told_as_well(
    patch: delta.Patch,
    follower: followers.Follower,
    expected: meaning.Content,
    *,
    refused: bool,
    told: collections.Counter[str],
) -> followers.Follower:
    """Send the patch to the follower, where a message can say it; the follower for the next one."""
    try:
        message = followers.message(patch, epoch=EPOCH, base=3, generation=4)
    except (ValueError, OverflowError):
        told["unspeakable"] += 1
        return follower
    read, before = codec.decode(message), follower.store.content()
    answer = follower.take(message)
    if isinstance(read, delta.Patch) and _rows(read) == _rows(patch):
        told["sent"] += 1
        assert isinstance(answer, followers.NotTaken) == refused
        assert follower.store.content() == expected
    elif isinstance(answer, followers.NotTaken):
        # What can not be said otherwise: a key that its vertex does not have, what was seen of a link.
        assert follower.store.content() == before
    else:
        assert isinstance(read, delta.Patch)
        assert follower.store.content() == meaning.plainly(before, read)
    return follower if isinstance(answer, followers.NotTaken) else copy()


def _rows(patch: delta.Patch) -> tuple[object, ...]:
    return patch.removed, patch.cut, patch.vertices, patch.edges


def edge_copy(table: edges.Table) -> followers.EdgeFollower:
    """A follower at generation 3 of these edges between thirty names."""
    follower = followers.EdgeFollower(kinds=3)
    begun = edges.Change(table.ids[:0], table.ids, table.weights, 0, [f"node/n{number}" for number in range(30)])
    taken = follower.take(edge_codec.encode(edge_codec.Message(begun, EPOCH, 3, 3)))
    assert isinstance(taken, followers.Taken)
    return follower


@pytest.mark.parametrize("seed", range(5))
def test_no_damaged_change_of_edges_is_applied_in_part(seed: int) -> None:
    """Refused, or well formed throughout: sorted, in range, with a weight for each edge."""
    rng = random.Random(seed)
    names = [str(keys.node_key(f"n{number}")) for number in range(20)]
    ids = edges.identities(np.repeat(np.arange(30), 5), np.tile(np.arange(0, 50, 10), 30), 1)
    gone = edges.identities(np.arange(31, 35), 3, 0)
    sent = edges.Change(gone, ids, np.linspace(0, 1, len(ids), dtype=np.float32), 30, names)
    good = edge_codec.encode(edge_codec.Message(sent, EPOCH, 3, 4))
    before = edges.table(edges.identities(np.arange(20), np.arange(20), 0), np.ones(20, np.float32))
    follower = edge_copy(before)
    refused = 0
    for _ in range(MESSAGES // 5):
        data = damaged(good, rng)
        taken = follower.take(data)
        if isinstance(taken, followers.NotTaken) or taken.repeated:
            assert (follower.table.ids == before.ids).all()
            assert (follower.table.weights == before.weights).all()
            assert len(follower.names) == 30
        answer = edge_codec.decode(data, kinds=3)
        if isinstance(answer, delta.Refused):
            assert isinstance(taken, followers.NotTaken)
            refused += 1
            continue
        change = answer.change
        if not (isinstance(taken, followers.NotTaken) or taken.repeated):
            expected = edges.table(change.ids, change.weights) if taken.whole else edges.apply(before, change)
            assert (follower.table.ids == expected.ids).all()
            assert (follower.table.weights == expected.weights).all()
            follower = edge_copy(before)
        known = change.known + len(change.names)
        assert len(tuple(change.names)) == len(change.names)
        after = edges.apply(before, change)
        assert (after.ids[1:] > after.ids[:-1]).all()
        assert len(after.ids) == len(after.weights)
        assert np.isfinite(after.weights).all()
        assert not len(change.ids) or int(edges.targets(change.ids).max()) < known
        assert (edges.find(after.ids, change.ids)[1]).all()
        assert not edges.find(after.ids, change.removed)[1].any()
    assert refused > MESSAGES // 10
