"""Write docs/metrics.md from the declarations in `graphsched.observe.metrics`; a test compares the two.

Comes in: the metrics as declared. Goes out: the page. Run it after changing a metric: `python -m scripts.metrics_page`.
"""

import pathlib
from collections.abc import Iterable

from graphsched.observe import metrics, series

PAGE = pathlib.Path(__file__).resolve().parents[1] / "docs" / "metrics.md"

_HEAD = """\
# Metrics

`graphsched run` serves these at `/metrics` in the Prometheus text format (port 10260 unless set otherwise). The first
group carries kube-scheduler's names, labels and buckets and means the same, so dashboards and alerts written for it
work unchanged; tell the two apart by their `profile` label or their job. The second group is this program's own.

Label values are closed or bounded sets, never the name of a pod or a node. A histogram `x` is scraped as `x_bucket`,
`x_sum` and `x_count`. Beside these the page holds the usual `process_*` metrics (memory, CPU, open files).

This page is written by `python -m scripts.metrics_page` from `graphsched/observe/metrics.py`.
"""

_SHARED = ("scheduler_", "leader_election_")

_TAIL = """
## Worth an alert

The alerts are [charts/graphsched/alerts/graphsched.yaml](../charts/graphsched/alerts/graphsched.yaml), and
[operations.md](operations.md#alerts) says what to do about each.
"""


def page() -> str:
    """The whole page."""
    declared = metrics.Metrics(profile="graph-scheduler", version="0").declared
    shared = [one for one in declared if one.name.startswith(_SHARED)]
    own = [one for one in declared if not one.name.startswith(_SHARED)]
    return "".join(
        [
            _HEAD,
            "\n## Shared with kube-scheduler\n\n",
            *_table(shared),
            "\n## Of graphsched alone\n\n",
            *_table(own),
            _TAIL,
        ]
    )


def _table(declared: Iterable[series.Declared]) -> Iterable[str]:
    yield "| Metric | Type | Labels | Meaning |\n|---|---|---|---|\n"
    for one in declared:
        labels = ", ".join(f"`{label}`" for label in one.labels) or "–"
        yield f"| `{one.name}` | {one.kind} | {labels} | {one.help} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
