#!/usr/bin/env bash
# Write the Python code for schemas/*.fbs below the folder given; a test compares it with what is committed.
#
# Usage: scripts/generate.sh FOLDER     (flatc is taken from PATH; `make generate` puts the environment's there)
set -euo pipefail

target=${1:?usage: scripts/generate.sh FOLDER}
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$target"
find "$target" -name '*.py' ! -path "$target/__init__.py" -delete
find "$target" -name '*.pyi' -delete
flatc --python --python-typing --python-decode-obj-api-strings -o "$target" "$root"/schemas/*.fbs
