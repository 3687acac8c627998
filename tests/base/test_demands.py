"""What a pod asks of the graph is read from its annotations, and what can not be read is said."""

from __future__ import annotations

import pytest

from graphsched.base.values import keys, labels, pods
from tests import builders

QUEUE = labels.selector((labels.Requirement("app", labels.Operator.IN, ("queue",)),))


def demand(**annotations: str) -> pods.GraphDemand | None:
    """What a pod in namespace `shop` with these annotations asks for; `_` stands for `-` in their names."""
    noted = {f"graphsched.io/{name.replace('_', '-')}": text for name, text in annotations.items()}
    return builders.make_pod("web", "shop").set("metadata.annotations", noted).build().spec.graph


def test_a_pod_without_such_annotations_asks_for_nothing() -> None:
    """Most pods do, and pay nothing."""
    assert builders.make_pod("web").set("metadata.annotations", {"other.io/near": "node/n1"}).build().spec.graph is None


def test_near_names_nodes_places_and_domains() -> None:
    """As texts, or as a list in JSON."""
    expected = (
        keys.domain_key("topology.kubernetes.io/zone", "a"),
        keys.node_key("n1"),
        keys.place_key("slurm/leaf-12"),
    )

    assert demand(near="topology.kubernetes.io/zone=a, node/n1,place/slurm/leaf-12") == pods.GraphDemand(near=expected)
    assert demand(near='["topology.kubernetes.io/zone=a", "node/n1", "place/slurm/leaf-12"]') == pods.GraphDemand(
        near=expected
    )


def test_peers_are_services_or_labels_with_rate_and_limits() -> None:
    """A Service is of the pod's own namespace where none is given."""
    expected = (
        pods.Peer("shop", "cache", rate=5.0, latency_ms_max=2.0),
        pods.Peer("db", "postgres"),
        pods.Peer("shop", selector=QUEUE, bandwidth_mbps_min=1000.0, cost_max=7.0),
    )

    assert demand(
        peers="cache;rate=5;maxLatencyMs=2, db/postgres, app=queue;minBandwidthMbps=1000;maxNetworkCost=7"
    ) == pods.GraphDemand(peers=expected)
    assert demand(
        peers='[{"service": "cache", "rate": 5, "maxLatencyMs": 2}, {"service": "postgres", "namespace": "db"},'
        ' {"selector": {"app": "queue"}, "minBandwidthMbps": 1000, "maxNetworkCost": 7}]'
    ) == pods.GraphDemand(peers=expected)


def test_limits_and_dependencies_are_read() -> None:
    """Those that hold for all partners, and what comes first."""
    found = demand(max_latency_ms="2.5", min_bandwidth_mbps="100", depends_on="cache, db/postgres")

    assert found == pods.GraphDemand(latency_ms_max=2.5, bandwidth_mbps_min=100.0, depends_on=("cache", "db/postgres"))


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("near", "rack-7", '"rack-7" is neither a node label with a value nor a node or a place'),
        ("near", "", "is empty"),
        ("near", "[1]", "is no list of texts"),
        ("near", '["node/a"', "is no JSON"),
        ("near", ",".join(["node/a"] * 33), "has more than 32 entries"),
        ("peers", "cache;rate=0", "rate is 0"),
        ("peers", "cache;rate=nan", "rate: 'nan' is not a number"),
        ("peers", "cache;speed=1", '"speed" is unknown'),
        ("peers", "cache;rate", "gives no value"),
        ("peers", "cache;rate=1;rate=2", "says rate twice"),
        ("peers", '{"rate": 1}', "names neither or both of service and selector"),
        ("peers", "app=", "is no selector"),
        ("peers", "[[]]", "is neither a text nor an object"),
        ("max-latency-ms", "fast", '"fast" is not a number of at least 0'),
        ("max-latency-ms", "-1", "is not a number of at least 0"),
        ("min-bandwidth-mbps", "1e999", "is not a number of at least 0"),
        ("near", "x" * 20_000, "is longer than 16384 characters"),
    ],
)
def test_what_can_not_be_read_names_the_annotation_and_what_to_write(name: str, text: str, said: str) -> None:
    """The pod itself is decoded, since it may run; its demand is one that nothing meets."""
    found = demand(**{name.replace("-", "_"): text})

    assert found is not None
    assert found.problem.startswith(f"annotation graphsched.io/{name}: ")
    assert said in found.problem
    assert "(use " in found.problem


def test_pods_of_two_namespaces_mean_services_of_their_own() -> None:
    """Equal annotations in two namespaces make two specs."""
    noted = {"graphsched.io/peers": "cache"}
    one, other = (
        builders.make_pod("web", name).set("metadata.annotations", noted).build().spec.graph for name in ("a", "b")
    )

    assert one is not None
    assert other is not None
    assert (one.peers[0].namespace, other.peers[0].namespace) == ("a", "b")
