"""All that is described of the physical layer, put together: descriptions and nodes come in, vertices and edges go out.

Several objects may speak of one place, and what they say may depend on which nodes there are. So each row (a vertex or
an edge) is kept with everybody who says it; it is in the graph as long as somebody does, as the first of them says it,
and leaves with the last. Which is the first follows from what is said alone, never from the order in which it came:
whatever happened before, equal descriptions and equal nodes give equal rows.

    describe, forget, set_node  ──▶  who says what  ──flush──▶  rows of a patch

What asks for every node (a pattern, a label, a chain of levels) is looked at by `work`, a bounded piece at a time.

Invariants: whoever says an edge says the places at its ends; an edge at a node is said to the graph only while the node
is there, since a node takes its edges along when it goes.
"""

from __future__ import annotations

import collections
import typing
from collections.abc import Iterable, Iterator

from graphsched.base.values import descriptions, groups, keys, labels, places, relations
from graphsched.graph import delta, levels

Row = keys.VertexKey | keys.EdgeID
Value = places.Place | groups.Group | relations.Contains | relations.Link
Rows = dict[Row, tuple[int, Value]]
"""What one owner says: row → its rank, the lowest of which counts, and the value."""
Owner = tuple[keys.VertexKey, str]
"""An object, and the vertex about which it says so; empty for what it says whatever there is."""

BY = frozenset(
    {
        "networklink",
        "hypernode",
        "kueue",
        "kai",
        "koordinator",
        "diktyo",
        "appgroup",
        "noderesourcetopology",
        "slurm",
    }
)
"""What `by` of a description begins with: the kinds of objects that describe."""
_DESCRIBED, _MENTIONED = 0, 1
_NODE = descriptions.NODES
_PIECE = 64
"""Vertices that an object looks at between two looks at the budget."""


