"""
A patch survives the way through bytes, and bytes from anywhere do no harm.

Valid buffers are damaged in every way the random generator finds, with the checksum made right again so that the damage
reaches the checks behind it: the answer is a patch or a refusal, never an exception.
"""

from __future__ import annotations

import struct
import tracemalloc
import typing

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from graphsched.base.values import keys, labels, nodes, places, pods, relations
from graphsched.graph import codec, delta, packing, records, specs, wire
from graphsched.graph.generated import DeltaGraph
from tests.graph import encoded
from tests.laws import strategies

# A failing example is worth nothing before it is shrunk, which takes longer than any test that passes.
pytestmark = pytest.mark.timeout(600)


@settings(max_examples=200)
@given(strategies.rough_patches, st.none() | strategies.streams)
def test_decoding_what_was_encoded_gives_the_patch(patch: delta.Patch, stream: delta.Stream | None) -> None:
    """The law of every codec, for every patch with any stream."""
    patch.stream = stream

    assert codec.decode(codec.encode(patch)) == patch


def test_every_kind_of_row_makes_the_way() -> None:
    """The example has one of each, so that no kind is left to chance."""
    packed = packing.pack(encoded.example())

    assert all(len(rows) for rows in packed.rows.values())
    assert codec.decode(codec.encode(encoded.example())) == encoded.example()


def test_the_empty_patch_makes_the_way() -> None:
    """Nothing is a patch as well."""
    assert codec.decode(codec.encode(delta.Patch())) == delta.Patch()


def test_equal_patches_make_equal_bytes() -> None:
    """Sets have no order of their own, and none of a random one shows."""
    one, other = delta.Patch(), delta.Patch()
    names = [keys.node_key(f"n{number}") for number in range(50)]
    one.removed.update(names)
    other.removed.update(reversed(names))

    assert codec.encode(one) == codec.encode(other)


def test_the_header_carries_the_base_generation() -> None:
    """A follower knows whether the patch fits its copy before it decodes."""
    head = codec.header(codec.encode(encoded.example(), base_generation=88_120))

    assert isinstance(head, codec.Header)
    assert head.base_generation == 88_120


def test_the_rows_are_those_of_the_schema() -> None:
    """The generated code, which knows the schema, reads in every column what was packed."""
    packed = packing.pack(encoded.example())
    root = DeltaGraph.DeltaGraph.GetRootAs(wire.write(packed), 0)

    for name, (_, dtype) in wire.VECTORS.items():
        title = "".join(part.title() for part in name.split("_"))
        rows = packed.rows[name]
        assert getattr(root, f"{title}Length")() == len(rows) > 0
        for index, row in enumerate(rows.tolist()):
            element = getattr(root, title)(index)
            if dtype.names is None:
                assert element == row
                continue
            assert type(element).SizeOf() == dtype.itemsize
            columns = ["".join(part.title() for part in column.split("_")) for column in dtype.names]
            assert tuple(getattr(element, column)() for column in columns) == row
    stream = root.Stream()
    assert stream is not None
    assert (stream.Epoch(), stream.Sequence(), stream.Source(), stream.Reserved()) == packed.stream.tolist()[0]
    assert type(stream).SizeOf() == wire.STREAM.itemsize


def test_the_bytes_are_those_the_compiler_would_lay_out() -> None:
    """A vector written as a block equals one written element by element."""
    import flatbuffers  # noqa: PLC0415  only this comparison builds anything by hand

    from graphsched.graph.generated import LinkEdge  # noqa: PLC0415  see above

    rows = np.array([(0.25, 1e5, 1.0, 3, 4), (0.5, 1e4, 0.5, 4, 3)], wire.LINK)
    empty = {name: np.zeros(0, dtype) for name, (_, dtype) in wire.VECTORS.items()}
    by_block = wire.write(wire.Tables(np.zeros(0, wire.STREAM), empty | {"links": rows}))

    builder = flatbuffers.Builder(1024)
    DeltaGraph.DeltaGraphStartLinksVector(builder, len(rows))
    for row in reversed(rows.tolist()):
        LinkEdge.CreateLinkEdge(builder, *row)
    offset = builder.EndVector()
    DeltaGraph.DeltaGraphStart(builder)
    DeltaGraph.DeltaGraphAddLinks(builder, offset)
    builder.Finish(DeltaGraph.DeltaGraphEnd(builder), file_identifier=wire.IDENTIFIER)

    assert by_block == bytes(builder.Output())


