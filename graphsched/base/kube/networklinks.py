"""NetworkLinks, our own kind of object: one link between two ends, as a description.

    spec:
      endpoints: [{node: n1}, {place: rail-3, kind: switch}]      # or {domain: {label: …, value: …}}
      latencyMs: 0.2
      bandwidthMbps: 100000
      state: Up                                                   # or Degraded, Down
      directed: false
    status: {health: 0.9, latencyMs: 0.3, observedAt: …}          # any agent may write it

What is not said is not known: a link without a latency is neither near nor far. A link that is down is part of no way;
it stays in the graph, since a node all of whose links are down is cut off, and one that has none is not.
"""

from __future__ import annotations

import math
import re

from graphsched.base.kube import naming, wire
from graphsched.base.values import descriptions, errors, keys, places, relations

KIND = "NetworkLink"
DEGRADED = 0.5
"""Health of a link that somebody calls degraded and nobody has measured."""
_HEALTHS = {"Up": 1.0, "Degraded": DEGRADED, "Down": relations.DOWN}
_DOWN_RANK = 1 << 20
"""Beyond the ranks that any source gives to what is up."""
NAME_MAX = 253
_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?")
_NAME_RULE = "use letters, digits and - _ . / and begin and end with a letter or digit"


class Domain(wire.Body, frozen=True, gc=False):
    """`domain` of an endpoint."""

    label: str = ""
    value: str = ""


class Endpoint(wire.Body, frozen=True, gc=False):
    """An entry of spec.endpoints, one of three kinds."""

    node: str = ""
    domain: Domain | None = None
    place: str = ""
    kind: str = ""


class Spec(wire.Body, frozen=True, gc=False):
    """spec of a NetworkLink."""

    endpoints: list[Endpoint] | None = None
    latency_ms: float | None = None
    bandwidth_mbps: float | None = None
    state: str = "Up"
    directed: bool = False


class Status(wire.Body, frozen=True, gc=False):
    """status of a NetworkLink: what agents have seen."""

    health: float | None = None
    loss_percent: float | None = None
    errors_per_second: float | None = None
    latency_ms: float | None = None
    observed_at: wire.Time | None = None


class NetworkLink(wire.Body, frozen=True, gc=False):
    """A NetworkLink."""

    metadata: wire.Metadata = wire.Metadata()
    spec: Spec = Spec()
    status: Status = Status()


CODEC = wire.Codec(KIND, NetworkLink)


def describe(body: NetworkLink) -> descriptions.Description:
    """What the object says.

    Raises:
        InputError: Its ends are not two, or a field is not what it should be.
    """
    name = naming.name_of(KIND, body.metadata)
    with naming.blaming(KIND, body.metadata):
        return _describe(name, body.spec, body.status)


def _describe(name: str, spec: Spec, status: Status) -> descriptions.Description:
    ends = spec.endpoints or []
    if len(ends) != 2:
        raise errors.InputError("spec.endpoints", problem=f"holds {len(ends)}, not two", remedy="name both ends")
    mentioned: list[places.Place] = []
    first, second = (_end(end, f"spec.endpoints[{index}]", mentioned) for index, end in enumerate(ends))
    if first == second:
        raise errors.InputError("spec.endpoints", problem="are one and the same", remedy="name two different ends")
    by = f"networklink/{name}"
    link = _link(by, spec, status)
    # Of two links between the same ends the one that speaks of this direction alone knows better. One that is down
    # takes nothing from one that is up.
    rank = (0 if spec.directed else 1) + (_DOWN_RANK if link.down else 0)
    ties = [descriptions.Tie(first, second, link, rank)]
    if not spec.directed:
        ties.append(descriptions.Tie(second, first, link, rank))
    return descriptions.Description(by, mentioned=tuple(mentioned), ties=tuple(ties))


def _link(by: str, spec: Spec, status: Status) -> relations.Link:
    """The link as it is now."""
    if spec.state not in _HEALTHS:
        problem = f'"{spec.state}" is not known'
        raise errors.InputError("spec.state", problem=problem, remedy="use Up, Degraded or Down")
    latency = _measure(spec.latency_ms, "spec.latencyMs")
    bandwidth = _measure(spec.bandwidth_mbps, "spec.bandwidthMbps")
    seen = _seen(status)
    return relations.Link(
        latency_ms=latency,
        bandwidth_mbps=bandwidth,
        health=_HEALTHS[spec.state],
        by=by,
        # Of what is measured while it is down, that counts which its status still says when it is up again.
        seen=None if spec.state == "Down" else seen,
    )


def _seen(status: Status) -> relations.Observation | None:
    """What agents have measured; None where they have not."""
    if status.health is not None and not 0.0 <= status.health <= 1.0:
        raise errors.InputError("status.health", problem=f"{status.health} is not from 0 to 1", remedy="write e.g. 0.9")
    lost = _measure(status.loss_percent, "status.lossPercent")
    seen = relations.Observation(
        at=0.0 if status.observed_at is None else max(0.0, status.observed_at.timestamp()),
        errors_per_s=_measure(status.errors_per_second, "status.errorsPerSecond"),
        loss=None if lost is None else lost / 100.0,
        latency_ms=_measure(status.latency_ms, "status.latencyMs"),
        health=status.health,
    )
    measured = (seen.errors_per_s, seen.loss, seen.latency_ms, seen.health)
    return None if all(each is None for each in measured) else seen


def _measure(number: float | None, field: str) -> float | None:
    if number is not None and not (math.isfinite(number) and number >= 0):
        raise errors.InputError(field, problem=f"{number} is not zero or more", remedy="write e.g. 0.5")
    return number


def _end(end: Endpoint, field: str, mentioned: list[places.Place]) -> descriptions.End:
    """One end; a place among them is noted."""
    given = [name for name, value in (("node", end.node), ("domain", end.domain), ("place", end.place)) if value]
    if len(given) != 1:
        problem = f"names {' and '.join(given)} at once" if given else "names nothing"
        raise errors.InputError(field, problem=problem, remedy="give one of node, domain and place")
    if end.node:
        return keys.node_key(_name(end.node, f"{field}.node"))
    if end.domain is not None:
        label, value = end.domain.label, end.domain.value
        if not label or not value:
            problem = "needs label and value"
            remedy = "write e.g. {label: topology.kubernetes.io/zone, value: zone-a}"
            raise errors.InputError(f"{field}.domain", problem=problem, remedy=remedy)
        # A path is the domain's own name; a bare value may stand for several domains.
        return keys.domain_key(label, value) if {"/", ":"} & set(value) else descriptions.Domain(label, value)
    place = places.Place(_name(end.place, f"{field}.place"), kind=end.kind or "switch")
    mentioned.append(place)
    return place.key


def _name(name: str, field: str) -> str:
    if len(name) > NAME_MAX or not _NAME.fullmatch(name):
        raise errors.InputError(field, problem=f'"{name[:NAME_MAX]}" is no name', remedy=_NAME_RULE)
    return name
