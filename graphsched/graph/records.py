"""The text of a place, a group, a rule or a node's budget, as it crosses a process border.

These are rich, and rare or shared by many, so each goes over the wire as canonical JSON beside its key. As with a pod's
spec, a text from outside is taken only if it is exactly what `encode` would have written for the value it reads as: a
field that this version does not know may be a condition of a rule.

Comes in: untrusted texts, from `unpacking`; vertices, from `packing`. Goes out: vertices or sentences. Invariant:
`decode` never raises, and what it returns has the key it was sent under and keeps the promises of its struct.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator

import msgspec

from graphsched.base.values import groups, keys, nodes, places, policies, quantities
from graphsched.graph import specs

Record = places.Place | groups.Group | policies.Rule

_ENCODER = msgspec.json.Encoder()
_DECODERS: dict[str, msgspec.json.Decoder[Record]] = {
    keys.Kind.PLACE.value: msgspec.json.Decoder(places.Place),
    keys.Kind.GROUP.value: msgspec.json.Decoder(groups.Group),
    keys.Kind.RULE.value: msgspec.json.Decoder(policies.Rule),
}
_SINCE = {"available": 4}
"""Field of a place → the format that brought it, as in `specs`."""
_BUDGET_DECODER = msgspec.json.Decoder(nodes.Budget)


def encode(record: Record) -> str:
    """The canonical text.

    Raises:
        ValueError: It holds something that JSON has no text for, e.g. a number that is not finite.
        OverflowError: A number does not fit 64 bits.
    """
    read = msgspec.json.decode(_ENCODER.encode(record), type=type(record))
    if read != record:
        message = f"{record.key}: a value of it has no text, e.g. a number that is not finite"
        raise ValueError(message)
    # What was read has the declared types: an integer that stands for a float would make another text.
    return _ENCODER.encode(read).decode()


def decode(key: str, text: str, version: int) -> Record | str:
    """The vertex of this key that the text stands for in that version of the format, or what is wrong with it."""
    decoder = _DECODERS.get(keys.kind_of(keys.VertexKey(key)))
    if decoder is None:
        return f'"{key[:80]}" is no key of a place, group or rule'
    record = specs.read(decoder, text, what=key[:80])
    if isinstance(record, str):
        return record
    problem = _problem(record)
    if problem:
        return f"{key[:80]}: {problem}"
    if record.key != key:
        return f"{key[:80]} is sent as {record.key[:80]}"
    if specs.canonical(record, _SINCE if isinstance(record, places.Place) else {}, version) != text:
        return f"{key[:80]} is not in canonical form, or of a later version"
    return record


def encode_budget(budget: nodes.Budget) -> str:
    """The canonical text of a node's budget.

    Raises:
        OverflowError: A number does not fit 64 bits.
    """
    return _ENCODER.encode(budget).decode()


def decode_budget(text: str) -> nodes.Budget | str:
    """The budget that the text stands for, or what is wrong with it."""
    budget = specs.read(_BUDGET_DECODER, text, what="a budget")
    if isinstance(budget, str):
        return budget
    lists = (budget.capacity, budget.ceilings, *(amounts for _, amounts in budget.reserved))
    if any(not -quantities.INT64_MAX <= amount <= quantities.INT64_MAX for each in lists for _, amount in each):
        return "a number in a budget does not fit 64 bits"
    holders = [holder for holder, _ in budget.reserved]
    if not all(map(specs.ascends, lists)) or not all(map(operator.lt, holders, holders[1:])):
        return "a budget is not sorted, or names something twice"
    if encode_budget(budget) != text:
        return "a budget is not in canonical form, or of a later version"
    return budget


def _problem(record: Record) -> str | None:
    if any(not -quantities.INT64_MAX <= number <= quantities.INT64_MAX for number in _numbers(record)):
        return "a number does not fit 64 bits"
    match record:
        case places.Place():
            if not all((specs.ascends(record.labels), specs.ascends(record.amounts), specs.ascends(record.available))):
                return "its labels or amounts are not sorted, or name something twice"
        case groups.Group():
            for workload in record.workloads:
                if specs.compares(workload.selector):
                    return "a selector of pods compares numbers"
        case policies.Rule():
            if specs.compares(record.match.pods):
                return "a selector of pods compares numbers"
            requirements = record.match.nodes.requirements if record.match.nodes else ()
            return next((problem for each in requirements if (problem := specs.comparison_problem(each))), None)
    return None


def _numbers(record: Record) -> Iterator[int]:
    match record:
        case places.Place():
            yield record.tier or 0
            yield from (amount for _, amount in (*record.amounts, *record.available))
        case groups.Group():
            for workload in record.workloads:
                yield from (dependency.cost_max or 0 for dependency in workload.dependencies)
        case policies.Rule():
            yield record.number
            yield record.priority
            yield record.weight
            yield (record.path.hops_max or 0) if record.path else 0
