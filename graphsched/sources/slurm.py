"""Slurm's topology.conf and topology.yaml, as descriptions.

Lines of topology.conf name switches with the nodes or switches under them, or blocks of nodes:

    SwitchName=leaf1 Nodes=n[1-16]                     BlockName=b1 Nodes=n[1-18]
    SwitchName=spine Switches=leaf[1-4]                BlockSizes=18,36

topology.yaml says the same, for several topologies by name. A switch or block becomes a place, `slurm/leaf1`, that
contains what is under it; nodes are those of Kubernetes that have the same name. LinkSpeed has no unit by Slurm's own
word, so it is kept as a label and counts as no bandwidth.

Invariant: whatever is wrong with a file is one `InputError` that names it, the line and the remedy.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Iterable, Iterator

import msgspec

from graphsched.base.values import descriptions, errors, keys, places, relations
from graphsched.sources import documents, hostlists, yamls

SPEED = "link-speed"
"""Label of a place: LinkSpeed as it was written."""
DEPTH_MAX = 16
_NAMES = {
    "switchname": "SwitchName",
    "switches": "Switches",
    "nodes": "Nodes",
    "linkspeed": "LinkSpeed",
    "blockname": "BlockName",
    "blocksizes": "BlockSizes",
}
_PAIR = re.compile(r"(\w+)\s*=\s*(\S+)\s*")
_LINE = re.compile(r"\s*(?:SwitchName|BlockName|BlockSizes)\s*=", re.IGNORECASE)
_DOCUMENT = re.compile(r"\s*-\s+topology\s*:")


class _Part(typing.NamedTuple):
    """A switch or a block: what is under it, as hostlist expressions, and where it was written."""

    kind: str
    name: str
    nodes: str
    under: str
    speed: str
    place: str


class _Switch(msgspec.Struct, forbid_unknown_fields=True):
    """An entry of `switches`."""

    switch: str
    children: str = ""
    nodes: str = ""


class _Tree(msgspec.Struct, forbid_unknown_fields=True):
    """`tree` of a topology."""

    switches: list[_Switch]


class _Block(msgspec.Struct, forbid_unknown_fields=True):
    """An entry of `blocks`."""

    block: str
    nodes: str = ""


class _Blocks(msgspec.Struct, forbid_unknown_fields=True):
    """`block` of a topology."""

    blocks: list[_Block]
    block_sizes: list[int] = []


class _Topology(msgspec.Struct):
    """One topology of topology.yaml."""

    topology: str
    cluster_default: bool = False
    flat: bool = False
    tree: _Tree | None = None
    block: _Blocks | None = None


def is_slurm(path: str) -> bool:
    """Whether the file begins as Slurm's topology files do, whatever its name.

    Raises:
        InputError: The file can not be read.
    """
    if path == documents.STDIN:
        return False
    head = documents.first_bytes(path, 8192).decode("utf-8-sig", errors="replace")
    lines = (line for line in head.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    first = next((line for line in lines if line.strip() != "---"), "")
    return bool(_LINE.match(first) or _DOCUMENT.match(first))


def read(path: str) -> descriptions.Description:
    """What the file says.

    Raises:
        InputError: See the module.
    """
    text = documents.text_of(path)
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        raise errors.InputError(path, problem="is empty", remedy="name a topology.conf or topology.yaml of Slurm")
    parts = list(_of_lines(text, path) if _PAIR.match(lines[0].strip()) else _of_documents(text, path))
    return _description(parts, path)


# ── topology.conf ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _of_lines(text: str, path: str) -> Iterator[_Part]:
    for number, line in _logical(text):
        place = f"{path}:{number}"
        values: dict[str, str] = {}
        at = 0
        for found in _PAIR.finditer(line):
            name = _NAMES.get(found[1].lower())
            if found.start() != at or name is None:
                break
            if name in values:
                raise errors.InputError(place, problem=f"{name} is there twice", remedy="remove one")
            at = found.end()
            values[name] = found[2]
        if at != len(line):
            problem = f'"{line[at : at + 40]}" is not known here'
            remedy = "write SwitchName=… Nodes=… or Switches=…, BlockName=… Nodes=…, or BlockSizes=…"
            raise errors.InputError(place, problem=problem, remedy=remedy)
        if "SwitchName" in values:
            for name in _expanded(values["SwitchName"], place, "SwitchName"):
                speed = values.get("LinkSpeed", "")
                yield _Part("switch", name, values.get("Nodes", ""), values.get("Switches", ""), speed, place)
        elif "BlockName" in values:
            yield _Part("block", values["BlockName"], values.get("Nodes", ""), "", "", place)
        elif "BlockSizes" not in values:
            raise errors.InputError(place, problem="names no switch and no block", remedy="begin with SwitchName=…")


def _logical(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments, each with its number; one that ends with a backslash goes on in the next."""
    begun, held = 0, ""
    for number, line in enumerate(text.splitlines(), 1):
        plain = line.partition("#")[0].strip()
        begun = begun or number
        if plain.endswith("\\"):
            held += plain[:-1] + " "
            continue
        whole = (held + plain).strip()
        if whole:
            yield begun, whole
        begun, held = 0, ""
    if held.strip():
        yield begun, held.strip()


