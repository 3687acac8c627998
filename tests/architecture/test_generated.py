"""The committed FlatBuffers code is what the compiler makes of the schemas today."""

import os
import pathlib
import subprocess
import sys

from tests.architecture import tidy

COMMITTED = tidy.ROOT / "graphsched" / "graph" / "generated"


def files(folder: pathlib.Path) -> dict[str, str]:
    """Return the files below a folder, by path."""
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_generated_code_is_fresh(tmp_path: pathlib.Path) -> None:
    """Nobody edited the output, and nobody changed a schema without `make generate`."""
    fresh = tmp_path / "generated"
    tools = f"{pathlib.Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = [tidy.ROOT / "scripts" / "generate.sh", fresh]
    result = subprocess.run(
        command, env=os.environ | {"PATH": tools}, capture_output=True, text=True, check=False, timeout=60
    )

    assert result.returncode == 0, result.stdout + result.stderr
    assert files(fresh) == files(COMMITTED), "run 'make generate' and commit what it changes"
