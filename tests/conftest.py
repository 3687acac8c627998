"""
The rules that every test run keeps: no test is skipped unseen, and every failure can be repeated.

Comes in: pytest's reports and options. Goes out: the exit code, and the lines that tell how to repeat a failure.

Invariant: with `--fail-on-skip` (the default where CI=true) a run in which anything was skipped does not pass. There is
no allow-list: what a machine lacks, CI installs. Expected failures are no skips; `xfail_strict` watches those.
"""

import asyncio
import gc
import os
from collections.abc import Iterator

import hypothesis
import pytest

#: The real control plane, for tests marked `cluster`.
pytest_plugins = ["tests.controlplane.fixtures"]

FAIL_ON_SKIP = "--fail-on-skip"
SKIPPED = pytest.StashKey[list[str]]()

# No deadline: two shared cores make single timings meaningless; pytest-timeout bounds the whole test.
hypothesis.settings.register_profile("default", deadline=None, print_blob=True)
hypothesis.settings.register_profile(
    "ci",
    parent=hypothesis.settings.get_profile("default"),
    max_examples=200,
    # A slow machine is no bug of the property.
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile(
    os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") == "true" else "default"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that turns a skipped test into a failed run."""
    parser.addoption(
        FAIL_ON_SKIP,
        action="store_true",
        default=os.environ.get("CI") == "true",
        help="fail the run if any test was skipped (default where CI=true)",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Start with an empty list of skipped tests, and with no event loop.

    A plugin asks for "the" event loop before every test; Python 3.11 would make one then that nobody closes.
    """
    asyncio.set_event_loop(None)
    config.stash[SKIPPED] = []
    config.pluginmanager.register(_SkipWatch(config.stash[SKIPPED]), "graphsched-skip-watch")


def pytest_collection_finish() -> None:
    """Have the garbage collector pass over what was imported and collected, since it lives as long as the run.

    Thousands of tests and the modules they are about would be looked at again with every full collection.
    """
    gc.collect()
    gc.freeze()


class _SkipWatch:
    """Notes what was skipped, whether a single test or a whole module."""

    def __init__(self, skipped: list[str]) -> None:
        self._skipped = skipped

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a skipped test; an expected failure is none."""
        if report.skipped and not hasattr(report, "wasxfail"):
            self._skipped.append(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note a module that skipped itself while it was collected."""
        if report.skipped:
            self._skipped.append(report.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> Iterator[None]:
    """Turn a passed run with skipped tests into a failed one."""
    if (
        exitstatus == pytest.ExitCode.OK
        and session.config.getoption(FAIL_ON_SKIP)
        and session.config.stash.get(SKIPPED, [])
    ):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    yield


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say which skipped tests failed the run, and how to repeat a failure."""
    skipped = config.stash.get(SKIPPED, [])
    if skipped and config.getoption(FAIL_ON_SKIP):
        terminalreporter.section(f"{FAIL_ON_SKIP}: {len(skipped)} skipped, so the run fails", red=True)
        for nodeid in skipped:
            terminalreporter.line(nodeid)
    seed = config.getoption("randomly_seed", None)
    if terminalreporter.stats.get("failed") and isinstance(seed, int):
        terminalreporter.line(f"the same order again: PYTEST_ARGS='--randomly-seed={seed}'")
