"""
Logs: both formats from one call, one record a line, and a bound on what repeats.

Records are made by hand, so that their time is what the test says.
"""

import errno
import io
import json
import logging
from collections.abc import Iterator

import pytest

from graphsched.observe import logs

LOGGER = "graphsched.app.loop"


def record(text: str, *, at: float = 1_800_000_000.0, level: int = logging.INFO, **extra: object) -> logging.LogRecord:
    """A record as `log.info(text, extra=extra)` makes it at time `at`."""
    made = logging.makeLogRecord({"name": LOGGER, "levelno": level, "levelname": logging.getLevelName(level), **extra})
    made.msg = text
    made.created = at
    return made


@pytest.fixture
def restored() -> Iterator[None]:
    """Logging as it was, after the test."""
    root, ours = logging.getLogger(), logging.getLogger("graphsched")
    before = list(root.handlers), root.level, ours.level
    yield
    root.handlers[:], levels = before[0], before[1:]
    root.setLevel(levels[0])
    ours.setLevel(levels[1])


def test_a_person_reads_time_level_module_text_and_fields() -> None:
    """Fields keep the order of the call; values with blanks are quoted."""
    line = logs.TextFormatter().format(record("pod bound", pod="default/web-0", why="room on n1", seconds=0.25))

    assert 'INFO    app.loop: pod bound pod=default/web-0 why="room on n1" seconds=0.25' == line.partition("Z ")[2]
    assert line.startswith("2027-01-15T08:00:00.000Z")


def test_a_machine_reads_one_json_object() -> None:
    """The same call, as JSON: numbers stay numbers."""
    line = logs.JSONFormatter().format(record("pod bound", pod="default/web-0", seconds=0.25))

    assert {
        "ts": "2027-01-15T08:00:00.000Z",
        "level": "info",
        "logger": "app.loop",
        "msg": "pod bound",
        "pod": "default/web-0",
        "seconds": 0.25,
    } == json.loads(line)


@pytest.mark.parametrize("formatter", [logs.TextFormatter(), logs.JSONFormatter()], ids=["text", "json"])
def test_hostile_values_make_no_second_line(formatter: logging.Formatter) -> None:
    """What the cluster sends can not forge a log line or fill the disk."""
    line = formatter.format(record("bad\nERROR forged", name_of="a\nb\x1b[31m", size="x" * 100_000, odd=object()))

    assert "\n" not in line
    assert "\x1b" not in line
    assert 6000 > len(line)


def test_a_field_never_replaces_the_time() -> None:
    """A call that says `ts` gets `ts_`."""
    entry = json.loads(logs.JSONFormatter().format(record("x", ts="never")))

    assert ("never", "2027-01-15T08:00:00.000Z") == (entry["ts_"], entry["ts"])


@pytest.mark.parametrize("formatter", [logs.TextFormatter(), logs.JSONFormatter()], ids=["text", "json"])
def test_an_exception_comes_with_its_traceback(formatter: logging.Formatter) -> None:
    """`log.exception` shows where it happened."""
    try:
        raise ValueError("boom")
    except ValueError as error:
        made = record("failed", level=logging.ERROR, exc_info=(type(error), error, error.__traceback__))

    assert "ValueError: boom" in formatter.format(made)


def test_a_text_that_repeats_is_bounded_and_counted() -> None:
    """Ten lines a minute; the next minute's first line tells how many were not written."""
    repeats = logs.RepeatFilter()
    passed = [repeats.filter(record("watch failed", at=1000.0 + number / 10)) for number in range(100)]
    later = record("watch failed", at=1070.0)

    assert logs.REPEATS_MAX == sum(passed)
    assert repeats.filter(later)
    assert 90 == later.suppressed  # type: ignore[attr-defined]


def test_different_texts_do_not_silence_each_other() -> None:
    """Also when there are more of them than are tracked."""
    repeats = logs.RepeatFilter()

    assert all(repeats.filter(record(f"text {number}")) for number in range(5000))


@pytest.mark.usefixtures("restored")
def test_configuring_twice_writes_once() -> None:
    """The second call replaces the first; libraries are heard from warning on."""
    stream = io.StringIO()
    logs.configure(format="text", level="info", stream=io.StringIO())
    logs.configure(format="json", level="debug", stream=stream)
    logging.getLogger(LOGGER).debug("ours", extra={"n": 1})
    logging.getLogger("aiohttp").info("theirs")

    assert ["ours"] == [json.loads(line)["msg"] for line in stream.getvalue().splitlines()]


class FullDisk(io.StringIO):
    """Takes nothing."""

    def write(self, _text: str) -> int:
        """As a full disk does."""
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_line_that_can_not_be_written_is_lost_and_counted(restored: None, capsys: pytest.CaptureFixture[str]) -> None:
    """A full disk costs lines, stops nothing, and is not told by tracebacks on the same disk."""
    lost = logs.Handler.lost
    logs.configure(stream=FullDisk())
    logging.getLogger("graphsched.test").warning("nobody reads this")

    assert lost + 1 == logs.Handler.lost
    assert "Traceback" not in capsys.readouterr().err
