"""A graph that a running scheduler handed out, as a cluster.

A file of one encoded patch comes in (`schemas/README.md` describes it), a `state.ClusterState` goes out: the nodes,
pods, namespaces and classes that the scheduler knew, and its edges, above all the nodes that it had promised to pods
without the cluster having confirmed it. Nothing is expanded, defaulted or looked up: it is what was decided on.

Invariant: nothing of a file is believed before the codec has checked it whole; whatever is wrong with it is one
`InputError` naming the file.
"""

from __future__ import annotations

import typing

from graphsched.base.values import errors, groups, nodes, places, pods, policies, selections
from graphsched.graph import admission, codec, delta, wire
from graphsched.sources import documents, state

BYTES_MAX = codec.DEFAULT_LIMITS.bytes_max
"""Of a file: the graph of 5,000 nodes and 100,000 pods is some 16 MB."""
_REMEDY = "capture it again, or read it with the version of graphsched that wrote it"


class Capture(typing.NamedTuple):
    """A whole graph.

    Attributes:
        generation: The scheduler's generation when it was taken.
        patch: Sets every vertex and edge, and removes nothing.
    """

    generation: int
    patch: delta.Patch


def is_capture(path: str) -> bool:
    """Whether the file begins as a captured graph does, whatever its name; standard input and folders do not.

    Raises:
        InputError: The file can not be read.
    """
    return path != documents.STDIN and documents.first_bytes(path, len(wire.IDENTIFIER)) == wire.IDENTIFIER


def decode(data: bytes) -> Capture | delta.Refused:
    """The graph in these bytes, or why they are none."""
    patch = codec.decode(data)
    if isinstance(patch, delta.Refused):
        return patch
    if patch.removed or patch.cut or patch.stream is not None:
        return delta.Refused("invalid", "it is a change to a graph, not a whole one")
    # What the codec takes may still be none that a graph holds, e.g. a pod promised to two nodes.
    problem = admission.problem(patch, lambda _pod: None)
    head = codec.header(data)
    if problem or isinstance(head, delta.Refused):
        return delta.Refused("invalid", problem or "")
    return Capture(head.base_generation, patch)


def load(path: str) -> Capture:
    """The graph in this file.

    Raises:
        InputError: The file can not be read, is too big, damaged, of a later version, or no whole graph.
    """
    found = decode(documents.bytes_of(path, bytes_max=BYTES_MAX))
    if isinstance(found, delta.Refused):
        raise errors.InputError(path, problem=found.detail, remedy=_REMEDY)
    return found


def read(path: str) -> state.ClusterState:
    """The cluster in this file; the order of the pods is that in which the scheduler first saw them.

    Raises:
        InputError: The file can not be read, is too big, damaged, of a later version, or no whole graph.
    """
    found = load(path)
    vertices = found.patch.vertices.values()
    return state.ClusterState(
        nodes=tuple(each for each in vertices if isinstance(each, nodes.Node)),
        pods=tuple(each for each in vertices if isinstance(each, pods.Pod)),
        namespaces=tuple(each for each in vertices if isinstance(each, nodes.Namespace)),
        priority_classes=tuple(each for each in vertices if isinstance(each, nodes.PriorityClass)),
        selections=tuple(each for each in vertices if isinstance(each, selections.Selection)),
        rules=tuple(each for each in vertices if isinstance(each, policies.Rule)),
        layers=tuple(each for each in vertices if isinstance(each, places.Place | groups.Group)),
        edges=found.patch.edges,
    )
