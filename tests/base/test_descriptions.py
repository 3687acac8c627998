"""Objects that describe a network, each dialect: what they say, and how a mistake in them is told."""

import json
import typing

import pytest

from graphsched.base.kube import wire
from graphsched.base.values import descriptions, errors, groups, keys, labels, patterns, relations
from graphsched.graph import delta, healths, store
from graphsched.sources import custom, surveys

ZONE = "topology.kubernetes.io/zone"
NODES = [("n1", ((ZONE, "a"),)), ("n2", ((ZONE, "b"),)), ("gpu-1", ()), ("gpu-2", ())]
Json = dict[str, typing.Any]


def describe(group: str, kind: str, name: str, **fields: typing.Any) -> descriptions.Description:
    """What an object says, as the API server sends it."""
    codec, convert = custom.KINDS[group, kind]
    body = {"metadata": {"name": name, "namespace": "apps", "uid": "u"}, **fields}
    return convert(codec.decode(json.dumps(body).encode()))


def rows(description: descriptions.Description) -> dict[surveys.Row, typing.Any]:
    """What comes of it with some nodes."""
    return dict(surveys.whole([description], NODES).items())


def link(source: str, target: str) -> keys.EdgeID:
    """A link."""
    return keys.EdgeID(keys.VertexKey(source), keys.VertexKey(target), keys.EdgeKind.LINK)


def holds(source: str, *targets: str) -> set[keys.EdgeID]:
    """Containment."""
    return {keys.EdgeID(keys.VertexKey(source), keys.VertexKey(each), keys.EdgeKind.CONTAINS) for each in targets}


def network_link(status: Json | None = None, **spec: typing.Any) -> descriptions.Description:
    """A link between a node and a switch unless it says otherwise."""
    given = {"endpoints": [{"node": "n1"}, {"place": "rail-0"}], **spec}
    return describe("graphsched.io", "NetworkLink", "a-b", spec=given, status=status or {})


def test_a_link_goes_both_ways_unless_it_is_directed() -> None:
    """Two edges with what is known of it, and the place that it names."""
    both = rows(network_link(latencyMs=0.2, bandwidthMbps=1000))
    known = relations.Link(0.2, 1000.0, by="networklink/a-b")
    assert {"place/rail-0", link("node/n1", "place/rail-0"), link("place/rail-0", "node/n1")} == set(both)
    assert known == both[link("place/rail-0", "node/n1")]

    assert {"place/rail-0", link("node/n1", "place/rail-0")} == set(rows(network_link(directed=True)))


def test_what_is_not_said_of_a_link_is_not_known() -> None:
    """It is neither near nor far."""
    assert relations.Link(None, None, by="networklink/a-b") == rows(network_link())[link("node/n1", "place/rail-0")]


def test_a_link_that_is_down_stays_and_says_so() -> None:
    """With what is stated of it; what agents have seen of it meanwhile is not the link's."""
    found = rows(network_link(state="Down", latencyMs=0.2, bandwidthMbps=1000, status={"lossPercent": 100}))
    down = relations.Link(0.2, 1000.0, health=relations.DOWN, by="networklink/a-b")

    assert down.down
    assert {"place/rail-0", link("node/n1", "place/rail-0"), link("place/rail-0", "node/n1")} == set(found)
    assert down == found[link("node/n1", "place/rail-0")] == found[link("place/rail-0", "node/n1")]
    assert not any(
        rows(network_link(state=state))[link("node/n1", "place/rail-0")].down for state in ("Up", "Degraded")
    )


@pytest.mark.parametrize("directed", [False, True])
def test_a_link_that_is_down_takes_nothing_from_one_that_is_up(directed: bool) -> None:
    """Between the same two ends, though it comes first by name, and speaks of this direction alone."""
    ends = [{"node": "n1"}, {"node": "n2"}]
    down = describe(
        "graphsched.io", "NetworkLink", "a", spec={"endpoints": ends, "state": "Down", "directed": directed}
    )
    up = describe("graphsched.io", "NetworkLink", "b", spec={"endpoints": ends, "latencyMs": 2})
    found = dict(surveys.whole([down, up], NODES).items())

    assert relations.Link(2.0, by="networklink/b") == found[link("node/n1", "node/n2")]
    assert relations.Link(2.0, by="networklink/b") == found[link("node/n2", "node/n1")]


