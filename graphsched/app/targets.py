"""Where a command writes what it made: standard output, or a file that is there whole or not at all."""

from __future__ import annotations

import contextlib
import pathlib
import sys
import tempfile
from collections.abc import Callable, Iterator

from graphsched.base.values import errors


@contextlib.contextmanager
def whole(output: str) -> Iterator[Callable[[bytes], object]]:
    """What writes to stdout (`-`) or to a file that only its owner may read, which appears when the block ends well.

    Raises:
        InputError: The file can not be written.
    """
    if output == "-":
        yield sys.stdout.buffer.write
        return
    path = pathlib.Path(output)
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            try:
                yield file.write
                file.close()
                pathlib.Path(file.name).replace(path)
            except BaseException:
                pathlib.Path(file.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise errors.InputError(output, problem=f"can not be written: {error.strerror}") from error