@settings(max_examples=300)
@given(st.binary(max_size=200), st.booleans())
def test_random_bytes_are_refused(data: bytes, seal: bool) -> None:
    """Nothing random is a patch, with a valid header or without."""
    encoded.refusal(encoded.sealed(b"\x08\x00\x00\x00GSDG" + data) if seal else data)


@settings(max_examples=400)
@given(st.data())
def test_a_damaged_buffer_is_refused_or_read_but_never_raises(data: st.DataObject) -> None:
    """Bytes are changed anywhere, the checksum is made right, and the answer is a value."""
    patch = data.draw(st.just(encoded.example()) | strategies.rough_patches)
    buffer = bytearray(codec.encode(patch)[encoded.HEADER :])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(buffer) - 1))
        match data.draw(st.sampled_from(("byte", "word", "small", "cut", "grow"))):
            case "byte":
                buffer[at] = data.draw(st.integers(0, 255))
            case "word":
                buffer[at : at + 4] = struct.pack("<I", data.draw(st.integers(0, (1 << 32) - 1)))
            case "small":
                buffer[at & ~3 : (at & ~3) + 4] = struct.pack("<I", data.draw(st.integers(0, 12)))
            case "cut":
                del buffer[at + 1 :]
            case _:
                buffer[at:at] = data.draw(st.binary(max_size=8))

    answer = codec.decode(encoded.sealed(bytes(buffer)))

    assert isinstance(answer, delta.Patch | delta.Refused)
    if isinstance(answer, delta.Patch):
        assert codec.decode(codec.encode(answer)) == answer


@settings(max_examples=400)
@given(st.data())
def test_wrong_numbers_in_whole_arrays_are_refused_or_read_but_never_raise(data: st.DataObject) -> None:
    """Damage in rows alone reaches every check of meaning."""
    tables = encoded.tables_of(encoded.example())
    for _ in range(data.draw(st.integers(1, 2))):
        name = data.draw(st.sampled_from(sorted(wire.VECTORS)))
        raw = tables.rows[name].view(np.uint8)
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at] = data.draw(st.integers(0, 3) | st.integers(0, 255))

    answer = codec.decode(encoded.sealed(wire.write(tables)))

    assert isinstance(answer, delta.Patch | delta.Refused)
    if isinstance(answer, delta.Patch):
        assert codec.decode(codec.encode(answer)) == answer


def test_format_1_is_read_as_well() -> None:
    """It is the same without the vectors that came later."""
    patch = delta.Patch().set_vertex(nodes.Namespace("default"))
    data = bytearray(codec.encode(patch))
    data[4] = 1

    assert codec.decode(bytes(data)) == patch


@given(st.integers(0, 3000))
def test_a_cut_off_message_is_refused(length: int) -> None:
    """Whatever is missing at the end."""
    whole = codec.encode(encoded.example())
    encoded.refusal(whole[: min(length, len(whole) - 1)])


def set_column(name: str, column: str | None, value: float, row: int = 0) -> typing.Callable[[wire.Tables], None]:
    """Damage: write `value` into one place."""

    def damage(tables: wire.Tables) -> None:
        rows = tables.rows[name]
        (rows if column is None else rows[column])[row] = value

    return damage


def twice(name: str) -> typing.Callable[[wire.Tables], None]:
    """Damage: say the rows of a vector twice."""

    def damage(tables: wire.Tables) -> None:
        tables.rows[name] = np.concatenate([tables.rows[name], tables.rows[name]])

    return damage


