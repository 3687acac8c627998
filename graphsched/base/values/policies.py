"""Rules of the policy layer, as a GraphPolicy states them.

A rule says whom it is about (`Match`) and what then holds (`action`). Of all rules that match a pod and a node those of
the highest priority speak; see `decision/policy` for how they are put together.
"""

from __future__ import annotations

import enum

import msgspec

from graphsched.base.values import keys, labels


class Action(enum.StrEnum):
    """What a rule does where it matches."""

    ALLOW = "allow"
    """The node takes the pod, whatever rules of lower priority say."""
    DENY = "deny"
    """The node is refused."""
    WEIGHT = "weight"
    """The node's total changes."""
    REQUIRE = "require"
    """The node is refused unless the way from it to somewhere has a property."""


class Match(msgspec.Struct, frozen=True, gc=False):
    """Whom a rule is about: every part that is given must hold.

    Attributes:
        pods: By their labels; None for all.
        namespaces: By name; empty for all.
        nodes: By their labels; None for all.
        cidrs: Networks one of which holds an address of the node; empty for all nodes.
        pod_when: A CEL expression about `pod`; empty for true.
        node_when: A CEL expression about `node`; empty for true.
    """

    pods: labels.Selector | None = None
    namespaces: tuple[str, ...] = ()
    nodes: labels.Selector | None = None
    cidrs: tuple[str, ...] = ()
    pod_when: str = ""
    node_when: str = ""


class Path(msgspec.Struct, frozen=True, gc=False):
    """What must hold of the way from a node to a place; every part that is given.

    Attributes:
        to: Key of the vertex the way leads to; empty for `same_domain` alone.
        hops_max: The most edges; None for any.
        latency_ms_max: The longest time one way; None for any.
        bandwidth_mbps_min: The least bandwidth; None for any.
        same_domain: A node label whose value must be that of `to`'s; empty for any.
    """

    to: keys.VertexKey = keys.VertexKey("")
    hops_max: int | None = None
    latency_ms_max: float | None = None
    bandwidth_mbps_min: float | None = None
    same_domain: str = ""


class Rule(msgspec.Struct, frozen=True, gc=False):
    """One rule of a policy.

    Attributes:
        policy: Name of the GraphPolicy.
        number: Its place there, from 0.
        name: What people call it; may be empty.
        priority: Greater goes first.
        match: Whom it is about.
        action: What then holds.
        weight: Points added to the total, -100 to 100; for `WEIGHT`.
        path: For `REQUIRE`.
    """

    policy: str
    number: int
    name: str = ""
    priority: int = 0
    match: Match = Match()
    action: Action = Action.ALLOW
    weight: int = 0
    path: Path | None = None

    @property
    def key(self) -> keys.VertexKey:
        """Its vertex key."""
        return keys.rule_key(self.policy, self.number)
