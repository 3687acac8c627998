"""Slurm's topology files, and the expressions in them."""

import pathlib

import pytest
from hypothesis import given, strategies as st

from graphsched.base.values import errors, keys
from graphsched.sources import hostlists, slurm

CONF = """
# generated
SwitchName=leaf[1-2] Nodes=n[1-2] LinkSpeed=100
switchname=leaf3 nodes=n[3-4],login1 \\
  LinkSpeed=fast
SwitchName=spine Switches=leaf[1-3]  # all of them
"""
TREE = """
- topology: net
  cluster_default: true
  tree:
    switches:
      - {switch: spine, children: "leaf[1-2]"}
      - {switch: leaf1, nodes: "n[1-2]"}
      - {switch: leaf2, nodes: "n3"}
"""


def holds(holder: str, *inside: str) -> set[tuple[str, str]]:
    """What a place contains."""
    return {(f"place/slurm/{holder}", each) for each in inside}


def read(folder: pathlib.Path, text: str, name: str = "topology.conf") -> tuple[dict[str, str], set[tuple[str, str]]]:
    """Name → kind and tier of each place, and what holds what."""
    path = folder / name
    path.write_text(text)
    assert slurm.is_slurm(str(path))
    said = slurm.read(str(path))
    kinds = {each.name: f"{each.kind} {each.tier}" for each in said.places}
    return kinds, {(str(tie.source), str(tie.target)) for tie in said.ties}


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("n1", ["n1"]),
        ("n[1-3,7]", ["n1", "n2", "n3", "n7"]),
        ("n[08-11]", ["n08", "n09", "n10", "n11"]),
        ("r[0-1]n[1-2]", ["r0n1", "r0n2", "r1n1", "r1n2"]),
        ("n[1-2]-ib,login", ["n1-ib", "n2-ib", "login"]),
    ],
)
def test_an_expression_stands_for_its_names(expression: str, names: list[str]) -> None:
    """As Slurm reads it."""
    assert names == hostlists.expand(expression)


@given(
    st.from_regex(r"[a-z]{1,5}", fullmatch=True),
    st.integers(0, 2000),
    st.integers(0, 40),
    st.integers(1, 6),
    st.from_regex(r"(-[a-z]{1,4})?", fullmatch=True),
)
def test_a_range_is_each_of_its_numbers(before: str, first: int, more: int, width: int, after: str) -> None:
    """Folding numbers into a range and expanding it gives the names back."""
    names = [f"{before}{number:0{width}d}{after}" for number in range(first, first + more + 1)]

    assert names == hostlists.expand(f"{before}[{first:0{width}d}-{first + more}]{after}")
    singles = ",".join(f"{number:0{width}d}" for number in range(first, first + more + 1))
    assert names == hostlists.expand(f"{before}[{singles}]{after}")
    assert names == hostlists.expand(",".join(names))


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "n[",
        "n]",
        "n[1-]",
        "n[a-b]",
        "n[3-1]",
        "n[[1]]",
        "n[1-2",
        "a,,b",
        "n[1-99999999]",
        "a[1-999]b[1-999]",
        "n 1",
        "-",
    ],
)
def test_what_is_no_expression_is_refused(expression: str) -> None:
    """With what to write instead."""
    with pytest.raises(errors.InputError) as caught:
        hostlists.expand(expression)

    assert caught.value.remedy


def test_topology_conf_is_places_that_hold_nodes_and_places(tmp_path: pathlib.Path) -> None:
    """Names of any case, comments, lines that go on; the tier follows from what is under a switch."""
    kinds, inside = read(tmp_path, CONF)

    assert {f"slurm/leaf{number}": "switch 1" for number in (1, 2, 3)} | {"slurm/spine": "switch 2"} == kinds
    assert {
        *holds("leaf1", "node/n1", "node/n2"),
        *holds("leaf2", "node/n1", "node/n2"),
        *holds("leaf3", "node/n3", "node/n4", "node/login1"),
        *holds("spine", *(f"place/slurm/leaf{number}" for number in (1, 2, 3))),
    } == inside


