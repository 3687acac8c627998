"""
Are the dependencies what they should be: `make audit`.

Comes in: the lock files, and where one answers, a database of known vulnerabilities. Goes out: a line on each question,
and exit code 1 when a requirement is not pinned with hashes, when something is installed without checking them, or when
a locked version has a known vulnerability. The database is asked by pip-audit, from an environment that is thrown away.

Invariant: "no known vulnerability" is said of packages that the database answered for, and of no others: one that can
not be reached is told of as such.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import typing
import venv
from collections.abc import Callable, Iterator

ROOT = pathlib.Path(__file__).resolve().parents[1]
LOCKS = ("requirements.lock", "requirements-dev.lock", "requirements-build.lock")
INSTALLERS = ("scripts/setup-venv.sh", "Dockerfile")
AUDITOR = "pip-audit>=2.9"
SERVICES = ("pypi", "osv")
"""Databases that pip-audit knows, in this order until one answers."""
INSTALL_S_MAX = 600.0
ASK_S_MAX = 300.0

_ENTRY = re.compile(r"([\w.-]+)==[\w.!+-]+( ; [^\\]+?)?( +--hash=sha256:[0-9a-f]{64})+")

Asked = dict[str, typing.Any]
Ask = Callable[[pathlib.Path, str], Asked | None]
"""(lock file, service) → what pip-audit says in JSON, None when it could not be asked."""


def entries(text: str) -> list[str]:
    """The requirements of a lock file, one a line, comments left out."""
    lines = text.replace("\\\n", " ").splitlines()
    return [line.rstrip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def unhashed(text: str) -> list[str]:
    """The entries that are not a pin with hashes."""
    return [entry for entry in entries(text) if not _ENTRY.fullmatch(entry)]


def unchecked(text: str) -> list[str]:
    """The lines of a script that install from a lock file without asking for its hashes."""
    lines = text.replace("\\\n", " ").splitlines()
    installing = [line.strip() for line in lines if re.search(r"\binstall\b.*\.lock", line)]
    return [line for line in installing if "--require-hashes" not in line]


def static() -> Iterator[str]:
    """What is wrong without asking anybody."""
    for name in LOCKS:
        for entry in unhashed((ROOT / name).read_text(encoding="utf-8")):
            yield f"{name}: not pinned with hashes: {entry[:100]} (make lock writes it anew)"
    for name in INSTALLERS:
        text = (ROOT / name).read_text(encoding="utf-8")
        for line in unchecked(text):
            yield f"{name}: installs without --require-hashes: {line}"
        if "--require-hashes" not in text:
            yield f"{name}: installs nothing by hashes"


def known(ask: Ask) -> tuple[int, list[str], list[str]]:
    """How many packages a database answered for, their vulnerabilities, and those it did not answer for.

    One package is asked about first: where that fails, the others need not be.
    """
    with tempfile.TemporaryDirectory() as folder:
        probe = pathlib.Path(folder) / "probe.lock"
        probe.write_text(entries((ROOT / LOCKS[0]).read_text(encoding="utf-8"))[0] + "\n", encoding="utf-8")
        for service in SERVICES:
            first = ask(probe, service)
            if first is None or all("skip_reason" in each for each in first["dependencies"]):
                continue
            told = ask(ROOT / "requirements-dev.lock", service)
            if told is not None:
                return _read(told)
    return 0, [], []


def _read(told: Asked) -> tuple[int, list[str], list[str]]:
    answered, found, silent = 0, [], []
    for each in told["dependencies"]:
        if "skip_reason" in each:
            silent.append(str(each["name"]))
            continue
        answered += 1
        for one in each["vulns"]:
            mended = ", ".join(one["fix_versions"]) or "no version yet"
            found.append(f"{each['name']} {each['version']}: {one['id']} (mended in: {mended})")
    return answered, found, silent


def report(ask: Ask, say: Callable[[str], object] = print) -> int:
    """Answer all questions; the exit code."""
    wrong = list(static())
    for line in wrong:
        say(f"audit: {line}")
    if not wrong:
        count = len(entries((ROOT / "requirements-dev.lock").read_text(encoding="utf-8")))
        say(f"audit: {count} requirements are pinned with hashes, which every installation checks")
    answered, found, silent = known(ask)
    for line in found:
        say(f"audit: {line}")
    if not answered:
        say("audit: no database of vulnerabilities can be reached from here: none was asked")
    else:
        say(f"audit: {len(found)} known vulnerabilities in {answered} packages")
    if silent:
        say(f"audit: the database does not know: {', '.join(silent)}")
    return 1 if wrong or found else 0


def main() -> int:
    """Install pip-audit where it leaves nothing behind, and report."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = str(pathlib.Path(folder) / "bin" / "python")
        install = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", AUDITOR]
        done = subprocess.run(install, check=False, timeout=INSTALL_S_MAX, capture_output=True, text=True)
        if done.returncode:
            reason = done.stderr.strip().rpartition("\n")[2]
            print(f"audit: {AUDITOR} can not be installed: {reason}", file=sys.stderr)

        def ask(lock: pathlib.Path, service: str) -> Asked | None:
            command = [python, "-m", "pip_audit", "--disable-pip", "--require-hashes", "--progress-spinner", "off"]
            command += ["--requirement", str(lock), "--vulnerability-service", service, "--format", "json"]
            told = subprocess.run(command, check=False, timeout=ASK_S_MAX, capture_output=True, text=True)
            try:
                answer: Asked = json.loads(told.stdout)
            except ValueError:
                return None
            return answer

        return report(ask if not done.returncode else lambda _lock, _service: None)


if __name__ == "__main__":
    sys.exit(main())
