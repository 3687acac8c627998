"""A copy in another process: what it takes, what it refuses and why, and that it is never half of anything."""

from __future__ import annotations

import struct
import zlib

import pytest

from graphsched.base.values import keys, nodes
from graphsched.graph import codec, delta, followers

EPOCH = 77


def whole(*names: str, generation: int = 5, epoch: int = EPOCH) -> bytes:
    """A whole graph of these nodes."""
    patch = delta.Patch()
    for name in names:
        patch.set_vertex(nodes.Node(name))
    return followers.message(patch, epoch=epoch, base=generation, generation=generation)


def change(name: str, base: int, generation: int, epoch: int = EPOCH) -> bytes:
    """A node is set."""
    patch = delta.Patch().set_vertex(nodes.Node(name))
    return followers.message(patch, epoch=epoch, base=base, generation=generation)


def begun(*names: str) -> followers.Follower:
    """A copy of a graph of these nodes, at generation 5."""
    follower = followers.Follower()
    assert follower.take(whole(*names)) == followers.Taken(5, len(names), whole=True)
    return follower


def names_of(follower: followers.Follower) -> list[str]:
    """The nodes of the copy."""
    return sorted(keys.name_of(key) for key in follower.store.vertex_keys("node/"))


def test_a_copy_begins_with_a_whole_graph_and_goes_on_with_changes() -> None:
    """The base of each is the generation reached by the one before."""
    follower = begun("a")

    assert follower.take(change("b", 5, 9)) == followers.Taken(9, 1)
    assert follower.take(change("c", 9, 10)) == followers.Taken(10, 1)
    assert (names_of(follower), follower.generation, follower.lost) == (["a", "b", "c"], 10, False)
    assert (follower.applied, follower.repeated, follower.resyncs) == (3, 0, 0)


def test_what_was_applied_before_is_passed_over_and_counted() -> None:
    """A change that comes again, and a whole graph older than the copy."""
    follower = begun("a")
    follower.take(change("b", 5, 6))

    assert follower.take(change("b", 5, 6)) == followers.Taken(6, repeated=True)
    assert follower.take(whole("z", generation=5)) == followers.Taken(6, repeated=True)
    assert (names_of(follower), follower.repeated) == (["a", "b"], 2)


def test_after_a_gap_the_copy_begins_again() -> None:
    """The whole graph takes its place, whatever was missed."""
    follower = begun("a", "b")

    refused = follower.take(change("d", 7, 8))
    assert isinstance(refused, followers.NotTaken)
    assert (refused.reason, follower.lost, names_of(follower)) == (followers.Refusal.GAP, True, ["a", "b"])

    follower.take(whole("b", "c", generation=8))
    assert (names_of(follower), follower.generation, follower.lost, follower.resyncs) == (["b", "c"], 8, False, 1)


def test_a_graph_that_started_anew_is_followed_from_the_start() -> None:
    """Its generations are smaller, and mean other things."""
    follower = begun("a")

    refused = follower.take(change("b", 5, 6, epoch=78))
    assert isinstance(refused, followers.NotTaken)
    assert (refused.reason, follower.lost) == (followers.Refusal.FOREIGN, True)
    follower.take(whole("x", generation=1, epoch=78))

    assert (names_of(follower), follower.generation, follower.epoch) == (["x"], 1, 78)


def resealed(data: bytes) -> bytes:
    """The message with a checksum that fits what it holds by now."""
    return data[:12] + struct.pack("<I", zlib.crc32(data[codec.HEADER_BYTES :])) + data[16:]


def flipped(data: bytes, at: int) -> bytes:
    """The message with one byte changed."""
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


GOOD = change("b", 5, 6)
INVALID = followers.message(delta.Patch().set_vertex(nodes.Node("b", gpus=99_999)), epoch=EPOCH, base=5, generation=6)


@pytest.mark.parametrize(
    ("data", "reason", "lost"),
    [
        pytest.param(b"", followers.Refusal.TRUNCATED, False, id="nothing"),
        pytest.param(GOOD[:20], followers.Refusal.TRUNCATED, False, id="half a header"),
        pytest.param(GOOD[:-1], followers.Refusal.TRUNCATED, False, id="a byte is missing"),
        pytest.param(GOOD + b"x", followers.Refusal.CORRUPTED, False, id="a byte too many"),
        pytest.param(flipped(GOOD, 40), followers.Refusal.CORRUPTED, False, id="damaged"),
        pytest.param(resealed(flipped(GOOD, 24)), followers.Refusal.CORRUPTED, False, id="damaged, checksum mended"),
        pytest.param(b"<html>an error page of a proxy</html>", followers.Refusal.FOREIGN, False, id="no graph"),
        pytest.param(flipped(GOOD, 5), followers.Refusal.FOREIGN, False, id="a format of another time"),
        pytest.param(codec.encode(delta.Patch()), followers.Refusal.FOREIGN, False, id="a patch of no stream"),
        pytest.param(
            codec.encode(delta.Patch(stream=delta.Stream("watch/pods", EPOCH, 6)), base_generation=5),
            followers.Refusal.FOREIGN,
            False,
            id="of another stream",
        ),
        pytest.param(change("b", 5, 6, epoch=1), followers.Refusal.FOREIGN, True, id="of another life"),
        pytest.param(change("b", 7, 6), followers.Refusal.CORRUPTED, False, id="backwards"),
        pytest.param(change("b", 6, 7), followers.Refusal.GAP, True, id="a gap"),
        pytest.param(change("b", 4, 7), followers.Refusal.GAP, True, id="from before the copy"),
        pytest.param(INVALID, followers.Refusal.INVALID, True, id="what no graph holds"),
        pytest.param(
            followers.message(delta.Patch(removed={keys.node_key("a")}), epoch=EPOCH, base=6, generation=6),
            followers.Refusal.CORRUPTED,
            False,
            id="a whole graph that removes",
        ),
    ],
)
def test_what_does_not_fit_is_refused_whole_and_counted(data: bytes, reason: followers.Refusal, lost: bool) -> None:
    """Each for its own reason, and the copy is what it was."""
    follower = begun("a")

    answer = follower.take(data)

    assert isinstance(answer, followers.NotTaken)
    assert (answer.reason, answer.lost, follower.lost) == (reason, lost, lost)
    assert {each: count for each, count in follower.refused.items() if count} == {reason: 1}
    assert (names_of(follower), follower.generation) == (["a"], 5)


def test_a_message_that_is_too_long_is_not_looked_at() -> None:
    """The bound is the follower's own."""
    follower = followers.Follower(limits=codec.Limits(bytes_max=100))
    answer = follower.take(whole("a", "b", "c"))

    assert isinstance(answer, followers.NotTaken)
    assert answer.reason is followers.Refusal.OVERSIZED


def test_nothing_but_a_whole_graph_begins_a_copy() -> None:
    """A change says nothing of what was there before."""
    follower = followers.Follower()
    answer = follower.take(change("a", 0, 1))

    assert isinstance(answer, followers.NotTaken)
    assert follower.lost
    assert names_of(follower) == []