def test_the_speed_of_a_link_is_kept_and_counts_as_nothing(tmp_path: pathlib.Path) -> None:
    """It has no unit."""
    (tmp_path / "topology.conf").write_text(CONF)
    said = slurm.read(str(tmp_path / "topology.conf"))

    assert (("link-speed", "fast"),) == next(each.labels for each in said.places if each.name == "slurm/leaf3")
    assert {keys.EdgeKind.CONTAINS.value} == {"contains" for tie in said.ties if type(tie.value).__name__ == "Contains"}


def test_blocks_are_places(tmp_path: pathlib.Path) -> None:
    """In either file."""
    expected = (
        {"slurm/b1": "block None", "slurm/b2": "block None"},
        {*holds("b1", "node/n1", "node/n2"), *holds("b2", "node/n3")},
    )
    conf = "BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n3\nBlockSizes=2,4\n"
    blocks = "[{block: b1, nodes: 'n[1-2]'}, {block: b2, nodes: n3}]"
    yaml = f"- topology: t\n  block:\n    block_sizes: [2, 4]\n    blocks: {blocks}\n"

    assert expected == read(tmp_path, conf)
    assert expected == read(tmp_path, yaml, "topology.yaml")


def test_topology_yaml_says_the_same(tmp_path: pathlib.Path) -> None:
    """A tree of switches."""
    kinds, inside = read(tmp_path, TREE, "topology.yaml")

    assert {"slurm/spine": "switch 2", "slurm/leaf1": "switch 1", "slurm/leaf2": "switch 1"} == kinds
    assert {
        *holds("spine", "place/slurm/leaf1", "place/slurm/leaf2"),
        *holds("leaf1", "node/n1", "node/n2"),
        *holds("leaf2", "node/n3"),
    } == inside


def test_of_several_topologies_each_has_its_own_switches(tmp_path: pathlib.Path) -> None:
    """Equal names do not meet."""
    kinds, inside = read(
        tmp_path, TREE + TREE.replace("net", "other").replace("cluster_default: true", "flat: false"), "t.yaml"
    )

    assert {f"slurm/{which}/{name}" for which in ("net", "other") for name in ("spine", "leaf1", "leaf2")} == set(kinds)
    assert holds("net/spine", "place/slurm/net/leaf1", "place/slurm/net/leaf2") <= inside


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("SwitchName=a Nodes=n[1\n", "topology.conf:1: Nodes: "),
        ("# x\n\nSwitchName=a Nodes=n1 Color=red\n", 'topology.conf:3: "Color=red" is not known here'),
        ("SwitchName=a Nodes=n1\nNodes=n2\n", "topology.conf:2: names no switch and no block"),
        ("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2\n", 'topology.conf:2: "a" is there twice, first at'),
        ("SwitchName=a\n", 'topology.conf:1: "a" has nothing under it'),
        ("SwitchName=a Nodes=n1\nSwitchName=b Switches=c\n", 'topology.conf:2: there is no switch "c"'),
        ("SwitchName=a Switches=b\nSwitchName=b Switches=a\n", "switches hang under themselves"),
        ("SwitchName=a Nodes=n1 Nodes=n2\n", "topology.conf:1: Nodes is there twice"),
        ("# nothing\n", "topology.conf: is empty"),
        ("- topology: t\n  tree: {switches: [{switch: a, node: n1}]}\n", "topology.conf: "),
        ("- topology: t\n  tree: {switches: [{switch: a, nodes: 'n['}]}\n", 'topology "t": tree.switches[0]: Nodes: '),
    ],
)
def test_a_mistake_is_told_with_file_line_and_remedy(tmp_path: pathlib.Path, text: str, told: str) -> None:
    """One line."""
    path = tmp_path / "topology.conf"
    path.write_text(text)
    with pytest.raises(errors.InputError) as caught:
        slurm.read(str(path))

    assert told in str(caught.value)
    assert caught.value.remedy


def test_other_files_are_not_taken_for_slurm(tmp_path: pathlib.Path) -> None:
    """Manifests, lists of them, and nothing."""
    for number, text in enumerate(("kind: Pod\n", "- kind: Pod\n", "", "# SwitchName=a\nkind: x\n")):
        path = tmp_path / f"{number}.yaml"
        path.write_text(text)
        assert not slurm.is_slurm(str(path))
    assert not slurm.is_slurm("-")
