"""Custom resources that describe the network, followed by a live scheduler."""

import asyncio
import json
import pathlib
import typing

from graphsched.app import settings as configuration
from graphsched.base.values import keys, relations
from graphsched.graph import delta
from graphsched.sources import custom
from tests import builders
from tests.app import live
from tests.fakes import storage, virtual

LINKS = custom.NETWORK_LINKS.path
HYPER_NODES = custom.HYPER_NODES.path
PLACE = keys.VertexKey("place/hypernode/s0")


def link(name: str, *ends: str) -> storage.Object:
    """A NetworkLink between nodes."""
    spec: storage.Object = {"endpoints": [{"node": end} for end in ends], "latencyMs": 0.5}
    return {"apiVersion": "graphsched.io/v1alpha1", "kind": "NetworkLink", "metadata": {"name": name}, "spec": spec}


def hyper_node(name: str, pattern: str) -> storage.Object:
    """A HyperNode of the nodes that match."""
    members = [{"type": "Node", "selector": {"regexMatch": {"pattern": pattern}}}]
    spec: storage.Object = {"tier": 1, "members": members}
    return {"kind": "HyperNode", "metadata": {"name": name}, "spec": spec}


def edges(running: live.Scheduler, kind: keys.EdgeKind) -> set[tuple[str, str]]:
    """Edges of a kind in the graph, by the names of their ends."""
    return {(keys.name_of(edge.source), keys.name_of(edge.target)) for edge in running.parts.store.edge_ids(kind)}


def metric(running: live.Scheduler, line: str) -> str:
    """The value of a series."""
    lines = running.parts.meters.render().decode().splitlines()
    return next(each for each in lines if each.startswith(line)).rpartition(" ")[2]


@virtual.timed
async def test_kinds_that_are_not_installed_are_no_hindrance() -> None:
    """The scheduler is ready, counts no failure, and says which are absent; an audit finds nothing wrong with it."""
    async with live.scheduler(builders.make_node("n1")) as running:
        running.pod(builders.make_pod("web"))
        await running.bound("web")
        await asyncio.sleep(900.0)

        assert running.program.sights.health().report("readyz").ok
        assert "1.0" == metric(running, 'graphsched_watch_absent{resource="networklinks"}')
        assert "0.0" == metric(running, 'graphsched_watch_failures_total{resource="networklinks"}')
        assert "clean" == (await running.program.auditor.once("test")).summary
        # After some time it is looked for once in three minutes at most.
        assert 20 > len(running.server.asked("GET", LINKS))


@virtual.timed
async def test_a_kind_that_is_installed_later_is_found_and_one_that_goes_is_forgotten() -> None:
    """With all its objects, while decisions go on."""
    async with live.scheduler(builders.make_node("n1"), builders.make_node("n2")) as running:
        running.server.install(LINKS)
        running.server.create(LINKS, link("a", "n1", "n2"))
        await asyncio.sleep(200.0)
        assert {("n1", "n2"), ("n2", "n1")} == edges(running, keys.EdgeKind.LINK)
        assert "0.0" == metric(running, 'graphsched_watch_absent{resource="networklinks"}')

        running.server.uninstall(LINKS)
        await asyncio.sleep(400.0)
        assert set() == edges(running, keys.EdgeKind.LINK)
        assert "1.0" == metric(running, 'graphsched_watch_absent{resource="networklinks"}')


@virtual.timed
async def test_members_by_pattern_follow_the_nodes() -> None:
    """Nodes that come are members, those that go are none."""
    async with live.scheduler(builders.make_node("gpu-1"), started=False) as running:
        running.server.install(HYPER_NODES)
        running.server.create(HYPER_NODES, hyper_node("s0", "^gpu-"))
        await running.start()
        assert {("hypernode/s0", "gpu-1")} == edges(running, keys.EdgeKind.CONTAINS)

        running.node(builders.make_node("gpu-2"))
        running.server.storage.delete(storage.Key(storage.NODES, "", "gpu-1"), {"gracePeriodSeconds": 0})
        await running.quiet()
        assert {("hypernode/s0", "gpu-2")} == edges(running, keys.EdgeKind.CONTAINS)
        assert "clean" == (await running.program.auditor.once("test")).summary


