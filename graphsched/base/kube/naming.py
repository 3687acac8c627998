"""The name of an object, and how a mistake in it is told.

For kinds of objects of which several vertices are made: each of their decoders begins with the name, and everything
that is wrong further in is wrong with the object of that name.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from graphsched.base.kube import complaints, wire
from graphsched.base.values import errors, keys


def name_of(kind: str, metadata: wire.Metadata) -> str:
    """The object's name.

    Raises:
        InputError: It has none.
    """
    if not metadata.name:
        raise errors.InputError(kind, "metadata.name", problem="is missing", remedy="name the object")
    return metadata.name


def namespace_of(metadata: wire.Metadata) -> str:
    """The namespace of an object of a kind that lives in one."""
    return metadata.namespace or keys.DEFAULT_NAMESPACE


@contextlib.contextmanager
def blaming(kind: str, metadata: wire.Metadata) -> Iterator[None]:
    """Whatever is wrong in here is wrong with this object."""
    try:
        yield
    except errors.InputError as error:
        told = {"metadata": {"name": metadata.name, "namespace": metadata.namespace}}
        raise error.within(complaints.title(kind, told)) from error
