"""The ways a placement was weighed by are told with their links and the age of what is known of them."""

from __future__ import annotations

import msgspec

from graphsched.base.values import keys, places, relations
from graphsched.decision import context as contexts, cycle
from graphsched.explain import telling, why
from graphsched.graph import delta, store
from tests.builders import make_node, make_pod
from tests.explain.worlds import world

WEB = make_pod("web").set("metadata.annotations", {"graphsched.io/peers": "app=store;maxLatencyMs=1"})


def linked(health: float = 1.0) -> store.Store:
    """Nodes web-1 and storage-3 with a switch between; the store runs on storage-3."""
    graph = world(make_node("web-1"), make_node("storage-3"), make_pod("s").label("app", "store").node("storage-3"))
    leaf = places.Place("slurm/leaf-12")
    patch = delta.Patch(vertices={leaf.key: leaf})
    for start, end, time in (("web-1", leaf.key, 0.2), (leaf.key, "storage-3", 0.4)):
        ends = [keys.VertexKey(end) if "/" in end else keys.node_key(end) for end in (start, end)]
        link = relations.Link(time, health=health, at=1000.0)
        patch.edges[keys.EdgeID(ends[0], ends[1], keys.EdgeKind.LINK)] = link
    graph.apply(patch)
    return graph


def test_the_way_to_a_partner_is_drawn_with_its_links_and_their_age() -> None:
    """From the node it runs on."""
    pod = msgspec.structs.replace(WEB.build(), node="web-1")
    graph = linked()
    graph.apply(delta.Patch(vertices={pod.key: pod}))
    found = why.explain(graph.view(), pod, cycle.Decider(), context=contexts.Context(now=1012.0))

    path = "web-1 ─0.2 ms─ leaf-12 ─0.4 ms─ storage-3"
    told = f"  To app=store in default: {path} (2 hops, 0.6 ms, worst link at health 1, measured 12s ago)"
    assert told in telling.lines(found)


def test_a_pod_beside_its_partner_needs_no_way() -> None:
    """The runner-up has none, which is told to who wants to see everything."""
    found = why.explain(linked().view(), WEB.build(), cycle.Decider())

    assert found.node == "storage-3"
    assert "  To app=store in default: on storage-3 itself" in telling.lines(found)


def test_a_limit_that_refuses_says_what_is_beyond_it() -> None:
    """In the words of the reason, and what would wake the pod."""
    graph = linked(health=0.5)
    graph.apply(delta.Patch(vertices={each.key: each for each in (make_node("storage-3").cordoned().build(),)}))
    text = telling.text(why.explain(graph.view(), WEB.build(), cycle.Decider()))

    assert "1 more than 1 ms from app=store in default" in text
    assert "a link getting better or known" in text