def swapped(name: str) -> typing.Callable[[wire.Tables], None]:
    """Damage: exchange the first two rows of a vector, which belong to one set."""

    def damage(tables: wire.Tables) -> None:
        tables.rows[name][[0, 1]] = tables.rows[name][[1, 0]]

    return damage


BIG = (1 << 32) - 1


@pytest.mark.parametrize(
    ("damage", "detail"),
    [
        pytest.param(set_column("nodes", "name", BIG), "nodes.name: a number is that of no text", id="no such text"),
        pytest.param(set_column("nodes", "labels", 99), "nodes.labels: a number is beyond", id="no such label set"),
        pytest.param(set_column("pods", "spec", 99), "pods.spec: a number is beyond specs", id="no such spec"),
        pytest.param(set_column("images", "names", 99), "images.names: a number is beyond", id="no such list"),
        pytest.param(set_column("nodes", "flags", 2), "nodes.flags: a flag is not known", id="unknown flag"),
        pytest.param(set_column("addresses", "addresses", 99), "addresses.addresses: a number is beyond", id="no list"),
        pytest.param(set_column("addresses", "node", 0), "addresses.node: a node has no row", id="addresses of none"),
        pytest.param(set_column("budgets", "node", 0), "budgets.node: a node has no row", id="budget of none"),
        pytest.param(set_column("contains", "by", BIG), "contains.by: a number is that of no text", id="said by none"),
        pytest.param(set_column("records", "key", BIG), "records.key: a number is that of no text", id="no such key"),
        pytest.param(set_column("sourced_links", "at", float("nan")), "no finite number", id="no moment"),
        pytest.param(
            set_column("sourced_links", "latency_ms", float("inf")), "is infinite", id="infinite, with source"
        ),
        pytest.param(set_column("sourced_links", "cost", -2), "a value is negative", id="negative cost"),
        pytest.param(set_column("sourced_links", "reserved", 1), "reserved", id="reserved column of links"),
        pytest.param(twice("contains"), "contains: an edge is there twice", id="a containment twice"),
        pytest.param(twice("records"), "records: one is there twice", id="a record twice"),
        pytest.param(twice("addresses"), "addresses: one is there twice", id="addresses twice"),
        pytest.param(set_column("cut", "kind", 9), "cut.kind", id="unknown kind"),
        pytest.param(set_column("links", "latency_ms", float("inf")), "is infinite", id="infinite latency"),
        pytest.param(set_column("pods", "started", float("inf")), "no finite number", id="infinite time"),
        pytest.param(set_column("label_ends", None, 99), "label_ends", id="ends beyond their items"),
        pytest.param(set_column("amounts", "reserved", 1), "reserved", id="reserved column"),
        pytest.param(set_column("text", None, 0xFF), "UTF-8", id="no UTF-8"),
        pytest.param(swapped("labels"), "labels: a set is not sorted", id="unsorted labels"),
        pytest.param(swapped("amounts"), "amounts: a set is not sorted", id="unsorted amounts"),
        pytest.param(twice("nodes"), "nodes: one is there twice", id="a node twice"),
        pytest.param(twice("pods"), "pods: one is there twice", id="a pod twice"),
        pytest.param(twice("links"), "links: an edge is there twice", id="an edge twice"),
        pytest.param(twice("cut"), "cut: an edge is there twice", id="a cut twice"),
        pytest.param(twice("removed"), "removed", id="a removal twice"),
    ],
)
def test_what_is_wrong_is_named(damage: typing.Callable[[wire.Tables], None], detail: str) -> None:
    """Each check refuses what it is for, in words."""
    tables = encoded.tables_of(encoded.example())
    damage(tables)

    assert detail in encoded.refusal(encoded.sealed(wire.write(tables)))


def test_texts_out_of_order_are_refused() -> None:
    """Order is what makes two numbers mean two texts."""
    tables = encoded.tables_of(delta.Patch(removed={keys.node_key("a"), keys.node_key("b")}))
    tables.rows["text"] = np.frombuffer(b"node/bnode/a", np.uint8)

    assert "not sorted" in encoded.refusal(encoded.sealed(wire.write(tables)))


