"""What rules have to do with a node, in words.

The reasons of a refusal, or a node that passed, come in; sentences that name policy, rule and priority go out. What is
said of a rule is read from the graph, where it is a vertex.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

from graphsched.base.values import keys, pods, policies, relations
from graphsched.decision.constraints import check
from graphsched.decision.policy import books, compliance, reachability, words
from graphsched.explain import ways, wording
from graphsched.graph import routes, view


class Weighing(msgspec.Struct, frozen=True, gc=False):
    """A rule that adds to a node's total.

    Attributes:
        policy, rule: Their names.
        priority: Of the rule.
        points: What it adds, negative to take away.
    """

    policy: str
    rule: str
    priority: int
    points: int

    def __str__(self) -> str:
        return f"{self.points:+d} by policy {self.policy} rule {self.rule} (priority {self.priority})"


class Denial(msgspec.Struct, frozen=True, gc=False):
    """A rule that denies a node, or would if another did not go before it.

    Attributes:
        policy, rule: Their names.
        priority: Of the rule.
    """

    policy: str
    rule: str
    priority: int

    def __str__(self) -> str:
        return f"deny of policy {self.policy} rule {self.rule}"


class Allowed(msgspec.Struct, frozen=True, gc=False):
    """A rule that allows a node which rules of lower priority would deny.

    Attributes:
        node: Name of the node.
        policy, rule: Their names.
        priority: Of the rule.
        over: Those that would deny it, the greatest priority first; at least one.
    """

    node: str
    policy: str
    rule: str
    priority: int
    over: tuple[Denial, ...]

    def __str__(self) -> str:
        """A sentence without its beginning and its full stop."""
        denials = wording.both([str(each) for each in self.over])
        return f"by policy {self.policy} rule {self.rule} (priority {self.priority}), which goes before {denials}"


class Met(msgspec.Struct, frozen=True, gc=False):
    """A rule that requires something of the way from a node, which is as required.

    Attributes:
        policy, rule: Their names.
        priority: Of the rule.
        way: The way.
        slowest: Its link that takes longest, `n1 ─9 ms─ n2`; empty where it crosses none.
        age_s: How long ago that link was measured; None where it never was, or nobody says what time it is.
    """

    policy: str
    rule: str
    priority: int
    way: ways.Way
    slowest: str = ""
    age_s: float | None = None

    def __str__(self) -> str:
        """One line, without indentation."""
        measured = "never measured" if self.age_s is None else f"measured {wording.duration(self.age_s)} ago"
        slowest = f"; its slowest link is {self.slowest}, {measured}" if self.slowest else ""
        return f"policy {self.policy} rule {self.rule} (priority {self.priority}): to {self.way}{slowest}"


def obstacle(graph: view.View, reasons: Sequence[str]) -> str:
    """What is in the way of a node that rules refuse."""
    return " and ".join(_obstacle(graph, reason) for reason in reasons)


def weighing(graph: view.View, pod: pods.Pod, node: str) -> tuple[Weighing, ...]:
    """The rules that weigh the node for the pod, the greatest priority first."""
    row = graph.columns.rows.get(node)
    if row is None:
        return ()
    subject = check.Subject(pod.spec, namespace=pod.namespace, labels=pod.labels, priority=pod.priority)
    return tuple(
        Weighing(each.rule.policy, words.name(each.rule), each.rule.priority, each.rule.weight)
        for each in compliance.ruling(graph, subject).weights
        if each.mask[row]
    )


def allowed(graph: view.View, pod: pods.Pod, names: Iterable[str]) -> tuple[Allowed, ...]:
    """Of these nodes, in their order, those that a rule allows the pod while others would deny them."""
    if not len(graph.rules):
        return ()
    subject = check.Subject(pod.spec, namespace=pod.namespace, labels=pod.labels, priority=pod.priority)
    found: list[Allowed] = []
    for name in names:
        row = graph.columns.rows.get(name)
        rules = [] if row is None else books.of(graph).overruled(graph, subject, row)
        if rules:
            over = tuple(Denial(each.policy, words.name(each), each.priority) for each in rules[1:])
            found.append(Allowed(name, rules[0].policy, words.name(rules[0]), rules[0].priority, over))
    return tuple(found)


def met(graph: view.View, pod: pods.Pod, node: str, *, now: float) -> tuple[Met, ...]:
    """The requirements that the node meets for the pod, the greatest priority first.

    Args:
        graph: The view.
        pod: The pod.
        node: Name of a node.
        now: Seconds since the epoch; 0.0 where nobody says.
    """
    row = graph.columns.rows.get(node)
    if row is None or not len(graph.rules):
        return ()
    subject = check.Subject(pod.spec, namespace=pod.namespace, labels=pod.labels, priority=pod.priority)
    ruling = compliance.ruling(graph, subject)
    unmet = {id(each.rule) for each in ruling.refusals if each.mask[row]}
    return tuple(
        _met(graph, rule, node, now)
        for rule, about in books.of(graph).required(graph, subject)
        if about[row] and id(rule) not in unmet
    )


def _met(graph: view.View, rule: policies.Rule, node: str, now: float) -> Met:
    assert rule.path is not None  # noqa: S101  it requires something
    metric = next(iter(reachability.metrics_of(rule.path)[::-1]), routes.Metric.HOPS)
    start, title = keys.node_key(node), reachability.title(rule.path.to)
    known = [
        (route, goal)
        for goal in reachability.goals_of(graph, rule.path.to)
        if (route := graph.routes.route(start, goal, metric)) is not None
    ]
    found = Met(rule.policy, words.name(rule), rule.priority, ways.Way(node, title))
    if not known:
        return found
    route, goal = min(known, key=lambda each: _length(each[0], metric))
    legs = [leg for leg in route.legs if leg.link is not None]
    way = ways.told(graph, node, title, goal, metric, now)
    if not legs:
        return msgspec.structs.replace(found, way=way)
    slowest = max(legs, key=lambda leg: _time(leg.link))
    at = slowest.link.at if slowest.link is not None else 0.0
    return msgspec.structs.replace(
        found,
        way=way,
        slowest=ways.path_text(routes.Route((slowest.start, slowest.end), (slowest,))),
        age_s=max(now - at, 0.0) if at and now else None,
    )


def _length(route: routes.Route, metric: routes.Metric) -> float:
    match metric:
        case routes.Metric.LATENCY:
            return route.latency_ms or 0.0
        case routes.Metric.BANDWIDTH:
            return -math.inf if route.bandwidth_mbps is None else -route.bandwidth_mbps
        case _:
            return route.hops


def _time(link: relations.Link | None) -> float:
    """How long a link takes; less than any where that is not known."""
    return -1.0 if link is None or link.latency_ms is None else link.latency_ms / link.health


def _obstacle(graph: view.View, reason: str) -> str:
    told = words.told(reason)
    if told is None:
        return reason
    rules = (rule for rule in graph.rules.all() if rule.policy == told.policy and words.name(rule) == told.rule)
    priority = next((f" (priority {rule.priority})" for rule in rules), "")
    what = f": {told.what}" if told.what else ""
    verb = "not meeting" if reason == words.UNMET.format(told.policy, told.rule, told.what) else "denied by"
    return f"{verb} policy {told.policy} rule {told.rule}{priority}{what}"
