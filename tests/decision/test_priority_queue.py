"""The plugin `priorityQueue`: breadth first, and nothing before what it waits for, whatever the graph."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable

import hypothesis
import pytest
from hypothesis import strategies as st

from graphsched.base.values import keys
from graphsched.decision import walking
from graphsched.graph import adjacency

QUEUE = walking.PriorityQueue()


def graph(edges: Iterable[str], *, gone: str = "") -> walking.Graph:
    """A graph of one-letter vertices, some of which are removed again; an edge is two letters."""
    edges = list(edges)
    writer: adjacency.Writer[keys.VertexKey] = adjacency.Writer()
    for name in sorted(set("".join(edges))):
        writer.add(keys.VertexKey(name))
    for edge in edges:
        writer.set(keys.VertexKey(edge[0]), keys.VertexKey(edge[1]))
    writer.picture()
    for name in gone:
        writer.remove(keys.VertexKey(name))
    return walking.Graph(writer.picture())


def ordered(where: walking.Graph, start: str, **priorities: int) -> str:
    """Its order as letters."""
    ctx = walking.Context(priorities={keys.VertexKey(key): value for key, value in priorities.items()})
    return "".join(QUEUE.walk(where, [keys.VertexKey(key) for key in start], ctx))


def test_nothing_goes_before_what_it_waits_for_however_near_it_is_to_a_root() -> None:
    """Where web waits for db and api, and api for db: api goes before web, which is older and more urgent."""
    # d is db, a api, w web.
    assert "daw" == ordered(graph(["da", "aw", "dw"]), "wad", w=5)


def test_what_a_circle_holds_up_is_left_out_and_the_circle_can_be_named() -> None:
    """Behind a root, without one, and what another way leads to as well."""
    assert "aef" == ordered(graph(["ab", "bc", "cb", "cd", "ad", "ef"]), "abcdef")
    assert ("b", "c") == graph(["ab", "bc", "cb", "cd", "ad", "ef"]).cycle(walking.Context())
    assert "a" == ordered(graph(["yz", "zy", "zx", "ax"]), "axyz")


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (walking.Limits(), "abcdef"),
        (walking.Limits(vertices_max=0), ""),
        (walking.Limits(vertices_max=3), "abc"),
        (walking.Limits(depth_max=0), "ab"),
        (walking.Limits(depth_max=1), "abcd"),
        (walking.Limits(edges_max=2), "ab"),
        (walking.Limits(edges_max=3), "abcd"),
        (walking.Limits(edges_max=4), "abcd"),
        (walking.Limits(edges_max=5), "abcdef"),
    ],
)
def test_limits_leave_the_beginning_of_the_order(limits: walking.Limits, expected: str) -> None:
    """On edges and depth a wave is taken whole or not at all; edges of vertices that are gone count nothing."""
    where = graph(["ac", "ad", "bd", "ce", "df", "ga", "hb", "ah"], gone="gh")

    assert expected == "".join(QUEUE.walk(where, [], walking.Context(limits=limits)))


def test_it_stops_the_first_time_that_nobody_wants_the_answer_any_more() -> None:
    """Whenever that is; it looks at each wave, and what it has by then is the beginning of the order."""
    where = graph(f"{one}{other}" for one, other in itertools.pairwise("abcdefghi"))
    lengths, found = [], ""
    for looks in itertools.count():
        asked = 0

        def cancelled(looks: int = looks) -> bool:
            nonlocal asked
            asked += 1
            return asked > looks

        found = "".join(QUEUE.walk(where, [], walking.Context(cancelled=cancelled)))
        if asked <= looks:
            break
        assert looks + 1 == asked
        assert "abcdefghi".startswith(found)
        lengths.append(len(found))

    assert "abcdefghi" == found
    assert [*range(9)] == sorted(set(lengths))


class World:
    """A random graph from which vertices were removed again, as a plugin gets it and as plain Python has it."""

    def __init__(self, seed: int, *, acyclic: bool) -> None:
        rng = random.Random(seed)
        names = [keys.VertexKey(f"v{number:02}") for number in range(rng.randrange(1, 25))]
        rng.shuffle(names)
        writer: adjacency.Writer[keys.VertexKey] = adjacency.Writer()
        for name in names:
            writer.add(name)
        edges = set()
        for _ in range(rng.randrange(0, 2 * len(names))):
            one, other = rng.choices(range(len(names)), k=2)
            if one != other:
                edges.add((names[min(one, other)], names[max(one, other)]) if acyclic else (names[one], names[other]))
        for source, target in sorted(edges):
            writer.set(source, target)
        gone = rng.sample(names, len(names) // 4)
        for name in gone:
            writer.picture()
            writer.remove(name)
        self.names = [name for name in names if name not in gone]
        self.edges = {edge for edge in edges if not set(edge) & set(gone)}
        self.graph = walking.Graph(writer.picture())
        self.start = rng.sample(self.names, rng.randrange(0, len(self.names) + 1))
        self.priorities = {name: rng.randrange(-1, 2) for name in self.names}

    def found(self) -> list[keys.VertexKey]:
        """The plugin's order."""
        return list(QUEUE.walk(self.graph, self.start, walking.Context(priorities=self.priorities)))

    def plain(self) -> list[list[keys.VertexKey]]:
        """Kahn's algorithm, wave by wave; vertices that were not given come last of equals, by name or as they come."""
        left, waves = set(self.names), list[list[keys.VertexKey]]()
        while wave := [
            name for name in left if not any(target == name and source in left for source, target in self.edges)
        ]:
            place = {name: number for number, name in enumerate(self.start)}
            waves.append(sorted(wave, key=lambda name: (-self.priorities[name], place.get(name, len(place)), name)))
            left -= set(wave)
        return waves


SEEDS = st.integers(0, 2**32 - 1)


@hypothesis.given(SEEDS)
@hypothesis.settings(max_examples=200, deadline=None)
def test_without_a_circle_everything_comes_and_after_all_that_it_waits_for(seed: int) -> None:
    """Every vertex once."""
    world = World(seed, acyclic=True)
    place = {name: number for number, name in enumerate(world.found())}

    assert set(world.names) == set(place)
    assert [] == [edge for edge in world.edges if place[edge[0]] > place[edge[1]]]


@hypothesis.given(SEEDS, st.booleans())
@hypothesis.settings(max_examples=200, deadline=None)
def test_it_is_kahns_algorithm_with_the_more_urgent_first_in_each_wave(seed: int, acyclic: bool) -> None:
    """Also with circles, of which nothing comes."""
    world = World(seed, acyclic=acyclic)

    assert [name for wave in world.plain() for name in wave] == world.found()


@hypothesis.given(SEEDS)
@hypothesis.settings(max_examples=200, deadline=None)
def test_what_is_left_over_is_on_a_circle_or_behind_one_and_the_circle_is_one(seed: int) -> None:
    """Each that is left over waits for another that is; where any is, the graph names a circle among them."""
    world = World(seed, acyclic=False)
    over = set(world.names) - set(world.found())
    circle = world.graph.cycle(walking.Context())

    assert over == {target for source, target in world.edges if source in over}
    assert bool(over) == bool(circle)
    assert set(circle) <= over
    assert all(edge in world.edges for edge in zip(circle, (*circle[1:], *circle[:1]), strict=True))
