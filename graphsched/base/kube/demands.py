"""What a pod asks of the graph, read from its annotations.

Decoded annotations come in, a `pods.GraphDemand` goes out; `pods` puts it into the spec. What each annotation means
stands in docs/graph.md.

    graphsched.io/near: topology.kubernetes.io/zone=a, node/n1, place/slurm/leaf-12
    graphsched.io/peers: cache;rate=5;maxLatencyMs=2, db/postgres, app=queue+tier=back;minBandwidthMbps=1000
    graphsched.io/max-latency-ms: "5"
    graphsched.io/min-bandwidth-mbps: "1000"
    graphsched.io/depends-on: cache, db/postgres

A list may be JSON as well: of texts, or for `peers` of objects with the fields `service` or `selector`, `namespace`,
`rate`, `maxLatencyMs`, `minBandwidthMbps` and `maxNetworkCost`.

Invariant: an annotation that can not be read makes a demand that nothing can meet, with the reason in it. The pod is
decoded all the same, since one that runs must be counted whatever is written on it.
"""

from __future__ import annotations

import json
import math
import typing

from graphsched.base.kube import annotated, selectors
from graphsched.base.values import errors, keys, labels, pods

TEXT_MAX = 16_384
"""Characters of one annotation."""
ENTRIES_MAX = 32
"""Targets, peers or names that one annotation lists."""

_PEER_FIELDS = ("service", "selector", "namespace", "rate", "maxLatencyMs", "minBandwidthMbps", "maxNetworkCost")
_NEAR_REMEDY = "e.g. topology.kubernetes.io/zone=a, node/n1 or place/slurm/leaf-12"
_PEER_REMEDY = "e.g. cache;rate=5;maxLatencyMs=2, db/postgres or app=queue"


def demand(noted: annotated.Annotations, namespace: str) -> pods.GraphDemand | None:
    """What the annotations of a pod in this namespace ask for; None where they ask for nothing."""
    texts = (noted.near, noted.peers, noted.max_latency_ms, noted.min_bandwidth_mbps, noted.depends_on)
    if all(text is None for text in texts):
        return None
    try:
        return pods.GraphDemand(
            near=tuple(_target(entry) for entry in _texts(noted.near, "near", _NEAR_REMEDY)),
            peers=tuple(_peer(entry, namespace) for entry in _entries(noted.peers, "peers", _PEER_REMEDY)),
            latency_ms_max=_limit(noted.max_latency_ms, "max-latency-ms", "milliseconds, e.g. 2.5"),
            bandwidth_mbps_min=_limit(noted.min_bandwidth_mbps, "min-bandwidth-mbps", "megabits a second, e.g. 1000"),
            depends_on=tuple(_texts(noted.depends_on, "depends-on", "names, e.g. cache, db/postgres")),
        )
    except errors.InputError as error:
        return pods.GraphDemand(problem=str(error))


def _wrong(name: str, problem: str, remedy: str) -> errors.InputError:
    return errors.InputError(f"annotation {annotated.PREFIX}{name}", problem=problem, remedy=f"use {remedy}")


def _entries(text: str | None, name: str, remedy: str) -> list[typing.Any]:
    """The list in the annotation: texts, or whatever JSON holds."""
    if text is None:
        return []
    if len(text) > TEXT_MAX:
        raise _wrong(name, f"is longer than {TEXT_MAX} characters", remedy)
    stripped = text.strip()
    if stripped[:1] in ("[", "{"):
        try:
            decoded = json.loads(stripped)
        except (ValueError, RecursionError) as error:
            raise _wrong(name, f"is no JSON: {error}", remedy) from error
        found = decoded if isinstance(decoded, list) else [decoded]
    else:
        found = [part.strip() for part in stripped.split(",")]
    if not found or "" in found:
        raise _wrong(name, "is empty, or an entry of it is", remedy)
    if len(found) > ENTRIES_MAX:
        raise _wrong(name, f"has more than {ENTRIES_MAX} entries", "fewer of them")
    return found


def _texts(text: str | None, name: str, remedy: str) -> list[str]:
    found = _entries(text, name, remedy)
    if not all(isinstance(entry, str) for entry in found):
        raise _wrong(name, "is no list of texts", remedy)
    return found


