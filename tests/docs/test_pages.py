"""The documentation says what the program is: generated pages are fresh, options and links exist."""

import pathlib
import re
import subprocess
import sys
import tomllib

import pytest

from graphsched.app import cli
from scripts import configuration_page, metrics_page

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "SECURITY.md", *(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*/README.md")]
)
COMMANDS = (
    "run",
    "simulate",
    "evaluate",
    "explain",
    "shadow",
    "snapshot",
    "graph export",
    "graph path",
    "graph stats",
)


def test_the_metrics_page_is_fresh() -> None:
    """docs/metrics.md is what `python -m scripts.metrics_page` writes."""
    assert metrics_page.page() == metrics_page.PAGE.read_text(encoding="utf-8")


def test_the_configuration_page_is_fresh() -> None:
    """docs/configuration.md is what `python -m scripts.configuration_page` writes."""
    assert configuration_page.page() == configuration_page.PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("command", COMMANDS)
def test_the_manual_names_every_option(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """docs/cli.md has a section for each command with all its options, and none that does not exist."""
    cli.execute([*command.split(), "--help"])
    options = set(re.findall(r"(--[a-z-]+)", capsys.readouterr().out.partition("Examples:")[0])) - {"--help"}
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    section = re.search(rf"^## graphsched {command}$(.*?)(?=^## |\Z)", text, flags=re.MULTILINE | re.DOTALL)
    assert section is not None

    assert options == set(re.findall(r"`(--[a-z-]+)", section[1]))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: pathlib.Path) -> None:
    """Every relative link and picture of a page is a file of the repository."""
    targets = re.findall(r"\]\((?!https?://|#)([^)#\s]+)", page.read_text(encoding="utf-8"))

    assert [] == [target for target in targets if not (page.parent / target).exists()]


def test_every_target_that_is_told_of_is_a_target() -> None:
    """`make …` in a page works."""
    names = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    told = {name for page in PAGES for name in re.findall(r"`make ([a-z-]+)", page.read_text(encoding="utf-8"))}

    assert set() == told - names


def test_the_map_of_the_modules_is_complete() -> None:
    """docs/architecture.md names every folder of the package and nothing that is gone."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    folders = {
        path.parent.relative_to(ROOT / "graphsched").as_posix() for path in ROOT.glob("graphsched/*/__init__.py")
    }
    named = set(re.findall(r"`((?:sources|graph|decision|action|explain|observe|app|base)/[\w/]+\.py)`", text))

    assert folders <= set(re.findall(r"`(\w+)/`", text))
    assert [] == sorted(name for name in named if not (ROOT / "graphsched" / name).is_file())


def test_the_order_of_the_layers_is_the_contracts() -> None:
    """docs/architecture.md draws what may import what; `make check` runs it out of pyproject.toml."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (layers,) = (each["layers"] for each in contracts if each["type"] == "layers")
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    (drawn,) = re.findall(r"### What may import what\n.*?```\n(.*?)```", text, flags=re.DOTALL)
    folders = {each for layer in layers for each in layer.split(" | ")} - {"__main__"}
    rows = [[word for word in line.split() if word in folders] for line in drawn.splitlines()]

    assert [layer.split(" | ") for layer in layers if layer != "__main__"] == [row for row in rows if row]


def test_kopf_is_known_where_the_map_says_and_nowhere_else() -> None:
    """It cancels every task of its loop when it ends, so whoever imports it has to know what they do."""
    package = ROOT / "graphsched"
    importers = [
        path.relative_to(package).as_posix()
        for path in sorted(package.rglob("*.py"))
        if re.search(r"^\s*(import|from) kopf\b", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]

    assert ["app/operator.py"] == importers
    assert "only `app/operator.py` kopf" in (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_help_is_what_the_module_answers_as_well() -> None:
    """`python -m graphsched` is the same program."""
    done = subprocess.run([sys.executable, "-m", "graphsched", "--version"], capture_output=True, text=True, check=True)

    assert re.fullmatch(r"graphsched \d+\.\d+\.\d+\n", done.stdout)