@pytest.mark.parametrize(
    ("spec", "status", "health"),
    [
        ({"state": "Degraded"}, {}, 0.5),
        ({}, {"health": 0.3}, 0.3),
        ({}, {"health": 0}, 0.01),
        ({"state": "Degraded"}, {"health": 0.9}, 0.45),
        ({}, {"lossPercent": 1}, 0.5),
        ({}, {"errorsPerSecond": 1, "lossPercent": 1}, 0.25),
        ({"latencyMs": 1}, {"latencyMs": 4}, 0.25),
        ({"latencyMs": 1}, {"latencyMs": 0.5}, 1.0),
    ],
)
def test_what_agents_write_of_a_link_is_its_health(spec: Json, status: Json, health: float) -> None:
    """The health that somebody has worked out, and what follows from loss, errors and latency, once in the ledger."""
    edge = link("node/n1", "place/rail-0")
    told = rows(network_link({**status, "observedAt": "2026-01-02T03:04:05Z"}, **spec))[edge]
    found = healths.pictured(delta.Patch().set_edge(edge, told)).edges[edge]

    assert isinstance(found, relations.Link)
    assert pytest.approx(health) == found.health
    assert (1767323045.0 if status else 0.0) == found.at
    assert found.seen is None


def test_domains_are_ends_by_label_and_value_or_by_their_path() -> None:
    """A bare value is looked up among the nodes; a path names one domain."""
    ends = [{"domain": {"label": ZONE, "value": "a"}}, {"domain": {"label": ZONE, "value": "east/b"}}]

    assert {
        link(f"domain/{ZONE}=a", f"domain/{ZONE}=east/b"),
        link(f"domain/{ZONE}=east/b", f"domain/{ZONE}=a"),
    } == set(rows(network_link(endpoints=ends)))


MEMBERS = [
    {"type": "Node", "selector": {"exactMatch": {"name": "n1"}}},
    {"type": "Node", "selector": {"regexMatch": {"pattern": "^gpu-[0-9]+$"}}},
    {"type": "Node", "selector": {"labelMatch": {"matchLabels": {ZONE: "b"}}}},
    {"type": "HyperNode", "selector": {"exactMatch": {"name": "s1"}}},
]


def test_a_hyper_node_holds_members_of_all_kinds() -> None:
    """By name, by pattern, by label, and other HyperNodes."""
    found = rows(describe("topology.volcano.sh", "HyperNode", "s0", spec={"tier": 2, "members": MEMBERS}))
    place = "place/hypernode/s0"

    assert {
        place,
        "place/hypernode/s1",
        *holds(place, "node/n1", "node/n2", "node/gpu-1", "node/gpu-2", "place/hypernode/s1"),
    } == set(found)
    assert 2 == found[keys.VertexKey(place)].tier


@pytest.mark.parametrize(("group", "kind"), [("kueue.x-k8s.io", "Topology"), ("kai.scheduler", "Topology")])
def test_levels_of_kueue_and_kai_are_places_below_known_domains(group: str, kind: str) -> None:
    """The host name is the node itself."""
    levels = [{"nodeLabel": ZONE}, {"nodeLabel": "example.com/rack"}, {"nodeLabel": "kubernetes.io/hostname"}]
    description = describe(group, kind, "default", spec={"levels": levels})
    node_labels = labels.from_mapping({ZONE: "a", "example.com/rack": "r1", "kubernetes.io/hostname": "n1"})

    assert {
        "place/example.com/rack=a/r1",
        *holds(f"domain/{ZONE}=a", "place/example.com/rack=a/r1"),
        *holds("place/example.com/rack=a/r1", "node/n1"),
    } == set(surveys.whole([description], [("n1", node_labels)]))


