"""`graphsched graph`: from files or from a running scheduler, what was asked for, or one line that says why not."""

import asyncio
import json
import pathlib
import xml.etree.ElementTree as ET

import msgspec
import pytest

from graphsched.app import cli, offline
from graphsched.explain.atlas import maps, stats, survey
from graphsched.graph import codec, delta, store
from tests.app.manifests import write
from tests.app.test_capture import beside_a_scheduler
from tests.builders import make_node, make_pod
from tests.explain import dot_grammar, fabrics


@pytest.fixture
def cluster(tmp_path: pathlib.Path) -> str:
    """Two zones, a node in each, a pod on one and one that waits."""
    nodes = [make_node(f"n{number}").region("eu").zone(zone) for number, zone in enumerate("ab", start=1)]
    return write(tmp_path / "c.yaml", *nodes, make_pod("web").cpu("1").node("n1"), make_pod("db"))


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """What a command writes to stdout."""
    assert code == cli.execute(["graph", *arguments])
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line with which a command refuses, exit code 2."""
    assert 2 == cli.execute(["graph", *arguments])
    out, err = capsys.readouterr()
    assert ("", 1) == (out, err.count("\n"))
    return err


def test_a_tree_is_what_a_terminal_gets(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Without any option, and under the command's own name just as well."""
    told = printed(capsys, cluster)

    assert told.splitlines() == [
        "region eu",
        "├─ zone a",
        "│  └─ n1   1 of 4 CPUs, 0 of 32Gi memory, 1 of 110 pods",
        "│     └─ web",
        "└─ zone b",
        "   └─ n2   0 of 4 CPUs, 0 of 32Gi memory",
        "db",
    ]
    assert told == printed(capsys, "export", cluster)


