"""The benchmark of searches for ways.

Comes in: names of networks, all where none is given. Goes out: for each network and metric what a search costs that
begins with nothing, in how many rounds and how long the longest of them was (a decision looks at its time between
rounds), and what the same distances cost after a link was measured anew, and after one was cut or came. Milliseconds of
this thread's CPU, medians, so that two versions can be compared beside other work: `python -m benchmarks.routes` in a
work tree of each, taking turns.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
import typing
from collections.abc import Iterator

from benchmarks.routes import networks
from graphsched.base.values import keys, relations
from graphsched.graph import delta, routes, store

GOALS = 8
CHANGES = 8


class Fresh(typing.NamedTuple):
    """A search that began with nothing: milliseconds of all of it and of its longest round, and the rounds."""

    all_ms: float
    longest_ms: float
    rounds: int


def main(names: list[str]) -> int:
    """Run the benchmark; return the exit code."""
    print(f"{'':<20}{'fresh ms':>10}{'most':>8}{'rounds':>8}{'longest':>9}{'measured':>10}{'cut, came':>11}")
    for name in names or networks.BY_NAME:
        graph = networks.BY_NAME[name]()
        for metric in (routes.Metric.HOPS, routes.Metric.LATENCY, routes.Metric.BANDWIDTH):
            goals = [networks.node(number) for number in range(0, networks.NODES, networks.NODES // GOALS)]
            # What all searches of a metric share is made once.
            graph.routes.prepare(metric, [networks.node(77)])
            fresh = [search(graph, metric, goal) for goal in goals]
            measured = [repair(graph, metric, goals[0]) for _ in changed(graph, cut=False)]
            moved = [repair(graph, metric, goals[0]) for _ in changed(graph, cut=True)]
            print(
                f"{name + ' ' + metric.value:<20}{statistics.median(each.all_ms for each in fresh):>10.2f}"
                f"{max(each.all_ms for each in fresh):>8.1f}{max(each.rounds for each in fresh):>8}"
                f"{statistics.median(each.longest_ms for each in fresh):>9.2f}"
                f"{statistics.median(measured):>10.2f}{statistics.median(moved):>11.2f}",
                flush=True,
            )
    return 0


def search(graph: store.Store, metric: routes.Metric, goal: keys.VertexKey) -> Fresh:
    """Search as a decision does whose time is up after every round."""
    taken, done = [], False
    while not done:
        begun = time.thread_time()
        done = graph.routes.prepare(metric, [goal], lambda: True)
        taken.append((time.thread_time() - begun) * 1e3)
    return Fresh(sum(taken), max(taken), len(taken))


def repair(graph: store.Store, metric: routes.Metric, goal: keys.VertexKey) -> float:
    """Milliseconds until the distances are right again."""
    begun = time.thread_time()
    graph.routes.prepare(metric, [goal])
    return (time.thread_time() - begun) * 1e3


def changed(graph: store.Store, *, cut: bool) -> Iterator[None]:
    """Measure some links worse and better again, or cut them and bring them back, one change at a time."""
    draw, links = random.Random(networks.SEED), sorted(graph.edge_ids(keys.EdgeKind.LINK))
    for _ in range(CHANGES):
        edge = draw.choice(links)
        link = graph.topology.tie(edge)
        assert isinstance(link, relations.Link)
        worse = relations.Link(link.latency_ms, link.bandwidth_mbps, 0.3)
        graph.apply(delta.Patch(cut={edge}) if cut else delta.Patch(edges={edge: worse}))
        yield
        graph.apply(delta.Patch(edges={edge: link}))
        yield


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