def test_layers_of_koordinator_are_levels_whatever_their_order() -> None:
    """Each names the one above it; the last one is the node."""
    layers = [
        {"topologyLayer": "Rack", "parentTopologyLayer": "Spine", "labelKey": ["example.com/rack"]},
        {"topologyLayer": "NodeTopologyLayer", "parentTopologyLayer": "Rack"},
        {"topologyLayer": "Spine", "labelKey": ["example.com/spine"]},
    ]
    found = describe(
        "scheduling.koordinator.sh", "ClusterNetworkTopology", "default", spec={"networkTopologySpec": layers}
    )

    assert ("example.com/spine", "example.com/rack") == found.levels


COST = {"destination": "b", "networkCost": 5, "bandwidthCapacity": "1G"}


@pytest.mark.parametrize(
    "weights",
    [
        {"topologyList": [{"topologyKey": ZONE, "originList": [{"origin": "a", "costList": [COST]}]}]},
        {"costList": [{"topologyKey": ZONE, "originCosts": [{"origin": "a", "costs": [COST]}]}]},
    ],
    ids=["schema", "example"],
)
def test_costs_of_diktyo_are_links_without_a_latency(weights: Json) -> None:
    """Either set of names says the same; a cost is no time."""
    found = rows(
        describe(
            "networktopology.diktyo.x-k8s.io", "NetworkTopology", "net", spec={"weights": [{"name": "w", **weights}]}
        )
    )

    assert {
        link(f"domain/{ZONE}=a", f"domain/{ZONE}=b"): relations.Link(None, 1000.0, by="diktyo/apps/net", cost=5)
    } == found


def test_weights_that_an_operator_wrote_count_before_measured_ones() -> None:
    """Wherever they stand in the list."""

    def weights(name: str, cost: int) -> Json:
        origins = [{"origin": "a", "costList": [{"destination": "b", "networkCost": cost}]}]
        return {"name": name, "topologyList": [{"topologyKey": ZONE, "originList": origins}]}

    spec = {"weights": [weights("NetperfCosts", 1), weights("UserDefined", 2)]}
    (found,) = rows(describe("networktopology.diktyo.x-k8s.io", "NetworkTopology", "net", spec=spec)).values()

    assert 2 == found.cost


def test_an_app_group_says_who_calls_whom() -> None:
    """Pods are of a workload by two labels."""
    spec = {
        "numMembers": 2,
        "topologySortingAlgorithm": "KahnSort",
        "workloads": [
            {
                "workload": {"kind": "Deployment", "name": "p1-deployment", "selector": "p1"},
                "dependencies": [{"workload": {"name": "p2-deployment"}, "minBandwidth": "100M", "maxNetworkCost": 30}],
            },
            {"workload": {"kind": "Deployment", "name": "p2-deployment", "selector": "p2"}},
        ],
    }
    found = rows(describe("appgroup.diktyo.x-k8s.io", "AppGroup", "a1", spec=spec))
    (group,) = found.values()

    assert ["group/apps/a1"] == list(found)
    assert ("KahnSort", ["p1-deployment", "p2-deployment"]) == (group.order, [each.name for each in group.workloads])
    assert (groups.Dependency("p2-deployment", 1.0, None, 100.0, 30),) == group.workloads[0].dependencies
    mine = {"appgroup.diktyo.x-k8s.io": "a1", "appgroup.diktyo.x-k8s.io.workload": "p1", "app": "x"}
    selector = group.workloads[0].selector
    assert selector.matches(labels.from_mapping(mine))
    assert not selector.matches(labels.from_mapping({**mine, "appgroup.diktyo.x-k8s.io": "a2"}))


