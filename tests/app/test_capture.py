"""A running scheduler's graph, from its store through the server and the commands into a replay elsewhere."""

import asyncio
import json
import pathlib
from collections.abc import Awaitable, Callable

import pytest

from graphsched.app import asking, cli, offline, settings as configuration
from graphsched.base.values import errors, keys
from graphsched.graph import codec, delta, store
from graphsched.sources import captures
from tests import builders
from tests.app import live, manifests
from tests.fakes import apiserver

N1 = builders.make_node("n1").cpu("2").build()
N2 = builders.make_node("n2").cpu("4").build()
HELD = builders.make_pod("held").cpu("1").node("n1").build()
WEB = builders.make_pod("web").cpu("2").build()
NEXT = builders.make_pod("next").cpu("3").build()


def beside_a_scheduler(talk: Callable[[str, store.Store], Awaitable[object]]) -> None:
    """Run `talk` beside the server of a scheduler that has promised n2 to `web`; `next` needs what that takes."""

    async def main() -> None:
        async with apiserver.FakeApiServer() as api, api.client() as client:
            program = live.wired(client, configuration.Settings())
            patch = delta.Patch()
            for vertex in (N1, N2, HELD, WEB, NEXT, builders.make_namespace("default", team="x")):
                patch.set_vertex(vertex)
            program.parts.store.apply(patch)
            program.parts.promises.make(WEB, "n2", ())
            await program.server.start(host="127.0.0.1", port=0)
            try:
                await talk(f"http://127.0.0.1:{program.server.port}", program.parts.store)
            finally:
                await program.server.stop()

    asyncio.run(main())


def captured(path: pathlib.Path) -> None:
    """Capture that scheduler's graph into a file through the command."""

    async def talk(server: str, graph: store.Store) -> None:
        arguments = ["snapshot", "--from-scheduler", "--server", server, "--output", str(path)]
        assert 0 == await asyncio.to_thread(cli.execute, arguments)
        assert graph.content() == offline.graph_of(offline.load([str(path)])).content()

    beside_a_scheduler(talk)


