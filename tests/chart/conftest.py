"""Rendering needs helm: where it is not built the tests of the rendered chart are left out, and the run says so."""

import pytest

from tests.chart import rendering

_RENDERS = rendering.REQUIRED or rendering.helm() is not None

collect_ignore = [] if _RENDERS else ["test_rendered.py", "test_accepted.py"]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was not looked at."""
    if not _RENDERS:
        terminalreporter.line("chart: not rendered, no helm is built here ('make chart-test' builds it)")
