"""
The topology is what node labels say, whatever happened before.

A random history of nodes arriving, moving and leaving, and of links made and cut, must end in the graph that a fresh
topology with the same content has; the single cases say where nodes hang.
"""

from __future__ import annotations

import collections

import pytest
from hypothesis import given, settings, stateful, strategies as st

from graphsched.base.values import keys, labels, relations
from graphsched.graph import levels, topology

# A failing example is worth nothing before it is shrunk, which takes longer than any test that passes.
pytestmark = pytest.mark.timeout(600)

AWS = "topology.k8s.aws/network-node-layer-"
RACK = "topology.kubernetes.io/rack"
CLIQUE = "nvidia.com/gpu.clique"
CORE = "network.topology.nvidia.com/core"
DATACENTER = "network.topology.nvidia.com/datacenter"
SPINE = "network.topology.nvidia.com/spine"
LINK = relations.Link(0.2, 100_000.0)

names = st.sampled_from(("a", "b", "c", "d"))
levelled = st.dictionaries(
    st.sampled_from((levels.REGION, levels.ZONE, RACK, AWS + "1", AWS + "2", AWS + "3", CLIQUE, "app")),
    st.sampled_from(("", "x", "y")),
)
# Two labels name one level here, so that domains of one key are held by different ones. Few and whole, for two nodes of
# one spine under different labels must come up often.
doubled = st.sampled_from(({DATACENTER: "x", SPINE: "y"}, {CORE: "x", SPINE: "y"}, {CORE: "x", DATACENTER: "y"}))
some_labels = st.one_of(levelled, doubled).map(labels.from_mapping)
domain_keys = st.sampled_from(
    (
        keys.domain_key(levels.REGION, "x"),
        keys.domain_key(levels.ZONE, "x/y"),
        keys.domain_key(levels.ZONE, "y"),
        keys.domain_key(CLIQUE, "x"),
    )
)
place_keys = st.sampled_from((keys.place_key("slurm/s1"), keys.place_key("hypernode/h")))
ends = names.map(keys.node_key) | domain_keys | place_keys
links = st.builds(relations.Link, st.floats(0, 10), st.none() | st.floats(0, 1000), st.floats(0.1, 1))
ties = st.tuples(ends, ends).flatmap(
    lambda pair: st.one_of(
        links.map(lambda link: (keys.EdgeID(*pair, keys.EdgeKind.LINK), link)),
        st.just((keys.EdgeID(*pair, keys.EdgeKind.CONTAINS), relations.Contains("slurm"))),
    )
)


def edges_of(graph: topology.Graph) -> list[tuple[str, str, str]]:
    """Every edge as (source, target, payload), sorted; keys must name all vertices, holes or not."""
    return sorted(
        (graph[source], graph[target], repr(payload)) for source, target, payload in graph.weighted_edge_list()
    )


def plain_hops(graph: topology.Graph, start: keys.VertexKey, goal: keys.VertexKey) -> int | None:
    """Breadth-first search over keys."""
    around = collections.defaultdict(set)
    for source, target, _ in edges_of(graph):
        around[source].add(target)
        around[target].add(source)
    present = set(graph.nodes())
    if start not in present or goal not in present:
        return None
    distance = {start: 0}
    queue = collections.deque([start])
    while queue:
        here = queue.popleft()
        for there in sorted(around[here] - distance.keys()):
            distance[keys.VertexKey(there)] = distance[here] + 1
            queue.append(keys.VertexKey(there))
    return distance.get(goal)


