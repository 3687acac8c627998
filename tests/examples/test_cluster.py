"""The live demo: what `make cluster-demo` shows is what it promises."""

import pathlib
import subprocess
import sys

import pytest

from tests.controlplane import binaries

ROOT = pathlib.Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.cluster


@pytest.mark.usefixtures("programs")
def test_the_live_demo_runs_to_its_end() -> None:
    """Pods run, one is explained while it waits and placed once there is room, and the end is in good order."""
    done = subprocess.run(
        [sys.executable, "examples/cluster/demo.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=110,
    )

    assert (0, "") == (done.returncode, done.stderr)
    assert "8 pods of 2 CPUs run after" in done.stdout
    assert "0/6 nodes are available: 1 node(s) had untolerated taint(s), 5 Insufficient cpu." in done.stdout
    assert "has 3 CPUs free (most: 2 CPUs on" in done.stdout
    assert " later\n" in done.stdout
    assert 'graphsched_bind_total{outcome="bound"} 9.0' in done.stdout
    assert "exit code 0" in done.stdout


def test_the_programs_it_needs_are_found_where_the_tests_find_them() -> None:
    """Built once, for both."""
    assert binaries.ensure().apiserver.is_file()
