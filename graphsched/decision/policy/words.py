"""How a refusal by a rule is told, and read again by who counts or explains it.

A reason names policy and rule, whose names hold neither blank nor colon, so it can be taken apart without a doubt.
"""

from __future__ import annotations

import re
import typing

from graphsched.base.values import policies

FAILED = "whether it applies can not be told"
UNMET = "node(s) didn't meet policy {} rule {}: {}"
_TOLD = re.compile(r"node\(s\) (?:were denied by|didn't meet) policy (\S+) rule ([^\s:]+)(?:: (.*))?")


class Told(typing.NamedTuple):
    """What a reason says.

    Attributes:
        policy, rule: Their names.
        what: What is in the way; empty where the rule denies the node as such.
    """

    policy: str
    rule: str
    what: str


def denied(rule: policies.Rule) -> str:
    """The reason of a node that the rule denies."""
    return f"node(s) were denied by policy {rule.policy} rule {name(rule)}"


def undecided(rule: policies.Rule) -> str:
    """The reason of a node that is denied since the rule could not be evaluated."""
    return f"{denied(rule)}: {FAILED}"


def unmet(rule: policies.Rule, what: str) -> str:
    """The reason of a node from which the way is not what the rule requires."""
    return UNMET.format(rule.policy, name(rule), what)


def name(rule: policies.Rule) -> str:
    """What the rule is called."""
    return rule.name or str(rule.number)


def told(reason: str) -> Told | None:
    """What a reason says; None for one that is of something else."""
    found = _TOLD.fullmatch(reason)
    return None if found is None else Told(found[1], found[2], found[3] or "")
