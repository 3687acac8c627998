"""
Run the Dockerfile's steps on this machine, in a temporary folder, where no image can be built.

Comes in: the Dockerfile. Goes out: what `graphsched --version` says when only the files of the final stage are left.
`tests/packaging` reads the Dockerfile through the same parser.

Invariant: nothing is repeated here. The instructions come from the Dockerfile; one that this file does not know is an
error. Absolute paths in ENV, WORKDIR and COPY are moved below the temporary folder.
"""

import dataclasses
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import ClassVar

ROOT = pathlib.Path(__file__).resolve().parents[1]
STEP_S_MAX = 900


class DockerfileError(ValueError):
    """The Dockerfile holds something that cannot be run here; the text says what."""


@dataclasses.dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: its line, its upper-case name and the rest as written, continuations joined."""

    line: int
    name: str
    text: str


def parse(text: str) -> list[Instruction]:
    """Split a Dockerfile into instructions; comments and empty lines go."""
    instructions = []
    started, pending = 0, ""
    for number, line in enumerate(text.splitlines(), start=1):
        if not pending and (not line.strip() or line.lstrip().startswith("#")):
            continue
        started = started if pending else number
        pending += line.strip()
        if pending.endswith("\\"):
            pending = pending.removesuffix("\\")
            continue
        name, _, rest = pending.partition(" ")
        instructions.append(Instruction(started, name.upper(), rest.strip()))
        pending = ""
    return instructions


def refuse_unknown(instructions: list[Instruction]) -> None:
    """Raise `DockerfileError` at the first instruction that has no meaning here."""
    for instruction in instructions:
        if instruction.name not in Stages.STEPS and instruction.name not in _IGNORED:
            known = ", ".join(sorted({*Stages.STEPS, *_IGNORED}))
            raise DockerfileError(f"Dockerfile:{instruction.line}: {instruction.name} is not one of {known}")


# The base image is this machine, the port a note to readers, and the command is replaced by `--version`.
_IGNORED = frozenset({"ARG", "EXPOSE", "CMD"})


class Stages:
    """The stages as folders: `root` is the file system of the current one, finished ones lie beside it."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._root = folder / "root"
        self._workdir = self._root
        self._name = ""
        self.environment: dict[str, str] = {}
        self.entry_point: list[str] = []
        self.user = 0

    def run(self, instruction: Instruction) -> None:
        """Carry out one known instruction."""
        if instruction.name not in _IGNORED:
            self.STEPS[instruction.name](self, instruction.text)

    def _from(self, text: str) -> None:
        if self._name:
            self._root.rename(self._folder / self._name)
        self._name = text.partition(" AS ")[2] or "final"
        self._root.mkdir()
        self._workdir = self._root
        # How packages are had is this machine's business.
        self.environment = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_"))}
        self.environment |= {"PATH": f"{self._folder / 'bin'}:/usr/bin:/bin", "HOME": str(self._folder / "home")}

    def _env(self, text: str) -> None:
        for name, value in (word.split("=", 1) for word in shlex.split(text)):
            self.environment[name] = self._moved(value)

    def _enter(self, text: str) -> None:
        self._workdir = pathlib.Path(self._moved(text))
        self._workdir.mkdir(parents=True, exist_ok=True)

    def _copy(self, text: str) -> None:
        words = shlex.split(text)
        stage = words.pop(0).removeprefix("--from=") if words[0].startswith("--from=") else None
        *sources, target = (self._expanded(word) for word in words)
        goal = self._workdir / self._moved(target)
        goal.parent.mkdir(parents=True, exist_ok=True)
        for source in sources:
            # What was made below `root` in an earlier stage lies below that stage's name now.
            found = self._folder / stage / pathlib.Path(source).relative_to(self._root) if stage else ROOT / source
            if found.is_dir():
                shutil.copytree(found, goal, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(found, goal)

    def _run(self, text: str) -> None:
        subprocess.run(["sh", "-ec", text], cwd=self._workdir, env=self.environment, check=True, timeout=STEP_S_MAX)

    def _become(self, text: str) -> None:
        self.user = int(text.partition(":")[0])

    def _enter_at(self, text: str) -> None:
        self.entry_point = json.loads(text)

    def _expanded(self, text: str) -> str:
        """Put in the variables set so far; a name that is not set is an error, as a typing slip would be."""
        return re.sub(r"\$\{?(\w+)\}?", lambda match: self.environment[match[1]], text)

    def _moved(self, text: str) -> str:
        """Expand, and move a path of the image below `root`; one that is there already stays."""
        expanded = self._expanded(text)
        if expanded.startswith("/") and not expanded.startswith(str(self._folder)):
            return f"{self._root}{expanded}"
        return expanded

    STEPS: ClassVar[dict[str, Callable[["Stages", str], None]]] = {
        "FROM": _from,
        "ENV": _env,
        "WORKDIR": _enter,
        "COPY": _copy,
        "RUN": _run,
        "USER": _become,
        "ENTRYPOINT": _enter_at,
    }


def main() -> int:
    """Run every step, then the program as the image's user where this process may become it; return its exit code."""
    instructions = parse((ROOT / "Dockerfile").read_text())
    refuse_unknown(instructions)
    with tempfile.TemporaryDirectory(prefix="graphsched-image-") as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        (folder / "bin").mkdir()
        (folder / "home").mkdir()
        # The images' `python`: a wrapper, since a link would be taken for an environment of its own.
        python = folder / "bin" / "python"
        python.write_text(f'#!/bin/sh\nexec "{pathlib.Path(sys.base_prefix, "bin", "python3")}" "$@"\n')
        python.chmod(0o755)
        stages = Stages(folder)
        for instruction in instructions:
            print(f"image: {instruction.name} {instruction.text}", flush=True)
            started = time.monotonic()
            stages.run(instruction)
            if instruction.name == "RUN":
                print(f"image: {time.monotonic() - started:.1f} s", flush=True)
        return _try_out(stages)


def _try_out(stages: Stages) -> int:
    command = [*stages.entry_point, "--version"]
    path = shutil.which(command[0], path=stages.environment["PATH"])
    if path is None:
        print(f"image: {command[0]} is not on PATH in the final stage", file=sys.stderr)
        return 1
    user = stages.user if os.geteuid() == 0 and _may_run_python(stages.user) else None
    print(f"image: {' '.join(command)} as user {os.geteuid() if user is None else user}", flush=True)
    return subprocess.run(
        [path, *command[1:]], env=stages.environment, check=False, timeout=60, user=user, cwd="/"
    ).returncode


def _may_run_python(user: int) -> bool:
    """Whether another user can reach this interpreter; one below root's home cannot be."""
    program = pathlib.Path(sys.base_prefix, "bin", "python3")
    try:
        return subprocess.run([program, "-c", ""], check=False, timeout=60, user=user, cwd="/").returncode == 0
    except PermissionError:
        return False


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (DockerfileError, OSError, subprocess.SubprocessError) as error:
        sys.exit(f"image: {error}")