@virtual.timed
async def test_an_object_that_makes_no_sense_is_counted_and_the_others_count() -> None:
    """What it said before stays."""
    async with live.scheduler(builders.make_node("n1"), builders.make_node("n2"), started=False) as running:
        running.server.install(LINKS)
        running.server.create(LINKS, link("a", "n1", "n2"))
        running.server.create(LINKS, link("b", "n1"))
        await running.start()
        await running.quiet()

        assert {("n1", "n2"), ("n2", "n1")} == edges(running, keys.EdgeKind.LINK)
        assert "1.0" == metric(running, 'graphsched_watch_invalid_objects_total{resource="networklinks"}')


@virtual.timed
async def test_an_audit_mends_what_the_graph_has_wrong_of_the_network() -> None:
    """Rows that are missing, stale, or that nobody says."""
    async with live.scheduler(builders.make_node("n1"), builders.make_node("n2"), started=False) as running:
        running.server.install(LINKS)
        running.server.install(HYPER_NODES)
        running.server.create(LINKS, link("a", "n1", "n2"))
        running.server.create(HYPER_NODES, hyper_node("s0", "n"))
        await running.start()
        await running.quiet()
        store = running.parts.store
        before = store.content()
        wrong = keys.EdgeID(keys.node_key("n1"), keys.node_key("n2"), keys.EdgeKind.LINK)
        extra = keys.EdgeID(keys.node_key("n1"), keys.VertexKey("place/x"), keys.EdgeKind.LINK)
        store.apply(
            delta.Patch()
            .remove(PLACE)
            .set_edge(wrong, relations.Link(9.0, by="networklink/a"))
            .set_edge(extra, relations.Link(by="networklink/gone"))
        )
        report = await running.program.auditor.once("test")

        assert {"missing": 3, "stale": 1, "extra": 1} == {kind.value: count for kind, count in report.counts.items()}
        assert before == store.content()


@virtual.timed
async def test_an_audit_mends_what_the_survey_has_wrong() -> None:
    """An object whose deletion nobody told of, and one whose change was lost."""
    async with live.scheduler(builders.make_node("n1"), builders.make_node("n2"), started=False) as running:
        running.server.install(LINKS)
        running.server.create(LINKS, link("a", "n1", "n2"))
        await running.start()
        survey = running.program.surveyor.survey
        codec, convert = custom.KINDS["graphsched.io", "NetworkLink"]
        for told in (link("ghost", "n2", "n1"), {**link("a", "n1", "n3")}):
            survey.describe(convert(codec.decode(json.dumps(told).encode())))
        report = await running.program.auditor.once("test")
        await running.quiet()

        assert 2 <= report.total
        assert {("n1", "n2"), ("n2", "n1")} == edges(running, keys.EdgeKind.LINK)
        assert [] == survey.described("networklink/ghost")


@virtual.timed
async def test_files_of_slurm_are_in_the_graph_from_the_start(tmp_path: pathlib.Path) -> None:
    """And stay there whatever the API server says."""
    (tmp_path / "topology.conf").write_text("SwitchName=leaf1 Nodes=n[1-2]\n")
    chosen: typing.Any = configuration.TopologySettings(crds="none", files=(str(tmp_path / "topology.conf"),))
    async with live.scheduler(builders.make_node("n1"), topology=chosen) as running:
        await running.quiet()
        assert {("slurm/leaf1", "n1")} == edges(running, keys.EdgeKind.CONTAINS)
        assert [] == running.server.asked("GET", LINKS)
        assert "clean" == (await running.program.auditor.once("test")).summary
