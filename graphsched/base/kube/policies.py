"""GraphPolicy objects of the API as rules.

A decoded object comes in, `values.policies.Rule`s go out, and of each rule that can not be one, why. The API server has
checked the object against its schema, unless somebody has installed another one, so all of it is checked here as well:
what is wrong is a problem of that rule alone, since the other rules are somebody's as well.
"""

from __future__ import annotations

import ipaddress
import math
import re
import typing
from collections.abc import Sized

import msgspec

from graphsched.base.kube import checks, selectors, wire
from graphsched.base.values import errors, keys, labels, policies

GROUP = "graphsched.io"
KIND = "GraphPolicy"
PATH = f"/apis/{GROUP}/v1alpha1/graphpolicies"
API_VERSION = f"{GROUP}/v1alpha1"
RULES_MAX = 64
WEIGHT_MAX = 100
EXPRESSION_LENGTH_MAX = 4096
NAME_LENGTH_MAX = 63
TO_LENGTH_MAX = 512
ENTRIES_MAX = 256
"""In one list of a rule."""
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_INT32_MAX = 2**31 - 1


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


class Outline(wire.Body, frozen=True, gc=False):
    """A GraphPolicy as far as its status needs it; that stays as it came."""

    metadata: Metadata = Metadata()
    status: typing.Any = None


class Policy(Outline, frozen=True, gc=False):
    """A GraphPolicy."""

    spec: Spec = Spec()


POLICY = wire.Codec(KIND, Policy)
OUTLINE = wire.Codec(KIND, Outline)


class Read(msgspec.Struct, frozen=True, gc=False):
    """A policy as rules.

    Attributes:
        name: Of the policy.
        rules: Those that can be used, as far as can be told without compiling anything.
        names: Of all its rules, in its order; one whose name can not be used is called by its place, `rules[2]`.
        problems: Name of a rule → why it can not be used.
        unreadable: Why the object is none; then the rules are those of its last state that could be read.
    """

    name: str
    rules: tuple[policies.Rule, ...] = ()
    names: tuple[str, ...] = ()
    problems: dict[str, str] = {}
    unreadable: str = ""


def read(body: Policy) -> Read:
    """The rules of a policy.

    Raises:
        InputError: The policy has no name, or one that is none.
    """
    checks.name(KIND, body.metadata)
    policy, entries = body.metadata.name, body.spec.rules or []
    rules: dict[str, policies.Rule] = {}
    names: list[str] = []
    problems: dict[str, str] = {}
    for number, entry in enumerate(entries[:RULES_MAX]):
        name = f"rules[{number}]"
        try:
            _require_name(entry.name)
            if entry.name in names:
                raise errors.InputError("name", problem=f'there is a rule "{entry.name}" already', remedy="rename one")
            name = entry.name
            rules[name] = _rule(policy, number, entry, body.spec.priority)
        except errors.InputError as error:
            problems[name] = shown(str(error))
        names.append(name)
    if len(entries) > RULES_MAX:
        name = f"rules[{RULES_MAX}]"
        names.append(name)
        problems[name] = f"this one and those after it are beyond the {RULES_MAX} of a policy (split the policy)"
    return Read(policy, tuple(rules.values()), tuple(names), problems)


def shown(text: str) -> str:
    """The text as it can be written: JSON can name half a character, which no file and no request can hold."""
    return text.encode(errors="replace").decode()


def require(body: Policy) -> Read:
    """The same for a policy that no API server has checked.

    Raises:
        InputError: A rule can not be one; its place is the rule.
    """
    title = f'{KIND} "{body.metadata.name}"'
    found = read(body)
    if not found.names:
        raise errors.InputError(title, "spec.rules", problem="is missing or empty", remedy="add a rule")
    for name, problem in found.problems.items():
        raise errors.InputError(title, name if name.endswith("]") else f'rule "{name}"', problem=problem)
    return found


def _require_name(name: str) -> None:
    if not name:
        raise errors.InputError("name", problem="is missing", remedy="name the rule")
    if len(name) > NAME_LENGTH_MAX or _NAME.fullmatch(name) is None:
        remedy = f"use up to {NAME_LENGTH_MAX} of a-z, 0-9 and - and begin and end with a letter or digit"
        raise errors.InputError("name", problem=f'"{name[:NAME_LENGTH_MAX]}" is not a name', remedy=remedy)


def _rule(policy: str, number: int, entry: Rule, priority: int) -> policies.Rule:
    actions = [each.value for each in policies.Action]
    if entry.action not in actions:
        raise errors.InputError(
            "action", problem=f'"{entry.action[:64]}" is not known', remedy=f"use one of: {', '.join(actions)}"
        )
    action = policies.Action(entry.action)
    for field, given, needing in (
        ("weight", entry.weight is not None, policies.Action.WEIGHT),
        ("require", entry.require is not None, policies.Action.REQUIRE),
    ):
        if given and action is not needing:
            remedy = f"leave it out, or write action: {needing.value}"
            raise errors.InputError(field, problem=f"goes with action {needing.value} and no other", remedy=remedy)
        if action is needing and not given:
            problem = f"is missing, and action {needing.value} needs it"
            raise errors.InputError(field, problem=problem, remedy=f"add {field}, or write another action")
    weight = entry.weight or 0
    if not -WEIGHT_MAX <= weight <= WEIGHT_MAX:
        raise errors.InputError("weight", problem=f"{weight} is out of range", remedy="use -100 to 100")
    return policies.Rule(
        policy=policy,
        number=number,
        name=entry.name,
        priority=_within("priority", priority if entry.priority is None else entry.priority, -_INT32_MAX - 1),
        match=_match(entry.match or Match()),
        action=action,
        weight=weight,
        path=None if entry.require is None else _path(entry.require),
    )


