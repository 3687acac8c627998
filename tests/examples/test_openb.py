"""The demo: what `make demo` shows is what it promises."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_demo_places_explains_and_draws(tmp_path: pathlib.Path) -> None:
    """It ends with 0, says who found a place, explains two pods, writes the report and tells what to try next."""
    report = tmp_path / "report.html"
    done = subprocess.run(
        [sys.executable, "examples/openb/demo.py", "--report", str(report)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=110,
    )
    html = report.read_text(encoding="utf-8")

    assert "7,915 of 8,152 pods found a node on 1,213 nodes (97.1 %); 237 stay pending." in done.stdout
    assert " runs on openb-node-" in done.stdout
    assert " is pending: " in done.stdout
    assert "Smallest change: " in done.stdout
    assert str(report) in done.stdout
    assert "What next" in done.stdout
    assert 4 == html.count("<svg")
    assert 1213 == html.count('class="node"')
