"""
The console script: exit codes, one line for every failure, nothing on stdout that is not the result.

Parsing and failures run in this process; what depends on a process of its own (pipes, signals) is started as a user
would start it.
"""

import os
import pathlib
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from graphsched.app import cli, simulate
from tests.app.manifests import write
from tests.builders import make_node, make_pod

GRAPHSCHED = [sys.executable, "-m", "graphsched"]


def test_without_arguments_it_says_what_it_can_do(capsys: pytest.CaptureFixture[str]) -> None:
    """Help is no mistake."""
    code = cli.execute([])

    assert (0, True) == (code, "simulate" in capsys.readouterr().out)


def test_every_command_has_help_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    """A person copies an example before reading options."""
    for command in ("run", "simulate", "evaluate", "explain", "snapshot"):
        assert 0 == cli.execute([command, "--help"])
        assert "Examples:" in capsys.readouterr().out


def test_the_version_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """For bug reports."""
    assert 0 == cli.execute(["--version"])
    assert "graphsched 0." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["simulat"], "No such command"),
        (["simulate", "--foo"], "No such option"),
        (
            ["simulate", "--output", "xml"],
            "value for '--output' / '-o': 'xml' is not one of 'table', 'json', 'yaml' (see gra",
        ),
        (["explain"], "POD"),
        (["simulate"], "no input (name manifests"),
        (["simulate", "/nowhere/x.yaml"], "/nowhere/x.yaml: no such file or directory"),
        (["simulate", "--report", "/nowhere/r.html", "x.yaml"], "its folder does not exist"),
        (["explain", "a", "--server", "ftp://x"], '--server: "ftp://x" is no URL'),
        (["explain", "a", "--server", "http://127.0.0.1:1"], "no running scheduler answers"),
    ],
)
def test_wrong_use_is_one_line_and_two(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Where, what, how to mend it; no usage text of a screen, no traceback."""
    code = cli.execute(arguments)
    captured = capsys.readouterr()

    assert (2, "", 1) == (code, captured.out, captured.err.count("\n"))
    assert captured.err.startswith("graphsched: ")
    assert said in captured.err


def test_bad_input_names_file_object_field_and_remedy(
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Through the whole program, as a user meets it."""
    path = write(tmp_path / "cluster.yaml", make_node("n1").resource("cpu", "12Gx"))

    assert 2 == cli.execute(["simulate", path])
    place = f'graphsched: {path}:1: Node "n1": status.allocatable.cpu: '
    assert f'{place}"12Gx" is not a quantity (use e.g. 12, 500m, 1.5Gi)\n' == capsys.readouterr().err


def test_what_a_value_holds_does_not_break_the_line(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Newlines and the codes that move a terminal's cursor are shown, not obeyed."""
    path = write(tmp_path / "cluster.yaml", make_node("n1").resource("cpu", "1\n\x1b[2Jé"))

    assert 2 == cli.execute(["simulate", path])
    assert 'cpu: "1\\n\\x1b[2Jé" is not a quantity (use e.g. 12, 500m, 1.5Gi)\n' in capsys.readouterr().err


def test_a_bug_is_one_line_with_a_code_of_its_own(
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Told apart from bad input; the traceback is there for who asks."""

    def broken(_options: object) -> int:
        raise RuntimeError("it broke")

    monkeypatch.setattr(simulate, "command", broken)
    path = write(tmp_path / "cluster.yaml", make_node("n1"))
    quiet = cli.execute(["simulate", path]), capsys.readouterr().err
    loud = cli.execute(["--debug", "simulate", path]), capsys.readouterr().err

    assert 70 == quiet[0] == loud[0]
    assert 1 == quiet[1].count("\n")
    assert quiet[1].startswith("graphsched: bug: RuntimeError: it broke (test_cli.py:")
    assert "Traceback" in loud[1]


def test_an_interrupt_is_no_traceback(
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ctrl-C ends with the code shells expect."""

    def interrupted(_options: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(simulate, "command", interrupted)

    assert 130 == cli.execute(["simulate", write(tmp_path / "cluster.yaml", make_node("n1"))])
    assert "graphsched: interrupted\n" == capsys.readouterr().err


def test_a_reader_that_goes_away_is_no_traceback(tmp_path: pathlib.Path) -> None:
    """`graphsched simulate … | head -1`."""
    pods = [make_pod(f"p{number:04d}") for number in range(3000)]
    path = write(tmp_path / "cluster.yaml", make_node("n1").pods(5000), *pods)
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*GRAPHSCHED, "simulate", path, "--output", "json"],
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
        timeout=60,
    )
    os.close(writing)

    assert 141 == done.returncode
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["simulate {} --output json", "evaluate < {}", "--help"])
def test_a_full_disk_is_no_bug(tmp_path: pathlib.Path, command: str) -> None:
    """One line and the code of input and output, whoever noticed it, and nothing of the interpreter's."""
    path = write(tmp_path / "a.json", make_node("n1"), make_pod("p"))
    done = subprocess.run(
        ["sh", "-c", f"exec {' '.join(GRAPHSCHED)} {command.format(path)} > /dev/full"],
        capture_output=True,
        check=False,
    )

    assert (2, b"graphsched: stdout: can not be written: no space left on device (write elsewhere)\n") == (
        done.returncode,
        done.stderr,
    )


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    ("streams", "arguments", "code"),
    [
        ("<&- >&- 2>&-", "simulate {}", 0),
        (">&-", "simulate {} --output json", 0),
        ("2>&-", "simulate nowhere.yaml", 2),
        ("2>/dev/full", "simulate nowhere.yaml", 2),
        ("2>/dev/full", "simulate {}", 0),
        ("<&-", "evaluate", 0),
        ("<&-", "simulate -", 2),
    ],
)
def test_streams_may_be_missing(
    tmp_path: pathlib.Path, streams: str, arguments: str, code: int, unbuffered: str
) -> None:
    """A service manager may start a program without them: the exit code is what it is otherwise."""
    path = write(tmp_path / "a.json", make_node("n1"), make_pod("p"))
    done = subprocess.run(
        ["sh", "-c", f"exec {' '.join(GRAPHSCHED)} {arguments.format(path)} {streams}"],
        env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        capture_output=True,
        check=False,
    )

    assert code == done.returncode, done.stderr
    assert b"Traceback" not in done.stderr


@pytest.fixture
def attentive() -> Iterator[None]:
    """A shell that begins the tests in the background has them ignore Ctrl-C, and whatever they start as well."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_while_waiting_for_input_ends_it(attentive: None) -> None:
    """A person who forgot the input file."""
    with subprocess.Popen(
        [*GRAPHSCHED, "evaluate"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"{}\n")
        process.stdin.flush()
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        code = process.wait(timeout=30)
        assert process.stderr is not None
        said = process.stderr.read()

    assert (130, b"graphsched: interrupted\n") == (code, said)


def test_help_needs_no_engine() -> None:
    """It answers at once, so it imports neither numpy nor the client."""
    script = (
        "import sys; from graphsched.app import cli; code = cli.execute(['simulate', '--help']);"
        "sys.exit(any(name in sys.modules for name in ('numpy', 'rustworkx', 'aiohttp', 'yaml')))"
    )

    assert 0 == subprocess.run([sys.executable, "-c", script], capture_output=True, check=False).returncode