class Survey:
    """Keeps the rows in step with what is described. Nothing here waits, and nothing is sent: see `surveying`.

    Attributes:
        flushes: Counts up whenever something has changed and was flushed.
    """

    def __init__(self) -> None:
        self.flushes = 0
        self._objects: dict[keys.VertexKey, descriptions.Description] = {}
        self._nodes: dict[keys.VertexKey, labels.Labels] = {}
        self._said: dict[Row, dict[Owner, tuple[int, Value]]] = {}
        self._rows_of: dict[Owner, Rows] = {}
        self._about: dict[keys.VertexKey, set[str]] = {}
        """Object → the vertices about which it says something."""
        self._sent: dict[Row, Value] = {}
        """What the graph holds once it has applied all that was flushed."""
        self._touched: set[Row] = set()
        self._afresh: set[Row] = set()
        """Rows to be sent although they were."""
        self._at_node: dict[keys.VertexKey, set[keys.EdgeID]] = {}
        self._homes: dict[descriptions.Domain, collections.Counter[keys.VertexKey]] = {}
        """Label and value → the domains that nodes with it are in, each with their number."""
        self._home_of: dict[keys.VertexKey, tuple[tuple[descriptions.Domain, keys.VertexKey], ...]] = {}
        self._asking: dict[descriptions.Domain, set[keys.VertexKey]] = {}
        """Label and value → the objects whose ties name them."""
        self._general: dict[keys.VertexKey, None] = {}
        """Objects that ask for every node."""
        self._due_nodes: dict[keys.VertexKey, None] = {}
        self._due_objects: dict[keys.VertexKey, Iterator[keys.VertexKey]] = {}

    # ── what comes in ──────────────────────────────────────────────────────────────────────────────────────────────

    def describe(self, description: descriptions.Description, *, afresh: bool = False) -> None:
        """An object says this, and nothing of what it said before.

        With `afresh` all of it is flushed, also what was flushed before: the graph may not have it.
        """
        key = description.key
        before = self._objects.get(key)
        self._objects[key] = description
        for old in _asked(before):
            self._asking[old].discard(key)
            if not self._asking[old]:
                del self._asking[old]
        for new in _asked(description):
            self._asking.setdefault(new, set()).add(key)
        self._state_plain(key)
        if description.memberships or description.levels:
            self._general[key] = None
        else:
            self._general.pop(key, None)
        if before is None or (before.memberships, before.levels) != (description.memberships, description.levels):
            for other in [each for each in self._about.get(key, ()) if not each.startswith(_NODE)]:
                self._look(key, keys.VertexKey(other))
            self._look_at_places(key)
            if key in self._general or self._about.get(key):
                gone = [keys.VertexKey(each) for each in self._about.get(key, ()) if each not in self._nodes]
                self._due_objects[key] = iter([*self._nodes, *gone])
        self._let_others_look(before, description)
        if afresh:
            for about in ("", *self._about.get(key, ())):
                self._refresh(self._rows_of.get((key, about), ()))

    def forget(self, key: keys.VertexKey) -> None:
        """The object says nothing any more."""
        before = self._objects.pop(key, None)
        if before is None:
            return
        for old in _asked(before):
            self._asking[old].discard(key)
            if not self._asking[old]:
                del self._asking[old]
        self._general.pop(key, None)
        self._due_objects.pop(key, None)
        for about in ["", *self._about.get(key, ())]:
            self._state((key, about), {})
            if before.levels and about.startswith(_NODE):
                self._settle_home(keys.VertexKey(about))
        self._let_others_look(before, None)

    def set_node(self, name: str, node_labels: labels.Labels | None) -> None:
        """A node is there with these labels; None for one that has gone, and taken its edges along."""
        key = keys.node_key(name)
        if node_labels is not None:
            arrived = key not in self._nodes
            if not arrived and self._nodes[key] == node_labels:
                return
            self._nodes[key] = node_labels
            if arrived:
                self._touched |= self._at_node.get(key, set())
        elif self._nodes.pop(key, None) is None:
            return
        else:
            # Also where another one of the name comes before the next flush.
            self._refresh(self._at_node.get(key, ()))
        self._settle_home(key)
        if self._general:
            self._due_nodes[key] = None

    def refresh(self) -> None:
        """Everything is to be flushed again: whoever applies it may have lost some."""
        self._refresh(self._said)

    # ── what goes out ──────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def settled(self) -> bool:
        """Whether nothing waits for `work`, and nothing to be flushed."""
        return not (self._due_nodes or self._due_objects or self._touched)

    def work(self, budget: int) -> bool:
        """Look at about so many pairs of an object and a vertex; returns whether there are more."""
        while budget > 0 and self._due_nodes:
            node = next(iter(self._due_nodes))
            del self._due_nodes[node]
            for key in self._general:
                self._look(key, node)
            budget -= len(self._general) + 1
        while budget > 0 and self._due_objects:
            key, left = next(iter(self._due_objects.items()))
            budget -= 1
            for _ in range(_PIECE):
                node_key = next(left, None)
                if node_key is None:
                    del self._due_objects[key]
                    break
                budget -= 1
                self._look(key, node_key)
        return bool(self._due_nodes or self._due_objects)

    def flush(self, patch: delta.Patch) -> None:
        """Put into the patch what has changed since the last time."""
        self.flushes += bool(self._touched)
        touched, self._touched = self._touched, set()
        afresh, self._afresh = self._afresh, set()
        for row in _sorted(touched):
            due = self._due(row)
            before = self._sent.get(row)
            if due is None:
                self._sent.pop(row, None)
                if before is not None or row in afresh:
                    put(patch, row, None)
            elif due != before or row in afresh:
                self._sent[row] = due
                put(patch, row, due)

    @property
    def rows(self) -> dict[Row, Value]:
        """A copy of what the graph holds once it has applied all that was flushed."""
        return dict(self._sent)

    @property
    def unattached(self) -> dict[Row, Value]:
        """Edges that somebody says at a node which is not there, and that the graph is therefore not told."""
        return {
            row: self._first(sayers)
            for row, sayers in self._said.items()
            if not isinstance(row, str) and self._misses(row)
        }

    def description(self, key: keys.VertexKey) -> descriptions.Description | None:
        """What the object says; None when there is none."""
        return self._objects.get(key)

    def described(self, prefix: str) -> list[keys.VertexKey]:
        """The objects whose keys begin so."""
        return [key for key in self._objects if key.startswith(prefix)]

    # ── who says what ──────────────────────────────────────────────────────────────────────────────────────────────

    def _state(self, owner: Owner, rows: Rows) -> None:
        """The owner says these rows, and nothing else."""
        before = self._rows_of.pop(owner, {})
        if rows:
            self._rows_of[owner] = rows
        key, about = owner
        if about and rows:
            self._about.setdefault(key, set()).add(about)
        elif about and key in self._about:
            self._about[key].discard(about)
            if not self._about[key]:
                del self._about[key]
        for row in before:
            if row not in rows:
                self._unsay(row, owner)
        for row, told in rows.items():
            if before.get(row) != told:
                self._said.setdefault(row, {})[owner] = told
                self._touched.add(row)
                if not isinstance(row, str):
                    for end in row[:2]:
                        if end.startswith(_NODE):
                            self._at_node.setdefault(end, set()).add(row)

    def _unsay(self, row: Row, owner: Owner) -> None:
        self._touched.add(row)
        sayers = self._said[row]
        del sayers[owner]
        if sayers:
            return
        del self._said[row]
        if not isinstance(row, str):
            for end in row[:2]:
                at = self._at_node.get(end)
                if at is not None:
                    at.discard(row)
                    if not at:
                        del self._at_node[end]

    def _due(self, row: Row) -> Value | None:
        """What the graph should hold of the row: what the first says that says it."""
        sayers = self._said.get(row)
        if not sayers or (not isinstance(row, str) and self._misses(row)):
            return None
        return self._first(sayers)

    def _misses(self, edge: keys.EdgeID) -> bool:
        """Whether it has an end at a node that is not there."""
        return any(end.startswith(_NODE) and end not in self._nodes for end in edge[:2])

    @staticmethod
    def _first(sayers: dict[Owner, tuple[int, Value]]) -> Value:
        return min(sayers.items(), key=lambda item: (item[1][0], item[0]))[1][1]

    def _refresh(self, rows: Iterable[Row]) -> None:
        self._touched |= set(rows)
        self._afresh |= set(rows)

    # ── what an object says ────────────────────────────────────────────────────────────────────────────────────────

    def _state_plain(self, key: keys.VertexKey) -> None:
        """What the object says whatever nodes there are, but for the domains that its ties name."""
        told = self._objects[key]
        rows: Rows = {place.key: (_MENTIONED, place) for place in told.mentioned}
        rows.update({place.key: (_DESCRIBED, place) for place in told.places})
        rows.update({group.key: (_DESCRIBED, group) for group in told.groups})
        for tie in told.ties:
            kind = keys.EdgeKind.LINK if isinstance(tie.value, relations.Link) else keys.EdgeKind.CONTAINS
            for source in self._ends(tie.source):
                for target in self._ends(tie.target):
                    edge = keys.EdgeID(source, target, kind)
                    if source != target and rows.get(edge, (tie.rank + 1,))[0] > tie.rank:
                        rows[edge] = (tie.rank, tie.value)
        self._state((key, ""), rows)

    def _ends(self, end: descriptions.End) -> Iterable[keys.VertexKey]:
        if isinstance(end, descriptions.Domain):
            return self._homes.get(end, ())
        return (end,)

    def _look(self, key: keys.VertexKey, about: keys.VertexKey) -> None:
        """State what the object says about a node or a place, now that either may have changed."""
        told = self._objects[key]
        if about.startswith(_NODE):
            known = self._nodes.get(about)
        else:
            known = labels.NO_LABELS if self._is_described(about) else None
        rows: Rows = {}
        if known is not None:
            for membership in told.memberships:
                if membership.matches(about, known):
                    edge = keys.EdgeID(membership.holder, about, keys.EdgeKind.CONTAINS)
                    rows[edge] = (_DESCRIBED, relations.Contains(told.by))
                    if not about.startswith(_NODE):
                        # Whoever says an edge says the places at its ends.
                        rows[about] = (_MENTIONED, places.Place(keys.name_of(about), kind="hypernode"))
            if told.levels and about.startswith(_NODE):
                rows.update(_chain(told, about, known))
        before = self._rows_of.get((key, about), {})
        self._state((key, about), rows)
        if about.startswith(_NODE) and {row for row in rows if isinstance(row, str)} != {
            row for row in before if isinstance(row, str)
        }:
            self._settle_home(about)

    def _is_described(self, place: keys.VertexKey) -> bool:
        """Whether anybody describes the place, and not only mentions it."""
        return any(rank == _DESCRIBED for rank, _ in self._said.get(place, {}).values())

    def _look_at_places(self, key: keys.VertexKey) -> None:
        """Let the object look at all places that it asks for; there are as many as objects that describe them."""
        prefixes = {each.prefix for each in self._objects[key].memberships} - {_NODE}
        for prefix in sorted(prefixes):
            for other in list(self._objects.values()):
                for place in other.places:
                    if place.key.startswith(prefix):
                        self._look(key, place.key)

    def _let_others_look(self, before: descriptions.Description | None, after: descriptions.Description | None) -> None:
        """Places have come or gone: let those look that ask for them. At once, since a place takes its edges along."""
        was, now = ({place.key for place in each.places} if each is not None else set() for each in (before, after))
        for place in sorted(was ^ now):
            for key in self._general:
                if any(place.startswith(each.prefix) for each in self._objects[key].memberships):
                    self._look(key, place)

    def _settle_home(self, node: keys.VertexKey) -> None:
        """Note which domains the node is in, and let the objects state anew that name one which came or went."""
        before = self._home_of.pop(node, ())
        after = self._homes_of(node)
        if after:
            self._home_of[node] = after
        changed: set[descriptions.Domain] = set()
        for named, domain in after:
            counts = self._homes.setdefault(named, collections.Counter())
            counts[domain] += 1
            if counts[domain] == 1:
                changed.add(named)
        for named, domain in before:
            counts = self._homes[named]
            counts[domain] -= 1
            if not counts[domain]:
                del counts[domain]
                changed.add(named)
            if not counts:
                del self._homes[named]
        asking = {key for named in changed for key in self._asking.get(named, ())}
        for key in sorted(asking):
            self._state_plain(key)

    def _homes_of(self, node: keys.VertexKey) -> tuple[tuple[descriptions.Domain, keys.VertexKey], ...]:
        """For each label by which the node is put somewhere, its value and where that is."""
        node_labels = self._nodes.get(node)
        if node_labels is None:
            return ()
        values = dict(node_labels)
        found = [
            (descriptions.Domain(domain.label, values[domain.label]), domain.key)
            for domain in levels.place(node_labels).domains
        ]
        for key in self._general:
            for row, (_, value) in self._rows_of.get((key, node), {}).items():
                if isinstance(row, str) and isinstance(value, places.Place) and value.labels:
                    found.append((descriptions.Domain(*value.labels[0]), row))
        return tuple(dict.fromkeys(found))