class HistoryLeavesNoTrace(stateful.RuleBasedStateMachine):
    """A topology with a past equals one without."""

    def __init__(self) -> None:
        super().__init__()
        self.topology = topology.Topology()
        self.nodes: dict[str, labels.Labels] = {}
        self.places: set[keys.VertexKey] = set()
        self.ties: dict[keys.EdgeID, topology.Tie] = {}

    @stateful.rule(name=names, node_labels=some_labels)
    def set_node(self, name: str, node_labels: labels.Labels) -> None:
        """A node arrives, or its labels change."""
        self.topology.set_node(name, node_labels)
        self.nodes[name] = node_labels

    @stateful.rule(name=names)
    def remove_node(self, name: str) -> None:
        """A node leaves, or one that was not there."""
        assert self.topology.remove_node(name) == (self.nodes.pop(name, None) is not None)

    @stateful.rule(key=place_keys)
    def set_place(self, key: keys.VertexKey) -> None:
        """A place is described, perhaps again."""
        self.topology.set_place(key)
        self.places.add(key)

    @stateful.rule(key=place_keys)
    def remove_place(self, key: keys.VertexKey) -> None:
        """A place is not described any more, or never was."""
        self.topology.remove_place(key)
        self.places.discard(key)

    @stateful.rule(tie=ties)
    def set_tie(self, tie: tuple[keys.EdgeID, topology.Tie]) -> None:
        """A link is measured, or a place said to contain something, perhaps at an end that is not there."""
        self.topology.set_tie(*tie)
        self.ties[tie[0]] = tie[1]

    @stateful.rule(tie=ties)
    def cut_tie(self, tie: tuple[keys.EdgeID, topology.Tie]) -> None:
        """A tie is cut, or one that was not there."""
        assert self.topology.cut_tie(tie[0]) == (self.ties.pop(tie[0], None) is not None)

    @stateful.invariant()
    def it_equals_a_fresh_one(self) -> None:
        """Vertices, edges, members, ancestors and distances."""
        fresh = topology.Topology()
        for tie, value in sorted(self.ties.items()):
            fresh.set_tie(tie, value)
        for place in sorted(self.places):
            fresh.set_place(place)
        for name in sorted(self.nodes, reverse=True):
            fresh.set_node(name, self.nodes[name])
        graph = self.topology.graph
        assert sorted(graph.nodes()) == sorted(fresh.graph.nodes())
        assert edges_of(graph) == edges_of(fresh.graph)
        assert self.topology.domains() == fresh.domains()
        assert self.topology.ties == self.ties
        drawn = sum(payload is keys.EdgeKind.CONTAINS for payload in graph.edges())
        said = sum(tie.kind is keys.EdgeKind.CONTAINS for tie in self.ties)
        assert self.topology.containments == drawn + said
        for domain in fresh.domains():
            assert self.topology.members(domain) == fresh.members(domain)
        for name in self.nodes:
            assert self.topology.ancestors(name) == fresh.ancestors(name)

    @stateful.rule(start=ends, goal=ends)
    def ask_hops(self, start: keys.VertexKey, goal: keys.VertexKey) -> None:
        """Distances are those of a plain search over keys."""
        assert self.topology.hops(start, goal) == plain_hops(self.topology.graph, start, goal)


TestHistoryLeavesNoTrace = HistoryLeavesNoTrace.TestCase
TestHistoryLeavesNoTrace.settings = settings(max_examples=80, stateful_step_count=30, deadline=None)


def made(**nodes: dict[str, str]) -> topology.Topology:
    """A topology of these nodes."""
    built = topology.Topology()
    for name, node_labels in nodes.items():
        built.set_node(name, labels.from_mapping(node_labels))
    return built


def domain(label: str, path: str) -> keys.VertexKey:
    """The key of a domain."""
    return keys.domain_key(label, path)


def test_zones_of_the_same_name_in_two_regions_are_two() -> None:
    """A value is qualified by what holds it."""
    built = made(a={levels.REGION: "east", levels.ZONE: "1"}, b={levels.REGION: "west", levels.ZONE: "1"})

    assert built.domain_of("a", levels.ZONE) == domain(levels.ZONE, "east/1")
    assert built.domain_of("b", levels.ZONE) == domain(levels.ZONE, "west/1")
    assert built.hops(keys.node_key("a"), keys.node_key("b")) is None


def test_a_missing_level_is_unknown_and_makes_no_domain() -> None:
    """A node without the middle label hangs under the next outer one, apart from those that have it."""
    built = made(
        a={levels.REGION: "r", levels.ZONE: "z", AWS + "1": "n1", AWS + "2": "n2", AWS + "3": "n3"},
        b={levels.REGION: "r", levels.ZONE: "z", AWS + "1": "n1", AWS + "3": "n3"},
        c={levels.REGION: "r", levels.ZONE: "z"},
        d={},
    )

    assert built.domain_of("a", AWS + "3") == domain(AWS + "3", "r/z:n1/n2/n3")
    assert built.domain_of("b", AWS + "3") == domain(AWS + "3", "r/z:n1//n3")
    assert built.domain_of("b", AWS + "2") is None
    assert built.ancestors("c") == (domain(levels.REGION, "r"), domain(levels.ZONE, "r/z"))
    assert built.ancestors("d") == ()
    assert built.members(domain(AWS + "1", "r/z:n1")) == ["a", "b"]


def test_an_empty_label_is_a_missing_one() -> None:
    """A value that names nothing is no place to share."""
    assert made(a={levels.ZONE: ""}, b={levels.ZONE: ""}).domains() == []


@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        pytest.param(AWS + "1", AWS + "2", id="AWS: the highest number is nearest"),
        pytest.param("fabric.topograph.run/tier-2", "fabric.topograph.run/tier-0", id="Topograph: 0 is nearest"),
        pytest.param("cloud.google.com/gce-topology-block", "cloud.google.com/gce-topology-subblock", id="GKE"),
        pytest.param("oci.oraclecloud.com/rdma.hpc_island_id", "oci.oraclecloud.com/rdma.local_block_id", id="OCI"),
        pytest.param("network.topology.nvidia.com/spine", "network.topology.nvidia.com/leaf", id="Topograph names"),
        pytest.param("network.topology.nvidia.com/datacenter", "network.topology.nvidia.com/block", id="older names"),
        pytest.param("ib.coreweave.cloud/superpod", "ib.coreweave.cloud/leafgroup", id="CoreWeave"),
        pytest.param("crusoe.ai/ib.partition.id", "crusoe.ai/pod.id", id="Crusoe"),
        pytest.param(levels.ZONE, "kubernetes.azure.com/ppg", id="Azure"),
        pytest.param(levels.ZONE, RACK, id="rack"),
        pytest.param(levels.REGION, CLIQUE, id="NVIDIA clique"),
    ],
)
def test_the_outer_level_contains_the_inner_one(outer: str, inner: str) -> None:
    """Numbering runs opposite ways on different platforms; the graph knows which is which."""
    built = made(a={outer: "o", inner: "i"})
    first, second = built.domain_of("a", outer), built.domain_of("a", inner)
    assert first is not None
    assert second is not None

    assert edges_of(built.graph) == sorted(
        [(first, second, repr(keys.EdgeKind.CONTAINS)), (second, "node/a", repr(keys.EdgeKind.CONTAINS))]
    )


