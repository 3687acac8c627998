"""Lines out of chunks: whole, in order, whatever the cuts, and bounded."""

import time

import hypothesis
import pytest
from hypothesis import strategies

from graphsched.base.kube import streams
from graphsched.base.values import errors


@hypothesis.given(
    lines=strategies.lists(strategies.binary(max_size=20).filter(lambda line: b"\n" not in line)),
    rest=strategies.binary(max_size=20).filter(lambda line: b"\n" not in line),
    data=strategies.data(),
)
def test_any_cut_gives_the_same_lines(lines: list[bytes], rest: bytes, data: strategies.DataObject) -> None:
    """Chunks are an accident of the network; empty lines and an unfinished one are left out."""
    stream = b"".join(line + b"\n" for line in lines) + rest
    cuts = sorted(data.draw(strategies.lists(strategies.integers(0, len(stream)))))
    chunks = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    splitter = streams.Lines(bytes_max=1000)

    found = [line for chunk in chunks for line in splitter.feed(chunk)]

    assert [line for line in lines if line] == found


def test_a_line_longer_than_the_bound_is_refused() -> None:
    """Memory is bounded, also by a stream without newlines."""
    splitter = streams.Lines(bytes_max=100)
    splitter.feed(b"x" * 100)

    with pytest.raises(errors.ClusterError, match="longer than 100 bytes") as caught:
        splitter.feed(b"x")

    assert streams.TOO_LONG == caught.value.reason


def test_the_bound_is_for_a_line_and_not_for_the_stream() -> None:
    """A busy watch is no long line."""
    splitter = streams.Lines(bytes_max=10)

    found = [splitter.feed(b"x" * 9 + b"\n") for _ in range(1000)]

    assert [[b"x" * 9]] * 1000 == found


def test_a_long_line_costs_time_in_proportion_to_its_length() -> None:
    """Joining at every chunk would copy 5 MB eighty thousand times: minutes instead of milliseconds."""
    splitter = streams.Lines(bytes_max=streams.LINE_BYTES_MAX)
    began = time.process_time()

    for _ in range(5 << 14):
        splitter.feed(b"x" * 64)
    (line,) = splitter.feed(b"\n")

    assert 5 << 20 == len(line)
    assert time.process_time() - began < 2
