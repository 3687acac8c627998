"""NUMA cells on a real control plane: a Guaranteed pod goes where one cell holds it, by the agents' last reports."""

import contextlib
import http.client
import pathlib

import pytest
import yaml

from graphsched.base.values import places
from graphsched.sources import captures
from tests.cluster import scheduling
from tests.controlplane import cluster as clusters, crds, objects

pytestmark = pytest.mark.cluster


def report(*free: str) -> objects.Object:
    """What an agent says of the CPU that is available in the cells of a node."""
    zones = [
        {
            "name": f"node-{number}",
            "type": "Node",
            "resources": [{"name": "cpu", "capacity": "4", "allocatable": "4", "available": amount}],
        }
        for number, amount in enumerate(free)
    ]
    return {"attributes": [{"name": "topologyManagerPolicy", "value": "best-effort"}], "zones": zones}


def guaranteed(name: str) -> objects.Object:
    """A pod whose container is limited to what it requests."""
    pod = scheduling.pod(name, cpu="3")
    resources = pod["spec"]["containers"][0]["resources"]
    resources["limits"] = resources["requests"]
    return pod


def test_a_guaranteed_pod_goes_where_one_cell_holds_it(cluster: clusters.Cluster, tmp_path: pathlib.Path) -> None:
    """Whichever node that is by the last reports; and `explain` names the cell."""
    for name in ("n1", "n2"):
        cluster.call("POST", scheduling.NODES, objects.node(name, cpu="8"))
    config = yaml.safe_dump({"profile": {"weights": {"GraphCells": 5}}})
    with (
        crds.installed(cluster, crds.NODE_RESOURCE_TOPOLOGIES),
        scheduling.scheduler(cluster, tmp_path / "log", config=config) as running,
    ):
        for name, free in (("n1", ("2", "2")), ("n2", ("1", "3"))):
            crds.make(cluster, crds.NODE_RESOURCE_TOPOLOGIES, name, report(*free))
        first = [2000, 2000, 1000, 3000]
        scheduling.wait("the reports are taken", lambda: _free(running) == first, watched=(running.process,))
        cluster.call("POST", scheduling.PODS, guaranteed("first"))
        scheduling.wait("it is bound", lambda: bool(scheduling.places(cluster)["first"]), watched=(running.process,))
        told = scheduling.decoded(running.read("/debug/explain?pod=default/first"))

        assert "n2" == scheduling.places(cluster)["first"]
        assert [("n2", 1, "node-1"), ("n1", 2, "")] == [
            (each["node"], each["taken"], each["cell"]) for each in told["cells"]
        ]
        # Less than before on the node that was preferred, more on the other one.
        for name, free in (("n1", ("4", "2")), ("n2", ("1", "2"))):
            crds.remove(cluster, crds.NODE_RESOURCE_TOPOLOGIES, name)
            crds.make(cluster, crds.NODE_RESOURCE_TOPOLOGIES, name, report(*free))
        later = [4000, 2000, 1000, 2000]
        scheduling.wait("those as well", lambda: _free(running) == later, watched=(running.process,))
        cluster.call("POST", scheduling.PODS, guaranteed("second"))
        scheduling.wait("it is bound", lambda: bool(scheduling.places(cluster)["second"]), watched=(running.process,))
        assert "n1" == scheduling.places(cluster)["second"]


def _free(running: scheduling.Scheduler) -> list[int]:
    """Milli-CPU that is available in each cell, in the graph of the scheduler, by node and cell."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", running.port, timeout=10.0)) as connection:
        connection.request("GET", "/debug/graph")
        found = captures.decode(connection.getresponse().read())
    assert isinstance(found, captures.Capture)
    cells = [each for each in found.patch.vertices.values() if isinstance(each, places.Place)]
    return [dict(each.available)["cpu"] for each in sorted(cells, key=lambda each: each.name) if each.available]
