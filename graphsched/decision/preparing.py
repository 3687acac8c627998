"""The ways that a decision will ask for, searched for beforehand and piece by piece.

A search in a large network takes longer than a decision may: one that ran out of time has no way to tell of, refuses
every node where a limit asks for it, and scores as if nothing were known. Comes in: a view, a pod, a profile. Goes out:
whether the ways between nodes and what the pod wants to be near are at hand; what was searched is kept in the graph.
`policy.compliance` does the same for the ways that rules require.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphsched.base.values import pods
from graphsched.decision import names, profile, ways
from graphsched.decision.constraints import check, paths
from graphsched.decision.scoring import nearness
from graphsched.graph import distances, partners, routes, view


def concerns(graph: view.View, spec: pods.Spec) -> bool:
    """Whether such a pod may have ways to ask for: it names something, or something names others."""
    return spec.graph is not None or bool(graph.groups) or bool(graph.callers)


def prepare(graph: view.View, subject: check.Subject, settings: profile.Profile, expired: distances.Expired) -> bool:
    """Do the searches that a decision on such a pod asks for, until `expired`; whether all of them are done."""
    if not concerns(graph, subject.spec):
        return True
    if settings.weights.get(names.GRAPH_DISTANCE):
        targets = nearness.targets(graph, subject)
        if targets and not graph.routes.prepare(routes.Metric.HOPS, targets, expired):
            return False
    return all(ways.prepare(graph, *each, expired) for each in _asked(graph, subject, settings))


def _asked(
    graph: view.View, subject: check.Subject, settings: profile.Profile
) -> Iterator[tuple[partners.Partner, routes.Metric]]:
    """Partners and what the ways to them are measured in, limits before scores."""
    if names.GRAPH_PATH not in settings.disabled:
        for partner, metric, _ in paths.bounds(graph, subject):
            yield partner, metric
    metrics = nearness.metrics_of(graph, settings.weights)
    drawing = ways.drawing(graph, subject) if metrics else ()
    yield from ((partner, metric) for partner in drawing for metric in metrics)
