"""The large graphs that rows share: their shape, edges and seed, fixed here."""

from __future__ import annotations

import typing

import numpy as np
import numpy.typing as npt

SEED = 6
DEGREE = 10
"""Edges that leave a vertex, on average."""
CLUSTER = 100
"""Vertices of one cluster; the first of them is its gateway."""

Ints = npt.NDArray[np.int64]


class Edges(typing.NamedTuple):
    """Edges as columns, sorted by source, then target; no two have equal ends."""

    vertices: int
    sources: Ints
    targets: Ints
    weights: npt.NDArray[np.float32]
    kinds: Ints


def random(vertices: int) -> Edges:
    """Ends are drawn evenly."""
    rng = np.random.default_rng(SEED)
    wanted = vertices * DEGREE
    drawn = rng.integers(0, vertices, (2, wanted + wanted // 20 + 100))
    pairs = np.unique(drawn[0] * vertices + drawn[1])
    # Which ones are left out is drawn as well, or the last sources would have fewer.
    pairs = np.sort(rng.permutation(pairs)[:wanted])
    return _edges(vertices, pairs, rng)


def ring(vertices: int) -> Edges:
    """A ring of clusters of `CLUSTER` vertices: edges within are drawn, and the gateways of neighbours are linked."""
    rng = np.random.default_rng(SEED)
    clusters = vertices // CLUSTER
    vertices = clusters * CLUSTER
    gateways = np.arange(clusters) * CLUSTER
    following = np.roll(gateways, -1)
    links = np.unique(np.concatenate([gateways * vertices + following, following * vertices + gateways]))
    wanted = vertices * DEGREE - len(links)
    sources = rng.integers(0, vertices, wanted + wanted // 10 + 100)
    targets = sources // CLUSTER * CLUSTER + rng.integers(0, CLUSTER, len(sources))
    pairs = np.setdiff1d(np.unique(sources * vertices + targets), links)
    pairs = np.sort(np.concatenate([rng.permutation(pairs)[:wanted], links]))
    return _edges(vertices, pairs, rng)


def _edges(vertices: int, pairs: Ints, rng: np.random.Generator) -> Edges:
    count = len(pairs)
    weights = rng.random(count).astype(np.float32)
    return Edges(vertices, pairs // vertices, pairs % vertices, weights, rng.integers(0, 3, count))


BY_NAME = {"random": random, "ring": ring}
