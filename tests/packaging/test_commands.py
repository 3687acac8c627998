"""The commands a newcomer types exist, explain themselves and refuse clearly."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

from tests.architecture import tidy

MAKEFILE = (tidy.ROOT / "Makefile").read_text()
PROMISED = {
    "setup",
    "demo",
    "cluster-demo",
    "test",
    "test-cluster",
    "check",
    "bench",
    "bench-live",
    "chart-test",
    "dist",
}


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command in the repository; this run's own make and pytest settings do not reach it."""
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "PYTEST_"))
    }
    return subprocess.run(
        command, cwd=tidy.ROOT, capture_output=True, text=True, check=False, timeout=60, env=inherited | environment
    )


def explained() -> set[str]:
    """Return the targets that say what they do."""
    return set(re.findall(r"^([a-z-]+):.*## \S", MAKEFILE, re.MULTILINE))


def test_every_target_explains_itself() -> None:
    """Every phony target is listed by `make`, and none is listed that is not phony."""
    assert explained() == set(re.findall(r"^\.PHONY: ([a-z-]+)$", MAKEFILE, re.MULTILINE))


def test_make_alone_lists_the_targets() -> None:
    """The first thing a newcomer types answers with what can be typed next."""
    result = run("make", "--no-print-directory")

    assert result.returncode == 0, result.stderr
    assert set(re.findall(r"^  \x1b\[1m([a-z-]+) *\x1b\[0m \S", result.stdout, re.MULTILINE)) == explained() >= PROMISED


def test_ci_runs_targets_that_exist() -> None:
    """CI types what a person would."""
    targets = set(re.findall(r"^step make ([a-z-]+)$", (tidy.ROOT / ".ci/run").read_text(), re.MULTILINE))

    assert {"check", "test", "test-cluster"} <= targets <= explained()


def test_scripts_are_executable_and_strict() -> None:
    """A shell script stops at its first error, wherever it is called from."""
    scripts = [tidy.ROOT / ".ci/run", *(tidy.ROOT / "scripts").glob("*.sh")]

    assert [] == [path.name for path in scripts if not os.access(path, os.X_OK)]
    assert [] == [path.name for path in scripts if "\nset -euo pipefail\n" not in path.read_text()]


def test_an_old_python_is_refused_in_one_line(tmp_path: pathlib.Path) -> None:
    """A Python that will not do is named, and nothing is made."""
    old = tmp_path / "old-python"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)

    result = run("scripts/setup-venv.sh", str(tmp_path / "venv"), PYTHON=str(old))

    assert result.returncode == 2
    assert result.stderr.splitlines() == [f"setup: PYTHON={old} is not Python 3.11 or newer"]
    assert not (tmp_path / "venv").exists()


@pytest.mark.parametrize("apt", [True, False], ids=["with apt", "without apt"])
def test_a_missing_debian_package_is_named(tmp_path: pathlib.Path, *, apt: bool) -> None:
    """Who may not install packages learns which one is missing; who has no apt learns what is needed."""
    bare = tmp_path / "bin"
    bare.mkdir()
    # A machine with a Python that lacks ensurepip, and with little else.
    answers = {
        "python3": 'case "$2" in *ensurepip*) exit 1;; *print*) echo 3.11;; esac',
        "id": f"echo {0 if not apt else 1000}",
    }
    for name, answer in answers.items():
        (bare / name).write_text(f"#!/bin/sh\n{answer}\n")
        (bare / name).chmod(0o755)
    for name in ("bash", "dirname", "env"):
        (bare / name).symlink_to(shutil.which(name) or name)

    result = run("scripts/setup-venv.sh", str(tmp_path / "venv"), PATH=str(bare))

    expected = "python3.11-venv; run as root: apt-get install python3.11-venv" if apt else "with the venv module"
    assert result.returncode == 2
    assert expected in result.stderr
