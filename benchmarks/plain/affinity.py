"""Affinity edges as one would send them without the graph: objects, pickled, and the whole of them every time."""

from __future__ import annotations

import pickle
import typing


class Edge(typing.NamedTuple):
    """A rule reaches a node."""

    source: str
    target: str
    kind: int
    weight: float


Key = tuple[str, str, int]
Graph = dict[Key, float]
"""Rule, node and kind → weight."""


def encode(content: object) -> bytes:
    """The bytes of edges or of a graph."""
    return pickle.dumps(content, protocol=pickle.HIGHEST_PROTOCOL)


def decode(data: bytes) -> typing.Any:
    """What these bytes hold."""
    return pickle.loads(data)  # noqa: S301  made by this very process
