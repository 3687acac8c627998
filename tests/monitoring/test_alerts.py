"""The alerts ask for what somebody can do, read what there is, and fire when they should: promtool plays histories."""

import pathlib
import re
import subprocess

import pytest

from tests.architecture import tidy
from tests.monitoring import cases, rules, tools

ALERTS = rules.alerts()
OPERATIONS = (tidy.ROOT / "docs" / "operations.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_says_how_bad_it_is_and_what_to_do(name: str) -> None:
    """Severity, a summary, a description, and a link to the page's heading of its name."""
    rule = ALERTS[name]

    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert {"summary", "description", "runbook_url"} == set(rule["annotations"])
    assert rule["annotations"]["runbook_url"] == f"docs/operations.md#{name.lower()}"
    assert re.search(rf"^### {name}\n\n\S", OPERATIONS, flags=re.MULTILINE)


def test_the_page_knows_no_other_alert() -> None:
    """An alert that is gone leaves no advice behind."""
    assert set(re.findall(r"^### (Graphsched\w+)$", OPERATIONS, flags=re.MULTILINE)) == set(ALERTS)


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_reads_metrics_that_exist(name: str) -> None:
    """A misspelt metric is never above any threshold."""
    read = rules.read_by(ALERTS[name]["expr"])

    assert read
    assert set() == read - rules.series_names() - rules.FOREIGN


@pytest.mark.parametrize("name", ALERTS)
def test_an_alert_has_a_history_in_which_it_fires_and_one_in_which_it_does_not(name: str) -> None:
    """Half a test would pass with an expression that is always or never true."""
    assert {True, False} == {case.fires is not None for case in cases.CASES if case.alert == name}


@pytest.mark.cluster
def test_every_alert_fires_when_it_should_and_only_then(tmp_path: pathlib.Path) -> None:
    """Prometheus' own evaluation of every history gives the labels and the text that are expected, or silence."""
    file = rules.promtool_file(tmp_path / "cases.yaml", cases.CASES)
    done = subprocess.run(
        [tools.program("promtool"), "test", "rules", file], capture_output=True, text=True, check=False, timeout=60
    )

    assert 0 == done.returncode, done.stdout + done.stderr
