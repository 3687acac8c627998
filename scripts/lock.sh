#!/usr/bin/env bash
# Write the lock files from pyproject.toml: requirements.lock (run time), requirements-dev.lock (all of it) and
# requirements-build.lock (what builds the wheel in the image).
#
# Every requirement is pinned and hashed, for every platform and Python from 3.11 on. The dev lock is resolved under
# the run-time lock, so the tests run with what is shipped. No index or host is written. LOCK_ARGS=--upgrade moves on.
set -euo pipefail
cd "$(dirname "$0")/.."

tools=$(mktemp -d)
trap 'rm -rf "$tools"' EXIT
"${PYTHON:-python3}" -m venv "$tools"
"$tools/bin/python" -m pip install --quiet --disable-pip-version-check "${UV_REQUIREMENT:-uv>=0.8}"

compile() {
    "$tools/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
        --no-emit-index-url --no-emit-find-links ${LOCK_ARGS:-} "$@"
}
compile pyproject.toml --output-file requirements.lock
compile pyproject.toml --extra dev --constraint requirements.lock --output-file requirements-dev.lock

"$tools/bin/python" - <<'PYTHON' >"$tools/build.in"
import pathlib, re
block = re.search(r"^requires = (\[.*?\])$", pathlib.Path("pyproject.toml").read_text(), re.MULTILINE)
print("\n".join(re.findall(r'"([^"]+)"', block[1])))
PYTHON
compile --no-annotate "$tools/build.in" --constraint requirements-dev.lock --output-file requirements-build.lock
