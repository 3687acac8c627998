"""Clusters full of trouble, simulated: what must hold holds, and a seed is the same run every time."""

import os
import subprocess
import sys

import pytest

from tests.simulation import mutations, runs

SEEDS = 25 if os.environ.get("CI") == "true" else 12
"""`make simulation` plays a thousand; here as many as a change is to wait for."""


@pytest.mark.parametrize("seed", range(1, SEEDS + 1))
def test_nothing_that_must_hold_is_broken(seed: int) -> None:
    """No pod bound twice, none lost, no node over-committed, the graph as the server has it."""
    result = runs.simulate(seed)

    assert () == result.failures, f"again: python -m tests.simulation --seed {seed} --trace"


@pytest.mark.parametrize("seed", [5, 12])
def test_a_seed_is_the_same_run_in_any_process(seed: int) -> None:
    """Whatever the order in which sets of strings are walked there."""
    # In that order they are walked by this process's own salt, which is any other.
    salt = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    command = [sys.executable, "-m", "tests.simulation", "--seed", str(seed)]
    told = subprocess.run(
        command, env={**os.environ, "PYTHONHASHSEED": salt}, capture_output=True, text=True, check=True
    )

    assert runs.simulate(seed).trace.digest in told.stdout


@pytest.mark.parametrize("broken", ["deaf-to-bindings", "deaf-to-deletions", "early-end", "ghosts", "lost-tries"])
def test_a_scheduler_that_is_broken_is_seen_to_be(broken: str) -> None:
    """Those breakages that few seeds are needed for; `--mutations` looks for all of them."""
    seed, failure = mutations.first_seed(broken, range(1, 26))

    assert seed is not None
    assert failure
