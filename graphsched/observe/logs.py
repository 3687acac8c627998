"""Logs an operator can read and a machine can parse, both from the same calls.

Every module logs through the standard library: `log.info("pod bound", extra={"pod": name, "node": node})`. Comes in:
such records. Goes out: lines on stderr, either `time LEVEL module: text key=value ...` or one JSON object a line. A
text that repeats is written a bounded number of times a minute and then counted, since a broken API server must not
fill a disk.

Levels: error, somebody must act; warning, it mends itself but should be known; info, an operator would want to have
known; debug, for the developer.
"""

from __future__ import annotations

import datetime as dt
import logging
import sys
from collections.abc import Iterator
from typing import IO

import msgspec

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_TEXT_MAX = 4096
"""Longer values are cut: an object of several MB that could not be understood must not become a log line."""

REPEATS_MAX = 10
PERIOD_S = 60.0
_TRACKED_MAX = 1024

FORMATS = ("text", "json")
LEVELS = ("debug", "info", "warning", "error")


def fields(record: logging.LogRecord) -> Iterator[tuple[str, object]]:
    """What a call gave as `extra`, in that order."""
    return ((key, value) for key, value in vars(record).items() if key not in _STANDARD)


def _cut(text: str) -> str:
    return text if len(text) <= _TEXT_MAX else f"{text[:_TEXT_MAX]}... ({len(text)} characters)"


def _time(record: logging.LogRecord) -> str:
    moment = dt.datetime.fromtimestamp(record.created, dt.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def _short(name: str) -> str:
    return name.removeprefix("graphsched.")


class TextFormatter(logging.Formatter):
    """`2026-01-31T12:00:00.000Z INFO    app.loop: pod bound pod=default/web-0 node=n1`."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line, with a traceback below it if it carries one."""
        line = f"{_time(record)} {record.levelname:<7} {_short(record.name)}: {_one_line(record.getMessage())}"
        for key, value in fields(record):
            line += f" {key}={_shown(value)}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def _one_line(text: str) -> str:
    return _cut(text).replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def _shown(value: object) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else _cut(str(value))
    if text and text.isprintable() and not set(' "=\\') & set(text):
        return text
    return msgspec.json.encode(text).decode()


class JSONFormatter(logging.Formatter):
    """One JSON object a line: `ts`, `level`, `logger`, `msg`, then what the call gave; `error` holds a traceback."""

    def __init__(self) -> None:
        super().__init__()
        self._encoder = msgspec.json.Encoder(enc_hook=str)

    def format(self, record: logging.LogRecord) -> str:
        """The record as one JSON object."""
        entry: dict[str, object] = {
            "ts": _time(record),
            "level": record.levelname.lower(),
            "logger": _short(record.name),
            "msg": _cut(record.getMessage()),
        }
        for key, value in fields(record):
            # The four names above stay what they are, whatever a call says.
            entry[f"{key}_" if key in entry else key] = _cut(value) if isinstance(value, str) else value
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        return self._encoder.encode(entry).decode()


class RepeatFilter(logging.Filter):
    """Lets the same text from the same place through `REPEATS_MAX` times in `PERIOD_S`, then counts.

    The first line of the next period carries `suppressed`, the number that was not written. Time is the record's own.
    """

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[tuple[str, int, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write the record."""
        key = (record.name, record.levelno, str(record.msg))
        since, count = self._seen.get(key, (record.created, 0))
        if record.created - since >= PERIOD_S:
            if count > REPEATS_MAX:
                record.suppressed = count - REPEATS_MAX
            since, count = record.created, 0
        if key not in self._seen and len(self._seen) >= _TRACKED_MAX:
            # Texts are few; if somebody logs ever new ones, forgetting costs a repeat and no more.
            self._seen.clear()
        self._seen[key] = since, count + 1
        return count < REPEATS_MAX


class Handler(logging.StreamHandler[IO[str]]):
    """Writes lines, and goes on where that fails: a full disk must not stop the program, nor fill it with tracebacks.

    Attributes:
        lost: Lines that could not be written, of all handlers of the process.
    """

    lost = 0

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  the base's name
        """Count a line that could not be written; what else goes wrong is a mistake of ours, told as usual."""
        if isinstance(sys.exc_info()[1], OSError):
            Handler.lost += 1
        else:
            super().handleError(record)


def configure(*, format: str = "text", level: str = "info", stream: IO[str] | None = None) -> None:  # noqa: A002
    """Send all logs of the process to `stream` (stderr unless given) in `format` (see `FORMATS`).

    Replaces what an earlier call set up. Libraries are heard from warning on.
    """
    handler = Handler(sys.stderr if stream is None else stream)
    handler.setFormatter(JSONFormatter() if format == "json" else TextFormatter())
    handler.addFilter(RepeatFilter())
    root = logging.getLogger()
    for old in list(root.handlers):
        if getattr(old, "graphsched", False):
            root.removeHandler(old)
    handler.graphsched = True  # type: ignore[attr-defined]
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    logging.getLogger("graphsched").setLevel(level.upper())
