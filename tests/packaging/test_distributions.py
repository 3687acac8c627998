"""The wheel and the sdist hold what they should: every module, every data file, no test."""

import configparser
import email
import email.message
import pathlib
import subprocess
import sys
import tarfile
import zipfile

import pytest

import graphsched
from tests.architecture import tidy

PACKAGE = tidy.ROOT / "graphsched"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """An sdist of the checkout, and the wheel made from that sdist, in one folder."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(tidy.ROOT)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=110)
    assert result.returncode == 0, result.stdout + result.stderr
    return folder


@pytest.fixture(scope="module")
def wheel(built: pathlib.Path) -> dict[str, bytes]:
    """The wheel's files."""
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def sdist(built: pathlib.Path) -> set[str]:
    """The paths in the sdist, below its folder."""
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        return {name.partition("/")[2] for name in archive.getnames()}


def package_files() -> set[str]:
    """Return every file of the package as it lies in the checkout."""
    return {
        path.relative_to(tidy.ROOT).as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def metadata(wheel: dict[str, bytes]) -> email.message.Message:
    """Return the wheel's METADATA."""
    (content,) = [content for name, content in wheel.items() if name.endswith(".dist-info/METADATA")]
    return email.message_from_bytes(content)


def test_the_wheel_holds_the_whole_package(wheel: dict[str, bytes]) -> None:
    """Every module and data file of the checkout is installed: templates, type marker, all."""
    installed = {name for name in wheel if name.startswith("graphsched/")}

    assert installed >= package_files()
    assert "graphsched/py.typed" in installed


def test_the_wheel_holds_the_schemas(wheel: dict[str, bytes]) -> None:
    """Every schema is installed into share/graphsched/schemas, whatever language reads it."""
    folder = f"graphsched-{graphsched.__version__}.data/data/share/graphsched/schemas/"

    assert {path.name for path in (tidy.ROOT / "schemas").iterdir()} == {
        name.removeprefix(folder) for name in wheel if name.startswith(folder)
    }


def test_the_wheel_holds_nothing_but_the_package(wheel: dict[str, bytes]) -> None:
    """Tests, benchmarks and examples would land in the user's site-packages."""
    name = f"graphsched-{graphsched.__version__}"

    assert {"graphsched", f"{name}.dist-info", f"{name}.data"} == {path.partition("/")[0] for path in wheel}


def test_the_sdist_can_be_read_and_built(sdist: set[str]) -> None:
    """Package, schemas, licence, readme and changelog are there; what only the repository needs is not."""
    assert sdist >= package_files()
    assert sdist >= {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml"}
    assert sdist >= {path.relative_to(tidy.ROOT).as_posix() for path in (tidy.ROOT / "schemas").glob("*.fbs")}
    assert not {path.partition("/")[0] for path in sdist} & {"tests", "benchmarks", "examples", ".venv", "charts"}


def test_the_version_is_one(built: pathlib.Path, wheel: dict[str, bytes]) -> None:
    """Package, metadata and file names carry the same version."""
    version = graphsched.__version__

    assert metadata(wheel)["Version"] == version
    assert {path.name for path in built.iterdir()} == {
        f"graphsched-{version}-py3-none-any.whl",
        f"graphsched-{version}.tar.gz",
    }


def test_the_licence_is_carried(wheel: dict[str, bytes]) -> None:
    """The wheel names its licence and holds its text."""
    (text,) = [content for name, content in wheel.items() if name.endswith("/licenses/LICENSE")]

    assert metadata(wheel)["License-Expression"] == "Apache-2.0"
    assert text == (tidy.ROOT / "LICENSE").read_bytes()


def test_the_console_script_leads_to_the_command_line(wheel: dict[str, bytes]) -> None:
    """One program is installed, and the module it names is in the wheel."""
    (content,) = [content for name, content in wheel.items() if name.endswith("/entry_points.txt")]
    parser = configparser.ConfigParser()
    parser.read_string(content.decode())

    assert dict(parser["console_scripts"]) == {"graphsched": "graphsched.app.cli:main"}
    assert "graphsched/app/cli.py" in wheel
