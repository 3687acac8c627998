"""Reservations by settings: what is kept for whom on which nodes, without an annotation on each of them.

Comes in: groups of settings whose fields are of the right type. Goes out: what `sources.reserving` puts into nodes, or
an `InputError` with field, problem and remedy.
"""

from __future__ import annotations

import msgspec

from graphsched.app.groups import Group
from graphsched.base.kube import budgets, selectors
from graphsched.base.values import errors, labels
from graphsched.graph import admission
from graphsched.sources import reserving

RESERVATIONS_MAX = 256
"""Each is compared with every node that comes or changes."""


class ReservationSettings(Group, frozen=True):
    """What is kept for one holder on some nodes.

    Attributes:
        holder: A namespace, or `namespace/workload`.
        amounts: Resource → quantity.
        node_selector: Labels that a node has; none for all nodes.
    """

    holder: str
    amounts: dict[str, str | int | float]
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)


class ResourceSettings(Group, frozen=True):
    """What may be used of nodes, beside what their annotations say; see docs/graph.md.

    Attributes:
        reservations: What is kept for whom: a list of `holder` (a namespace, or `namespace/workload`), `amounts`
            (resource → quantity) and `nodeSelector` (labels that a node has; none for all). Of several for one holder
            the first counts that matches a node, and before it the node's own annotation.
    """

    reservations: tuple[ReservationSettings, ...] = ()

    @property
    def kept(self) -> tuple[reserving.Kept, ...]:
        """As nodes are given them; they were checked.

        Raises:
            InputError: They are not what they should be.
        """
        return tuple(_kept(each, f"{_FIELD}[{index}]") for index, each in enumerate(self.reservations))


_FIELD = "resources.reservations"


def check(settings: ResourceSettings, *, place: str) -> None:
    """Raise where a reservation is not what it should be, or can never count.

    Raises:
        InputError: It is so; `place` is where the settings are from.
    """
    if len(settings.reservations) > RESERVATIONS_MAX:
        raise errors.InputError(
            place,
            _FIELD,
            problem=f"are {len(settings.reservations)}, at most {RESERVATIONS_MAX} are read",
            remedy="select more nodes with each",
        )
    try:
        kept = settings.kept
    except errors.InputError as error:
        raise error.within(place) from error
    first: dict[tuple[str, labels.Labels], int] = {}
    for index, each in enumerate(kept):
        before = first.setdefault((each.holder, each.node_labels), index)
        if before != index:
            raise errors.InputError(
                place,
                f"{_FIELD}[{index}]",
                problem=f'is for "{each.holder}" and the nodes of [{before}], which counts alone',
                remedy="put both into one",
            )


def _kept(each: ReservationSettings, field: str) -> reserving.Kept:
    for key, value in each.node_selector.items():
        for what, text, valid in (
            ("no label key", key, selectors.is_label_key),
            ("no label value", value, selectors.is_label_value),
        ):
            if not valid(text):
                problem = f'"{text[:100]}" is {what}'
                raise errors.InputError(f"{field}.nodeSelector", problem=problem, remedy="e.g. tier: gold")
    if not each.amounts:
        raise errors.InputError(f"{field}.amounts", problem="is empty", remedy="name a resource, e.g. cpu: 2")
    budgets.require_holder(each.holder, f"{field}.holder")
    amounts = budgets.kept(each.amounts, f"{field}.amounts")
    for resource, amount in amounts:
        if amount > admission.AMOUNT_MAX:
            # The graph could hold no node that keeps so much.
            problem = f"{each.amounts[resource]} is more than any node has"
            raise errors.InputError(f"{field}.amounts.{resource}", problem=problem, remedy="keep less")
    return reserving.Kept(labels.from_mapping(each.node_selector), each.holder, amounts)
