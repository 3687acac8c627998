"""The store by example: who counts where, and what a patch can not do.

Nothing is simulated. Every test ends with an audit, which builds a second store from what the first holds and compares
all that is derived; the numbers asserted before are worked out by hand.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from graphsched.base.values import keys, nodes, pods, relations
from graphsched.graph import audit, delta, levels, store

GIB = 1 << 30
WEB = keys.pod_key("default", "web")


@pytest.fixture
def graph() -> Iterator[store.Store]:
    """An empty store, audited at the end."""
    built = store.Store()
    yield built
    assert [] == built.audit()


def node(name: str, *, cpu: int = 4000, **more: object) -> nodes.Node:
    """A node of 4 CPUs, 8 GiB and 10 pods."""
    amounts = (("cpu", cpu), ("memory", 8 * GIB), ("pods", 10))
    return msgspec.structs.replace(nodes.Node(name, allocatable=amounts), **more)


def pod(name: str = "web", *, uid: str = "1", cpu: int = 500, **more: object) -> pods.Pod:
    """A pod that takes half a CPU."""
    demand = pods.Demand((("cpu", cpu),), scored_cpu=cpu, scored_memory=200 << 20)
    plain = pods.Pod(keys.pod_key("default", name), uid=uid, spec=pods.Spec(demand=demand), held=demand)
    return msgspec.structs.replace(plain, **more)


def put(graph: store.Store, *vertices: delta.Vertex) -> None:
    """Set vertices in one patch."""
    patch = delta.Patch()
    for vertex in vertices:
        patch.set_vertex(vertex)
    assert isinstance(graph.apply(patch), delta.Applied)


def promise(name: str, to: str) -> keys.EdgeID:
    """The identity of the edge that promises the pod a node."""
    return keys.EdgeID(keys.pod_key("default", name), keys.node_key(to), keys.EdgeKind.RUNS)


def cpu_on(graph: store.Store, name: str) -> int:
    """Milli-CPU that is counted on the node."""
    return int(graph.columns.requested["cpu"][graph.columns.rows[name]])


# ── bound pods and nodes that come and go ──────────────────────────────────────────────────────────────────────────


def test_a_bound_pod_counts_on_its_node(graph: store.Store) -> None:
    """Requests, scored amounts and the number of pods, once each."""
    put(graph, node("n1"), node("n2"), pod(node="n1"), pod("api", node="n1", cpu=250))

    row = graph.columns.rows["n1"]
    assert 750 == cpu_on(graph, "n1")
    assert (750, 400 << 20, 2) == (
        graph.columns.scored_cpu[row],
        graph.columns.scored_memory[row],
        graph.columns.pods[row],
    )
    assert 0 == cpu_on(graph, "n2")


def test_a_pod_that_moves_counts_on_one_node_only(graph: store.Store) -> None:
    """A pod re-created under its name may be bound elsewhere before anyone saw it go."""
    put(graph, node("n1"), node("n2"), pod(node="n1"))
    put(graph, pod(uid="2", node="n2", cpu=700))

    assert (0, 700) == (cpu_on(graph, "n1"), cpu_on(graph, "n2"))


def test_a_pod_that_grows_in_place_counts_for_what_it_holds(graph: store.Store) -> None:
    """The spec may stay while the holdings move."""
    put(graph, node("n1"), pod(node="n1"))
    put(graph, pod(node="n1", held=pods.Demand((("cpu", 900), ("memory", GIB)))))

    assert 900 == cpu_on(graph, "n1")
    assert GIB == graph.columns.requested["memory"][graph.columns.rows["n1"]]


def test_a_status_update_changes_no_count(graph: store.Store) -> None:
    """The stored pod is the new one all the same."""
    put(graph, node("n1"), pod(node="n1"))
    put(graph, pod(node="n1", started=5.0))

    assert 500 == cpu_on(graph, "n1")
    placement = graph.placement(WEB)
    assert placement is not None
    assert 5.0 == placement.pod.started


def test_a_pod_on_an_unknown_node_waits_for_it(graph: store.Store) -> None:
    """It is kept, counts nowhere, and counts as soon as the node is known."""
    put(graph, pod(node="later"))
    placement = graph.placement(WEB)
    assert placement is not None
    assert ("later", {}) == (placement.node, graph.columns.rows)

    put(graph, node("later"))

    assert 500 == cpu_on(graph, "later")


def test_pods_outlive_their_node(graph: store.Store) -> None:
    """Removed and seen again, the node is charged for the pods that are still there, and no other node is."""
    put(graph, node("n1"), node("n2"), pod(node="n1"), pod("api", node="n1", cpu=100))
    graph.apply(delta.Patch().remove(keys.node_key("n1")))
    assert {"n2"} == set(graph.columns.rows)
    graph.apply(delta.Patch().remove(WEB))

    put(graph, node("n0"), node("n1"))

    assert (0, 100, 0) == (cpu_on(graph, "n0"), cpu_on(graph, "n1"), cpu_on(graph, "n2"))


def test_an_audit_leaves_the_columns_of_labels_as_they_are(graph: store.Store) -> None:
    """It builds none, for decisions would pay for that, and reorders none; a wrong value is found all the same."""
    put(graph, node("n1", labels=(("rack", "r"), ("tier", "t"), ("zone", "a"))), node("n2"))
    zones = graph.attributes.label("zone")
    graph.attributes.label("rack")
    assert [] == graph.audit()
    assert [] == audit.of_nodes(graph, ("n1", "n2"))
    assert ["zone", "rack"] == list(graph.attributes.label_keys)

    for row, wrong, right in (("n1", None, "a"), ("n1", "b", "a"), ("n2", "a", None)):
        zones.set(graph.columns.rows[row], wrong)
        assert [keys.node_key(row)] == [one.key for one in audit.of_nodes(graph, ("n1", "n2"))]
        zones.set(graph.columns.rows[row], right)


def test_an_audit_finds_what_holds_a_domain_and_should_not(graph: store.Store) -> None:
    """And what should and does not: ancestors alone would not tell."""
    put(graph, node("n1", labels=((levels.REGION, "r"), (levels.ZONE, "z"))))
    region, zone = graph.topology.domains()
    graph.topology._uncontain(region, zone)
    assert [f"{zone}: is held 0 times by {region}, should be 1 times"] == graph.audit()
    graph.topology._contain(region, zone)
    graph.topology._contain(zone, region)
    assert [f"{region}: is held 1 times by {zone}, should be 0 times"] == graph.audit()
    graph.topology._uncontain(zone, region)


def test_a_recycled_row_begins_empty(graph: store.Store) -> None:
    """The newcomer inherits nothing from the node that had the row: not amounts, not ports, not devices, not labels."""
    gpu = pods.GpuDemand(1, 400)
    port = (pods.HostPort("TCP", "10.0.0.1", 80),)
    spec = pods.Spec(ports=port, gpu=gpu)
    old = node("n1", labels=(("zone", "a"),), taints=(nodes.Taint("k", "v", "NoSchedule"),), gpus=2, unschedulable=True)
    put(graph, old, pod(spec=spec, node="n1", devices=(1,)))
    row = graph.columns.rows["n1"]
    graph.attributes.label("zone")
    graph.apply(delta.Patch().remove(keys.node_key("n1")))

    put(graph, node("n2", gpus=1))

    assert row == graph.columns.rows["n2"]
    assert 0 == cpu_on(graph, "n2")
    assert [] == graph.ports.held(row)
    assert [1000, -1] == graph.devices.free[:, row].tolist()
    assert -1 == graph.attributes.label("zone").ids[row]
    assert -1 == graph.attributes.taints.ids[row]
    assert not graph.attributes.unschedulable[row]


def test_a_node_replaced_under_its_name_keeps_its_pods(graph: store.Store) -> None:
    """Deleted and created again between two looks: one patch removes and sets it."""
    put(graph, node("n1", uid="a"), pod(node="n1"))
    patch = delta.Patch().remove(keys.node_key("n1")).set_vertex(node("n1", uid="b", cpu=8000))
    assert isinstance(graph.apply(patch), delta.Applied)

    row = graph.columns.rows["n1"]
    assert (8000, 500) == (graph.columns.allocatable["cpu"][row], cpu_on(graph, "n1"))


def test_what_a_node_no_longer_offers_is_gone(graph: store.Store) -> None:
    """Allocatable is replaced as a whole, resource by resource."""
    fpga = ("example.com/fpga", 2)
    put(graph, node("n1", allocatable=(("cpu", 1000), fpga)))
    put(graph, node("n1", allocatable=(("cpu", 2000),)))

    row = graph.columns.rows["n1"]
    assert (2000, 0, 0) == (
        graph.columns.allocatable["cpu"][row],
        graph.columns.allocatable["example.com/fpga"][row],
        graph.columns.allocatable["pods"][row],
    )


def test_a_removed_pod_frees_ports_and_devices(graph: store.Store) -> None:
    """A port held twice stays taken until both holders are gone."""
    port = (pods.HostPort("TCP", "0.0.0.0", 80),)  # noqa: S104  taken in a test only
    spec = pods.Spec(ports=port, gpu=pods.GpuDemand(1, 600))
    put(graph, node("n1", gpus=1), pod(spec=spec, node="n1", devices=(0,)))
    put(graph, pod("api", spec=spec, node="n1", devices=(0,)))
    row = graph.columns.rows["n1"]
    assert -200 == graph.devices.free[0, row]

    graph.apply(delta.Patch().remove(WEB))
    assert ({row}, 400) == (graph.ports.blocked(port), graph.devices.free[0, row])
    graph.apply(delta.Patch().remove(keys.pod_key("default", "api")))
    assert (set(), 1000) == (graph.ports.blocked(port), graph.devices.free[0, row])


def test_a_node_that_loses_devices_charges_those_left(graph: store.Store) -> None:
    """A pod on a lost device holds nothing there, until the node has it again."""
    spec = pods.Spec(gpu=pods.GpuDemand(2, 1000))
    put(graph, node("n1", gpus=2), pod(spec=spec, node="n1", devices=(0, 1)))
    put(graph, node("n1", gpus=1))
    row = graph.columns.rows["n1"]
    assert [0, -1] == graph.devices.free[:, row].tolist()

    put(graph, node("n1", gpus=3))

    assert [0, 0, 1000] == graph.devices.free[:, row].tolist()


# ── promises ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_promised_pod_counts_where_it_was_promised(graph: store.Store) -> None:
    """The decision is in the graph before the cluster has confirmed it."""
    put(graph, node("n1"), pod())
    assert 0 == cpu_on(graph, "n1")

    graph.apply(delta.Patch().set_edge(promise("web", "n1"), relations.Runs("1")))
    assert 500 == cpu_on(graph, "n1")

    graph.apply(delta.Patch().cut_edge(promise("web", "n1")))
    assert 0 == cpu_on(graph, "n1")


def test_a_promise_to_another_uid_counts_nowhere(graph: store.Store) -> None:
    """The pod was deleted and created again while its predecessor was being bound."""
    put(graph, node("n1"), pod(uid="new"))
    graph.apply(delta.Patch().set_edge(promise("web", "n1"), relations.Runs("old")))
    assert (0, None) == (cpu_on(graph, "n1"), graph.placement(WEB))

    put(graph, pod(uid="old"))
    assert 500 == cpu_on(graph, "n1")

    put(graph, pod(uid="new"))
    assert 0 == cpu_on(graph, "n1")


def test_a_promise_may_come_before_the_pod(graph: store.Store) -> None:
    """References may dangle at either end."""
    graph.apply(delta.Patch().set_edge(promise("web", "n1"), relations.Runs("1")))
    put(graph, pod())
    assert graph.placement(WEB) is not None
    put(graph, node("n1"))

    assert 500 == cpu_on(graph, "n1")


def test_a_binding_wins_over_a_promise(graph: store.Store) -> None:
    """Somebody else bound the pod to another node first: it counts there alone."""
    put(graph, node("n1"), node("n2"), pod())
    graph.apply(delta.Patch().set_edge(promise("web", "n1"), relations.Runs("1")))
    put(graph, pod(node="n2"))

    assert (0, 500) == (cpu_on(graph, "n1"), cpu_on(graph, "n2"))


def test_the_confirmed_promise_counts_once(graph: store.Store) -> None:
    """Bound where it was promised, with the promise still there, then cut."""
    put(graph, node("n1", gpus=1), pod(spec=pods.Spec(gpu=pods.GpuDemand(1, 300))))
    graph.apply(delta.Patch().set_edge(promise("web", "n1"), relations.Runs("1", (0,))))
    row = graph.columns.rows["n1"]
    assert 700 == graph.devices.free[0, row]
    put(graph, pod(spec=pods.Spec(gpu=pods.GpuDemand(1, 300)), node="n1", devices=(0,)))
    graph.apply(delta.Patch().cut_edge(promise("web", "n1")))

    assert (500, 700, 1) == (cpu_on(graph, "n1"), graph.devices.free[0, row], graph.columns.pods[row])


@pytest.mark.parametrize("gone", [WEB, keys.node_key("n1")], ids=["the pod", "the node"])
def test_a_removed_end_takes_the_promise_along(graph: store.Store, gone: keys.VertexKey) -> None:
    """And what comes back under the same name is not promised anything."""
    put(graph, node("n1"), pod())
    graph.apply(delta.Patch().set_edge(promise("web", "n1"), relations.Runs("1")))
    graph.apply(delta.Patch().remove(gone))
    assert graph.edge(promise("web", "n1")) is None
    put(graph, node("n1"), pod())

    assert (0, None) == (cpu_on(graph, "n1"), graph.promised(WEB))


def test_a_promise_moves_in_one_patch(graph: store.Store) -> None:
    """Cut and set together: never on two nodes, never on none."""
    put(graph, node("n1"), node("n2"), pod())
    graph.apply(delta.Patch().set_edge(promise("web", "n1"), relations.Runs("1")))
    patch = delta.Patch().cut_edge(promise("web", "n1")).set_edge(promise("web", "n2"), relations.Runs("1"))
    assert isinstance(graph.apply(patch), delta.Applied)

    assert (0, 500) == (cpu_on(graph, "n1"), cpu_on(graph, "n2"))


# ── nominations ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_only_a_pod_without_a_place_is_nominated(graph: store.Store) -> None:
    """The nomination is taken in as it changes, and dropped when the pod is placed or goes."""
    put(graph, node("n1"), node("n2"), pod(nominated="n1"))
    assert {"n1": {WEB}} == {name: set(found) for name, found in graph.nominated.items()}
    put(graph, pod(nominated="n2", priority=7))
    assert {"n2": [7]} == {name: [each.priority for each in found.values()] for name, found in graph.nominated.items()}

    graph.apply(delta.Patch().set_edge(promise("web", "n2"), relations.Runs("1")))
    assert {} == graph.nominated
    graph.apply(delta.Patch().cut_edge(promise("web", "n2")))
    assert ["n2"] == list(graph.nominated)
    put(graph, pod())
    assert {} == graph.nominated


# ── images ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_node_that_came_first_names_an_images_size(graph: store.Store) -> None:
    """Whatever the order in which the nodes pulled it; and the first entry counts where one node lists it twice."""
    put(graph, node("n1"), node("n2", images=(nodes.Image(("app:1",), 20), nodes.Image(("app:1",), 30))))
    assert 20 == graph.images.holders("app:1")[1]
    put(graph, node("n1", images=(nodes.Image(("app:1",), 10),)))
    assert 10 == graph.images.holders("app:1")[1]
    assert 2 == len(graph.images.holders("app:1")[0])

    graph.apply(delta.Patch().remove(keys.node_key("n1")))

    assert 20 == graph.images.holders("app:1")[1]
    graph.apply(delta.Patch().remove(keys.node_key("n2")))
    assert (0, 0) == (len(graph.images.holders("app:1")[0]), graph.images.holders("app:1")[1])


# ── patches ────────────────────────────────────────────────────────────────────────────────────────────────────────


LINK = keys.EdgeID(keys.node_key("n1"), keys.node_key("n2"), keys.EdgeKind.LINK)
BACKWARDS = keys.EdgeID(LINK.source, WEB, keys.EdgeKind.RUNS)


def setting(*vertices: delta.Vertex) -> delta.Patch:
    """A patch that sets these."""
    return delta.Patch(vertices={each.key: each for each in vertices})


def tying(*edges: tuple[keys.EdgeID, relations.Edge]) -> delta.Patch:
    """A patch that sets these edges."""
    return delta.Patch(edges=dict(edges))


BAD = {
    "a vertex under another's key": (delta.Patch(vertices={keys.pod_key("a", "b"): pod()}), "the key is not"),
    "a node without a name": (setting(node("")), "the name is empty"),
    "a negative amount": (setting(node("n9", cpu=-1)), "amount -1 of cpu"),
    "an amount too large": (setting(node("n9", cpu=1 << 60)), "of cpu is out"),
    "a negative number of GPUs": (setting(node("n9", gpus=-1)), "gpus -1"),
    "a negative image": (setting(node("n9", images=(nodes.Image(("a",), -5),))), "size of an image"),
    "a negative scored amount": (setting(pod(held=pods.Demand(scored_cpu=-1))), "amount -1 of cpu"),
    "more than a whole GPU": (setting(pod(spec=pods.Spec(gpu=pods.GpuDemand(1, 1001)))), "1001 thousandths"),
    "a negative device": (setting(pod(devices=(-1,))), "not ascending"),
    "a device twice": (setting(pod(devices=(1, 1))), "not ascending"),
    "promised devices out of order": (tying((promise("web", "n1"), relations.Runs("1", (2, 0)))), "not ascending"),
    "two promises at once": (
        tying((promise("web", "n1"), relations.Runs("1")), (promise("web", "n2"), relations.Runs("1"))),
        "in the same patch",
    ),
    "a second promise": (tying((promise("held", "n2"), relations.Runs("1"))), "promised to node/n1"),
    "attributes of another kind": (tying((LINK, relations.Runs("1"))), "not those of a link"),
    "no latency": (tying((LINK, relations.Link(float("nan"), 1.0))), "latency_ms nan"),
    "a negative bandwidth": (tying((LINK, relations.Link(1.0, -1.0))), "bandwidth_mbps"),
    "a negative cost": (tying((LINK, relations.Link(cost=-1))), "cost -1"),
    "a dead link": (tying((LINK, relations.Link(1.0, 1.0, 0.0))), "health 0.0"),
    "a promise the wrong way round": (tying((BACKWARDS, relations.Runs("1"))), "from a pod to a node"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_refused_patch_changes_nothing(graph: store.Store, case: str) -> None:
    """Not even the rows of it that were good, and the refusal names what was wrong."""
    put(graph, node("n1"), node("n2"), pod("held"))
    graph.apply(delta.Patch().set_edge(promise("held", "n1"), relations.Runs("1")))
    before, generation = graph.content(), graph.generation
    good = delta.Patch().set_vertex(node("fresh")).remove(keys.node_key("n2"))
    patch, words = BAD[case]

    answer = graph.apply(delta.merge([good, patch]))

    assert isinstance(answer, delta.Refused)
    assert "invalid" == answer.reason
    assert words in answer.detail
    assert (before, generation) == (graph.content(), graph.generation)
    assert 500 == cpu_on(graph, "n1")


@pytest.mark.parametrize("case", BAD)
def test_the_good_rows_of_a_refused_patch_can_be_had(graph: store.Store, case: str) -> None:
    """What is sifted is taken, and each bad row is named once; of two promises at once the first is good."""
    put(graph, node("n1"), node("n2"), pod("held"))
    graph.apply(delta.Patch().set_edge(promise("held", "n1"), relations.Runs("1")))
    graph.streams.open("watch/x", 1)
    patch, words = BAD[case]
    patch = delta.merge([delta.Patch().set_vertex(node("fresh")).remove(keys.node_key("n2")), patch])
    patch.stream = delta.Stream("watch/x", 1, 1)

    good, problems = graph.sift(patch)

    assert [True] == [words in problem for problem in problems]
    assert (len(patch) - 1, patch.stream) == (len(good), good.stream)
    assert isinstance(graph.apply(good), delta.Applied)
    assert graph.node("fresh") is not None
    assert graph.node("n2") is None
    assert [] == graph.audit()


def test_undo_restores_what_was(graph: store.Store) -> None:
    """Also promises that hung on a removed node, and pods that changed."""
    put(graph, node("n1"), node("n2"), pod(), pod("api", node="n2"))
    graph.apply(delta.Patch().set_edge(promise("web", "n1"), relations.Runs("1")))
    before = graph.content()
    patch = delta.Patch().remove(keys.node_key("n1")).set_vertex(pod("api", cpu=1)).set_vertex(node("n3"))

    applied = graph.apply(patch, undo=True)

    assert isinstance(applied, delta.Applied)
    assert applied.undo is not None
    assert before != graph.content()
    graph.apply(applied.undo)
    assert before == graph.content()
    assert (500, 500) == (cpu_on(graph, "n1"), cpu_on(graph, "n2"))


@pytest.mark.parametrize("end", [pod(), node("n1")], ids=["the pod", "the node"])
def test_undoing_an_arrival_leaves_the_promise_that_dangled(graph: store.Store, end: delta.Vertex) -> None:
    """It was there before the vertex was, so it is there when the vertex is gone again."""
    graph.apply(delta.Patch().set_edge(promise("web", "n1"), relations.Runs("1")))
    before = graph.content()

    applied = graph.apply(setting(end), undo=True)

    assert isinstance(applied, delta.Applied)
    assert applied.undo is not None
    graph.apply(applied.undo)
    assert before == graph.content()


def test_a_repeated_sequence_is_no_change(graph: store.Store) -> None:
    """A patch that a source sends twice is taken once; one after a gap is refused and asks for a resync."""
    graph.streams.open("watch/nodes", 1)
    patch = delta.Patch(stream=delta.Stream("watch/nodes", 1, 1)).set_vertex(node("n1"))
    first, again = graph.apply(patch), graph.apply(patch)

    assert isinstance(first, delta.Applied)
    assert isinstance(again, delta.Applied)
    assert (False, True, first.generation) == (first.repeated, again.repeated, again.generation)
    gap = graph.apply(delta.Patch(stream=delta.Stream("watch/nodes", 1, 3)).set_vertex(node("n2")))
    assert isinstance(gap, delta.Refused)
    assert "gap" == gap.reason
    assert {"n1"} == set(graph.columns.rows)


def test_ranks_follow_names_whatever_the_rows(graph: store.Store) -> None:
    """The order that breaks ties does not depend on who came first."""
    put(graph, node("c"))
    put(graph, node("a"), node("d"))
    graph.apply(delta.Patch().remove(keys.node_key("a")))
    put(graph, node("b"))

    ranks = {name: int(graph.columns.rank[row]) for name, row in graph.columns.rows.items()}
    assert {"b": 0, "c": 1, "d": 2} == ranks
