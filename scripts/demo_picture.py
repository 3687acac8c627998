"""Draw docs/img/demo.svg, what `make demo` prints, as a picture of a terminal: `python -m scripts.demo_picture`.

Comes in: the demo's standard output. Goes out: an SVG that shows text as text, with the fonts of the reader's machine.
"""

import html
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "img" / "demo.svg"

_LINE, _CHARACTER, _MARGIN, _BAR = 17.0, 7.85, 20.0, 34.0
_COLUMNS_MAX = 124
_PAPER, _INK, _SOFT, _STRONG, _GREEN = "#10161d", "#cfd8e1", "#6d7d8d", "#ffffff", "#5cc4b3"
_LIGHTS = ("#ee6a5f", "#f5bd4f", "#61c454")


def draw(lines: list[str]) -> str:
    """The picture of a terminal that shows these lines."""
    width = 2 * _MARGIN + _CHARACTER * max(len(line) for line in lines)
    height = _BAR + _LINE * len(lines) + _MARGIN
    lights = "".join(
        f'<circle cx="{22 + 18 * index}" cy="18" r="5.5" fill="{colour}"/>' for index, colour in enumerate(_LIGHTS)
    )
    text = "".join(_row(number, line) for number, line in enumerate(lines))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'role="img" aria-label="What make demo prints">'
        f'<rect width="100%" height="100%" rx="10" fill="{_PAPER}"/>{lights}'
        f'<g font-family="ui-monospace, SF Mono, Menlo, Consolas, DejaVu Sans Mono, monospace" font-size="13" '
        f'fill="{_INK}">{text}</g></svg>\n'
    )


def _row(number: int, line: str) -> str:
    if not line.strip():
        return ""
    heading = not line.startswith(" ") and not line[0].isdigit()
    colour = _GREEN if line.startswith("$ ") else _STRONG if heading else _INK
    weight = ' font-weight="600"' if heading else ""
    y = _BAR + _LINE * (number + 0.8)
    # Every run of text keeps its column, whatever font there is.
    length = f' textLength="{_CHARACTER * len(line):.1f}" lengthAdjust="spacing"'
    # Spaces that do not break are kept by every viewer.
    words = html.escape(line).replace(" ", "\u00a0")
    return f'<text x="{_MARGIN:.0f}" y="{y:.1f}"{weight} fill="{colour}"{length}>{words}</text>'


def main() -> None:
    """Run the demo and draw it."""
    command = [sys.executable, "examples/openb/demo.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    printed = done.stdout.replace(str(ROOT) + "/", "").rstrip().splitlines()
    cut = [line if len(line) <= _COLUMNS_MAX else line[: _COLUMNS_MAX - 2] + " …" for line in printed]
    lines = ["$ make demo", *cut]
    PICTURE.write_text(draw(lines), encoding="utf-8")
    print(f"wrote {PICTURE}")


if __name__ == "__main__":
    main()
