"""GraphPolicy objects of the API as rules.

A decoded object comes in, `values.policies.Rule`s go out, and of each rule that can not be one, why. The API server has
checked the object against its schema; what a manifest says is checked here, and what no schema can tell (a selector, a
network) is a problem of that rule alone, since the other rules are somebody's as well.
"""

from __future__ import annotations

import ipaddress
import typing

import msgspec

from graphsched.base.kube import selectors, wire
from graphsched.base.values import errors, keys, labels, policies

GROUP = "graphsched.io"
KIND = "GraphPolicy"
PATH = f"/apis/{GROUP}/v1alpha1/graphpolicies"
API_VERSION = f"{GROUP}/v1alpha1"
RULES_MAX = 64
WEIGHT_MAX = 100
EXPRESSION_LENGTH_MAX = 4096


class When(wire.Body, frozen=True, gc=False):
    """CEL expressions."""

    pod: str = ""
    node: str = ""


class Match(wire.Body, frozen=True, gc=False):
    """spec.rules[].match."""

    pods: wire.LabelSelector | None = None
    namespaces: list[str] | None = None
    nodes: wire.LabelSelector | None = None
    cidrs: list[str] | None = None
    when: When | None = None


class Domain(wire.Body, frozen=True, gc=False):
    """A topology domain by a label of nodes."""

    label: str = ""
    value: str = ""


class To(wire.Body, frozen=True, gc=False):
    """Where a way leads: exactly one of these."""

    node: str = ""
    domain: Domain | None = None
    place: str = ""


class Require(wire.Body, frozen=True, gc=False):
    """spec.rules[].require."""

    to: To = To()
    max_hops: int | None = None
    max_latency_ms: float | None = None
    min_bandwidth_mbps: float | None = None
    same_domain: str = ""


class Rule(wire.Body, frozen=True, gc=False):
    """An entry of spec.rules."""

    name: str = ""
    priority: int | None = None
    match: Match | None = None
    action: str = ""
    weight: int | None = None
    require: Require | None = None


class Spec(wire.Body, frozen=True, gc=False):
    """spec of a GraphPolicy."""

    priority: int = 0
    rules: list[Rule] | None = None


class Metadata(wire.Metadata, frozen=True, gc=False):
    """What identifies the object and this state of it."""

    generation: int = 0


class Policy(wire.Body, frozen=True, gc=False):
    """A GraphPolicy; its status stays as it came."""

    metadata: Metadata = Metadata()
    spec: Spec = Spec()
    status: dict[str, typing.Any] | None = None


POLICY = wire.Codec(KIND, Policy)


class Read(msgspec.Struct, frozen=True, gc=False):
    """A policy as rules.

    Attributes:
        name: Of the policy.
        rules: Those that can be used, as far as can be told without compiling anything.
        names: Of all its rules, in its order.
        problems: Name of a rule → why it can not be used.
    """

    name: str
    rules: tuple[policies.Rule, ...] = ()
    names: tuple[str, ...] = ()
    problems: dict[str, str] = {}


def read(body: Policy) -> Read:
    """The rules of a policy.

    Raises:
        InputError: The policy has no name.
    """
    policy = body.metadata.name
    if not policy:
        raise errors.InputError(KIND, "metadata.name", problem="is missing", remedy="name the policy")
    rules: list[policies.Rule] = []
    names: list[str] = []
    problems: dict[str, str] = {}
    for number, entry in enumerate((body.spec.rules or ())[:RULES_MAX]):
        name = entry.name or f"rules[{number}]"
        try:
            if name in names:
                raise errors.InputError("name", problem=f'there is a rule "{name}" already', remedy="rename one")
            rules.append(_rule(policy, number, entry, body.spec.priority))
        except errors.InputError as error:
            problems[name] = str(error)
        if name not in names:
            names.append(name)
    return Read(policy, tuple(rules), tuple(names), problems)


def require(body: Policy) -> Read:
    """The same for a policy that no API server has checked.

    Raises:
        InputError: A rule can not be one; its place is the rule.
    """
    title = f'{KIND} "{body.metadata.name}"'
    found = read(body)
    if not found.names:
        raise errors.InputError(title, "spec.rules", problem="is missing or empty", remedy="add a rule")
    if len(body.spec.rules or ()) > RULES_MAX:
        raise errors.InputError(title, "spec.rules", problem=f"has more than {RULES_MAX} rules", remedy="split it")
    for name, problem in found.problems.items():
        raise errors.InputError(title, f'rule "{name}"', problem=problem)
    return found


