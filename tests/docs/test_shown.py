"""What pages show of the program's answers is what it answers."""

import pathlib
import re

import pytest

from graphsched.app import cli
from tests.docs import test_pages

FOLDER = test_pages.ROOT / "examples"


def shown(page: str, command: str) -> list[str]:
    """The lines below a command of a page, as far as they are indented or fenced, without those that leave some out."""
    text = (test_pages.ROOT / page).read_text(encoding="utf-8")
    found = re.search(rf"^ *.*graphsched {re.escape(command)}\n((?: {{4}}.*\n|\n)+|[^`]+(?=```))", text, re.MULTILINE)
    assert found is not None, command
    lines = [line.removeprefix("    ").rstrip() for line in found[1].splitlines()]
    answer = []
    for line in lines:
        if re.match(r"\$ |\S*/graphsched ", line):
            break
        answer.append(line)
    return [line for line in answer if line and line.strip() != "…"]


@pytest.mark.parametrize(
    ("page", "command", "folder"),
    [
        ("README.md", "explain web nodes.yaml mesh.yaml pods.yaml --verbose", "topology"),
        ("README.md", "graph path n3 n1 nodes.yaml mesh.yaml --metric latency", "topology"),
        ("docs/policies.md", "explain web-1 examples/policies", ".."),
        ("docs/policies.md", "explain encoder examples/policies", ".."),
    ],
)
def test_the_answer_of_a_page_is_the_programs(
    page: str, command: str, folder: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each line that is shown below a command is one that the command prints, in that order."""
    monkeypatch.chdir(pathlib.Path(FOLDER, folder))
    lines = shown(page, command)

    cli.execute(command.split())

    said = iter(line.rstrip() for line in capsys.readouterr().out.splitlines())
    assert lines
    assert [] == [line for line in lines if line not in said]
