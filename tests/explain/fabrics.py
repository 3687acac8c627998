"""A small data centre for what shows the graph: zones, racks, NVLink domains, a leaf a rack, spines above, pods.

`python -m tests.explain.fabrics` draws it for the manual.
"""

from __future__ import annotations

import pathlib
import random

from graphsched.base.values import groups, keys, labels, places, policies, relations, selections
from graphsched.explain.atlas import maps, survey
from graphsched.explain.pictures import network
from graphsched.graph import delta, store
from tests import builders

PICTURE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "img" / "graph.svg"
RACK = "topology.kubernetes.io/rack"
CLIQUE = "nvidia.com/gpu.clique"
ZONE_A = "domain/topology.kubernetes.io/zone=eu/a"
ZONE_B = "domain/topology.kubernetes.io/zone=eu/b"
WEB = labels.selector([labels.Requirement("app", labels.Operator.IN, ("web",))])
GOLD = labels.selector([labels.Requirement("tier", labels.Operator.IN, ("gold",))])


def link(patch: delta.Patch, a: str, b: str, value: relations.Link, *, both: bool = True) -> None:
    """Link two vertices."""
    ends = keys.VertexKey(a), keys.VertexKey(b)
    patch.set_edge(keys.EdgeID(*ends, keys.EdgeKind.LINK), value)
    if both:
        patch.set_edge(keys.EdgeID(ends[1], ends[0], keys.EdgeKind.LINK), value)


def patch() -> delta.Patch:
    """Two zones of two racks of two nodes; `n3` hangs on a bad link, `web-1` is promised `n1`, a link dangles."""
    made = delta.Patch()
    for number in range(8):
        zone, rack = "ab"[number // 4], f"r{number // 2}"
        node = builders.make_node(f"n{number}").region("eu").zone(zone).label(RACK, rack)
        node = node.label(CLIQUE, f"c{number // 4}").label("tier", "gold" if number < 2 else "plain")
        made.set_vertex(node.build())
        made.set_vertex(places.Place(f"net/leaf-{rack}", tier=1))
        health = 0.3 if number == 3 else 1.0
        link(made, f"node/n{number}", f"place/net/leaf-{rack}", relations.Link(0.02, 100_000.0, health, 900.0))
    for spine in ("s0", "s1"):
        made.set_vertex(places.Place(f"net/{spine}", tier=2))
        for leaf in range(4):
            link(made, f"place/net/leaf-r{leaf}", f"place/net/{spine}", relations.Link(0.05, 400_000.0))
    link(made, ZONE_A, ZONE_B, relations.Link(1.2, None), both=False)
    link(made, "node/n0", "place/net/gone", relations.Link())
    for number in range(4):
        pod = builders.make_pod(f"web-{number}").label("app", "web").cpu("1")
        made.set_vertex((pod.node(f"n{number}") if number != 1 else pod).build())
    promised = keys.EdgeID(keys.pod_key("default", "web-1"), keys.node_key("n1"), keys.EdgeKind.RUNS)
    made.set_edge(promised, relations.Runs("uid-default-web-1"))
    made.set_vertex(builders.make_pod("db-0", "shop").label("app", "db").build())
    made.set_vertex(selections.Selection("Service", "default", "web", WEB))
    calls = groups.Dependency("web", rate=3.0, latency_ms_max=2.0)
    made.set_vertex(
        groups.Group("default", "mesh", (groups.Workload("web", WEB), groups.Workload("api", None, (calls,))))
    )
    made.set_vertex(
        policies.Rule(
            "keep-out",
            0,
            match=policies.Match(pods=WEB, nodes=GOLD),
            action=policies.Action.REQUIRE,
            path=policies.Path(keys.VertexKey(ZONE_A), hops_max=3),
        )
    )
    return made


def fabric(*, seed: int | None = None) -> store.Store:
    """The store that holds it; with a seed, everything arrived in another order."""
    made = patch()
    if seed is not None:
        order = random.Random(seed)
        vertices, edges = list(made.vertices.items()), list(made.edges.items())
        order.shuffle(vertices)
        order.shuffle(edges)
        made.vertices, made.edges = dict(vertices), dict(edges)
    graph = store.Store()
    assert isinstance(graph.apply(made), delta.Applied)
    return graph


def drawn() -> str:
    """The picture in docs/graph.md."""
    return network.draw(survey.survey(fabric(), (maps.Layer.PHYSICAL, maps.Layer.RESOURCES)))


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
