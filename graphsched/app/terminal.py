"""What commands write: results on stdout, everything else on stderr.

Values come in, text goes out: tables for people, JSON or YAML for programs. Progress bars and timings go to stderr;
bars only where that is a terminal, and colour only on a terminal, so a file or a pipe gets the same bytes on every run.
"""

from __future__ import annotations

import contextlib
import enum
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator

import msgspec

_GAP = 3
_FOLD_MIN = 24
_YAML_WIDTH = 120


class Output(enum.StrEnum):
    """How a result is written."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def note(text: str) -> None:
    """A line on stderr, after whatever was written to stdout before; where it can not be written it is lost."""
    sys.stdout.flush()
    with contextlib.suppress(OSError):
        sys.stderr.write(text + "\n")
        sys.stderr.flush()


def line(text: str = "") -> None:
    """A line of the result, on stdout."""
    sys.stdout.write(text + "\n")


def data(value: object, output: Output) -> None:
    """Write a value as JSON or YAML, keys in the order of their fields."""
    sys.stdout.write(encoded(value, output))


def encoded(value: object, output: Output) -> str:
    """A value as YAML, or else as JSON, keys in the order of their fields."""
    if output is Output.YAML:
        import yaml

        return yaml.safe_dump(msgspec.to_builtins(value), sort_keys=False, allow_unicode=True, width=_YAML_WIDTH)
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


def table(columns: list[tuple[str, str]], rows: list[list[str]], *, indent: int = 2) -> None:
    """Write rows under a heading. A column is (title, `left` or `right`).

    On a terminal the last column is folded into what is left of its width; elsewhere every row is one line.
    """
    widths = [max(len(cell) for cell in cells) for cells in zip(*rows, [title for title, _ in columns], strict=True)]
    margin = " " * indent
    room = shutil.get_terminal_size().columns - indent - sum(width + _GAP for width in widths[:-1])
    fold = sys.stdout.isatty() and room >= _FOLD_MIN

    def write(cells: list[str], *, bold: bool = False) -> None:
        padded = [
            f"{cell:>{width}}" if side == "right" else f"{cell:<{width}}"
            for cell, width, (_, side) in zip(cells, widths, columns, strict=True)
        ]
        text = margin + (" " * _GAP).join(padded)
        if fold and len(cells[-1]) > room:
            head = margin + "".join(cell + " " * _GAP for cell in padded[:-1])
            text = textwrap.fill(cells[-1], room + len(head), initial_indent=head, subsequent_indent=" " * len(head))
        line(f"\x1b[1m{text.rstrip()}\x1b[0m" if bold else text.rstrip())

    write([title for title, _ in columns], bold=sys.stdout.isatty())
    for row in rows:
        write(row)


def bar(share: float, width: int = 24) -> str:
    """A share from 0 to 1 as blocks: `████████░░░░`."""
    full = round(max(0.0, min(1.0, share)) * width)
    return "█" * full + "░" * (width - full)


@contextlib.contextmanager
def progress(title: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar on stderr while the block runs; the function it gives advances it by one.

    Where stderr is no terminal nothing is shown, and advancing costs next to nothing.
    """
    if not sys.stderr.isatty() or total == 0:
        yield _nothing
        return
    from rich import console as consoles, progress as bars

    console = consoles.Console(file=sys.stderr)
    columns = (
        bars.TextColumn("{task.description}"),
        bars.BarColumn(bar_width=None),
        bars.MofNCompleteColumn(),
        bars.TimeElapsedColumn(),
    )
    with bars.Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task(title, total=total)
        # The bar is redrawn ten times a second; telling it of every single step would cost as much as a decision.
        step, done = max(1, total // 500), 0

        def advance() -> None:
            nonlocal done
            done += 1
            if done % step == 0:
                shown.update(task, completed=done)

        yield advance
        shown.update(task, completed=total)


def _nothing() -> None:
    """Where nobody watches."""