def test_json_is_the_documented_format(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    """It decodes to the map that was surveyed, and says its version."""
    told = printed(capsys, cluster, "--layer", "physical", "--layer", "workloads", "--output", "json")
    found = msgspec.json.decode(told, type=maps.Map)

    assert "graphsched.graph/v1" == json.loads(told)["format"]
    assert (maps.Layer.PHYSICAL, maps.Layer.WORKLOADS) == found.layers
    assert {"node/n1", "pod/default/web", "domain/topology.kubernetes.io/zone=eu/b"} <= set(found.by_key)
    assert any((edge.source, edge.target, edge.kind) == ("pod/default/web", "node/n1", "runs") for edge in found.edges)


@pytest.mark.parametrize("layer", ["all", *maps.Layer])
def test_every_layer_comes_in_every_output(layer: str, cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    """But a layer that holds nothing has no picture."""
    assert layer == "policy" or dot_grammar.parse(printed(capsys, cluster, "--layer", layer, "-o", "dot"))[0]
    assert json.loads(printed(capsys, cluster, "--layer", layer, "-o", "json"))["format"]
    assert "format: graphsched.graph/v1" in printed(capsys, cluster, "--layer", layer, "-o", "yaml")
    if layer == "policy":
        assert "there is nothing to draw (choose another --layer)" in refused(
            capsys, cluster, "--layer", layer, "-o", "svg"
        )
    else:
        ET.fromstring(printed(capsys, cluster, "--layer", layer, "-o", "svg"))  # noqa: S314  our own text


def test_the_ending_of_a_file_says_what_to_write(
    cluster: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file is there whole, and what is in it is told."""
    path = tmp_path / "graph.svg"
    assert 0 == cli.execute(["graph", cluster, "--without", "pod", "--to", str(path)])

    assert capsys.readouterr().err == f"wrote 5 vertices and 4 edges to {path}\n"
    assert path.read_text(encoding="utf-8").startswith("<svg ")


def test_a_neighbourhood_is_asked_for_by_a_short_name(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Two edges far unless said otherwise."""
    near = json.loads(printed(capsys, cluster, "--around", "n1", "--depth", "1", "-o", "json"))
    further = json.loads(printed(capsys, cluster, "--around", "n1", "-o", "json"))

    assert ("node/n1", 1, 2) == (near["around"], near["depth"], further["depth"])
    assert {"node/n1", "pod/default/web", "domain/topology.kubernetes.io/zone=eu/a"} == {
        vertex["key"] for vertex in near["vertices"]
    }
    assert len(further["vertices"]) == len(near["vertices"]) + 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no input (name manifests, a folder or a snapshot, or add --from-scheduler)"),
        (["FILE", "--around", "n3"], 'vertex "n3": is not in the graph (did you mean node/n'),
        (["FILE", "--depth", "3"], "--depth: is of a neighbourhood (add --around, e.g. --around node/n1)"),
        (
            ["FILE", "--without", "pods"],
            "--without: pods: is the kind of no vertex here (there are domain, node and pod)",
        ),
        (["FILE", "--to", "x.png"], "--to: x.png: says not what to write (end it in .svg, .dot, .json or .yaml)"),
        (["FILE", "--to", "/nowhere/x.svg"], "/nowhere/x.svg: can not be written: No such file or directory"),
        (["FILE", "--token-file", "x"], "--token-file: is of a scheduler (add --from-scheduler)"),
        (["FILE", "--from-scheduler"], "is of no use with --from-scheduler (leave one out)"),
        (["--from-scheduler", "--server", "nowhere"], '--server: "nowhere" is no URL'),
        (["FILE", "--layer", "physics"], "physics"),
        (["missing.yaml"], "missing.yaml: "),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_what_can_not_be_done_is_one_line(
    arguments: list[str], said: str, cluster: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Place, problem, remedy; no traceback."""
    given = ["export", *(cluster if each == "FILE" else each for each in arguments)]

    assert said in refused(capsys, *given)


def test_a_picture_that_nobody_could_read_says_how_to_narrow_it(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 2, and nothing is written."""
    path = write(tmp_path / "c.yaml", *(make_node(f"n{number}") for number in range(401)))

    assert "narrow it with --layer, --around and --depth" in refused(capsys, path, "--output", "svg")


def test_nothing_at_all_shows_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    """The commands, with examples."""
    told = printed(capsys)

    assert "Commands:" in told
    assert "graphsched graph cluster.json --layer physical --to graph.svg" in told


def test_numbers_are_a_table_or_data(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The same in both."""
    table = printed(capsys, "stats", cluster)
    found = msgspec.json.decode(printed(capsys, "stats", cluster, "--output", "json"), type=stats.Stats)

    assert {"node": 2, "pod": 2, "domain": 3, "namespace": 1} == found.vertices
    assert "vertices          8   3 domain, 2 node, 2 pod, 1 namespace" in " ".join(table.split("\n"))
    assert "topology.kubernetes.io/zone: 1 node each" in table


def test_a_running_scheduler_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    """Its own graph, promises included."""

    async def talk(server: str, graph: store.Store) -> None:
        arguments = ["graph", "--from-scheduler", "--server", server, "--output", "json"]
        assert 0 == await asyncio.to_thread(cli.execute, arguments)
        found = msgspec.json.decode(capsys.readouterr().out, type=maps.Map)
        assert survey.survey(graph) == found
        assert {"promised": True} == next(edge.attributes for edge in found.edges if edge.source == "pod/default/web")
        assert 0 == await asyncio.to_thread(cli.execute, ["graph", "stats", "--server", server])

    beside_a_scheduler(talk)


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A captured graph with switches and links."""
    path = tmp_path_factory.mktemp("fabric") / "cluster.dg"
    path.write_bytes(codec.encode(fabrics.patch()))
    return str(path)


def test_a_captured_graph_is_shown_with_all_that_no_manifest_says(
    fabric: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Places, links, groups and rules."""
    found = msgspec.json.decode(printed(capsys, fabric, "--output", "json"), type=maps.Map)

    assert survey.survey(fabrics.fabric()) == found


def test_a_way_is_told_leg_by_leg(fabric: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Pods stand for the nodes they run on, promised ones too."""
    lines = printed(capsys, "path", "web-1", "n2", fabric, "--metric", "latency").splitlines()

    assert "default/web-1 runs on n1" == lines[0]
    assert "n1 → n2: 4 hops · 0.14 ms one way · 100 Gbps at the narrowest, n1 → net/leaf-r0" == lines[1]
    assert lines[4].split()[:6] == ["n1", "net/leaf-r0", "link", "20", "µs", "100"]
    told = json.loads(printed(capsys, "path", "web-1", "n2", fabric, "--metric", "latency", "-o", "json"))
    assert ("graphsched.graph.path/v1", 4, "latency") == (told["format"], told["hops"], told["metric"])


@pytest.mark.parametrize("kind", ["manifests", "capture"])
def test_hops_are_counted_by_the_settings_that_are_given(
    kind: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A link that has lost most of its health is one hop, or is gone round where `linkHealth.sickBelow` says so."""
    config = tmp_path / "settings.yaml"
    config.write_text("linkHealth: {sickBelow: 0.6}\n")
    paths = [write(tmp_path / "nodes.yaml", *(make_node(f"n{number}") for number in (1, 2, 3)))]
    paths.append(str(tmp_path / "links.json"))
    links = [("n1", "n3", {"health": 0.3}), ("n1", "n2", {}), ("n2", "n3", {})]
    items = [
        {
            "apiVersion": "graphsched.io/v1alpha1",
            "kind": "NetworkLink",
            "metadata": {"name": f"{one}-{other}"},
            "spec": {"endpoints": [{"node": one}, {"node": other}]},
            "status": status,
        }
        for one, other, status in links
    ]
    (tmp_path / "links.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    if kind == "capture":
        vertices, edges = offline.graph_of(offline.load(paths)).content()
        paths = [str(tmp_path / "cluster.dg")]
        pathlib.Path(paths[0]).write_bytes(codec.encode(delta.Patch(vertices=vertices, edges=edges)))

    def passed(*options: str) -> list[str]:
        told = json.loads(printed(capsys, "path", "n1", "n3", *paths, "--output", "json", *options))
        return [leg["target"] for leg in told["legs"]]

    assert ["node/n3"] == passed()
    assert ["node/n2", "node/n3"] == passed("--config", str(config))


def test_that_no_way_is_known_is_a_no(fabric: str, cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1, and what might be asked instead."""
    assert 1 == cli.execute(["graph", "path", "n1", "n2", cluster, "--metric", "latency"])
    assert "no way from n1 to n2 is known by latency: try --metric hops\n" == capsys.readouterr().err
    assert 0 == cli.execute(["graph", "path", "n1", "n2", cluster])
    assert 1 == cli.execute(["graph", "path", "shop/db-0", "n1", fabric])
    assert "shop/db-0 runs on no node yet\n" == capsys.readouterr().err


def test_an_end_that_nobody_knows_is_one_line(fabric: str, capsys: pytest.CaptureFixture[str]) -> None:
    """With what may have been meant."""
    assert 'vertex "net/leaf-r9": is not in the graph (did you mean place/net/leaf-r' in refused(
        capsys, "path", "n1", "net/leaf-r9", fabric
    )


def test_a_damaged_capture_is_one_line(fabric: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As for the other commands."""
    path = tmp_path / "bad.dg"
    path.write_bytes(pathlib.Path(fabric).read_bytes()[:-9])

    assert f"{path}: " in refused(capsys, "stats", str(path))
