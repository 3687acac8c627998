"""`graphsched explain`: from files or from a running scheduler, the same answer in the same words."""

import http.server
import json
import pathlib
import threading
from collections.abc import Iterator

import msgspec
import pytest

from graphsched.app import cli
from graphsched.explain import why
from tests.app.manifests import write
from tests.builders import make_node, make_pod

ANSWER = why.Explanation(pod="default/web", state="pending", headline="web is pending: no reason.", nodes=1)


class _Scheduler(http.server.BaseHTTPRequestHandler):
    """The debug endpoint of a running scheduler, as far as `explain` asks for it."""

    def do_GET(self) -> None:
        """Know `default/web` only."""
        known = self.path == "/debug/explain?pod=default%2Fweb"
        body = msgspec.json.encode(ANSWER) if known else b'{"error":"no pod default/a is known here"}'
        if self.path.endswith("odd"):
            known, body = True, b"<html>"
        self.send_response(200 if known else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of such a scheduler."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Scheduler) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()
        thread.join()


def test_a_pod_that_fits_is_a_yes(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where it would go, and exit code 0."""
    path = write(tmp_path / "c.yaml", make_node("n1"), make_pod("web"))

    assert 0 == cli.execute(["explain", "web", path])
    assert capsys.readouterr().out.startswith("web is pending and fits: it would go to n1")


def test_a_pod_that_fits_nowhere_is_a_no(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Why, and exit code 1."""
    path = write(tmp_path / "c.yaml", make_node("n1").cordoned(), make_pod("web"))

    assert 1 == cli.execute(["explain", "default/web", path])
    assert capsys.readouterr().out.startswith("web is pending: the only node is cordoned.\n")


def test_the_others_can_be_placed_first(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a simulation did to the pod is explained, too."""
    path = write(tmp_path / "c.yaml", make_node("n1"), make_pod("a").cpu("3"), make_pod("b").cpu("3"))

    assert 1 == cli.execute(["explain", "b", path, "--simulate"])
    assert "has 3 CPUs free (most: 1 CPU on n1)" in capsys.readouterr().out


def test_names_of_nodes_are_there_for_who_asks(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line a reason, with some of its nodes."""
    nodes = [make_node(f"n{number}").cordoned() for number in range(7)]
    cli.execute(["explain", "web", write(tmp_path / "c.yaml", *nodes, make_pod("web")), "--verbose"])

    assert "    7 cordoned: n0, n1, n2, n3, n4, …" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("wbe", 'Pod "wbe": is not in the input (it holds e.g. default/web)'),
        ("twin", "could be blue/twin, red/twin (name the namespace as well)"),
    ],
)
def test_a_name_that_is_not_one_pods_is_told(
    name: str,
    said: str,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With what may have been meant."""
    twins = [make_pod("twin", "red"), make_pod("twin", "blue")]
    path = write(tmp_path / "c.yaml", make_node("n1"), make_pod("web"), *twins)

    assert 2 == cli.execute(["explain", name, path])
    assert said in capsys.readouterr().err


def test_a_running_scheduler_is_asked_without_files(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The namespace is `default` unless named."""
    assert 1 == cli.execute(["explain", "web", "--server", server])
    assert "web is pending: no reason.\n" == capsys.readouterr().out


def test_its_answer_can_be_had_as_json(server: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The whole of it."""
    cli.execute(["explain", "web", "--server", server + "/", "--output", "json"])

    assert ANSWER == msgspec.convert(json.loads(capsys.readouterr().out), why.Explanation)


@pytest.mark.parametrize(("pod", "said"), [("a", "no pod default/a is known here"), ("odd", "not an answer")])
def test_what_it_can_not_answer_is_one_line(
    pod: str, said: str, server: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the scheduler's own words where it has any."""
    assert 2 == cli.execute(["explain", pod, "--server", server])
    captured = capsys.readouterr()
    assert ("", 1) == (captured.out, captured.err.count("\n"))
    assert said in captured.err