def test_no_label_stands_at_two_levels() -> None:
    """A label that named two levels would make two domains of one value."""
    named = [label for family in (levels.TRUNK, *levels.FAMILIES) for level in family for label in level]

    assert len(named) == len(set(named))


def test_a_node_hangs_under_every_family_that_knows_it() -> None:
    """Rack and NVLink domain both hold the node, and neither holds the other."""
    built = made(a={levels.ZONE: "z", RACK: "r", CLIQUE: "7.0"}, b={levels.ZONE: "z", CLIQUE: "7.0"})

    assert built.ancestors("a") == (domain(levels.ZONE, "z"), domain(RACK, "z:r"), domain(CLIQUE, "z:7.0"))
    assert built.hops(keys.node_key("a"), keys.node_key("b")) == 2


def test_two_platforms_values_never_meet_by_spelling() -> None:
    """Separators inside values are escaped, so no two chains are written alike."""
    built = made(a={levels.REGION: "r/z", levels.ZONE: "q"}, b={levels.REGION: "r", levels.ZONE: "z/q"})

    assert built.domain_of("a", levels.ZONE) != built.domain_of("b", levels.ZONE)


def said(node_labels: labels.Labels, level: levels.Level) -> str:
    """The node's value at the level: that of the first label of it that has one."""
    return next((value for label in level if (value := dict(node_labels).get(label))), "")


@given(st.lists(some_labels, min_size=2, max_size=2))
def test_two_nodes_share_a_domain_only_if_they_agree_on_all_that_qualifies_it(pair: list[labels.Labels]) -> None:
    """Equal keys mean equal labels at every level from the outermost to that one."""
    first, second = (levels.place(node_labels) for node_labels in pair)
    chains = (*levels.FAMILIES, levels.TRUNK)
    shared = {entry.key for entry in first.domains}
    for entry in second.domains:
        if entry.key not in shared:
            continue
        family = next(chain for chain in chains if any(entry.label in level for level in chain))
        outer = [level for chain in (levels.TRUNK, family) for level in chain]
        own = next(number for number, level in enumerate(outer) if entry.label in level)
        for level in outer[: own + 1]:
            assert said(pair[0], level) == said(pair[1], level)
        assert said(pair[0], (entry.label,)) == said(pair[1], (entry.label,))


def test_a_domain_lives_as_long_as_a_node_is_in_it() -> None:
    """The last node takes its domains along; a link to one waits for it to come back."""
    built = made(a={levels.ZONE: "z"}, b={levels.ZONE: "y"})
    zone = domain(levels.ZONE, "z")
    built.set_tie(keys.EdgeID(zone, keys.node_key("b"), keys.EdgeKind.LINK), LINK)
    assert built.hops(keys.node_key("a"), keys.node_key("b")) == 2

    built.remove_node("a")
    assert zone not in built.graph.nodes()
    assert built.hops(zone, keys.node_key("b")) is None
    built.set_node("c", ((levels.ZONE, "z"),))
    assert built.hops(keys.node_key("c"), keys.node_key("b")) == 2


def test_a_domain_is_held_by_all_that_its_nodes_name_and_by_nothing_else() -> None:
    """Nodes move one by one from a level's older label to its newer one: the domain inside is in both meanwhile."""
    older, newer = {DATACENTER: "x", SPINE: "y"}, {CORE: "x", SPINE: "y"}
    built = made(a=older, b=older)
    spine = domain(SPINE, "x/y")

    def holders() -> list[keys.VertexKey]:
        return [outer for outer, inner in built.nestings() if inner == spine]

    built.set_node("a", labels.from_mapping(newer))
    assert holders() == [domain(CORE, "x"), domain(DATACENTER, "x")]
    built.set_node("b", labels.from_mapping(newer))

    assert holders() == [domain(CORE, "x")]
    assert built.hops(keys.node_key("a"), domain(CORE, "x")) == 2
    assert not built.holds(domain(DATACENTER, "x"))


def test_the_graph_given_out_is_a_copy() -> None:
    """An export can not damage the store."""
    built = made(a={levels.ZONE: "z"})
    built.graph.clear()

    assert len(built.graph) == 2


def test_labels_that_say_nothing_of_the_place_change_nothing() -> None:
    """A relabelled node is not torn out of the graph and put back."""
    built = made(a={levels.ZONE: "z", "app": "x"})

    assert not built.set_node("a", labels.from_mapping({levels.ZONE: "z", "app": "y"}))
