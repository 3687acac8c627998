"""docs/operations.md is complete: whoever is on call finds every metric and every alert there."""

import pathlib
import re

from graphsched.sources import custom, resources

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")


def test_every_metric_has_its_line() -> None:
    """Each metric that is served is told of once under "Metrics and what to do", and none that is not served."""
    served = re.findall(r"^\| `([a-z_]+)`", (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8"), re.MULTILINE)
    section = TEXT.partition("## Metrics and what to do")[2]
    told = [
        name for line in re.findall(r"^\| (`[^|]+) \|", section, re.MULTILINE) for name in re.findall(r"`(\w+)`", line)
    ]

    assert sorted(served) == sorted(told)


def test_the_number_of_watches_is_the_real_one() -> None:
    """Somebody sizes an API server by it."""
    assert f"| watches | {len(resources.ALL)} a replica" in TEXT
    assert f"and up to {len(custom.ALL)} of custom resources" in TEXT


def test_links_within_the_page_lead_somewhere() -> None:
    """Every `#anchor` is a heading."""
    headings = re.findall(r"^#+ (.+)$", TEXT, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading).strip().lower().replace(" ", "-") for heading in headings}

    assert set() == set(re.findall(r"\]\(#([^)]+)\)", TEXT)) - anchors
