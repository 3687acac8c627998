"""`graphsched graph path`: the way from one vertex of the graph to another, with what is known of every leg.

A pod stands for the node it runs on. That no way is known is an answer, exit code 1.
"""

from __future__ import annotations

import msgspec

from graphsched.app import graph_cmd, terminal
from graphsched.base.kit import clock
from graphsched.base.values import keys
from graphsched.explain.atlas import journeys, naming, survey
from graphsched.graph import routes, store


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What `graphsched graph path` was asked for; see its help."""

    source: graph_cmd.Source
    start: str
    goal: str
    metric: str = "hops"
    output: terminal.Output = terminal.Output.TABLE


def command(options: Options) -> int:
    """Write the way between two vertices; returns 0, or 1 where no way is known.

    Raises:
        InputError: The input is not usable, or a vertex is not known.
        ClusterError: The running scheduler can not be asked.
    """
    graph = graph_cmd.load(options.source)
    known = survey.survey(graph).by_key
    metric = routes.Metric(options.metric)
    ends = []
    for name in (options.start, options.goal):
        key = keys.VertexKey(naming.find(known, name))
        end = _whereabouts(graph, key)
        if end is None:
            return _no_way(f"{naming.short(key)} runs on no node yet")
        if end != key and options.output is terminal.Output.TABLE:
            terminal.line(f"{naming.short(key)} runs on {naming.short(end)}")
        ends.append(end)
    found = graph.routes.route(ends[0], ends[1], metric)
    if found is None:
        between = f"no way from {naming.short(ends[0])} to {naming.short(ends[1])} is known"
        return _no_way(between + ("" if metric is routes.Metric.HOPS else f" by {metric.value}: try --metric hops"))
    told = journeys.journey(found, metric, holds=journeys.holding_in(graph), now=clock.RealClock().wall())
    if options.output is not terminal.Output.TABLE:
        terminal.data(told, options.output)
        return 0
    terminal.line(journeys.headline(told))
    if told.legs:
        columns = [
            ("from", "left"),
            ("to", "left"),
            ("over", "left"),
            ("latency", "right"),
            ("bandwidth", "right"),
            ("health", "right"),
            ("measured", "left"),
        ]
        terminal.line()
        terminal.table(columns, journeys.rows(told))
    return 0


def _whereabouts(graph: store.Store, key: keys.VertexKey) -> keys.VertexKey | None:
    """Where a vertex is in the physical layer: a pod on its node, None while it has none; others where they are."""
    if keys.kind_of(key) != keys.Kind.POD:
        return key
    placement = graph.placement(key)
    return keys.node_key(placement.node) if placement is not None else None


def _no_way(text: str) -> int:
    terminal.note(text)
    return 1
