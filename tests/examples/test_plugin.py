"""The example plugin can be installed, is found by its entry point, passes its own tests, and orders a queue."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from tests import builders
from tests.architecture import tidy

EXAMPLE = tidy.ROOT / "examples" / "plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which the package is installed, with the checkout's graphsched."""
    target = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
    command += ["--no-deps", "--no-build-isolation", "--target", str(target), str(EXAMPLE)]
    subprocess.run(command, check=True, capture_output=True, timeout=100)
    return os.environ | {"PYTHONPATH": f"{target}{os.pathsep}{tidy.ROOT}", "PYTHONDONTWRITEBYTECODE": "1"}


def test_its_own_tests_pass(installed: dict[str, str]) -> None:
    """The contract suite among them."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", str(EXAMPLE)]
    done = subprocess.run(command, env=installed, capture_output=True, text=True, check=False, timeout=100)

    assert 0 == done.returncode, done.stdout
    assert "8 passed" in done.stdout


def test_the_example_places_what_most_others_wait_for(installed: dict[str, str]) -> None:
    """Without the plugin it is the oldest pod that gets the only place."""
    command = [sys.executable, "-m", "graphsched", "simulate", "--output", "json", str(EXAMPLE / "cluster.yaml")]
    for more, placed in (([], "default/web"), (["--config", str(EXAMPLE / "config.yaml")], "default/db")):
        done = subprocess.run([*command, *more], env=installed, capture_output=True, text=True, check=False, timeout=60)
        assert [placed] == [each["pod"] for each in json.loads(done.stdout)["placed"]], done.stdout


def test_a_setting_that_names_it_finds_it(installed: dict[str, str], tmp_path: pathlib.Path) -> None:
    """And a misspelt one is one line that names it."""
    items = [builders.make_node("n1").manifest(), builders.make_pod("web").manifest()]
    (tmp_path / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    command = [sys.executable, "-m", "graphsched", "simulate", "--config", "config.yaml", "cluster.json"]
    for order, code, said in (("widestFirst", 0, "1 decision"), ("widest", 2, "priorityQueue, widestFirst")):
        (tmp_path / "config.yaml").write_text(f"queue: {{order: {order}}}\n")
        done = subprocess.run(
            command, env=installed, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
        )

        assert (code, True) == (done.returncode, said in done.stderr), done.stderr