def test_the_zones_of_a_node_are_places_in_it() -> None:
    """What pods may have of each, and how far they are apart."""
    zones = [
        {
            "name": f"node-{number}",
            "type": "Node",
            "costs": [{"name": "node-0", "value": 10 + number}, {"name": "node-1", "value": 11 - number}],
            "resources": [{"name": "cpu", "capacity": "8", "allocatable": "6", "available": "2"}],
        }
        for number in (0, 1)
    ]
    body = {"topologyPolicies": ["SingleNUMANodeContainerLevel"], "zones": zones}
    found = rows(describe("topology.node.k8s.io", "NodeResourceTopology", "n1", **body))
    cells = "place/numa/n1/node-0", "place/numa/n1/node-1"

    assert {*cells, *holds("node/n1", *cells), link(*cells), link(*reversed(cells))} == set(found)
    assert (("cpu", 6000),) == found[keys.VertexKey(cells[0])].amounts
    assert (("cpu", 2000),) == found[keys.VertexKey(cells[0])].available
    assert ("n1", "node-0") == found[keys.VertexKey(cells[0])].cell
    assert ("numa", (("policy", "SingleNUMANodeContainerLevel"),)) == (
        found[keys.VertexKey(cells[0])].kind,
        found[keys.VertexKey(cells[0])].labels,
    )
    assert (11, None) == (found[link(*cells)].cost, found[link(*cells)].latency_ms)


def test_what_nobody_says_of_a_zone_is_not_zero() -> None:
    """Without `available` nothing is known to be free; without `allocatable` pods may have all; the attribute counts
    before the older field.
    """
    resources = [{"name": "cpu", "capacity": "8"}, {"name": "memory", "allocatable": "1Gi", "available": "0"}]
    body = {
        "topologyPolicies": ["BestEffort"],
        "attributes": [{"name": "topologyManagerPolicy", "value": "single-numa-node"}],
        "zones": [{"name": "node-0", "type": "Node", "resources": resources}],
    }
    place = rows(describe("topology.node.k8s.io", "NodeResourceTopology", "n1", **body))[
        keys.VertexKey("place/numa/n1/node-0")
    ]

    assert (("cpu", 8000), ("memory", 1 << 30)) == place.amounts
    assert (("memory", 0),) == place.available
    assert (("policy", "single-numa-node"),) == place.labels


def _member(**selector: Json) -> Json:
    return {"members": [{"type": "Node", "selector": selector}]}


VOLCANO, OURS, KUEUE = (
    ("topology.volcano.sh", "HyperNode"),
    ("graphsched.io", "NetworkLink"),
    ("kueue.x-k8s.io", "Topology"),
)
KOORDINATOR = ("scheduling.koordinator.sh", "ClusterNetworkTopology")
DIKTYO, GROUP = ("networktopology.diktyo.x-k8s.io", "NetworkTopology"), ("appgroup.diktyo.x-k8s.io", "AppGroup")
N1 = {"node": "n1"}


