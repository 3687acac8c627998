"""Places, groups and rules over the wire: exactly understood, or refused; and no format has what came after it."""

from __future__ import annotations

import pytest

from graphsched.base.values import groups, keys, nodes
from graphsched.graph import codec, delta, records
from tests.graph import encoded


@pytest.mark.parametrize(
    ("patch", "detail"),
    [
        pytest.param(delta.Patch().set_vertex(encoded.RECORDS[0]), "records: format 2", id="a place"),
        pytest.param(
            delta.Patch().set_vertex(nodes.Node("a", addresses=("::1",))), "addresses: format 2", id="address"
        ),
        pytest.param(
            delta.Patch().cut_edge(keys.EdgeID(keys.node_key("a"), keys.node_key("b"), keys.EdgeKind.CONTAINS)),
            "cut.kind",
            id="containment cut",
        ),
    ],
)
def test_what_a_format_does_not_know_is_refused_under_its_name(patch: delta.Patch, detail: str) -> None:
    """A sender that says format 2 and sends more is not what it says."""
    data = bytearray(codec.encode(patch))
    data[4] = 2

    assert detail in encoded.refusal(bytes(data))


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        pytest.param("{}", "can not be read", id="nothing"),
        pytest.param('{"name":"slurm/leaf-1"}', "canonical", id="defaults left out"),
        pytest.param(
            '{"name":"slurm/leaf-2","kind":"switch","tier":null,"labels":[],"amounts":[]}', "is sent as", id="another"
        ),
        pytest.param(
            '{"name":"slurm/leaf-1","kind":"switch","tier":null,"labels":[],"amounts":[],"x":1}',
            "canonical",
            id="later",
        ),
        pytest.param(
            '{"name":"slurm/leaf-1","kind":"switch","tier":null,"labels":[["b",""],["a",""]],"amounts":[]}',
            "not sorted",
            id="unsorted labels",
        ),
        pytest.param(
            '{"name":"slurm/leaf-1","kind":"switch","tier":%s,"labels":[],"amounts":[]}' % ("9" * 30),
            "64 bits",
            id="a number of 30 digits",
        ),
        pytest.param("[" * 20_000, "can not be read", id="nested without end"),
    ],
)
def test_a_record_that_is_not_exactly_understood_is_refused(text: str, detail: str) -> None:
    """What this version does not know may be a condition."""
    problem = records.decode("place/slurm/leaf-1", text, codec.FORMAT)

    assert isinstance(problem, str)
    assert detail in problem


def test_a_record_that_json_has_no_text_for_is_a_bug_of_the_sender() -> None:
    """A limit that is not a number would arrive as no limit."""
    endless = groups.Dependency("db", latency_ms_max=float("inf"))
    group = groups.Group("default", "shop", (groups.Workload("web", None, (endless,)),))

    with pytest.raises(ValueError, match="no text"):
        codec.encode(delta.Patch().set_vertex(group))


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        pytest.param("[", "can not be read", id="broken JSON"),
        pytest.param('{"capacity":[],"ceilings":[]}', "canonical", id="defaults left out"),
        pytest.param('{"capacity":[["b",1],["a",1]],"ceilings":[],"reserved":[]}', "not sorted", id="unsorted amounts"),
        pytest.param(
            '{"capacity":[],"ceilings":[],"reserved":[["b",[]],["a",[]]]}', "not sorted", id="unsorted holders"
        ),
        pytest.param('{"capacity":[["a",%s]],"ceilings":[],"reserved":[]}' % ("9" * 30), "64 bits", id="30 digits"),
    ],
)
def test_a_budget_that_is_not_exactly_understood_is_refused(text: str, detail: str) -> None:
    """A reservation that is passed over would be given away."""
    problem = records.decode_budget(text)

    assert isinstance(problem, str)
    assert detail in problem


def test_whole_numbers_are_as_good_as_others_in_a_record() -> None:
    """Manifests say 5 where the struct says 5.0."""
    group = groups.Group("default", "shop", (groups.Workload("web", None, (groups.Dependency("db", 2, 5),)),))
    patch = delta.Patch().set_vertex(group)

    assert codec.decode(codec.encode(patch)) == patch
