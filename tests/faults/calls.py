"""The calls that a scheduler makes, told apart by what they are for.

Comes in: method, path and query of a request, and who says that he makes it. Goes out: a `Call`, whose `name` is a
column of the fault table, such as `watch pods` or `bind`. Invariant: every request that `graphsched run` makes has a
name; one nobody knows raises.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from graphsched.sources import custom

MAIN = ("nodes", "pods")
OTHERS = (
    "namespaces",
    "priorityclasses",
    "services",
    "replicationcontrollers",
    "replicasets",
    "statefulsets",
)
"""Followed as well, one like the other."""

CUSTOMS = ("networklinks", "hypernodes")
"""Custom resources that describe the network: one of ours and one of others."""
POLICIES = "graphpolicies"
DISCOVERY, POLICY_STATUS = "discovery", "policy status"
BY_KOPF = " by kopf"
"""What kopf asks beside what the scheduler asks itself; only kopf watches policies."""

BIND, STATUS, GET, EVENT, SERIES = "bind", "status", "get pod", "event", "event series"
LEASE = "lease"

_PATH = re.compile(
    r"/(?:api/v1|apis/(?P<group>[^/]+)/[^/]+)(?:/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<resource>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<part>[^/]+))?"
)
_GROUPS = re.compile(r"/api|/apis|/api/[^/]+|/apis/[^/]+/[^/]+")
_FOLLOWED = {*MAIN, *OTHERS, POLICIES, *(each.path.rpartition("/")[2] for each in custom.ALL)}


class Call(NamedTuple):
    """What a request is for.

    Attributes:
        name: `list pods`, `watch nodes`, `bind`, …
        resource: Plural name.
        subject: Name of the object, empty for a collection.
    """

    name: str
    resource: str
    subject: str


class UnknownCallError(Exception):
    """Nobody said that the scheduler makes such a request."""


def of(method: str, path: str, query: Mapping[str, str], agent: str = "") -> Call:
    """The call that a request is, made by this user agent. Raises `UnknownCallError`."""
    kopf = BY_KOPF if agent.endswith(BY_KOPF.rpartition(" ")[2]) else ""
    if method == "GET" and _GROUPS.fullmatch(path):
        return Call(f"{DISCOVERY}{kopf}", "", "")
    matched = _PATH.fullmatch(path)
    if matched is None:
        raise UnknownCallError(f"{method} {path}")
    resource, subject, part = matched["resource"], matched["name"] or "", matched["part"] or ""
    if resource == "leases":
        return Call(LEASE, resource, subject)
    match method, resource, bool(subject), part:
        case "GET", _, False, "" if resource in _FOLLOWED:
            return Call(f"watch {resource}" if "watch" in query else f"list {resource}{kopf}", resource, "")
        case "GET", "pods", True, "":
            return Call(GET, resource, subject)
        case "POST", "pods", True, "binding":
            return Call(BIND, resource, subject)
        case "PATCH", "pods", True, "status":
            return Call(STATUS, resource, subject)
        case "PATCH", "graphpolicies", True, "status":
            return Call(POLICY_STATUS, resource, subject)
        case "POST", "events", False, "":
            return Call(EVENT, resource, "")
        case "PATCH", "events", True, "":
            return Call(SERIES, resource, subject)
    raise UnknownCallError(f"{method} {path}")