def _within(field: str, number: int, least: int) -> int:
    if not least <= number <= _INT32_MAX:
        raise errors.InputError(field, problem="is out of range", remedy=f"use {least} to {_INT32_MAX}")
    return number


def _few(field: str, entries: Sized | None) -> None:
    if len(entries or ()) > ENTRIES_MAX:
        raise errors.InputError(field, problem=f"has more than {ENTRIES_MAX} entries", remedy="split the rule")


def _match(body: Match) -> policies.Match:
    _few("match.namespaces", body.namespaces)
    for text in body.namespaces or ():
        _plain("match.namespaces", text)
    _few("match.cidrs", body.cidrs)
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
        if shown(text) != text:
            raise errors.InputError(field, problem="holds half a character", remedy="write it in UTF-8")
    return policies.Match(
        pods=_selector(body.pods, "match.pods"),
        namespaces=tuple(sorted(set(body.namespaces or ()))),
        nodes=_selector(body.nodes, "match.nodes"),
        cidrs=tuple(sorted(set(networks))),
        pod_when=when.pod,
        node_when=when.node,
    )


def _selector(body: wire.LabelSelector | None, field: str) -> labels.Selector | None:
    if body is not None:
        _few(f"{field}.matchLabels", body.match_labels)
        _few(f"{field}.matchExpressions", body.match_expressions)
        for number, entry in enumerate(body.match_expressions or ()):
            _few(f"{field}.matchExpressions[{number}].values", entry.values)
    found = selectors.selector(body, field)
    # A rule without a selector is about all, and so is one whose selector asks for nothing.
    return found if found is not None and found.requirements else None


def _path(body: Require) -> policies.Path:
    goal = _goal(body.to)
    limits = (body.max_hops, body.max_latency_ms, body.min_bandwidth_mbps)
    if all(limit is None for limit in limits) and not body.same_domain:
        raise errors.InputError(
            "require", problem="asks for nothing", remedy="add maxHops, maxLatencyMs, minBandwidthMbps or sameDomain"
        )
    if body.same_domain and body.to.place:
        raise errors.InputError(
            "require.sameDomain", problem="a place has no labels of nodes", remedy="name a node or a domain to go to"
        )
    if body.same_domain and not selectors.is_label_key(body.same_domain):
        problem = f'"{body.same_domain[:NAME_LENGTH_MAX]}" is not a label'
        raise errors.InputError("require.sameDomain", problem=problem, remedy="write e.g. topology.kubernetes.io/zone")
    # Not `limit < 0`: what is no number is refused as well.
    if any(limit is not None and not limit >= 0 for limit in limits):
        raise errors.InputError("require", problem="a limit is negative", remedy="use 0 or more")
    if any(limit is not None and math.isinf(limit) for limit in limits[1:]):
        raise errors.InputError("require", problem="a limit is infinite", remedy="write a number, or leave it out")
    return policies.Path(
        to=goal,
        hops_max=None if body.max_hops is None else _within("require.maxHops", body.max_hops, 0),
        latency_ms_max=body.max_latency_ms,
        bandwidth_mbps_min=body.min_bandwidth_mbps,
        same_domain=body.same_domain,
    )


def _goal(to: To) -> keys.VertexKey:
    """The key of what is named."""
    if sum((bool(to.node), to.domain is not None, bool(to.place))) != 1:
        raise errors.InputError("require.to", problem="names not one of node, domain and place", remedy="name one")
    if to.domain is not None:
        if not to.domain.label or not to.domain.value:
            raise errors.InputError("require.to.domain", problem="lacks label or value", remedy="give both")
        if not selectors.is_label_key(to.domain.label):
            problem = f'"{to.domain.label[:NAME_LENGTH_MAX]}" is not a label'
            raise errors.InputError(
                "require.to.domain.label", problem=problem, remedy="write e.g. topology.kubernetes.io/zone"
            )
        _plain("require.to.domain.value", to.domain.value)
        return keys.domain_key(to.domain.label, to.domain.value)
    _plain("require.to.node", to.node)
    _plain("require.to.place", to.place)
    return keys.node_key(to.node) if to.node else keys.place_key(to.place)


def _plain(field: str, text: str) -> None:
    """What stands in reasons and messages is one line that can be read."""
    if len(text) > TO_LENGTH_MAX or not text.isprintable():
        problem = "is too long, or holds what can not be printed"
        raise errors.InputError(field, problem=problem, remedy=f"use up to {TO_LENGTH_MAX} printable characters")