def test_the_graph_is_the_same_elsewhere(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every vertex and edge; the file is nothing but what the codec makes of it."""
    path = tmp_path / "cluster.dg"
    captured(path)

    assert f"captured generation 2 of the graph (2 nodes, 3 pods, 1 promise) to {path}\n" == capsys.readouterr().err
    assert isinstance(codec.decode(path.read_bytes()), delta.Patch)
    assert [path] == list(tmp_path.iterdir())


def test_a_replay_decides_as_the_scheduler_would(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The promised pod keeps its room, is told where it is, and is not placed again."""
    path = str(tmp_path / "cluster.dg")
    captured(tmp_path / "cluster.dg")
    capsys.readouterr()
    codes = [cli.execute(["simulate", path, "--output", "json"])]
    simulated = json.loads(capsys.readouterr().out)
    codes += [cli.execute(["explain", name, path]) for name in ("web", "next")]
    told = capsys.readouterr().out

    assert [1, 0, 1] == codes
    assert ([], ["default/next"]) == (simulated["placed"], [pod["pod"] for pod in simulated["pending"]])
    assert [3000] == [usage["used"] for usage in simulated["usage"] if usage["resource"] == "cpu"]
    assert "web runs on n2" in told
    assert "next is pending" in told


def test_manifests_may_come_on_top(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A node that would help, a pod bound to a node of the graph; namespaces keep their labels."""
    path = str(tmp_path / "cluster.dg")
    captured(tmp_path / "cluster.dg")
    more = manifests.write(tmp_path / "more.json", builders.make_node("n3"), builders.make_pod("x").cpu("1").node("n2"))
    capsys.readouterr()

    assert 0 == cli.execute(["simulate", path, more])
    assert "All 1 pod found a node on 3 nodes." in capsys.readouterr().out
    joined = offline.graph_of(offline.load([path, more]))
    assert builders.make_namespace("default", team="x") == joined.vertex(keys.namespace_key("default"))


@pytest.mark.parametrize(
    ("build", "said"),
    [(builders.make_node("n1"), 'Node "n1": is in two files'), (builders.make_pod("web"), 'Pod "default/web": is in')],
)
def test_an_object_in_two_files_is_refused(
    build: builders.NodeBuilder | builders.PodBuilder, said: str, tmp_path: pathlib.Path
) -> None:
    """Which of the two is meant can not be known."""
    captured(tmp_path / "cluster.dg")
    more = manifests.write(tmp_path / "more.json", build)

    with pytest.raises(errors.InputError, match=said):
        offline.load([str(tmp_path / "cluster.dg"), more])


@pytest.mark.parametrize("command", [["simulate"], ["explain", "web"]])
def test_a_damaged_file_is_one_line(
    command: list[str], tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In every command that reads one."""
    path = tmp_path / "cluster.dg"
    captured(path)
    path.write_bytes(path.read_bytes()[:-1])
    capsys.readouterr()

    assert 2 == cli.execute([*command, str(path)])
    said = capsys.readouterr()
    assert ("", 1) == (said.out, said.err.count("\n"))
    assert said.err.startswith(f"graphsched: {path}: encoded patch: ")


def test_a_folder_says_that_a_graph_must_be_named(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Under a manifest's name it is found in a folder, and its bytes are no manifest."""
    captured(tmp_path / "cluster.json")
    capsys.readouterr()

    assert 2 == cli.execute(["simulate", str(tmp_path)])
    assert "is a captured graph, read by its name alone (name the file itself" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--server", "http://127.0.0.1:1"], "--server: is of a scheduler (add --from-scheduler, or leave it out)"),
        (["--from-scheduler", "--server", "ftp://x"], '--server: "ftp://x" is no URL'),
        (["--from-scheduler", "--server", "http://127.0.0.1:1"], "no running scheduler answers"),
        (["--from-scheduler", "--server", "http://127.0.0.1:99999"], "127.0.0.1:99999"),
        (["--from-scheduler", "--kubeconfig", "x"], "--kubeconfig: is of no use with --from-scheduler"),
        (["--token-file", "x"], "--token-file: is of a scheduler (add --from-scheduler, or leave it out)"),
        (["--insecure-skip-tls-verify"], "--insecure-skip-tls-verify: is of a scheduler"),
        (["--from-scheduler", "--context", "x"], "--context: is of no use with --from-scheduler"),
    ],
)
def test_what_can_not_be_captured_is_one_line_and_no_file(
    options: list[str], said: str, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where, what, how to mend it."""
    assert 2 == cli.execute(["snapshot", *options, "--output", str(tmp_path / "cluster.dg")])
    told = capsys.readouterr()
    assert ("", 1, []) == (told.out, told.err.count("\n"), list(tmp_path.iterdir()))
    assert said in told.err


def test_an_answer_that_is_no_graph_is_not_written(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be found out only when the cluster is gone."""
    data = codec.encode(delta.Patch().set_vertex(N1))
    monkeypatch.setattr(asking, "get", lambda *_, **__: data[:-1])

    assert 2 == cli.execute(["snapshot", "--from-scheduler", "--output", str(tmp_path / "cluster.dg")])
    assert "http://127.0.0.1:10260: not a graph that this version reads: " in capsys.readouterr().err
    assert [] == list(tmp_path.iterdir())


def test_an_answer_beyond_the_bound_is_not_taken() -> None:
    """Whoever answers at that address."""

    async def talk(server: str, _graph: store.Store) -> None:
        with pytest.raises(errors.ClusterError, match="the answer is longer than 0 MiB"):
            await asyncio.to_thread(
                asking.get, asking.Server(url=server), "/debug/graph", timeout_s=10.0, bytes_max=99, instead=""
            )

    beside_a_scheduler(talk)


def test_the_loop_goes_on_while_the_graph_is_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Encoding waits here for something that only the loop can do."""
    encode, reached = codec.encode, asyncio.Event()

    async def talk(server: str, graph: store.Store) -> None:
        loop = asyncio.get_running_loop()

        def waiting(patch: delta.Patch, *, base_generation: int = 0) -> bytes:
            asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result(10.0)
            # What happens meanwhile is not in it: it is the graph of one moment.
            graph.apply(delta.Patch().set_vertex(builders.make_node("late").build()))
            reached.set()
            return encode(patch, base_generation=base_generation)

        monkeypatch.setattr(codec, "encode", waiting)
        data = await asyncio.to_thread(
            asking.get,
            asking.Server(url=server),
            "/debug/graph",
            timeout_s=10.0,
            bytes_max=captures.BYTES_MAX,
            instead="",
        )
        found = captures.decode(data)
        assert reached.is_set()
        assert isinstance(found, captures.Capture)
        assert (2, False) == (found.generation, keys.node_key("late") in found.patch.vertices)

    beside_a_scheduler(talk)
