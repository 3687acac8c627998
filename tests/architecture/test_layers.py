"""The layers hold, and the contract that says so breaks when a module breaks it."""

import pathlib
import shutil
import subprocess
import sys

import pytest

from tests.architecture import tidy


def lint_imports(root: pathlib.Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on the package below `root`, with the contracts of its pyproject.toml."""
    program = pathlib.Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [program, "--no-logo", "--no-cache"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        # The editable install puts the checkout on the path; the copy must come first.
        env={"PYTHONPATH": str(root), "PATH": ""},
    )


def test_the_layers_hold() -> None:
    """No import runs against the way of the data."""
    result = lint_imports(tidy.ROOT)

    assert result.returncode == 0, result.stdout + result.stderr


@pytest.fixture
def skeleton(tmp_path: pathlib.Path) -> pathlib.Path:
    """The packages without their modules, under the same contracts."""
    for init in (tidy.ROOT / "graphsched").rglob("__init__.py"):
        copy = tmp_path / init.relative_to(tidy.ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text('"""A package."""\n')
    (tmp_path / "graphsched" / "__main__.py").write_text('"""The program."""\n')
    shutil.copy(tidy.ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_empty_layers_hold(skeleton: pathlib.Path) -> None:
    """The skeleton is sound, so what the next test finds is what it planted."""
    result = lint_imports(skeleton)

    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("graph/a.py", "import graphsched.decision"),
        ("base/values/a.py", "import graphsched.graph"),
        ("decision/a.py", "from graphsched import app"),
        ("sources/a.py", "import graphsched.action"),
        ("explain/a.py", "from graphsched import observe"),
        ("graph/a.py", "import asyncio"),
        ("graph/a.py", "import graphsched.base.kit"),
        ("decision/a.py", "import time"),
        ("decision/a.py", "from logging import getLogger"),
        ("action/a.py", "import kubernetes_asyncio.client"),
        ("app/a.py", "import ctypes"),
        ("telemetry/__init__.py", "import graphsched.graph"),
    ],
)
def test_an_import_against_the_way_is_caught(skeleton: pathlib.Path, module: str, line: str) -> None:
    """A back edge, a sideways edge, an impure import and a folder that nobody placed each break a contract."""
    planted = skeleton / "graphsched" / module
    planted.parent.mkdir(exist_ok=True)
    planted.write_text(f'"""Planted."""\n\n{line}\n')

    result = lint_imports(skeleton)

    assert result.returncode == 1, result.stdout + result.stderr
    assert pathlib.PurePosixPath(module).parts[0] in result.stdout
