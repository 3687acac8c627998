"""The audit of the dependencies finds what it looks for, and does not call unknown what is well."""

import pathlib
import re
from typing import Any

import pytest

from scripts import audit
from tests.architecture import tidy

HASH = "--hash=sha256:" + "a" * 64
WELL = {"name": "b", "version": "1", "vulns": []}
ILL = {"name": "c", "version": "2", "vulns": [{"id": "CVE-1", "fix_versions": ["3"], "aliases": [], "description": ""}]}
SILENT = {"name": "d", "skip_reason": "not found"}


def told(*dependencies: dict[str, Any] | None) -> tuple[int, list[str], list[str]]:
    """Exit code, lines and services asked, when the database answers with these."""
    lines: list[str] = []
    asked: list[str] = []

    def ask(lock: pathlib.Path, service: str) -> audit.Asked | None:
        asked.append(f"{service} {lock.name}")
        return None if None in dependencies else {"dependencies": list(dependencies), "fixes": []}

    code = audit.report(ask, lines.append)
    return code, lines[1:], asked


def test_the_locks_and_those_who_install_them_pass() -> None:
    """Every requirement has hashes, and every installation asks for them."""
    assert [] == list(audit.static())


@pytest.mark.parametrize(
    "entry",
    [
        "a==1",
        f"a>=1 {HASH}",
        f"a {HASH}",
        "a==1 --hash=md5:abc",
        f"--index-url x\na==1 {HASH}",
        f"a @ file:///x {HASH}",
    ],
)
def test_an_entry_without_pin_or_hash_is_found(entry: str) -> None:
    """Among good ones."""
    good = f"# by hand\na==1 \\\n    {HASH} \\\n    {HASH}\n    # via b\nb==1 ; python_version < '3.12' {HASH}\n"

    assert ([], 1) == (audit.unhashed(good), len(audit.unhashed(f"{good}{entry}\n")))


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("pip install -r requirements.lock", 1),
        ("pip install \\\n  --requirement requirements-build.lock", 1),
        ("pip install --require-hashes -r requirements.lock", 0),
        ("pip install --no-deps dist/*.whl", 0),
    ],
)
def test_an_installation_without_hashes_is_found(line: str, found: int) -> None:
    """Also over several lines."""
    assert found == len(audit.unchecked(line))


def test_a_vulnerability_fails_the_audit() -> None:
    """It is named with what mends it; those who are well are counted."""
    code, lines, _ = told(WELL, ILL)

    assert (1, ["audit: c 2: CVE-1 (mended in: 3)", "audit: 1 known vulnerabilities in 2 packages"]) == (code, lines)


def test_packages_without_vulnerabilities_pass() -> None:
    """And what the database does not know is said."""
    code, lines, asked = told(WELL, SILENT)

    assert ["pypi probe.lock", "pypi requirements-dev.lock"] == asked
    assert (0, ["audit: 0 known vulnerabilities in 1 packages", "audit: the database does not know: d"]) == (
        code,
        lines,
    )


@pytest.mark.parametrize("answer", [None, SILENT])
def test_silence_is_not_taken_for_health(answer: dict[str, Any] | None) -> None:
    """A database that does not answer, or knows nothing, is told of as such; one package is asked about, not all."""
    code, lines, asked = told(answer)

    assert ["pypi probe.lock", "osv probe.lock"] == asked
    assert (0, ["audit: no database of vulnerabilities can be reached from here: none was asked"]) == (code, lines)


def test_make_audit_runs_it() -> None:
    """The target exists and says what it does."""
    assert re.search(
        r"^audit: setup ## .+\n\t@\$\(PY\) -m scripts\.audit$", (tidy.ROOT / "Makefile").read_text(), re.MULTILINE
    )
