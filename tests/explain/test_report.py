"""The HTML report: pictures that say what the numbers say, and text from the cluster that stays text."""

import re
from xml.etree import ElementTree as ET

import pytest

from graphsched.explain import report
from graphsched.explain.pictures import bars, curve, svg, topology

HOSTILE = "<script>alert('x')</script>\" & 'y'"


def rects(markup: str, style: str) -> list[dict[str, str]]:
    """Attributes of the rectangles of a class in a picture, which must be well-formed."""
    root = ET.fromstring(markup)  # noqa: S314  made here a moment ago
    return [element.attrib for element in root.iter() if element.tag.endswith("rect") and element.get("class") == style]


@pytest.mark.parametrize(
    ("share", "shade"),
    [(0.0, 0), (0.01, 1), (0.25, 2), (0.49, 2), (0.5, 3), (0.75, 4), (0.999, 4), (1.0, 5), (1.2, 5)],
)
def test_only_free_is_free_and_only_full_is_full(share: float, shade: int) -> None:
    """The two that matter have a shade of their own."""
    assert shade == topology.shade(share)


def test_every_node_is_drawn_once_with_a_cell_for_each_gpu() -> None:
    """And says its figures when pointed at."""
    glyphs = [topology.Glyph("G2: 8 GPUs", (0.0, 1.0) * 4, 0.5, f"n{number} {HOSTILE}") for number in range(3)] + [
        topology.Glyph("plain", (0.25,), 0.25, "n9")
    ]
    markup = topology.draw(glyphs)
    cells = sum(path.count("M") for path in re.findall(r' d="([^"]*)"', markup))

    assert 4 == len(rects(markup, "node"))
    assert 3 * 8 + 1 == cells
    assert "<script" not in markup
    assert "G2: 8 GPUs · 3 nodes" in markup


def test_bars_are_in_proportion_and_none_is_lost() -> None:
    """One in ten thousand is still to be seen."""
    markup = bars.draw(
        [
            bars.Row(HOSTILE, ((10_000, "placed", "placed"), (1, "pending", "pending"))),
            bars.Row("half", ((5_000, "placed", "placed"),)),
        ],
        label="pods",
    )
    long, half = rects(markup, "placed")

    assert float(long["width"]) / float(half["width"]) == pytest.approx(2.0, rel=0.01)
    assert 1.0 < float(rects(markup, "pending")[0]["width"])
    assert "<script" not in markup


def test_a_line_ends_where_its_last_value_is() -> None:
    """However many points were left out."""
    values = tuple(step / 9999 for step in range(10_000))
    markup = curve.draw([curve.Series("GPU", values, "gpu")], axis="pods", marks=[curve.Mark(10, "first")])
    path = re.search(r'd="M([^"]*)"', markup)
    assert path is not None
    points = path[1].split("L")

    assert curve.POINTS_MAX * 2 > len(points)
    assert f"{svg.number(curve.WIDTH - curve._RIGHT)} {svg.number(curve._TOP)}" == points[-1]
    assert "GPU 100.0 %" in markup


def test_lines_that_end_at_one_height_are_all_named() -> None:
    """As on a cluster that is quite empty, or quite full."""
    markup = curve.draw([curve.Series(name, (0.0, 1.0), "gpu") for name in ("CPU", "GPU")], axis="pods")

    assert "CPU 100.0 %" in markup
    assert "GPU 100.0 %" in markup


def test_pictures_of_nothing_are_pictures() -> None:
    """An empty cluster has a report as well."""
    for markup in (topology.draw([]), bars.draw([], label="pods"), curve.draw([], axis="pods")):
        assert ET.fromstring(markup).tag.endswith("svg")  # noqa: S314  made here a moment ago


def test_text_from_the_cluster_stays_text() -> None:
    """Names and messages can not become markup."""
    page = report.Page(
        title=HOSTILE,
        subtitle=HOSTILE,
        tiles=(report.Tile(HOSTILE, HOSTILE),),
        pictures=(report.Picture(HOSTILE, HOSTILE, topology.draw([topology.Glyph(HOSTILE, (1.0,), 1.0, HOSTILE)])),),
        explanations=((HOSTILE, HOSTILE),),
        pending=((HOSTILE, HOSTILE),),
        footer=HOSTILE,
    )

    assert "<script" not in report.html(page)


def test_the_list_of_pending_pods_is_bounded() -> None:
    """A page that nobody can open helps nobody."""
    pending = tuple((f"default/p{number}", "no") for number in range(report.PENDING_MAX + 10))
    html = report.html(report.Page("t", "s", (), (), pending=pending))

    assert report.PENDING_MAX == html.count("<tr><td>")
    assert "… and 10 more." in html
