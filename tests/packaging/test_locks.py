"""The lock files pin and hash everything, agree with each other and with pyproject.toml, and name no index."""

import re
import tomllib
from typing import Any

import pytest

from tests.architecture import tidy

LOCKS = ("requirements.lock", "requirements-dev.lock", "requirements-build.lock")


def project() -> dict[str, Any]:
    """Return pyproject.toml."""
    return tomllib.loads((tidy.ROOT / "pyproject.toml").read_text())


def pins(lock: str) -> set[str]:
    """Return the pins of a lock file as `name==1.2`; markers differ between locks, as the reasons to install do."""
    text = (tidy.ROOT / lock).read_text()
    return {line.partition(" ")[0] for line in text.splitlines() if line[:1].isalnum()}


def names(requirements: set[str] | list[str]) -> set[str]:
    """Return the normalised names of requirements."""
    return {re.sub(r"[-_.]+", "-", re.split(r"[ =<>!~;\[]", text, maxsplit=1)[0]).lower() for text in requirements}


@pytest.mark.parametrize("lock", LOCKS)
def test_every_requirement_is_pinned_and_hashed(lock: str) -> None:
    """A line is a pin with hashes, a hash or a comment; nothing else, so no option and no index."""
    entries = (tidy.ROOT / lock).read_text().replace("\\\n", " ").splitlines()
    entry = re.compile(r"[\w.-]+==[\w.!+-]+( ; [^\\]+?)?( +--hash=sha256:[0-9a-f]{64})+")

    assert [] == [line for line in entries if not line.lstrip().startswith("#") and not entry.fullmatch(line.rstrip())]


def test_the_run_time_lock_is_part_of_the_dev_lock() -> None:
    """The tests run with exactly what is shipped."""
    assert pins("requirements.lock") <= pins("requirements-dev.lock")


def test_the_build_lock_is_part_of_the_dev_lock() -> None:
    """The image's wheel is built with what builds it here."""
    assert pins("requirements-build.lock") <= pins("requirements-dev.lock")


def test_every_declared_dependency_is_locked() -> None:
    """A dependency was declared and `make lock` forgotten: that is caught here."""
    declared = project()["project"]

    assert names(declared["dependencies"]) <= names(pins("requirements.lock"))
    assert names(declared["optional-dependencies"]["dev"]) <= names(pins("requirements-dev.lock"))
    assert names(project()["build-system"]["requires"]) <= names(pins("requirements-build.lock"))


def test_the_compiler_fits_the_runtime() -> None:
    """Code that flatc generates checks for a runtime of the same version."""
    versions = dict(pin.split("==") for pin in pins("requirements-dev.lock"))

    assert versions["flatc"].startswith(versions["flatbuffers"])