@pytest.mark.parametrize("key", ["node/", "node", "/n1", "planet/mars", "pod/web", "pod//web", "domain/zone", ""])
def test_a_key_of_no_vertex_is_refused(key: str) -> None:
    """Kinds are known, and names are there."""
    assert "no key of a vertex" in encoded.refusal(codec.encode(delta.Patch(removed={keys.VertexKey(key)})))


def test_a_promise_between_other_things_than_pod_and_node_is_refused() -> None:
    """The kind of an edge says what it joins."""
    edge = keys.EdgeID(keys.node_key("a"), keys.node_key("b"), keys.EdgeKind.RUNS)

    assert "runs.source" in encoded.refusal(codec.encode(delta.Patch(edges={edge: relations.Runs("u")})))


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        pytest.param("{}", "canonical", id="defaults left out"),
        pytest.param('{"taints":[]}', "canonical", id="a field of another version"),
        pytest.param("[1", "can not be read", id="broken JSON"),
        pytest.param('{"ports":7}', "can not be read", id="another type"),
        pytest.param('{"a":' + "[" * 20_000, "can not be read", id="nested without end"),
        pytest.param('{"image_containers":' + "9" * 30 + "}", "64 bits", id="a number of 30 digits"),
        pytest.param('{"selector":[["b","1"],["a","1"]]}', "not sorted", id="unsorted labels"),
        pytest.param(
            '{"affinity":[{"expressions":[{"key":"a","operator":"Gt","values":[]}]}]}',
            "compares with",
            id="Gt without a value",
        ),
    ],
)
def test_a_spec_that_is_not_exactly_understood_is_refused(text: str, detail: str) -> None:
    """What this version does not know may be a constraint."""
    problem = specs.decode(text, codec.FORMAT)

    assert isinstance(problem, str)
    assert detail in problem


def test_a_change_of_the_spec_raises_the_format() -> None:
    """The texts of format 4 have these fields and no others; with other ones, `codec.FORMAT` must be another.

    Those of formats 2 and 3 are read all the same: what came later is then as a pod has it that says nothing.
    """
    whatever = labels.Selector((labels.Requirement("a", labels.Operator.EXISTS),))
    term = pods.PodTerm("zone", whatever, ("default",), None)
    node_term = pods.NodeTerm(whatever.requirements, (), valid=True)
    spec = pods.Spec(
        affinity=(node_term,),
        preferred=(pods.PreferredNodeTerm(1, node_term),),
        tolerations=(pods.Toleration(),),
        ports=(pods.HostPort("TCP", "::", 80),),
        pod_affinity=(term,),
        preferred_pod_affinity=(pods.PreferredPodTerm(1, term),),
        spread=(pods.SpreadConstraint(1, "zone", hard=True, selector=None),),
        gpu=pods.GpuDemand(1, 1000),
    )
    requirement = '{"key":"a","operator":"Exists","values":[]}'
    pod_term = (
        f'{{"topology_key":"zone","selector":{{"requirements":[{requirement}]}},"namespaces":["default"],'
        '"namespace_selector":null}'
    )
    in_format_2 = (
        '{"demand":{"amounts":[],"scored_cpu":0,"scored_memory":0},"node_name":"","selector":[],'
        f'"affinity":[{{"expressions":[{requirement}],"fields":[],"valid":true}}],'
        f'"preferred":[{{"weight":1,"term":{{"expressions":[{requirement}],"fields":[],"valid":true}}}}],'
        '"tolerations":[{"key":"","operator":"Equal","value":"","effect":"","seconds":null}],'
        '"ports":[{"protocol":"TCP","ip":"::","port":80}],'
        '"images":[],"image_volumes":[],"image_containers":0,'
        f'"pod_affinity":[{pod_term}],"pod_anti_affinity":[],'
        f'"preferred_pod_affinity":[{{"weight":1,"term":{pod_term}}}],"preferred_pod_anti_affinity":[],'
        '"spread":[{"max_skew":1,"topology_key":"zone","hard":true,"selector":null,"min_domains":1,'
        '"honor_affinity":true,"honor_taints":false}],'
        '"gpu":{"count":1,"milli":1000,"models":[]},"features":[],"claims":[]}'
    )

    in_format_3 = f'{in_format_2[:-1]},"graph":null}}'

    in_format_4 = f'{in_format_3[:-1]},"guaranteed":false}}'

    assert (specs.encode(spec), codec.FORMAT) == (in_format_4, 4)
    assert specs.decode(in_format_4, 4) == spec
    assert specs.decode(in_format_3, 3) == spec
    assert specs.decode(in_format_2, 2) == spec
    assert isinstance(specs.decode(in_format_4, 3), str)
    assert isinstance(specs.decode(in_format_3, 4), str)


