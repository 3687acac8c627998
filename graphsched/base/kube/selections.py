"""Services and controllers of the API as the selectors they hold.

Decoded objects come in, `values.selections.Selection` goes out; `sources` puts it into patches. Of a controller nothing
but its selector is decoded, so the thousands of ReplicaSets that a cluster keeps for its history cost little.

Invariant: a selector that can not be read selects nothing; kube-scheduler leaves it out as well when it spreads pods.
"""

from __future__ import annotations

import typing

from graphsched.base.kube import interning, naming, selectors, wire
from graphsched.base.values import errors, keys, labels, selections

_selectors: interning.Table[labels.Selector] = interning.Table()


class LabelsSpec(wire.Body, frozen=True, gc=False):
    """spec of an object that selects by labels alone."""

    selector: dict[str, str] | None = None


class ByLabels(wire.Body, frozen=True, gc=False):
    """A Service or a ReplicationController."""

    metadata: wire.Metadata = wire.Metadata()
    spec: LabelsSpec = LabelsSpec()


class SelectorSpec(wire.Body, frozen=True, gc=False):
    """spec of an object with a label selector."""

    selector: wire.LabelSelector | None = None


class BySelector(wire.Body, frozen=True, gc=False):
    """A ReplicaSet or a StatefulSet."""

    metadata: wire.Metadata = wire.Metadata()
    spec: SelectorSpec = SelectorSpec()


SERVICE = wire.Codec(selections.SERVICE, ByLabels)
REPLICATION_CONTROLLER = wire.Codec(selections.REPLICATION_CONTROLLER, ByLabels)
REPLICA_SET = wire.Codec(selections.REPLICA_SET, BySelector)
STATEFUL_SET = wire.Codec(selections.STATEFUL_SET, BySelector)
DEPLOYMENT = wire.Codec("Deployment", BySelector)
CODECS: dict[str, wire.Codec[typing.Any]] = {
    each.kind: each for each in (SERVICE, REPLICATION_CONTROLLER, REPLICA_SET, STATEFUL_SET)
}


def of_labels(kind: str) -> typing.Callable[[ByLabels], selections.Selection]:
    """Makes selections out of objects of this kind, which select by labels."""

    def convert(body: ByLabels) -> selections.Selection:
        chosen = body.spec.selector
        found = None
        if chosen is not None:
            pairs = chosen.items()
            found = labels.selector(labels.Requirement(key, labels.Operator.IN, (value,)) for key, value in pairs)
        return _selection(kind, body.metadata, found)

    return convert


def of_selector(kind: str) -> typing.Callable[[BySelector], selections.Selection]:
    """Makes selections out of objects of this kind, which have a label selector."""

    def convert(body: BySelector) -> selections.Selection:
        try:
            found = selectors.selector(body.spec.selector, "spec.selector")
        except errors.InputError:
            # kube-scheduler goes on without it, and so does every pod it was for.
            found = None
        return _selection(kind, body.metadata, found)

    return convert


CONVERTERS: dict[str, typing.Callable[[typing.Any], selections.Selection]] = {
    selections.SERVICE: of_labels(selections.SERVICE),
    selections.REPLICATION_CONTROLLER: of_labels(selections.REPLICATION_CONTROLLER),
    selections.REPLICA_SET: of_selector(selections.REPLICA_SET),
    selections.STATEFUL_SET: of_selector(selections.STATEFUL_SET),
}
"""Kind → what makes its decoded object a selection. Each raises `InputError` where the name is missing."""


def owner_of(metadata: wire.Metadata) -> str:
    """Key of the selection of the object's controller; empty where that is of no kind that selects pods."""
    for owner in metadata.owner_references or ():
        if owner.controller:
            key = keys.selection_key(owner.kind, naming.namespace_of(metadata), owner.name)
            known = selections.API_VERSIONS.get(owner.kind) == owner.api_version
            return key if known and selections.is_key(key) else ""
    return ""


def _selection(kind: str, metadata: wire.Metadata, selector: labels.Selector | None) -> selections.Selection:
    if not metadata.name:
        raise errors.InputError(kind, "metadata.name", problem="is missing", remedy="name the object")
    chosen = None if selector is None else _selectors(selector)
    return selections.Selection(kind, naming.namespace_of(metadata), metadata.name, chosen)
