"""A captured graph: whole it is the cluster that the scheduler knew; damaged in any way it is one line."""

import pathlib
import random
import struct

import pytest
from hypothesis import given, settings, strategies as st

from graphsched.base.values import errors, keys, pods, relations
from graphsched.graph import codec, delta
from graphsched.sources import captures, state
from tests import builders

WEB = builders.make_pod("web").cpu("1").build()
HELD = builders.make_pod("held").node("gone").build()
RUNS = keys.EdgeID(WEB.key, keys.node_key("n1"), keys.EdgeKind.RUNS)


def whole() -> delta.Patch:
    """A graph of a node, a pod on a node that is gone, and a pod with a promise."""
    patch = delta.Patch(edges={RUNS: relations.Runs(WEB.uid)})
    for vertex in (builders.make_node("n1").zone("a").build(), HELD, WEB, builders.make_namespace("default", team="x")):
        patch.set_vertex(vertex)
    return patch


def refusal(path: pathlib.Path, data: bytes) -> str:
    """What is said of a file with these bytes."""
    path.write_bytes(data)
    with pytest.raises(errors.InputError) as caught:
        captures.read(str(path))
    return str(caught.value)


def test_a_whole_graph_is_the_cluster_it_was(tmp_path: pathlib.Path) -> None:
    """Every vertex and edge, and the generation; a pod may be on a node that is gone."""
    path = tmp_path / "cluster.dg"
    path.write_bytes(codec.encode(whole(), base_generation=7))

    assert captures.is_capture(str(path))
    assert captures.Capture(7, whole()) == captures.decode(path.read_bytes())
    assert whole() == state.to_patch(captures.read(str(path)))


def test_a_promised_pod_does_not_wait(tmp_path: pathlib.Path) -> None:
    """A promise to an earlier pod of the same name, or to a pod that is bound by now, is none."""
    cluster = state.ClusterState(pods=(WEB, HELD), edges={RUNS: relations.Runs(WEB.uid)})
    other = state.ClusterState(pods=(WEB, HELD), edges={RUNS: relations.Runs("another")})
    bound = keys.EdgeID(HELD.key, keys.node_key("n1"), keys.EdgeKind.RUNS)
    late = state.ClusterState(pods=(HELD,), edges={bound: relations.Runs(HELD.uid)})

    assert ((), {WEB.key: "n1"}) == (cluster.pending, cluster.promises)
    assert ((WEB,), {}) == (other.pending, other.promises)
    assert ((), {}) == (late.pending, late.promises)


def damaged() -> dict[str, tuple[bytes, str]]:
    """Bytes and what is said of them."""
    data = codec.encode(whole())
    twice = whole()
    twice.edges[keys.EdgeID(WEB.key, keys.node_key("n2"), keys.EdgeKind.RUNS)] = relations.Runs(WEB.uid)
    odd = pods.Pod(keys.pod_key("default", "odd"), "u", devices=(1, 0))
    return {
        "nothing": (b"", "0 bytes are less than the header's 24"),
        "the identifier alone": (b"GSDG", "4 bytes are less than the header's 24"),
        "another identifier": (b"GSDX" + data[4:], "it does not start as a DeltaGraph does"),
        "a later format": (data[:4] + struct.pack("<H", 99) + data[6:], "format 99 is not known"),
        "no format": (data[:4] + b"\0\0" + data[6:], "format 0 is not known"),
        "the header alone": (data[:24], "0 bytes follow the header"),
        "cut short": (data[:-1], "bytes follow the header, which announces"),
        "something behind it": (data + b"\n", "bytes follow the header, which announces"),
        "a bit turned": (data[:-9] + bytes([data[-9] ^ 4]) + data[-8:], "the checksum differs"),
        "read as text": (data.decode("latin-1").encode(), "bytes follow the header"),
        "a change": (codec.encode(whole().remove(keys.node_key("n9"))), "it is a change to a graph, not a whole one"),
        "a cut": (codec.encode(delta.Patch(cut={RUNS})), "not a whole one"),
        "a row of a stream": (codec.encode(delta.Patch(stream=delta.Stream("a", 1, 1))), "not a whole one"),
        "a pod promised twice": (codec.encode(twice), "the pod is promised to node/n"),
        "devices out of order": (codec.encode(delta.Patch().set_vertex(odd)), "are not ascending indices"),
    }


@pytest.mark.parametrize("case", damaged())
def test_a_damaged_file_is_one_line(case: str, tmp_path: pathlib.Path) -> None:
    """Which file, what is wrong with it, what to do."""
    data, said = damaged()[case]
    text = refusal(tmp_path / "cluster.dg", data)

    assert text.startswith(f"{tmp_path / 'cluster.dg'}: ")
    assert text.endswith("(capture it again, or read it with the version of graphsched that wrote it)")
    assert said in text
    assert "\n" not in text


def test_every_truncation_is_refused() -> None:
    """At whatever byte."""
    data = codec.encode(whole())

    assert [] == [size for size in range(len(data)) if not isinstance(captures.decode(data[:size]), delta.Refused)]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 1 << 32))
def test_random_damage_is_refused(seed: int) -> None:
    """A byte that is another one, anywhere but in the generation, which is nobody's promise."""
    rng = random.Random(seed)
    data = bytearray(codec.encode(whole()))
    at = rng.choice([place for place in range(len(data)) if not 16 <= place < 24])
    data[at] ^= rng.randrange(1, 256)

    assert isinstance(captures.decode(bytes(data)), delta.Refused)


def test_a_file_beyond_the_bound_is_refused_unread(tmp_path: pathlib.Path) -> None:
    """By its size alone; a sparse file costs nothing."""
    path = tmp_path / "cluster.dg"
    with path.open("wb") as sparse:
        sparse.write(b"GSDG")
        sparse.truncate(captures.BYTES_MAX + (1 << 20))
    with pytest.raises(errors.InputError, match="is 65 MiB, more than 64 MiB"):
        captures.read(str(path))


def test_what_is_no_capture_is_left_to_others(tmp_path: pathlib.Path) -> None:
    """Standard input, folders, what is not there, and manifests."""
    (tmp_path / "a.dg").write_text("kind: Node\n")

    assert not any(map(captures.is_capture, ["-", str(tmp_path), str(tmp_path / "no"), str(tmp_path / "a.dg")]))
