"""The oracle: kube-scheduler's own plugins behind the contract of `graphsched evaluate`.

`main/` is a Go program that imports k8s.io/kubernetes as a library. Here it is built (once, see
`controlplane/binaries`), started, and asked: a request goes in as a mapping, an answer comes out as one. `tests/fuzz`
compares the answers with graphsched's.

Invariant: answers come in the order of the requests, one each; when the program ends early, asking raises.

`python -m tests.oracle.program` builds it and prints the path; with `--serve`, it becomes the oracle.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import sys
import types
import typing

import msgspec

from tests.controlplane import binaries

Json = dict[str, typing.Any]


class OracleError(Exception):
    """The oracle can not be asked; the text says why."""


class Oracle:
    """A running oracle; use it as a context manager."""

    def __init__(self, path: pathlib.Path, *, checked: bool = False) -> None:
        """Start the program; `checked` has it hold every result to the scheduler's own way through a cycle."""
        command = [str(path), *(["-check"] if checked else [])]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input = self._process.stdin
        self._output = self._process.stdout

    def __enter__(self) -> typing.Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the program."""
        # Where it is gone already, there is nothing to close.
        with contextlib.suppress(BrokenPipeError):
            self._input.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._output.close()

    def send(self, request: bytes) -> None:
        """Hand over one request, a line without its end; the answer is awaited by `receive`."""
        try:
            self._input.write(request + b"\n")
            self._input.flush()
        except BrokenPipeError as error:
            raise OracleError(f"the oracle has ended with status {self._process.wait()}") from error

    def receive(self) -> Json:
        """The answer to the oldest request without one."""
        line = self._output.readline()
        if not line:
            raise OracleError(f"the oracle has ended with status {self._process.wait()}")
        return msgspec.json.decode(line, type=Json)

    def ask(self, request: Json) -> Json:
        """The answer to one request."""
        self.send(msgspec.json.encode(request))
        return self.receive()


def main(arguments: list[str]) -> int:
    """Build the oracle; print its path, or run it."""
    try:
        path = binaries.ensure_oracle()
    except binaries.BuildError as error:
        sys.stderr.write(f"oracle: {error}\n")
        return 2
    if arguments == ["--serve"]:
        os.execv(path, [str(path)])  # noqa: S606  no shell is wanted
    sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