def test_a_place_of_an_older_format_says_nothing_of_what_is_free() -> None:
    """Its text has no such field, and one of this format has it."""
    place = places.Place("numa/n1/a", places.NUMA, amounts=(("cpu", 1),))
    text = records.encode(place)
    older = text.replace(',"available":[]', "")

    assert place == records.decode(place.key, text, 4) == records.decode(place.key, older, 3)
    assert isinstance(records.decode(place.key, older, 4), str)
    assert isinstance(records.decode(place.key, text, 3), str)


def test_a_field_of_a_later_schema_is_refused() -> None:
    """A vector that is passed over may hold what must not be."""
    import flatbuffers  # noqa: PLC0415  only this buffer is built by hand

    builder = flatbuffers.Builder(64)
    later = 1 + len(wire.VECTORS)
    builder.StartObject(later + 1)
    builder.PrependInt32Slot(later, 1, 0)
    builder.Finish(builder.EndObject(), file_identifier=wire.IDENTIFIER)

    assert "does not know" in encoded.refusal(encoded.sealed(bytes(builder.Output())))


def test_limits_are_kept() -> None:
    """Bytes are counted before anything is read, rows before anything is mapped."""
    data = codec.encode(delta.Patch(removed={keys.node_key(f"n{number}") for number in range(100)}))

    assert "allowed" in encoded.refusal(data, bytes_max=len(data) - 1)
    assert "100 rows are more than the 99 allowed" in encoded.refusal(data, rows_max=99)


def test_a_later_format_is_refused() -> None:
    """The header says so before the buffer is looked at."""
    data = bytearray(codec.encode(encoded.example()))
    data[4] = codec.FORMAT + 1

    assert "format" in encoded.refusal(bytes(data))


def test_damage_on_the_way_is_noticed() -> None:
    """The checksum is over the whole buffer."""
    data = bytearray(codec.encode(encoded.example()))
    data[-1] ^= 1

    assert "checksum" in encoded.refusal(bytes(data))


def test_a_small_buffer_can_not_ask_for_much_memory() -> None:
    """Counts that promise more than the buffer holds are refused before anything is made."""
    buffer = bytearray(codec.encode(encoded.example())[encoded.HEADER :])
    messages = []
    for at in range(0, len(buffer) - 4, 4):
        damaged = bytearray(buffer)
        damaged[at : at + 4] = struct.pack("<I", 0x7FFFFFFF)
        messages.append(encoded.sealed(bytes(damaged)))
    peaks = []
    for message in messages:
        codec.decode(message)  # What is imported on first use, a megabyte, is not the message's.
    tracemalloc.start()
    try:
        for message in messages:
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            codec.decode(message)
            peaks.append(tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()

    assert max(peaks) < 1 << 16


def test_a_patch_that_does_not_fit_the_schema_is_a_bug_of_the_sender() -> None:
    """The sender hears of it, not the receiver."""
    misfiled = delta.Patch(vertices={keys.node_key("b"): nodes.Node("a")})

    with pytest.raises(ValueError, match="the key is not that of the vertex"):
        codec.encode(misfiled)
    with pytest.raises(OverflowError):
        codec.encode(delta.Patch().set_vertex(nodes.PriorityClass("p", 1 << 40)))
