"""What an object says of the physical layer or of groups, before it is known which nodes there are.

A HyperNode, a NetworkLink, a Slurm file become no single vertex but several vertices and edges, some of which depend on
nodes: "all nodes called gpu-*", "from zone a to zone b". Whoever decodes such an object makes a `Description` of it;
`sources.surveys` turns all of them together into vertices and edges, and keeps those in step with the nodes.
"""

from __future__ import annotations

import msgspec

from graphsched.base.values import (
    groups as group_values,
    keys,
    labels,
    patterns,
    places as place_values,
    relations,
)

NODES = f"{keys.Kind.NODE.value}/"
"""What the keys of nodes begin with."""


class Domain(msgspec.Struct, frozen=True, gc=False):
    """The domains in which nodes have this value of a label; several where the value is shared by unrelated parents."""

    label: str
    value: str


End = keys.VertexKey | Domain
"""Of a tie: a vertex by its key, or all the domains that a label and its value name."""


class Tie(msgspec.Struct, frozen=True, gc=False):
    """An edge between two ends.

    Attributes:
        source, target: Where it begins and where it ends.
        value: What it says.
        rank: Of several that are said of the same two ends the lowest counts, then the first by the object's key.
    """

    source: End
    target: End
    value: relations.Contains | relations.Link
    rank: int = 0


class Membership(msgspec.Struct, frozen=True, gc=False):
    """A place contains whatever matches, now or later.

    Attributes:
        holder: The place.
        prefix: What the keys of those it speaks of begin with, e.g. `NODES`.
        pattern: A regular expression that is found in the rest of the key; empty for any.
        selector: Of labels; None for any. Only nodes have labels here.
    """

    holder: keys.VertexKey
    prefix: str = NODES
    pattern: str = ""
    selector: labels.Selector | None = None

    def matches(self, key: keys.VertexKey, key_labels: labels.Labels) -> bool:
        """Whether the vertex of this key and these labels is one of those."""
        if not key.startswith(self.prefix) or key == self.holder:
            return False
        if self.pattern and patterns.compiled(self.pattern).search(key[len(self.prefix) :]) is None:
            return False
        return self.selector is None or self.selector.matches(key_labels)


class Description(msgspec.Struct, frozen=True, gc=False):
    """All that one object says.

    Attributes:
        by: Who says so: kind and name of the object, e.g. `hypernode/s0`.
        places: Those it describes.
        mentioned: Places that it names and leaves to others to describe; without any of those they count as here.
        groups: Groups of workloads.
        ties: Edges.
        memberships: What its places contain by pattern or label.
        levels: Labels of nodes, outer to inner, whose values name places that contain the nodes; empty for none.
    """

    by: str
    places: tuple[place_values.Place, ...] = ()
    mentioned: tuple[place_values.Place, ...] = ()
    groups: tuple[group_values.Group, ...] = ()
    ties: tuple[Tie, ...] = ()
    memberships: tuple[Membership, ...] = ()
    levels: tuple[str, ...] = ()

    @property
    def key(self) -> keys.VertexKey:
        """What it is known by; no vertex has this key."""
        return keys.VertexKey(self.by)
