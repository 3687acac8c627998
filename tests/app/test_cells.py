"""NodeResourceTopologies decide where a Guaranteed pod goes, offline and live, where the profile asks for it."""

import json
import pathlib

import pytest

from graphsched.app import cli, settings
from graphsched.sources import custom
from tests import builders
from tests.app import live
from tests.fakes import storage, virtual

ASKED = {"GraphCells": 100}
POD = builders.make_pod("web").request("cpu", "2").limit("cpu", "2").request("memory", "1Gi").limit("memory", "1Gi")
NODES = tuple(builders.make_node(name) for name in ("n1", "n2", "n3"))


def topology(node: str, *free: str) -> storage.Object:
    """What an agent writes of a node whose zones have so much CPU free."""
    zones = [
        {"name": f"node-{number}", "type": "Node", "resources": [{"name": "cpu", "capacity": "2", "available": cpu}]}
        for number, cpu in enumerate(free)
    ]
    attributes = [{"name": "topologyManagerPolicy", "value": "single-numa-node"}]
    api = "topology.node.k8s.io/v1alpha2"
    body: storage.Object = {"apiVersion": api, "kind": "NodeResourceTopology", "metadata": {"name": node}}
    return {**body, "attributes": attributes, "zones": zones}


def cluster(tmp_path: pathlib.Path) -> str:
    """Three nodes with as much room; only n2 has a zone that holds the pod, and n3 tells nothing."""
    described = [topology("n1", "1500m", "500m"), topology("n2", "0", "2")]
    manifests = [*(each.manifest() for each in (*NODES, POD)), *described]
    path = tmp_path / "c.yaml"
    path.write_text("\n".join(map(json.dumps, manifests)) + "\n", encoding="utf-8")
    return str(path)


def test_simulate_and_explain_go_by_zones_where_settings_weigh_them(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """And without a weight the first of three equal nodes is taken, with no word of zones."""
    config = tmp_path / "settings.yaml"
    config.write_text("profile: {weights: {GraphCells: 100}}\n", encoding="utf-8")
    path = cluster(tmp_path)
    chosen = []
    for options in (["--config", str(config)], []):
        assert 0 == cli.execute(["simulate", path, "--output", "json", *options])
        chosen.append(json.loads(capsys.readouterr().out)["placed"][0]["node"])
    assert ["n2", "n1"] == chosen

    assert 0 == cli.execute(["explain", "web", path, "--config", str(config)])
    told = capsys.readouterr().out
    assert "it would go to n2" in told
    assert "  NUMA: all of it fits into node-1 of n2 (policy single-numa-node).\n" in told
    assert 0 == cli.execute(["explain", "web", path])
    assert "NUMA" not in capsys.readouterr().out


def test_the_graph_tells_what_is_available(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Beside what a zone has."""
    assert 0 == cli.execute(["graph", cluster(tmp_path), "--layer", "resources", "--output", "json"])
    found = {each["key"]: each["attributes"] for each in json.loads(capsys.readouterr().out)["vertices"]}

    assert ({"cpu": 2000}, {"cpu": 1500}) == (
        found["place/numa/n1/node-0"]["amounts"],
        found["place/numa/n1/node-0"]["available"],
    )


@virtual.timed
async def test_a_running_scheduler_goes_by_the_newest_report() -> None:
    """What an agent writes later counts for the next pod; an audit finds nothing to mend."""
    async with live.scheduler(*NODES, profile=settings.ProfileSettings(weights=ASKED)) as it:
        path = custom.NODE_RESOURCE_TOPOLOGIES.path
        it.server.install(path)
        for described in (topology("n1", "1500m", "500m"), topology("n2", "0", "2")):
            it.server.create(path, described)
        await it.quiet(200.0)
        it.pod(POD)
        await it.bound("web")
        assert "n2" == it.where("web")

        key = storage.Key(path, "", "n3")
        it.server.create(path, topology("n3", "2", "2"))
        it.server.storage.patch(storage.Key(path, "", "n2"), topology("n2", "0", "0"), strategic=False)
        await it.quiet()
        it.pod(builders.PodBuilder({**POD.manifest(), "metadata": {**POD.manifest()["metadata"], "name": "next"}}))
        await it.bound("next")
        assert "n3" == it.where("next")
        assert "clean" == (await it.program.auditor.once("test")).summary
        it.server.storage.delete(key, {})
        await it.quiet()
        assert not it.parts.store.cells.of("n3")
