"""The dashboard is the one that its program writes, and asks for what there is."""

import re

import pytest

from scripts import dashboard
from tests.monitoring import rules

PANELS = [panel for panel in dashboard.dashboard()["panels"] if panel["type"] != "row"]
QUERIES = [target["expr"] for panel in PANELS for target in panel["targets"]]
#: Of the Prometheus client library, about the process.
PROCESS = {
    "process_cpu_seconds_total",
    "process_open_fds",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
}


def test_the_dashboard_is_fresh() -> None:
    """The file is what `python -m scripts.dashboard` writes."""
    assert dashboard.text() == dashboard.FILE.read_text(encoding="utf-8")


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_reads_metrics_that_exist(query: str) -> None:
    """And only those of the chosen job."""
    read = rules.read_by(query)

    assert read
    assert set() == read - rules.series_names() - PROCESS
    assert len(re.findall(r'\{job=~"\$job"', query)) == len(re.findall(r"\{", query))


def metrics_of(expression: str) -> set[str]:
    """Names of the metrics that an expression reads; the series of a histogram are one metric."""
    return {re.sub(r"_(?:bucket|count|sum)$", "", series) for series in rules.read_by(expression)}


@pytest.mark.parametrize("name", rules.alerts())
def test_what_an_alert_reads_is_on_some_panel(name: str) -> None:
    """As docs/operations.md says: whoever is woken sees how it came to that.

    `up` is Prometheus' own, and 0 where a replica is missing in the panel that counts them.
    """
    shown = {metric for query in QUERIES for metric in metrics_of(query)}

    assert set() == metrics_of(rules.alerts()[name]["expr"]) - shown - {"up"}


def test_panels_do_not_overlap() -> None:
    """Each cell of the grid belongs to one panel at most, and none lies outside."""
    cells = [
        (place["x"] + column, place["y"] + line)
        for place in (panel["gridPos"] for panel in dashboard.dashboard()["panels"])
        for column in range(place["w"])
        for line in range(place["h"])
    ]

    assert len(cells) == len(set(cells))
    assert max(column for column, _ in cells) < dashboard.WIDTH
