"""Values with few possibilities, written out once and drawn as one.

hypothesis takes some ten microseconds for each draw, and a pod with its terms is a hundred of them: most of the time
of a property went into drawing. Comes in: the options of each part. Goes out: a strategy that draws once, with the
weights that drawing part by part would have had, and shrinks towards the first options.
"""

import itertools
import typing
from collections.abc import Callable, Iterable, Sequence

from hypothesis import strategies as st

from graphsched.base.values import labels

T = typing.TypeVar("T")
WRITTEN_OUT_MAX = 5000
"""So many values at most are made before one is drawn."""


def every(make: Callable[..., T], *options: Iterable[typing.Any]) -> st.SearchStrategy[T]:
    """One of all values that `make` gives for these options; what is named twice comes twice as often."""
    found = [make(*chosen) for chosen in itertools.product(*options)]
    assert len(found) <= WRITTEN_OUT_MAX
    return st.sampled_from(found)


def up_to(most: int, parts: Sequence[T]) -> list[tuple[T, ...]]:
    """All tuples of distinct parts, in the order given, of at most so many."""
    return [chosen for size in range(most + 1) for chosen in itertools.combinations(parts, size)]


def labelled(names: Sequence[str], values: Sequence[str]) -> st.SearchStrategy[labels.Labels]:
    """Labels with any of these names and values, each name absent half of the time."""
    return every(
        lambda *chosen: labels.from_mapping({name: value for name, value in zip(names, chosen, strict=True) if value}),
        *[("",) * len(values) + tuple(values)] * len(names),
    )
