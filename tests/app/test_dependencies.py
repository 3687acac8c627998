"""Who waits for whom: whatever came and went, the graph is what a fresh one would be."""

from __future__ import annotations

import random

import hypothesis
import msgspec
from hypothesis import strategies as st

from graphsched.app import dependencies
from graphsched.base.values import groups, keys, pods
from graphsched.decision import walking
from tests.app import ties


def edges(tied: dependencies.Dependencies) -> dict[str, list[walking.Key]]:
    """Vertex → where its edges lead."""
    graph = tied.graph()
    return {key: graph.targets(key) for key in graph.keys}


def test_callers_wait_for_whom_they_call() -> None:
    """By way of the workload, so that many pods that wait for many are few edges."""
    tied = dependencies.Dependencies()
    tied.set_group(None, ties.group("shop", web="db", db=""))
    for number in range(3):
        tied.enter(ties.pod(f"web-{number}", "web"))
        tied.enter(ties.pod(f"db-{number}", "db"))

    awaited = "awaited/default/shop/db"
    expected: dict[str, list[str]] = {f"pod/default/db-{number}": [awaited] for number in range(3)}
    expected |= {awaited: [f"pod/default/web-{number}" for number in range(3)]}
    expected |= {f"pod/default/web-{number}": [] for number in range(3)}
    assert expected == edges(tied)


def test_pods_that_nothing_ties_are_no_vertices() -> None:
    """The queue of a cluster without dependencies costs the walk nothing."""
    tied = dependencies.Dependencies()
    tied.set_group(None, ties.group("shop", web="db", db=""))
    tied.enter(ties.pod("alone"))
    tied.enter(ties.pod("cache-0", "cache"))

    assert 0 == len(tied)
    assert 0 == tied.version


def test_a_pod_waits_for_the_names_in_its_annotation() -> None:
    """Of its own namespace, or of another; for those that bear the name by themselves, by a label or by their owner."""
    tied = dependencies.Dependencies()
    waiting = pods.Spec(graph=pods.GraphDemand(depends_on=("cache", "other/db")))
    tied.enter(pods.Pod(keys.pod_key("default", "web"), spec=waiting))
    tied.enter(ties.pod("cache-0", "cache"))
    owner = keys.selection_key("StatefulSet", "other", "db")
    tied.enter(pods.Pod(keys.pod_key("other", "db-0"), owner=owner))
    tied.enter(pods.Pod(keys.pod_key("default", "db")))

    expected: dict[str, list[str]] = {
        "awaited/default/cache": ["pod/default/web"],
        "awaited/other/db": ["pod/default/web"],
        "pod/default/cache-0": ["awaited/default/cache"],
        "pod/default/web": [],
        "pod/other/db-0": ["awaited/other/db"],
    }
    assert expected == edges(tied)


def test_nobody_waits_for_a_sibling() -> None:
    """A workload that names itself does not wait."""
    tied = dependencies.Dependencies()
    tied.set_group(None, ties.group("shop", web="web"))
    tied.enter(ties.pod("web-0", "web"))

    assert {} == edges(tied)


WORLD = {
    "a": ties.group("a", web="db", db="disk", disk=""),
    "b": ties.group("b", web="cache", cache=""),
    "a2": msgspec.structs.replace(ties.group("a", web="cache db", db=""), name="a"),
}


@hypothesis.given(st.integers(0, 2**32 - 1))
@hypothesis.settings(max_examples=100, deadline=None)
def test_any_history_gives_what_a_fresh_graph_holds(seed: int) -> None:
    """Pods and groups come, change and go in any order."""
    rng = random.Random(seed)
    tied = dependencies.Dependencies()
    there: dict[str, pods.Pod] = {}
    known: dict[keys.VertexKey, groups.Group] = {}
    for _ in range(40):
        name = f"p{rng.randrange(8)}"
        match rng.randrange(4):
            case 0 | 1:
                there[name] = ties.pod(name, rng.choice(["web", "db", "disk", "cache", ""]))
                tied.enter(there[name])
            case 2:
                there.pop(name, None)
                tied.leave(keys.pod_key("default", name))
            case _:
                new = WORLD[rng.choice(sorted(WORLD))]
                if rng.random() < 0.3:
                    tied.set_group(known.pop(new.key, None), None)
                else:
                    tied.set_group(known.get(new.key), new)
                    known[new.key] = new
    fresh = dependencies.Dependencies()
    for each in known.values():
        fresh.set_group(None, each)
    for waiting in there.values():
        fresh.enter(waiting)

    assert edges(fresh) == edges(tied)
