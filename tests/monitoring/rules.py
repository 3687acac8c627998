"""The alerts as shipped, and the file in which promtool gets their cases.

Comes in: `charts/graphsched/alerts/graphsched.yaml`, and cases. Goes out: parsed rules, names of the metrics that an
expression reads, and a file for `promtool test rules`.
"""

import pathlib
import re
from collections.abc import Iterable
from typing import Any

import yaml

from graphsched.observe import metrics
from tests.architecture import tidy
from tests.monitoring import cases

CHART = tidy.ROOT / "charts" / "graphsched"
FILE = CHART / "alerts" / "graphsched.yaml"
#: Of Prometheus itself, and of its client library.
FOREIGN = {"up", "process_start_time_seconds"}
_PARTS = {"counter": ("",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}

Rule = dict[str, Any]


def alerts() -> dict[str, Rule]:
    """Name → rule."""
    groups = yaml.safe_load(FILE.read_text(encoding="utf-8"))["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def series_names() -> set[str]:
    """Names of all series that graphsched declares, as they are scraped."""
    declared = metrics.Metrics(profile="graph-scheduler", version="0").declared
    return {f"{one.name}{part}" for one in declared for part in _PARTS[one.kind]}


def read_by(expression: str) -> set[str]:
    """Names of the series that an expression reads, by how such names begin."""
    return set(re.findall(r"\b(?:graphsched|scheduler|process|leader_election)_\w+|\bup\b", expression))


def promtool_file(path: pathlib.Path, played: Iterable[cases.Case]) -> pathlib.Path:
    """Write the cases as promtool takes them."""
    known = alerts()
    document = {
        "rule_files": [str(FILE)],
        "evaluation_interval": "1m",
        "tests": [_test(case, known[case.alert]) for case in played],
    }
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return path


def _test(case: cases.Case, rule: Rule) -> Rule:
    expected = []
    if case.fires is not None:
        annotations = {**rule["annotations"], "description": case.says}
        expected = [{"exp_labels": {**rule["labels"], **case.fires}, "exp_annotations": annotations}]
    return {
        "name": f"{case.alert}: {case.what}",
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in case.series.items()],
        "alert_rule_test": [{"eval_time": f"{case.minute}m", "alertname": case.alert, "exp_alerts": expected}],
    }
