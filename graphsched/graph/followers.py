"""A copy of a graph that lives in another process: a standby, a picture, a cache at the edge.

It begins with a message that holds the whole graph and goes on with messages that lead from the generation it has to a
later one. Each says which life of which graph it is about (`delta.Stream`: the epoch, and as sequence the generation
reached) and, in its header, the generation it is based on; in a whole graph both generations are the same.

A table of edges is followed alike. Comes in: bytes from anywhere. Goes out: a store, or a table, as it was at
`generation`, and counts of what was not taken and why. Invariants: a message is applied whole or not at all; nothing is
applied on another generation than its base; one that was applied before is passed over and counted.
"""

from __future__ import annotations

import abc
import enum
import typing

import msgspec

from graphsched.graph import codec, delta, edge_codec, edges, envelope, store as stores

SOURCE = "graph"
"""What messages about a graph call their stream."""


class Refusal(enum.StrEnum):
    """Why a message was not taken."""

    OVERSIZED = "oversized"
    """Longer than this follower takes."""
    TRUNCATED = "truncated"
    """Something is missing at its end."""
    CORRUPTED = "corrupted"
    """Damaged on the way, or never well formed."""
    FOREIGN = "foreign"
    """No message about a graph, of a later format, or about another life of it than the copy's."""
    GAP = "gap"
    """Based on a generation that the copy does not have: it has to begin again."""
    INVALID = "invalid"
    """Well formed, and nothing a graph can hold."""


class Taken(msgspec.Struct, frozen=True, gc=False):
    """What became of a message that was not refused.

    Attributes:
        generation: The copy's, afterwards.
        rows: Rows set or removed.
        repeated: It had been applied before: nothing was changed.
        whole: It held the whole graph, and the copy began again with it.
    """

    generation: int
    rows: int = 0
    repeated: bool = False
    whole: bool = False


class NotTaken(msgspec.Struct, frozen=True, gc=False):
    """Why nothing of a message was applied.

    Attributes:
        reason: In a word.
        detail: In a sentence.
        lost: The copy has to begin again: what was damaged on the way may come whole next time, but this never fits.
    """

    reason: Refusal
    detail: str
    lost: bool = False


def message(patch: delta.Patch, *, epoch: int, base: int, generation: int) -> bytes:
    """The bytes that lead a follower from generation `base` to `generation`; equal ones for a whole graph.

    Raises:
        ValueError, OverflowError: See `codec.encode`.
    """
    placed = delta.Patch(patch.removed, patch.cut, patch.vertices, patch.edges, delta.Stream(SOURCE, epoch, generation))
    return codec.encode(placed, base_generation=base)


class Read(msgspec.Struct, frozen=True, gc=False):
    """What a message says of itself, and what it holds."""

    epoch: int
    base: int
    reached: int
    content: typing.Any


class Copy(abc.ABC):
    """What all copies have in common: where they stand, and what they take.

    Attributes:
        epoch: The life of what it copies; None before the first whole one.
        generation: Where it stands in that life.
        lost: It has to begin again with a whole one.
        applied, repeated, resyncs: Messages that were applied, that came again, and whole ones after the first.
        refused: Messages not taken, by reason.
    """

    def __init__(self, kind: envelope.Kind, limits: codec.Limits) -> None:
        self.epoch: int | None = None
        self.generation = 0
        self.lost = True
        self.applied = self.repeated = self.resyncs = 0
        self.refused: dict[Refusal, int] = dict.fromkeys(Refusal, 0)
        self.limits = limits
        self._kind = kind

    def take(self, data: bytes) -> Taken | NotTaken:
        """Apply a message, or say why not. Never raises, whatever the bytes."""
        answer = self._take(data)
        if isinstance(answer, NotTaken):
            self.refused[answer.reason] += 1
            self.lost = self.lost or answer.lost
        elif answer.repeated:
            self.repeated += 1
        else:
            self.applied += 1
        return answer

    @abc.abstractmethod
    def _read(self, data: bytes) -> Read | NotTaken:
        """What the message holds; its shape has been checked."""

    @abc.abstractmethod
    def _begin(self, content: typing.Any) -> int | NotTaken:
        """Become what the content is, whole or not at all; returns the rows that changed."""

    @abc.abstractmethod
    def _advance(self, content: typing.Any) -> int | NotTaken:
        """Apply the content to the generation it is based on, whole or not at all; returns the rows that changed."""

    def _take(self, data: bytes) -> Taken | NotTaken:
        misshapen = self._shape_problem(data)
        if misshapen is not None:
            return misshapen
        read = self._read(data)
        if isinstance(read, NotTaken):
            return read
        whole = read.base == read.reached
        if not whole and read.epoch != self.epoch:
            return NotTaken(Refusal.FOREIGN, f"it is of life {read.epoch}, the copy of {self.epoch}", lost=True)
        if read.base > read.reached:
            return NotTaken(Refusal.CORRUPTED, f"it leads from generation {read.base} back to {read.reached}")
        # A whole one that was sent before what the copy has meanwhile would lead back.
        if read.epoch == self.epoch and read.reached < self.generation + (not whole):
            return Taken(self.generation, repeated=True)
        if not whole and read.base != self.generation:
            problem = f"it is based on generation {read.base}, the copy has {self.generation}"
            return NotTaken(Refusal.GAP, problem, lost=True)
        rows = self._begin(read.content) if whole else self._advance(read.content)
        if isinstance(rows, NotTaken):
            return rows
        if whole:
            self.resyncs += self.epoch is not None
            self.epoch, self.lost = read.epoch, False
        self.generation = read.reached
        return Taken(read.reached, rows, whole=whole)

    def _shape_problem(self, data: bytes) -> NotTaken | None:
        """What is wrong with the message as a whole, before anything of it is read."""
        if len(data) > self.limits.bytes_max:
            problem = f"{len(data)} bytes are more than the {self.limits.bytes_max} allowed"
            return NotTaken(Refusal.OVERSIZED, problem)
        head = envelope.header(self._kind, data)
        if isinstance(head, delta.Refused):
            short = len(data) < envelope.HEADER_BYTES
            return NotTaken(Refusal.TRUNCATED if short else Refusal.FOREIGN, head.detail)
        missing = head.length + envelope.HEADER_BYTES - len(data)
        if missing > 0:
            return NotTaken(Refusal.TRUNCATED, f"{missing} of its bytes are missing")
        return None


