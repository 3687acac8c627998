"""Custom resources that describe the network on a real control plane: seen, followed, forgotten, and audited."""

import contextlib
import http.client
import pathlib
import signal

import pytest

from graphsched.base.values import keys
from graphsched.sources import captures
from tests.cluster import scheduling
from tests.controlplane import cluster as clusters, crds, objects

pytestmark = pytest.mark.cluster

ZONE = "topology.kubernetes.io/zone"
ROOM = "example.com/room"
LINKS = {"endpoints": [{"node": "n1"}, {"node": "n2"}], "latencyMs": 0.5}


def graph(running: scheduling.Scheduler) -> tuple[set[str], set[tuple[str, str, str]]]:
    """Places and groups, and the edges that are no promises, in the graph of the scheduler."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", running.port, timeout=10.0)) as connection:
        connection.request("GET", "/debug/graph")
        found = captures.decode(connection.getresponse().read())
    assert isinstance(found, captures.Capture)
    kinds = {keys.Kind.PLACE.value, keys.Kind.GROUP.value}
    edges = {(str(edge.source), str(edge.target), edge.kind.value) for edge in found.patch.edges}
    return {str(key) for key in found.patch.vertices if keys.kind_of(key) in kinds}, {
        edge for edge in edges if edge[2] != keys.EdgeKind.RUNS
    }


def both(one: str, other: str) -> set[tuple[str, str, str]]:
    """A link each way."""
    return {(one, other, "link"), (other, one, "link")}


def audited(running: scheduling.Scheduler) -> str:
    """What the last audit came to."""
    return next(line for line in running.read("/readyz?verbose").splitlines() if line.startswith("[+]audit"))


def make_all(cluster: clusters.Cluster) -> None:
    """One object of each kind."""
    member = {"type": "Node", "selector": {"regexMatch": {"pattern": "^n[12]$"}}}
    crds.make(cluster, crds.HYPER_NODES, "s0", {"spec": {"tier": 1, "members": [member]}})
    levels = [{"nodeLabel": ZONE}, {"nodeLabel": ROOM}, {"nodeLabel": "kubernetes.io/hostname"}]
    crds.make(cluster, crds.KUEUE_TOPOLOGIES, "default", {"spec": {"levels": levels}})
    costs = [{"origin": "a", "costList": [{"destination": "b", "networkCost": 5}]}]
    weights = [{"name": "UserDefined", "topologyList": [{"topologyKey": ZONE, "originList": costs}]}]
    crds.make(cluster, crds.NETWORK_TOPOLOGIES, "net", {"spec": {"weights": weights}})
    crds.make(cluster, crds.APP_GROUPS, "shop", {"spec": {"workloads": [{"workload": {"name": "web"}}]}})
    crds.make(cluster, crds.NODE_RESOURCE_TOPOLOGIES, "n1", {"zones": [{"name": "node-0", "type": "Node"}]})


def test_what_describes_the_network_is_followed_before_and_after_it_is_installed(
    cluster: clusters.Cluster, tmp_path: pathlib.Path
) -> None:
    """Links from before the start; the other kinds are installed later, then deleted with all their objects.

    The API server refuses links that make no sense, and an audit finds nothing wrong at any time.
    """
    for name, zone in (("n1", "a"), ("n2", "b")):
        cluster.call("POST", scheduling.NODES, objects.node(name, cpu="4", labels={ZONE: zone, ROOM: "r1"}))
    others = (
        crds.HYPER_NODES,
        crds.KUEUE_TOPOLOGIES,
        crds.NETWORK_TOPOLOGIES,
        crds.APP_GROUPS,
        crds.NODE_RESOURCE_TOPOLOGIES,
    )
    mine = both("node/n1", "node/n2")
    with crds.installed(cluster, crds.NETWORK_LINKS):
        for wrong in (
            {"endpoints": [{"node": "n1"}]},
            {**LINKS, "state": "Broken"},
            {"endpoints": [{}, {"node": "n2"}]},
        ):
            with pytest.raises(clusters.RequestError, match="422"):
                crds.make(cluster, crds.NETWORK_LINKS, "wrong", {"spec": wrong})
        crds.make(cluster, crds.NETWORK_LINKS, "a", {"spec": LINKS})
        with scheduling.scheduler(cluster, tmp_path / "log") as running:
            scheduling.wait("the link is known", lambda: graph(running) == (set(), mine))
            with crds.installed(cluster, *others):
                make_all(cluster)
                places = {
                    "place/hypernode/s0",
                    f"place/{ROOM}=a/r1",
                    f"place/{ROOM}=b/r1",
                    "place/numa/n1/node-0",
                    "group/default/shop",
                }
                edges = {
                    *mine,
                    *(("place/hypernode/s0", f"node/{name}", "contains") for name in ("n1", "n2")),
                    (f"domain/{ZONE}=a", f"place/{ROOM}=a/r1", "contains"),
                    (f"domain/{ZONE}=b", f"place/{ROOM}=b/r1", "contains"),
                    (f"place/{ROOM}=a/r1", "node/n1", "contains"),
                    (f"place/{ROOM}=b/r1", "node/n2", "contains"),
                    ("node/n1", "place/numa/n1/node-0", "contains"),
                    (f"domain/{ZONE}=a", f"domain/{ZONE}=b", "link"),
                }
                scheduling.wait("all is known", lambda: graph(running) == (places, edges), timeout_s=60.0)
                running.process.send_signal(signal.SIGUSR2)
                scheduling.wait("it is audited", lambda: audited(running).endswith("clean"), timeout_s=60.0)
                crds.remove(cluster, crds.HYPER_NODES, "s0")
                scheduling.wait("the HyperNode is gone", lambda: "place/hypernode/s0" not in graph(running)[0])
            scheduling.wait("their kinds are gone", lambda: graph(running) == (set(), mine), timeout_s=60.0)
            crds.remove(cluster, crds.NETWORK_LINKS, "a")
            scheduling.wait("nothing is left", lambda: graph(running) == (set(), set()))
            assert 0.0 == running.metric('graphsched_audit_differences_total{kind="extra"}')
            assert 0.0 == running.metric('graphsched_watch_invalid_objects_total{resource="networklinks"}')
            assert running.ready()
