"""The last patches that were applied, for those who copy the graph.

A follower that holds the graph of one generation gets the patches since, as long as they are still here; else it has to
begin again with the whole graph. The store notes each patch once a follower has asked for the first time; until then
there is no log and nothing is kept.

Comes in: each patch that was applied, from `store`. Goes out: the patches after a generation, in order, or None.
Invariants: patches and an estimate of the bytes they hold stay within their bounds, however large a single patch is;
what is handed out is not changed any more.
"""

from __future__ import annotations

import collections
import typing

from graphsched.base.values import nodes, pods
from graphsched.graph import delta

PATCHES_MAX = 8192
"""At a thousand pods a second, each a promise and a confirmation, some four seconds: many times what a poll takes."""
BYTES_MAX = 32 << 20
_POD_BYTES, _NODE_BYTES, _ROW_BYTES, _PATCH_BYTES = 1000, 4000, 400, 600
"""What a row keeps alive that the graph itself may have let go, generously: specs and labels are shared with others."""


def held_bytes(patch: delta.Patch) -> int:
    """An estimate of the memory that keeping the patch costs, in bytes."""
    pods_set = sum(1 for vertex in patch.vertices.values() if isinstance(vertex, pods.Pod))
    nodes_set = sum(1 for vertex in patch.vertices.values() if isinstance(vertex, nodes.Node))
    rows = len(patch) - pods_set - nodes_set
    return _PATCH_BYTES + pods_set * _POD_BYTES + nodes_set * _NODE_BYTES + rows * _ROW_BYTES


class _Entry(typing.NamedTuple):
    generation: int
    patch: delta.Patch
    size: int


class PatchLog:
    """Patches by the generation that each led to.

    Attributes:
        size: Estimate of the bytes held.
    """

    def __init__(self, generation: int, *, patches_max: int = PATCHES_MAX, bytes_max: int = BYTES_MAX) -> None:
        """Begin with the graph at `generation`, of which nothing older can be told."""
        self._begins = self._ends = generation
        self._patches_max = patches_max
        self._bytes_max = bytes_max
        self._entries: collections.deque[_Entry] = collections.deque()
        self.size = 0

    def __len__(self) -> int:
        """Patches held."""
        return len(self._entries)

    @property
    def begins(self) -> int:
        """The oldest generation whose follower can be helped."""
        return self._begins

    def add(self, generation: int, patch: delta.Patch) -> None:
        """The patch led to this generation; it may be changed afterwards, the log has its own copy of the rows' places.

        Raises:
            ValueError: A generation was left out: a bug of the caller, after which followers would be wrong.
        """
        if generation != self._ends + 1:
            message = f"generation {generation} does not follow {self._ends}"
            raise ValueError(message)
        copy = delta.Patch(set(patch.removed), set(patch.cut), dict(patch.vertices), dict(patch.edges))
        entry = _Entry(generation, copy, held_bytes(copy))
        self._ends = generation
        self._entries.append(entry)
        self.size += entry.size
        while self.size > self._bytes_max or len(self._entries) > self._patches_max:
            oldest = self._entries.popleft()
            self.size -= oldest.size
            self._begins = oldest.generation

    def since(self, generation: int) -> list[delta.Patch] | None:
        """The patches that lead from this generation to the present, in order.

        None after a gap: some of them are gone, or the generation is none of this graph's yet.
        """
        if not self._begins <= generation <= self._ends:
            return None
        count = self._ends - generation
        # From the end: a follower is nearly up to date, and the log is long.
        newest = [entry.patch for entry, _ in zip(reversed(self._entries), range(count), strict=False)]
        return newest[::-1]