@pytest.mark.parametrize(
    ("of", "spec", "told"),
    [
        (OURS, {"endpoints": [N1]}, 'NetworkLink "x": spec.endpoints: holds 1, not two'),
        (OURS, {"endpoints": [N1, {}]}, "spec.endpoints[1]: names nothing"),
        (OURS, {"endpoints": [N1, {"node": "a", "place": "b"}]}, "spec.endpoints[1]: names node and place at once"),
        (OURS, {"endpoints": [N1, N1]}, "spec.endpoints: are one and the same"),
        (OURS, {"endpoints": [N1, {"place": "-"}]}, 'spec.endpoints[1].place: "-" is no name'),
        (OURS, {"endpoints": [N1, {"domain": {"label": "x"}}]}, "spec.endpoints[1].domain: needs label and value"),
        (OURS, {"endpoints": [N1, {"node": "n2"}], "latencyMs": -1}, "spec.latencyMs: -1.0 is not zero or more"),
        (OURS, {"endpoints": [N1, {"node": "n2"}], "state": "up"}, 'spec.state: "up" is not known'),
        (OURS, {"endpoints": [N1, {"node": "n2"}], "latencyMs": "1"}, "spec.latencyMs: is a text, not a number"),
        (VOLCANO, {"members": [{"type": "Rack"}]}, 'HyperNode "x": spec.members[0].type: "Rack" is not known'),
        (VOLCANO, _member(), "spec.members[0].selector: has no match"),
        (VOLCANO, _member(exactMatch={}), "spec.members[0].selector.exactMatch.name: is missing"),
        (VOLCANO, _member(regexMatch={"pattern": "("}), 'selector.regexMatch.pattern: "(" is no pattern'),
        (VOLCANO, _member(regexMatch={"pattern": "(a+)+"}), "repeats a group that holds a repetition"),
        (
            VOLCANO,
            {"members": [{"type": "HyperNode", "selector": {"labelMatch": {}}}]},
            "spec.members[0].selector.labelMatch: is for nodes only",
        ),
        (
            KUEUE,
            {"levels": [{"nodeLabel": "a"}, {"nodeLabel": "a"}]},
            'Topology "x": spec.levels[1]: "a" is there twice',
        ),
        (KUEUE, {"levels": [{"nodeLabel": ""}]}, 'spec.levels[0]: "" is no label key'),
        (
            KOORDINATOR,
            {"networkTopologySpec": [{"topologyLayer": "a", "parentTopologyLayer": "b", "labelKey": ["k"]}]},
            'spec.networkTopologySpec: "a" hangs under "b", which no chain leads to',
        ),
        (
            DIKTYO,
            {"weights": [{"costList": [{"topologyKey": ZONE, "originCosts": [{"origin": "a", "costs": [{}]}]}]}]},
            'NetworkTopology "apps/x": spec.weights[0].costList[0].originCosts[0].costs[0]: has no destination',
        ),
        (GROUP, {"workloads": [{}]}, 'AppGroup "apps/x": spec.workloads[0].workload.name: is missing'),
        (
            GROUP,
            {
                "workloads": [
                    {"workload": {"name": "a"}, "dependencies": [{"workload": {"name": "b"}, "minBandwidth": "x"}]}
                ]
            },
            'spec.workloads[0].dependencies[0].minBandwidth: "x" is not a quantity',
        ),
    ],
)
def test_a_mistake_is_told_with_object_field_and_remedy(of: tuple[str, str], spec: Json, told: str) -> None:
    """One line; nothing of such an object is taken."""
    with pytest.raises(errors.InputError) as caught:
        describe(*of, "x", spec=spec)

    assert told in str(caught.value)
    assert caught.value.remedy


def test_the_key_of_a_description_is_that_by_which_the_object_is_followed() -> None:
    """A deletion finds what was described."""
    metadata = wire.Metadata(name="x", namespace="apps")
    for resource, codec, convert in zip(custom.ALL, *zip(*custom.KINDS.values(), strict=True), strict=True):
        body: Json = {"metadata": {"name": "x", "namespace": "apps"}}
        if resource is custom.NETWORK_LINKS:
            body["spec"] = {"endpoints": [N1, {"node": "n2"}]}
        said = convert(codec.decode(json.dumps(body).encode()))

        assert resource.key(metadata) == said.key, resource.name
        assert said.key.startswith(resource.prefix)
        assert surveys.is_described(said.by)


@pytest.mark.parametrize("pattern", ["^gpu-[0-9]+$", ".*gpu.*", r"n-\d{3}", "^(n1|n2)$", "rack[0-9]?-node[0-9]*$"])
def test_patterns_as_people_write_them_are_taken(pattern: str) -> None:
    """Nothing of what names need is refused."""
    assert patterns.compiled(pattern).pattern == pattern


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|aa)*b", "(a?){20}b", "a*a*a*b", "a?" * 30, "((a{2}){9}){9}", "x" * 300, "["]
)
def test_patterns_that_could_take_long_are_refused(pattern: str) -> None:
    """Whoever writes an object may not keep the scheduler busy."""
    with pytest.raises(errors.InputError):
        patterns.compiled(pattern)


def test_what_is_described_fits_the_graph() -> None:
    """Nothing of it is refused at the door."""
    graph = store.Store()
    patch = delta.Patch()
    for row, value in rows(describe(*VOLCANO, "s0", spec={"members": MEMBERS})).items():
        surveys.put(patch, row, value)

    assert isinstance(graph.apply(patch), delta.Applied)