class Follower(Copy):
    """Copies a graph.

    Attributes:
        store: The graph at `generation`; not to be changed by others.
    """

    def __init__(self, *, limits: codec.Limits = codec.DEFAULT_LIMITS) -> None:
        super().__init__(codec.KIND, limits)
        self.store = stores.Store()

    def _read(self, data: bytes) -> Read | NotTaken:
        head, patch = codec.header(data), codec.decode(data, limits=self.limits)
        if isinstance(patch, delta.Refused) or isinstance(head, delta.Refused):
            detail = patch.detail if isinstance(patch, delta.Refused) else "its header changed"
            return NotTaken(Refusal.CORRUPTED, detail)
        stream, patch.stream = patch.stream, None
        if stream is None or stream.source != SOURCE:
            return NotTaken(Refusal.FOREIGN, "it is no message about a graph to follow")
        return Read(stream.epoch, head.base_generation, stream.sequence, patch)

    def _begin(self, content: delta.Patch) -> int | NotTaken:
        if content.removed or content.cut:
            return NotTaken(Refusal.CORRUPTED, "a whole graph removes something")
        return self._advance(delta.diff(self.store.content(), (content.vertices, content.edges)))

    def _advance(self, content: delta.Patch) -> int | NotTaken:
        applied = self.store.apply(content)
        return (
            NotTaken(Refusal.INVALID, applied.detail, lost=True) if isinstance(applied, delta.Refused) else len(content)
        )


class EdgeFollower(Copy):
    """Copies a table of edges.

    Attributes:
        names: The name of each number.
    """

    def __init__(self, *, kinds: int, limits: codec.Limits = codec.DEFAULT_LIMITS) -> None:
        """Take edges of kinds below `kinds`."""
        super().__init__(edge_codec.KIND, limits)
        self._layers = edges.Layers(edges.Table())
        self.names: list[str] = []
        self._kinds = kinds

    @property
    def table(self) -> edges.Table:
        """The edges at `generation`."""
        return self._layers.table

    def _read(self, data: bytes) -> Read | NotTaken:
        message = edge_codec.decode(data, kinds=self._kinds, limits=self.limits)
        if isinstance(message, delta.Refused):
            return NotTaken(Refusal.CORRUPTED, message.detail)
        return Read(message.epoch, message.base, message.generation, message.change)

    def _begin(self, content: edges.Change) -> int | NotTaken:
        if len(content.removed) or content.known:
            return NotTaken(Refusal.CORRUPTED, "a whole table removes something, or does not name everything")
        self.names = list(content.names)
        # Its own copy: the columns of the message live as long as all of the message.
        self._layers = edges.Layers(edges.Table(content.ids.copy(), content.weights.copy()))
        return content.rows

    def _advance(self, content: edges.Change) -> int | NotTaken:
        if content.known != len(self.names):
            problem = f"it numbers names from {content.known} on, the copy has {len(self.names)}"
            return NotTaken(Refusal.INVALID, problem, lost=True)
        self._layers.take(content)
        self.names += content.names
        return content.rows