def _target(entry: str) -> keys.VertexKey:
    """A node, a place, or the domain of a label."""
    kind, slash, name = entry.partition("/")
    if slash and name and kind in (keys.Kind.NODE, keys.Kind.PLACE) and "=" not in entry:
        return keys.vertex_key(keys.Kind(kind), name)
    label, equals, value = entry.partition("=")
    if equals and value and selectors.is_label_key(label):
        return keys.domain_key(label, value)
    raise _wrong("near", f'"{entry}" is neither a node label with a value nor a node or a place', _NEAR_REMEDY)


def _peer(entry: object, namespace: str) -> pods.Peer:
    fields: dict[str, object] = {}
    if isinstance(entry, str):
        whom, *options = (part.strip() for part in entry.split(";"))
        fields["selector" if "=" in whom else "service"] = whom
        for option in options:
            field, equals, value = option.partition("=")
            if not equals:
                raise _wrong("peers", f'"{option}" of "{entry}" gives no value', _PEER_REMEDY)
            if field in fields or field in ("service", "selector", "namespace"):
                raise _wrong("peers", f'"{entry}" says {field} twice', _PEER_REMEDY)
            fields[field] = value
    elif isinstance(entry, dict):
        fields = entry
    else:
        raise _wrong("peers", f"{entry!r} is neither a text nor an object", _PEER_REMEDY)
    unknown = next((field for field in fields if field not in _PEER_FIELDS), None)
    if unknown is not None:
        raise _wrong("peers", f'"{unknown}" is unknown', f"some of {', '.join(_PEER_FIELDS)}")
    if ("service" in fields) == ("selector" in fields):
        raise _wrong("peers", "an entry names neither or both of service and selector", _PEER_REMEDY)
    cost = _amount(fields.get("maxNetworkCost"), "maxNetworkCost")
    service, within = _service(fields, namespace)
    return pods.Peer(
        namespace=within,
        service=service,
        selector=_selector(fields["selector"]) if "selector" in fields else None,
        rate=_rate(fields.get("rate")),
        latency_ms_max=_amount(fields.get("maxLatencyMs"), "maxLatencyMs"),
        bandwidth_mbps_min=_amount(fields.get("minBandwidthMbps"), "minBandwidthMbps"),
        cost_max=cost,
    )


def _service(fields: dict[str, object], namespace: str) -> tuple[str, str]:
    """Name of the Service, empty where a selector is given, and the namespace."""
    within = fields.get("namespace", namespace)
    service = fields.get("service", "")
    if not isinstance(within, str) or not isinstance(service, str):
        raise _wrong("peers", "service and namespace are not both texts", _PEER_REMEDY)
    outer, slash, inner = service.partition("/")
    if slash:
        within, service = outer, inner
    if not within or "/" in service or ("service" in fields and not service):
        raise _wrong("peers", f'"{fields.get("service", "")}" is no Service', _PEER_REMEDY)
    return service, within


def _selector(given: object) -> labels.Selector:
    if isinstance(given, str):
        pairs = [part.partition("=")[::2] for part in given.split("+")]
    elif isinstance(given, dict) and given:
        pairs = [(str(key), str(value)) for key, value in given.items()]
    else:
        pairs = [("", "")]
    for key, value in pairs:
        if not selectors.is_label_key(key) or not value or not selectors.is_label_value(value):
            raise _wrong("peers", f'"{given}" is no selector', "labels with their values, e.g. app=queue+tier=back")
    return labels.selector(labels.Requirement(key, labels.Operator.IN, (value,)) for key, value in pairs)


def _rate(given: object) -> float:
    rate = 1.0 if given is None else _amount(given, "rate")
    if not rate:
        raise _wrong("peers", "rate is 0", "a positive number, e.g. calls a second")
    return rate


def _amount(given: object, field: str) -> float | None:
    if given is None:
        return None
    found = _number(given)
    if found is None:
        raise _wrong("peers", f"{field}: {given!r} is not a number", "a number of at least 0")
    return found


def _limit(text: str | None, name: str, remedy: str) -> float | None:
    if text is None:
        return None
    found = _number(text)
    if found is None:
        raise _wrong(name, f'"{text[:40]}" is not a number of at least 0', remedy)
    return found


def _number(given: object) -> float | None:
    """A finite number of at least 0; None for anything else."""
    if isinstance(given, bool) or not isinstance(given, (str, int, float)):
        return None
    try:
        found = float(given)
    except (ValueError, OverflowError):
        return None
    return found if math.isfinite(found) and found >= 0 else None
