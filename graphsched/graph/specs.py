"""The text of a pod's spec, and of a selector, as it crosses a process border.

Replicas share their spec, so a patch carries each distinct one once, as canonical JSON. A text from outside is taken
only if it is exactly what `encode` would have written for the value it reads as: a field that this version does not
know may be a constraint, and passing over it would bind a pod where it must not run.

Comes in: untrusted texts, from `unpacking`; specs, from `packing`. Goes out: specs or sentences. Invariant: `decode`
never raises, and what it returns holds to the promises of `base.values.pods`.
"""

from __future__ import annotations

import itertools
import typing
from collections.abc import Iterator, Mapping

import msgspec

from graphsched.base.values import labels, nodes, pods, quantities

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder(pods.Spec)
_SELECTOR_DECODER = msgspec.json.Decoder(labels.Selector | None)
_SINCE = {"graph": 3, "guaranteed": 4}
"""Field of a spec → the format that brought it; the others were there from the first. Texts of older ones lack it."""
_LENGTH_MAX = 1 << 20
"""Bytes; the API server holds whole objects to 1.5 MiB."""


Value = typing.TypeVar("Value")


def read(decoder: msgspec.json.Decoder[Value], text: str, *, what: str) -> Value | str:
    """The value in an untrusted text, or a sentence that begins with `what`. No value is itself a text."""
    if len(text) > _LENGTH_MAX:
        return f"{what} has {len(text)} characters, at most {_LENGTH_MAX} are read"
    try:
        return decoder.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        return f"{what} can not be read: {error}"


def encode(spec: pods.Spec) -> str:
    """The canonical text."""
    return _ENCODER.encode(spec).decode()


def decode(text: str, version: int) -> pods.Spec | str:
    """The spec that this text stands for in that version of the format, or what is wrong with it."""
    spec = read(_DECODER, text, what="a spec")
    if isinstance(spec, str):
        return spec
    problem = _problem(spec)
    if problem:
        return problem
    if canonical(spec, _SINCE, version) != text:
        return "a spec is not in canonical form, or of a later version"
    return spec


def canonical(value: msgspec.Struct, since: Mapping[str, int], version: int) -> str:
    """The canonical text in that version of the format, in which fields that came `since` a later one are missing."""
    if all(version >= first for first in since.values()):
        return _ENCODER.encode(value).decode()
    names = (name for name in value.__struct_fields__ if since.get(name, 0) <= version)
    return _ENCODER.encode({name: getattr(value, name) for name in names}).decode()


def encode_selector(selector: labels.Selector | None) -> str:
    """The canonical text of a selector."""
    return _ENCODER.encode(selector).decode()


def decode_selector(text: str) -> labels.Selector | str | None:
    """The selector that this text stands for, or what is wrong with it."""
    selector = read(_SELECTOR_DECODER, text, what="a selector")
    if isinstance(selector, str):
        return selector
    if compares(selector):
        return "a selector of pods compares numbers"
    if encode_selector(selector) != text:
        return "a selector is not in canonical form, or of a later version"
    return selector


def _problem(spec: pods.Spec) -> str | None:
    if any(not -quantities.INT64_MAX <= number <= quantities.INT64_MAX for number in _numbers(spec)):
        return "a number in a spec does not fit 64 bits"
    for requirement in _requirements(spec):
        problem = comparison_problem(requirement)
        if problem:
            return problem
    if not ascends(spec.demand.amounts) or not ascends(spec.selector):
        return "a spec's amounts or selector are not sorted, or name something twice"
    return None


def compares(selector: labels.Selector | None) -> bool:
    """Whether it compares numbers, which selectors of nodes may and selectors of pods may not."""
    requirements = selector.requirements if selector else ()
    return any(each.operator in {labels.Operator.GT, labels.Operator.LT} for each in requirements)


def comparison_problem(requirement: labels.Requirement) -> str | None:
    """What is wrong with a requirement that compares numbers: it takes one value."""
    if requirement.operator in {labels.Operator.GT, labels.Operator.LT} and len(requirement.values) != 1:
        return f"a requirement {requirement.operator} on {requirement.key} compares with {requirement.values}"
    return None


def ascends(pairs: labels.Labels | nodes.Amounts) -> bool:
    """Whether the names are sorted and each there once."""
    return all(first[0] < second[0] for first, second in itertools.pairwise(pairs))


def _numbers(spec: pods.Spec) -> Iterator[int]:
    yield spec.demand.scored_cpu
    yield spec.demand.scored_memory
    yield spec.image_containers
    for _, amount in spec.demand.amounts:
        yield amount
    for toleration in spec.tolerations:
        yield toleration.seconds or 0
    for port in spec.ports:
        yield port.port
    for preferred in spec.preferred:
        yield preferred.weight
    for wish in (*spec.preferred_pod_affinity, *spec.preferred_pod_anti_affinity):
        yield wish.weight
    for constraint in spec.spread:
        yield constraint.max_skew
        yield constraint.min_domains
    if spec.gpu is not None:
        yield spec.gpu.count
        yield spec.gpu.milli


def _requirements(spec: pods.Spec) -> Iterator[labels.Requirement]:
    for place in (*(spec.affinity or ()), *(preferred.term for preferred in spec.preferred)):
        yield from place.expressions
        yield from place.fields
    wishes = (*spec.preferred_pod_affinity, *spec.preferred_pod_anti_affinity)
    for term in (*spec.pod_affinity, *spec.pod_anti_affinity, *(wish.term for wish in wishes)):
        for selector in (term.selector, term.namespace_selector):
            yield from selector.requirements if selector else ()
    for constraint in spec.spread:
        yield from constraint.selector.requirements if constraint.selector else ()