def whole(
    described: Iterable[descriptions.Description],
    nodes: Iterable[tuple[str, labels.Labels]],
    *,
    unattached: bool = False,
) -> dict[Row, Value]:
    """The rows that these descriptions come to with these nodes (name and labels), with `unattached` also those."""
    survey = Survey()
    for name, node_labels in nodes:
        survey.set_node(name, node_labels)
    for description in described:
        survey.describe(description)
    while survey.work(1 << 20):
        pass
    survey.flush(delta.Patch())
    return {**survey.rows, **survey.unattached} if unattached else survey.rows


def _asked(description: descriptions.Description | None) -> set[descriptions.Domain]:
    """The label values that an object's ties name."""
    if description is None:
        return set()
    ends = (end for tie in description.ties for end in (tie.source, tie.target))
    return {end for end in ends if isinstance(end, descriptions.Domain)}


def _chain(
    told: descriptions.Description, node: keys.VertexKey, node_labels: labels.Labels
) -> Iterator[tuple[Row, tuple[int, Value]]]:
    """The places that the levels make of a node's labels, each in the one outside it, and the node in the innermost.

    A label whose domains the graph knows by itself makes no place, but holds the ones inside it. A value may be shared
    by unrelated parents, so a place is called by all values from the outermost level on.
    """
    values = dict(node_labels)
    known = {domain.label: domain.key for domain in levels.place(node_labels).domains}
    outer: keys.VertexKey | None = None
    path: list[str] = []
    made = False
    contains = (_DESCRIBED, relations.Contains(told.by))
    for label in told.levels:
        value = values.get(label, "")
        path.append(value)
        if not value:
            continue
        if label in known:
            key = known[label]
        else:
            name = f"{label}={'/'.join(path)}"
            kind = label.rpartition("/")[2]
            place = places.Place(name, kind=kind, labels=((label, value),))
            key = place.key
            yield key, (_DESCRIBED, place)
        if outer is not None and (label not in known or made):
            yield keys.EdgeID(outer, key, keys.EdgeKind.CONTAINS), contains
        outer, made = key, label not in known
    if outer is not None and made:
        yield keys.EdgeID(outer, node, keys.EdgeKind.CONTAINS), contains


def _sorted(rows: set[Row]) -> Iterator[Row]:
    """Vertices, then edges, each in order: a set of texts has another order in every process."""
    yield from sorted(row for row in rows if isinstance(row, str))
    yield from sorted(row for row in rows if not isinstance(row, str))


def put(patch: delta.Patch, row: Row, value: Value | None) -> None:
    """Let the patch set the row to this value, or take it out of the graph."""
    if value is None:
        if isinstance(row, str):
            patch.remove(row)
        else:
            patch.cut_edge(row)
    elif isinstance(row, str):
        patch.set_vertex(typing.cast("delta.Vertex", value))
    else:
        patch.set_edge(row, typing.cast("relations.Edge", value))


def is_described(by: str) -> bool:
    """Whether an edge that says so of itself comes from a description."""
    return by.partition("/")[0] in BY