def _rule(policy: str, number: int, entry: Rule, priority: int) -> policies.Rule:
    if not entry.name:
        raise errors.InputError("name", problem="is missing", remedy="name the rule")
    actions = [each.value for each in policies.Action]
    if entry.action not in actions:
        raise errors.InputError(
            "action", problem=f'"{entry.action[:64]}" is not known', remedy=f"use one of: {', '.join(actions)}"
        )
    action = policies.Action(entry.action)
    if (entry.weight is not None) != (action is policies.Action.WEIGHT):
        raise errors.InputError("weight", problem="goes with action weight and no other", remedy="correct one of them")
    if (entry.require is not None) != (action is policies.Action.REQUIRE):
        problem = "goes with action require and no other"
        raise errors.InputError("require", problem=problem, remedy="correct one of them")
    weight = entry.weight or 0
    if not -WEIGHT_MAX <= weight <= WEIGHT_MAX:
        raise errors.InputError("weight", problem=f"{weight} is out of range", remedy="use -100 to 100")
    return policies.Rule(
        policy=policy,
        number=number,
        name=entry.name,
        priority=priority if entry.priority is None else entry.priority,
        match=_match(entry.match or Match()),
        action=action,
        weight=weight,
        path=None if entry.require is None else _path(entry.require),
    )


def _match(body: Match) -> policies.Match:
    networks = []
    for text in body.cidrs or ():
        try:
            networks.append(str(ipaddress.ip_network(text, strict=False)))
        except ValueError as error:
            raise errors.InputError(
                "match.cidrs", problem=f'"{text[:64]}" is not a network', remedy="write e.g. 10.0.0.0/8 or fd00::/8"
            ) from error
    when = body.when or When()
    for field, text in (("match.when.pod", when.pod), ("match.when.node", when.node)):
        if len(text) > EXPRESSION_LENGTH_MAX:
            problem = f"is longer than {EXPRESSION_LENGTH_MAX} characters"
            raise errors.InputError(field, problem=problem, remedy="shorten it")
    return policies.Match(
        pods=_selector(body.pods, "match.pods"),
        namespaces=tuple(sorted(set(body.namespaces or ()))),
        nodes=_selector(body.nodes, "match.nodes"),
        cidrs=tuple(sorted(set(networks))),
        pod_when=when.pod,
        node_when=when.node,
    )


def _selector(body: wire.LabelSelector | None, field: str) -> labels.Selector | None:
    found = selectors.selector(body, field)
    # A rule without a selector is about all, and so is one whose selector asks for nothing.
    return found if found is not None and found.requirements else None


def _path(body: Require) -> policies.Path:
    to, given = body.to, [bool(body.to.node), body.to.domain is not None, bool(body.to.place)]
    if sum(given) != 1:
        raise errors.InputError("require.to", problem="names not one of node, domain and place", remedy="name one")
    if to.domain is not None:
        if not to.domain.label or not to.domain.value:
            raise errors.InputError("require.to.domain", problem="lacks label or value", remedy="give both")
        goal = keys.domain_key(to.domain.label, to.domain.value)
    else:
        goal = keys.node_key(to.node) if to.node else keys.place_key(to.place)
    limits = (body.max_hops, body.max_latency_ms, body.min_bandwidth_mbps)
    if all(limit is None for limit in limits) and not body.same_domain:
        raise errors.InputError(
            "require", problem="asks for nothing", remedy="add maxHops, maxLatencyMs, minBandwidthMbps or sameDomain"
        )
    if body.same_domain and to.place:
        raise errors.InputError(
            "require.sameDomain", problem="a place has no labels of nodes", remedy="name a node or a domain to go to"
        )
    # Not `limit < 0`: what is no number is refused as well.
    if any(limit is not None and not limit >= 0 for limit in limits):
        raise errors.InputError("require", problem="a limit is negative", remedy="use 0 or more")
    return policies.Path(
        to=goal,
        hops_max=body.max_hops,
        latency_ms_max=body.max_latency_ms,
        bandwidth_mbps_min=body.min_bandwidth_mbps,
        same_domain=body.same_domain,
    )
