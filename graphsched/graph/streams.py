"""Where each source stands: which patches are new, which are repeats, and which must not be taken.

Sources write concurrently and never wait for each other; each numbers its patches 1, 2, 3 … within an epoch, one life
of the source. A patch that was taken before is passed over, one that leaves a gap is refused so that the source sends
its full state again, and one of a life nobody announced is refused as well: it may be a ghost of a restarted process.

Comes in: `delta.Stream` of each patch, from `store`, and announcements, from whoever runs the sources. Goes out: an
admission or a refusal. Invariant: `check` changes nothing; only `advance`, after the patch was applied, does.
"""

from __future__ import annotations

import enum

import msgspec

from graphsched.graph import delta

SOURCES_MAX = 1024
"""A cluster has a handful of watches and one agent a node speaks through a few gateways; more is a leak of names."""


class Admission(enum.Enum):
    """What to do with a patch that is not refused."""

    NEW = "new"
    """Apply it, then `advance`."""
    REPEATED = "repeated"
    """It was applied before: do nothing, then `advance` to have it counted."""


class Position(msgspec.Struct, frozen=True, gc=False):
    """How far a source has come.

    Attributes:
        epoch: Its present life.
        sequence: Of the last patch that was applied; 0 before the first.
        repeated: Patches of any of its lives that came again.
    """

    epoch: int
    sequence: int = 0
    repeated: int = 0


class StreamTable:
    """The position of every source that has been announced."""

    def __init__(self, *, sources_max: int = SOURCES_MAX) -> None:
        """At most `sources_max` sources are known at a time; further ones are refused."""
        self._sources_max = sources_max
        self._positions: dict[str, Position] = {}

    def position(self, source: str) -> Position | None:
        """How far the source has come; None for one that was not announced."""
        return self._positions.get(source)

    def open(self, source: str, epoch: int) -> delta.Refused | None:
        """The source says hello: it starts this life with sequence 1.

        Saying hello again in the same life changes nothing.
        """
        known = self._positions.get(source)
        if known is not None and known.epoch == epoch:
            return None
        return self._move(source, epoch, 0)

    def resync(self, source: str, epoch: int, sequence: int) -> delta.Refused | None:
        """The source's full state as of this sequence has been applied: the next patch is the one after.

        A full state older than what was applied already is refused as `invalid`: it would bring back what is gone.
        """
        known = self._positions.get(source)
        if known is not None and known.epoch == epoch and sequence < known.sequence:
            return delta.Refused(
                "invalid",
                f"{source}: the full state is of sequence {sequence}, {known.sequence} is applied: send a newer one",
            )
        if sequence < 0:
            return delta.Refused("invalid", f"{source}: sequence {sequence} is negative: count from 1")
        return self._move(source, epoch, sequence)

    def close(self, source: str) -> bool:
        """Forget the source, whose patches are refused from now on; returns whether it was known."""
        return self._positions.pop(source, None) is not None

    def check(self, stream: delta.Stream) -> Admission | delta.Refused:
        """What to do with a patch at this position; changes nothing."""
        known = self._positions.get(stream.source)
        if known is None:
            return delta.Refused("epoch", f"{stream.source}: the source is not known: it must say hello first")
        if stream.epoch != known.epoch:
            return delta.Refused(
                "epoch",
                f"{stream.source}: epoch {stream.epoch} is not its present one, {known.epoch}: it must say hello first",
            )
        if stream.sequence < 1:
            return delta.Refused(
                "invalid", f"{stream.source}: sequence {stream.sequence} is not positive: count from 1"
            )
        if stream.sequence <= known.sequence:
            return Admission.REPEATED
        if stream.sequence > known.sequence + 1:
            return delta.Refused(
                "gap",
                f"{stream.source}: sequence {stream.sequence} follows {known.sequence}: send the full state again",
            )
        return Admission.NEW

    def advance(self, stream: delta.Stream) -> None:
        """The patch at this position has been dealt with: a new one was applied, a repeated one passed over.

        Raises:
            ValueError: `check` refuses this position: a bug of the caller.
        """
        admitted = self.check(stream)
        if isinstance(admitted, delta.Refused):
            message = f"a refused patch is no progress: {admitted.detail}"
            raise ValueError(message)  # noqa: TRY004  the value is at fault, not the type
        known = self._positions[stream.source]
        if admitted is Admission.NEW:
            self._positions[stream.source] = Position(known.epoch, stream.sequence, known.repeated)
        else:
            self._positions[stream.source] = Position(known.epoch, known.sequence, known.repeated + 1)

    def _move(self, source: str, epoch: int, sequence: int) -> delta.Refused | None:
        known = self._positions.get(source)
        if known is None and len(self._positions) >= self._sources_max:
            return delta.Refused(
                "invalid",
                f"{source}: {self._sources_max} sources are known already: close one that is gone",
            )
        self._positions[source] = Position(epoch, sequence, known.repeated if known else 0)
        return None
