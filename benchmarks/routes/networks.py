"""The networks that ways are searched in: shape, links and seed fixed here. All have 10,000 nodes and 50,000 links."""

from __future__ import annotations

import random
from collections.abc import Callable

from graphsched.base.values import keys, nodes, places, relations
from graphsched.graph import delta, levels, store

SEED = 6
RACK = "topology.kubernetes.io/rack"
NODES, LINKS = 10_000, 50_000


def node(number: int) -> keys.VertexKey:
    """The key of the node of this number."""
    return keys.node_key(_name(number))


def mesh() -> store.Store:
    """Racks of 40 and zones of 2,000 nodes; links in one direction each, between nodes drawn evenly."""
    draw, graph, links = random.Random(SEED), _racks(), dict[keys.EdgeID, relations.Link]()
    while len(links) < LINKS:
        start, end = draw.sample(range(NODES), 2)
        link = relations.Link(draw.uniform(0.05, 5), draw.uniform(500, 100_000), draw.choice((1.0,) * 9 + (0.5,)))
        links[keys.EdgeID(node(start), node(end), keys.EdgeKind.LINK)] = link
    return _linked(graph, links)


def fabric() -> store.Store:
    """The same racks; every node on the two leaf switches of its rack, every leaf on ten of sixteen spines."""
    draw, graph, links = random.Random(SEED), _racks(), dict[keys.EdgeID, relations.Link]()
    spines = [places.Place(f"spine-{number}") for number in range(16)]
    leaves = [[places.Place(f"leaf-{rail}-{rack}") for rack in range(NODES // 40)] for rail in range(2)]
    graph.apply(delta.Patch(vertices={place.key: place for place in (*spines, *leaves[0], *leaves[1])}))
    for rail in leaves:
        for number in range(NODES):
            link = relations.Link(draw.uniform(0.01, 0.05), draw.uniform(90_000, 100_000))
            _both(links, node(number), rail[number // 40].key, link)
        for rack, leaf in enumerate(rail):
            for number in range(10):
                link = relations.Link(draw.uniform(0.02, 0.1), draw.uniform(360_000, 400_000))
                _both(links, leaf.key, spines[(rack + number) % 16].key, link)
    return _linked(graph, links)


def ring() -> store.Store:
    """A thousand sites in a ring, ten nodes each: four links at every node within, and five between neighbours."""
    draw, links, graph = random.Random(SEED), dict[keys.EdgeID, relations.Link](), store.Store()
    found = [nodes.Node(_name(number), labels=((levels.ZONE, f"{number // 10}"),)) for number in range(NODES)]
    graph.apply(delta.Patch(vertices={each.key: each for each in found}))
    for number in range(NODES):
        site = number // 10 * 10
        for apart in (1, 2):
            link = relations.Link(draw.uniform(0.1, 0.3), draw.uniform(5_000, 10_000))
            _both(links, node(number), node(site + (number + apart) % 10), link)
        if not number % 2:
            link = relations.Link(draw.uniform(1, 3), draw.uniform(500, 1_000))
            _both(links, node(number), node((number + 10) % NODES), link)
    return _linked(graph, links)


BY_NAME: dict[str, Callable[[], store.Store]] = {"mesh": mesh, "fabric": fabric, "ring": ring}


def _name(number: int) -> str:
    return f"n{number:05}"


def _racks() -> store.Store:
    graph = store.Store()
    found = [
        nodes.Node(_name(number), labels=((RACK, f"{number // 40}"), (levels.ZONE, f"{number // 2000}")))
        for number in range(NODES)
    ]
    graph.apply(delta.Patch(vertices={each.key: each for each in found}))
    return graph


def _both(
    links: dict[keys.EdgeID, relations.Link], one: keys.VertexKey, other: keys.VertexKey, link: relations.Link
) -> None:
    links[keys.EdgeID(one, other, keys.EdgeKind.LINK)] = links[keys.EdgeID(other, one, keys.EdgeKind.LINK)] = link


def _linked(graph: store.Store, links: dict[keys.EdgeID, relations.Link]) -> store.Store:
    graph.apply(delta.Patch(edges=dict(links)))
    return graph
