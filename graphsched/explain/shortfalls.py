"""The ways that kept a pod away from nodes: what was demanded, the way that was found, and how old what is known is.

An evaluation comes in, with the view it was made on; one `Shortfall` goes out for each limit or rule and for whether
the way is known. Each shows the node that comes nearest to what is demanded, since that is where to look first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from graphsched.base.values import keys, pods, policies
from graphsched.decision import names, trace, ways as lengths
from graphsched.decision.constraints import check, paths
from graphsched.decision.policy import reachability, words
from graphsched.explain import ways, wording
from graphsched.graph import routes, view

_NOUNS = {
    routes.Metric.HOPS: "number of hops",
    routes.Metric.LATENCY: "latency",
    routes.Metric.BANDWIDTH: "bandwidth",
    routes.Metric.COST: "network cost",
}


class Shortfall(msgspec.Struct, frozen=True, gc=False):
    """Nodes that were refused for one way.

    Attributes:
        title: Where the way leads: a partner, a node, a domain, a place.
        metric: What of it is limited: `hops`, `latency` (ms), `bandwidth` (Mbps), `cost`.
        bound: The most of it, or of bandwidth the least.
        known: Whether a way was found, and is not good enough; otherwise none is known.
        nodes: How many nodes were refused for it.
        way: From that of these nodes which comes nearest to the bound; of a partner with several pods to the one that
            is farthest from there, or to which no way is known.
        goal: Where that way leads.
        rule: `policy p rule r` where a rule demands it; empty for a limit of the pod or of a group.
    """

    title: str
    metric: str
    bound: float
    known: bool
    nodes: int
    way: ways.Way
    goal: str = ""
    rule: str = ""

    def __str__(self) -> str:
        """A sentence without its full stop."""
        metric, amount = routes.Metric(self.metric), _amount(routes.Metric(self.metric), self.bound)
        wide = metric is routes.Metric.BANDWIDTH
        asked = f"without at least {amount} to {self.title}" if wide else f"not within {amount} of {self.title}"
        by = f" ({self.rule})" if self.rule else ""
        head = f"{wording.count(self.nodes, 'node')} {asked}{by}"
        if self.known:
            text = f"{head}; the nearest is {self.way.path} ({self.way.facts})"
        elif self.goal:
            text = f"{head}: unknown {_NOUNS[metric]}, no way from {self.way.node} to {self.goal} is known"
        else:
            text = f"{head}: unknown {_NOUNS[metric]}"
        return text + (f"; {self.way.cut}" if self.way.cut else "")


def of(graph: view.View, pod: pods.Pod, evaluation: trace.Evaluation, *, now: float) -> tuple[Shortfall, ...]:
    """What ways kept the pod away from nodes, those of most nodes first; none for a pod that no way refused.

    Args:
        graph: The view that was evaluated.
        pod: The pod.
        evaluation: What was found.
        now: Seconds since the epoch; 0.0 where nobody says.
    """
    refused: dict[str, list[str]] = {}
    for name, verdict in evaluation.verdicts.items():
        if verdict.status.by in {names.GRAPH_PATH, names.GRAPH_POLICY}:
            for reason in verdict.status.reasons:
                refused.setdefault(reason, []).append(name)
    if not refused:
        return ()
    subject = check.Subject(pod.spec, namespace=pod.namespace, labels=pod.labels, priority=pod.priority)
    found = [*_of_limits(graph, subject, refused, now), *_of_rules(graph, refused, now)]
    return tuple(sorted(found, key=lambda each: (-each.nodes, each.title, each.metric, each.known)))


def _of_limits(
    graph: view.View, subject: check.Subject, refused: dict[str, list[str]], now: float
) -> Iterator[Shortfall]:
    for limit in paths.limits(graph, subject):
        for known, reason in ((True, limit.reason_beyond), (False, limit.reason_unknown)):
            nodes, found = refused.pop(reason, []), lengths.reach(graph, limit.partner)
            if not nodes or found is None:
                continue
            node = _nearest(graph, nodes, limit.worst, limit.metric)
            each = lengths.from_node(graph, found, limit.metric, graph.columns.rows[node])
            if known:
                wrong = int(np.nanargmin(each) if limit.metric is routes.Metric.BANDWIDTH else np.nanargmax(each))
            else:
                # Where all that was looked at is known, what was left out is not.
                wrong = int(np.isnan(each).argmax()) if np.isnan(each).any() else -1
            goal = graph.columns.names[int(found.rows[wrong])] if wrong >= 0 else ""
            way = ways.Way(node, limit.partner.title)
            if known:
                way = ways.told(graph, node, limit.partner.title, keys.node_key(goal), limit.metric, now)
            way = ways.with_cut(way, found)
            title, metric = limit.partner.title, limit.metric.value
            yield Shortfall(title, metric, limit.bound, known, len(nodes), way, goal)


def _of_rules(graph: view.View, refused: dict[str, list[str]], now: float) -> Iterator[Shortfall]:
    for rule in graph.rules.all():
        if rule.action is not policies.Action.REQUIRE or rule.path is None:
            continue
        title = reachability.title(rule.path.to)
        for each in reachability.measures(graph, rule.path):
            for known, what in ((True, each.short), (False, each.unknown)):
                nodes = refused.pop(words.unmet(rule, what), [])
                if not nodes:
                    continue
                node = _nearest(graph, nodes, each.found, each.metric)
                way = ways.Way(node, title)
                if known:
                    way = _best(graph, node, each, now)
                by = f"policy {rule.policy} rule {words.name(rule)}"
                yield Shortfall(title, each.metric.value, each.bound, known, len(nodes), way, title, by)


def _best(graph: view.View, node: str, measure: reachability.Measure, now: float) -> ways.Way:
    """The way to that of the goals which is nearest."""
    row, wanted = graph.columns.rows[node], measure.found
    vectors: dict[routes.Metric, Callable[[keys.VertexKey], npt.NDArray[Any]]] = {
        routes.Metric.HOPS: graph.routes.hops,
        routes.Metric.LATENCY: graph.routes.latency,
        routes.Metric.BANDWIDTH: graph.routes.bottleneck,
    }
    vector = vectors[measure.metric]
    goal = next(each for each in measure.goals if vector(each)[row] == wanted[row])
    return ways.told(graph, node, ways.title_of(goal), goal, measure.metric, now)


def _nearest(graph: view.View, nodes: list[str], found: routes.Amounts, metric: routes.Metric) -> str:
    """Of these nodes the one with the least, or the widest, the first by name of equals, and of unknown ones."""
    least = -1 if metric is routes.Metric.BANDWIDTH else 1
    worth = {name: least * float(found[graph.columns.rows[name]]) for name in nodes}
    return min(nodes, key=lambda name: (np.isnan(worth[name]), 0.0 if np.isnan(worth[name]) else worth[name], name))


def _amount(metric: routes.Metric, bound: float) -> str:
    match metric:
        case routes.Metric.HOPS:
            return wording.count(int(bound), "hop")
        case routes.Metric.LATENCY:
            return f"{bound:g} ms"
        case routes.Metric.BANDWIDTH:
            return f"{bound:g} Mbps"
    return f"a network cost of {bound:g}"
