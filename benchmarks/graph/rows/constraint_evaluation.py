"""Which nodes may take a pod: the walk over the graph of checks beside predicates that ask node by node, pod by pod.

Pods arrive one after the other, with affinity, anti-affinity, hard spread and requests; for each, the whole set of
feasible nodes is found, and it runs on the first of them by name. What keeping the indices costs is in our time.
"""

from __future__ import annotations

import random
import time

import msgspec

from benchmarks.graph import frame, twins
from benchmarks.plain import predicates
from benchmarks.plain.clusters import Cluster, Node, Pod
from graphsched.decision import classes, profile, trace
from graphsched.decision.constraints import check, walk
from graphsched.graph import view

NAME = "constraint evaluation"
SHAPE = "100 nodes in 5 zones, 500 pods of 25 applications with affinity, anti-affinity, spread, requests; seed 1"
REFERENCE = "427 → 68 ms; 12,500 → 32 predicate calls"
RATIO, CALLS = 20.0, 32
SEED = 1

_Sets = list[tuple[str, ...]]
_PROFILE = profile.Profile()


def run(*, quick: bool) -> frame.Outcome:
    """Place the pods both ways."""
    number, arriving, rounds = (12, 40, 1) if quick else (100, 500, 2)
    ours_s, plain_s = [], []
    equal = True
    for _ in range(rounds):
        world, pods = _world(number, arriving)
        begun = time.perf_counter()
        ours = _ours(world, pods)
        ours_s.append(time.perf_counter() - begun)
        begun = time.perf_counter()
        plain = _plain(world, pods)
        plain_s.append(time.perf_counter() - begun)
        equal = equal and ours == plain
    calls, plain_calls = _calls(*_world(number, arriving))
    return frame.Outcome(
        equal=equal,
        measures=(
            frame.Ratio("all feasible sets", "ms", min(plain_s) * 1e3, min(ours_s) * 1e3, bar=RATIO),
            frame.Limit("predicate calls a walk, at most", "", calls, at_most=CALLS),
        ),
        notes=(f"the plain way makes up to {plain_calls:,} predicate calls a pod, each over the running pods",),
    )


def _world(number: int, arriving: int) -> tuple[twins.Twins, list[twins.Twin]]:
    """The cluster, empty, and the pods in the order in which they arrive."""
    rng = random.Random(SEED)
    world = twins.Twins(number, zones=5, racks=number // 4, cpu=8000, memory=32 << 30)
    kinds = []
    for index in range(max(2, arriving // 20)):
        app = f"app-{index:02d}"
        # A third each: near another application, apart from its own kind, spread over the zones; all of them overlap.
        near = (twins.Wish(f"app-{index - 1:02d}", twins.ZONE),) if index % 3 == 1 else ()
        apart = (twins.Wish(app, twins.HOSTNAME),) if index % 3 != 2 else ()
        spread = ((twins.ZONE, 2),) if index % 3 != 1 else ()
        cpu, memory = rng.choice((500, 1000, 1500)), rng.choice((1, 2, 4)) << 30
        kinds.append(twins.Replicas(twins.Shape(app, cpu, memory, near=near, apart=apart, spread=spread)))
    return world, [rng.choice(kinds).next() for _ in range(arriving)]


def _ours(world: twins.Twins, pods: list[twins.Twin]) -> _Sets:
    found = []
    plans: dict[int, tuple[check.Check, ...]] = {}
    for twin in pods:
        graph, subject = world.graph.view(), _subject(twin)
        # As a class of pods does: replicas share their spec, and the order of the walk with it.
        planned = plans.get(id(twin.ours.spec))
        if planned is None:
            planned = plans[id(twin.ours.spec)] = walk.plan(walk.IN_ORDER, subject)
        names = _names(graph, walk.mask(graph, subject, planned, slice(None)))
        found.append(names)
        if names:
            world.place_ours(twin.ours, names[0])
    return found


def _plain(world: twins.Twins, pods: list[twins.Twin]) -> _Sets:
    found = []
    for twin in pods:
        names = tuple(node.name for node in predicates.feasible(world.plain, twin.plain))
        found.append(names)
        if names:
            world.place_plain(twin.plain, names[0])
    return found


def _subject(twin: twins.Twin) -> check.Subject:
    subject = classes.subject_of(twin.ours.spec, _PROFILE)
    return msgspec.structs.replace(subject, namespace=twins.NAMESPACE, labels=twin.ours.labels)


def _names(graph: view.View, mask: trace.Mask) -> tuple[str, ...]:
    """Rows are in the order of the names here, since the nodes came in that order and none has left."""
    names = graph.columns.names
    return tuple(names[row] for row in mask.nonzero()[0].tolist())


class _Counting:
    """A check that counts how often it is asked."""

    def __init__(self, inner: check.Check) -> None:
        self._inner = inner
        self.plugin, self.static, self.after = inner.plugin, inner.static, inner.after
        self.calls = 0

    def applies(self, subject: check.Subject) -> bool:
        """As the check itself says."""
        return self._inner.applies(subject)

    def passes(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> trace.Mask:
        """The check's answer, counted."""
        self.calls += 1
        return self._inner.passes(graph, subject, rows)

    def refusals(self, graph: view.View, subject: check.Subject, rows: check.Rows) -> list[check.Refusal]:
        """The check's answer, counted."""
        self.calls += 1
        return self._inner.refusals(graph, subject, rows)


def _calls(world: twins.Twins, pods: list[twins.Twin]) -> tuple[int, int]:
    """The most predicate calls for one pod, ours and the plain way's, counted as they are made."""
    most, plain_most = 0, 0
    for twin in pods:
        graph = world.graph.view()
        counting = [_Counting(each) for each in walk.IN_ORDER]
        subject = _subject(twin)
        names = _names(graph, walk.mask(graph, subject, walk.plan(counting, subject), slice(None)))
        most = max(most, sum(each.calls for each in counting))
        plain_most = max(plain_most, _plain_calls(world.plain, twin.plain))
        if names:
            world.place(twin, names[0])
    return most, plain_most


def _plain_calls(cluster: Cluster, pod: Pod) -> int:
    calls = 0

    def counted(predicate: predicates.Predicate) -> predicates.Predicate:
        def asked(cluster: Cluster, pod: Pod, node: Node) -> bool:
            nonlocal calls
            calls += 1
            return predicate(cluster, pod, node)

        return asked

    predicates.feasible(cluster, pod, tuple(map(counted, predicates.ALL)))
    return calls
