"""Write the Grafana dashboard of the chart; a test compares the two, and another runs every query.

Comes in: the rows of `panels`. Goes out: `charts/graphsched/dashboards/graphsched.json`. Run it after changing a panel:
`python -m scripts.dashboard`.
"""

import json
import pathlib
from typing import Any

from scripts import panels

FILE = pathlib.Path(__file__).resolve().parents[1] / "charts" / "graphsched" / "dashboards" / "graphsched.json"
WIDTH = 24
"""Columns of Grafana's grid."""
HEIGHT = 7
STAT_HEIGHT = 4


def dashboard() -> dict[str, Any]:
    """The whole dashboard."""
    return {
        "title": "graphsched",
        "uid": "graphsched",
        "description": "Read it from the top: is it working, do pods get their nodes, and why not.",
        "tags": ["kubernetes", "scheduler"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [_source(), _job()]},
        "panels": _panels(),
    }


def _source() -> dict[str, Any]:
    return {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"}


def _job() -> dict[str, Any]:
    return {
        "name": "job",
        "label": "Job",
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "$source"},
        "query": {"query": "label_values(graphsched_build_info, job)", "refId": "jobs"},
        "refresh": 2,
        "includeAll": True,
        "multi": True,
        "current": {"text": "All", "value": "$__all"},
    }


def _panels() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    top = 0
    for title, row in panels.ROWS:
        place = {"x": 0, "y": top, "w": WIDTH, "h": 1}
        found.append({"id": len(found) + 1, "type": "row", "title": title, "collapsed": False, "gridPos": place})
        top += 1
        height = STAT_HEIGHT if row[0].stat else HEIGHT
        columns = len(row) if row[0].stat else 3
        width = WIDTH // columns
        for number, panel in enumerate(row):
            line, column = divmod(number, columns)
            place = {"x": column * width, "y": top + line * height, "w": width, "h": height}
            found.append({"id": len(found) + 1, "gridPos": place, **_panel(panel)})
        top += -(-len(row) // columns) * height
    return found


def _panel(panel: panels.Panel) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [{"color": "green", "value": None}]
    if panel.warn is not None:
        steps.append({"color": "red", "value": panel.warn})
    defaults: dict[str, Any] = {"unit": panel.unit, "min": 0, "thresholds": {"mode": "absolute", "steps": steps}}
    if panel.full:
        defaults["custom"] = {"fillOpacity": 30, "stacking": {"mode": "normal"}}
    return {
        "type": "stat" if panel.stat else "timeseries",
        "title": panel.title,
        "description": panel.about,
        "datasource": {"type": "prometheus", "uid": "$source"},
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + number), "expr": expression, "legendFormat": legend or "__auto"}
            for number, (legend, expression) in enumerate(panel.queries.items())
        ],
    }


def text() -> str:
    """The dashboard as Grafana imports it."""
    return json.dumps(dashboard(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(text(), encoding="utf-8")
    print(f"wrote {FILE}")