# ── topology.yaml ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _of_documents(text: str, path: str) -> Iterator[_Part]:
    try:
        bodies = [document.body for document in yamls.load(text)]
    except errors.InputError as error:
        first = error.place[0] if error.place else ""
        raise errors.InputError(
            f"{path}:{first}" if first else path, problem=error.problem, remedy=error.remedy
        ) from error
    for body in bodies:
        try:
            topologies = msgspec.convert(body, list[_Topology])
        except msgspec.ValidationError as error:
            problem = str(error).replace("`", '"').replace("$", "")
            remedy = "write a list of topologies, each with topology, and with tree or block"
            raise errors.InputError(path, problem=problem, remedy=remedy) from error
        several = len(topologies) > 1
        for topology in topologies:
            yield from _of_topology(topology, f'{path}: topology "{topology.topology}"', several=several)


def _of_topology(topology: _Topology, place: str, *, several: bool) -> Iterator[_Part]:
    """With several topologies in one file a switch's name begins with that of its own."""
    before = f"{topology.topology}/" if several else ""
    if topology.tree is not None:
        for index, switch in enumerate(topology.tree.switches):
            at = f"{place}: tree.switches[{index}]"
            for name in _expanded(switch.switch, at, "switch"):
                yield _Part("switch", before + name, switch.nodes, _within(before, switch.children, at), "", at)
    if topology.block is not None:
        for index, block in enumerate(topology.block.blocks):
            yield _Part("block", before + block.block, block.nodes, "", "", f"{place}: block.blocks[{index}]")


def _within(before: str, children: str, place: str) -> str:
    """The children with the name of their topology before each."""
    if not before or not children:
        return children
    return ",".join(before + name for name in _expanded(children, place, "children"))


# ── both ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _description(parts: Iterable[_Part], path: str) -> descriptions.Description:
    by = f"slurm/{path}"
    found: dict[str, places.Place] = {}
    written: dict[str, str] = {}
    parts = list(parts)
    under: dict[str, list[str]] = {}
    ties: list[descriptions.Tie] = []
    for part in parts:
        if part.name in written:
            problem = f'"{part.name}" is there twice, first at {written[part.name]}'
            raise errors.InputError(part.place, problem=problem, remedy="remove or rename one")
        if not part.nodes and not part.under:
            problem = f'"{part.name}" has nothing under it'
            raise errors.InputError(part.place, problem=problem, remedy="add Nodes=… or Switches=…")
        written[part.name] = part.place
        told = ((SPEED, part.speed),) if part.speed else ()
        found[part.name] = places.Place(f"slurm/{part.name}", part.kind, labels=told)
        under[part.name] = _names(part.under, part.place, "Switches") if part.under else []
        nodes = _names(part.nodes, part.place, "Nodes") if part.nodes else []
        ends = [keys.node_key(name) for name in nodes]
        ends += [keys.place_key(f"slurm/{name}") for name in under[part.name]]
        ties += (descriptions.Tie(found[part.name].key, end, relations.Contains(by)) for end in dict.fromkeys(ends))
    tiers = _Tiers(under, written)
    described = tuple(
        msgspec.structs.replace(place, tier=tiers.of(name)) if place.kind == "switch" else place
        for name, place in found.items()
    )
    return descriptions.Description(by, places=described, ties=tuple(ties))


class _Tiers:
    """How high each switch stands above the nodes."""

    def __init__(self, under: dict[str, list[str]], written: dict[str, str]) -> None:
        self._under = under
        self._written = written
        self._known: dict[str, int] = {}

    def of(self, name: str, above: tuple[str, ...] = ()) -> int:
        """The tier of a switch: one more than the highest under it, 1 for one with nodes alone."""
        if name in above or len(above) > DEPTH_MAX:
            chain = " → ".join((*above[-3:], name))
            problem = (
                f"switches hang under themselves: {chain}" if name in above else f"is deeper than {DEPTH_MAX} levels"
            )
            raise errors.InputError(self._written[above[0]], problem=problem, remedy="arrange them as a tree")
        if name not in self._known:
            tier = 0
            for other in self._under[name]:
                if other not in self._under:
                    problem = f'there is no switch "{other.rpartition("/")[2]}"'
                    raise errors.InputError(
                        self._written[name], problem=problem, remedy="add its line, or leave it out"
                    )
                tier = max(tier, self.of(other, (*above, name)))
            self._known[name] = tier + 1
        return self._known[name]


def _names(expression: str, place: str, field: str) -> list[str]:
    """The names in an expression, some of which may have their topology before them."""
    if "/" in expression:
        return expression.split(",")
    return _expanded(expression, place, field)


def _expanded(expression: str, place: str, field: str) -> list[str]:
    try:
        return hostlists.expand(expression)
    except errors.InputError as error:
        raise error.within(place, field) from error
