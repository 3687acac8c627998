"""Turns a decoder's "Expected `str`, got `int` - at `$.spec.containers[...].name`" into the line a user can act on.

The decoder does not say which key of a map it means, and knows no bound on numbers. So the object comes in a second
time, after the failure, and an `InputError` with the exact place goes out; time does not matter any more.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from graphsched.base.values import errors, keys, quantities

_TEXT_MAPS = frozenset({"labels", "annotations", "nodeSelector", "matchLabels", "requests", "limits", "allocatable"})
"""Maps from text to text. A null in one is a value somebody forgot, not a field left out: `gpu:` in a node selector
must not vanish."""
_CLUSTER_SCOPED = frozenset(
    {
        "Node",
        "Namespace",
        "PriorityClass",
        "RuntimeClass",
        "NetworkLink",
        "GraphPolicy",
        "HyperNode",
        "Topology",
        "ClusterNetworkTopology",
        "NodeResourceTopology",
    }
)
_BITS_SHOWN_MAX = 256
"""Longer numbers make no readable line, and turning them into text takes time that grows with the square."""
_MESSAGE = re.compile(r"(?P<problem>.*?)(?: - at (?:`(?P<key>key|value)` in )?`\$(?P<path>.*)`)?", re.DOTALL)
_SEGMENT = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")
_GOT = re.compile(r"Expected `(?P<expected>[^`]+)`, got `(?P<got>[^`]+)`")
_NAMES = {
    "str": "a text",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a mapping",
    "null": "nothing",
    "datetime": "a time",
    "date": "a date",
}


def title(kind: str, manifest: object) -> str:
    """How users write the object: `Pod "default/web"`, or the kind alone when it has no readable name."""
    metadata = manifest.get("metadata") if isinstance(manifest, dict) else None
    if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
        return kind
    namespace = metadata.get("namespace")
    if kind not in _CLUSTER_SCOPED:
        namespace = namespace if isinstance(namespace, str) and namespace else keys.DEFAULT_NAMESPACE
        return f'{kind} "{namespace}/{metadata["name"]}"'
    return f'{kind} "{metadata["name"]}"'


def without_nulls(manifest: object) -> object:
    """A copy in which fields that are null are absent, as the API reads them."""
    if isinstance(manifest, dict):
        return {
            key: value if key in _TEXT_MAPS else without_nulls(value)
            for key, value in manifest.items()
            if value is not None
        }
    if isinstance(manifest, list):
        return [without_nulls(value) for value in manifest]
    return manifest


def wrong_type(
    kind: str,
    body: type[msgspec.Struct],
    manifest: object,
    error: msgspec.ValidationError,
) -> errors.InputError:
    """The mistake behind `error`, which converting `manifest` to `body` raised."""
    matched = _MESSAGE.fullmatch(str(error))
    problem = matched["problem"] if matched else str(error)
    field = field_of(body, without_nulls(manifest), error)
    told = _GOT.fullmatch(problem)
    if told is None:
        return errors.InputError(
            title(kind, manifest), field, problem=problem, remedy="see the Kubernetes API reference"
        )
    wanted = [name for name in told["expected"].split(" | ") if name != "null"]
    if len(wanted) > 1:  # the one union in the API's types
        return errors.InputError(
            title(kind, manifest), field, problem="is not a quantity", remedy="use e.g. 12, 500m, 1.5Gi"
        )
    expected = _NAMES.get(wanted[0], wanted[0])
    got = _NAMES.get(told["got"], told["got"])
    subject = "a key is" if matched is not None and matched["key"] == "key" else "is"
    remedy = (
        "put it in quotes" if wanted == ["str"] and told["got"] in {"int", "float", "bool"} else f"write {expected}"
    )
    return errors.InputError(title(kind, manifest), field, problem=f"{subject} {got}, not {expected}", remedy=remedy)


def field_of(body: type[msgspec.Struct], tree: object, error: msgspec.ValidationError) -> str:
    """Path of the field that is wrong, keys of maps included; `error` is what converting `tree` to `body` raised."""
    matched = _MESSAGE.fullmatch(str(error))
    path = (matched["path"] or "") if matched else ""
    return _locate(body, tree, list(_SEGMENT.findall(path)), str(error))


def too_wide(place: str, body: msgspec.Struct) -> errors.InputError:
    """The mistake of an object that was decoded and holds an integer of more than 64 bits; `place` names the object."""
    field, number = next(_wide(msgspec.to_builtins(body), ""), ("", 0))
    shown = str(number) if number.bit_length() <= _BITS_SHOWN_MAX else "a number"
    remedy = f"use at most {quantities.INT64_MAX}"
    return errors.InputError(place, field, problem=f"{shown} does not fit 64 bits", remedy=remedy)


def _wide(value: object, path: str) -> Iterator[tuple[str, int]]:
    """Path and value of each integer of more than 64 bits."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _wide(child, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, child in enumerate(value):
            yield from _wide(child, f"{path}[{index}]")
    elif isinstance(value, int) and abs(value) > quantities.INT64_MAX:
        yield path, value


def _locate(body: type[msgspec.Struct], manifest: object, segments: list[tuple[str, str]], message: str) -> str:
    """The path with each unknown map key filled in: the one that still fails when it is the only one left."""
    path = ""
    trail: list[str | int] = []
    for name, index in segments:
        step: str | int = name or index
        if index == "...":
            failing = (
                key for key in _keys(_follow(manifest, trail)) if _fails(body, _only(manifest, trail, key), message)
            )
            step = next(failing, index)
        elif index:
            step = int(index)
        trail.append(step)
        path += f"[{step}]" if isinstance(step, int) else f".{step}" if path else step
    return path


def _keys(container: object) -> Iterator[str]:
    if isinstance(container, dict):
        yield from (key for key in container if isinstance(key, str))


def _follow(manifest: object, trail: list[str | int]) -> object:
    for step in trail:
        if isinstance(manifest, dict) and isinstance(step, str):
            manifest = manifest.get(step)
        elif isinstance(manifest, list) and isinstance(step, int) and step < len(manifest):
            manifest = manifest[step]
        else:
            return None
    return manifest


def _only(manifest: object, trail: list[str | int], key: str) -> object:
    """The manifest with nothing beside `key` in the map at `trail`."""
    if not trail:
        return {key: manifest[key]} if isinstance(manifest, dict) else manifest
    step, rest = trail[0], trail[1:]
    if isinstance(manifest, dict) and isinstance(step, str):
        return {**manifest, step: _only(manifest[step], rest, key)}
    if isinstance(manifest, list) and isinstance(step, int):
        return [*manifest[:step], _only(manifest[step], rest, key), *manifest[step + 1 :]]
    return manifest


def _fails(body: type[msgspec.Struct], manifest: object, message: str) -> bool:
    try:
        msgspec.convert(manifest, body)
    except msgspec.ValidationError as error:
        return str(error) == message
    return False
