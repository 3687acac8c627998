#!/usr/bin/env bash
# Write the Python code for schemas/*.fbs into the folder given, in place of what is there.
#
# Usage: scripts/generate.sh FOLDER      (flatc is taken from PATH; `make generate` puts the environment's there)
# The schemas say `namespace graphsched.graph.generated;`, which is where the code imports itself from. A test
# generates it again and compares.
set -euo pipefail

target=${1:?usage: scripts/generate.sh FOLDER}
root=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

flatc --python --python-typing --python-decode-obj-api-strings -o "$scratch" "$root"/schemas/*.fbs
if [ ! -d "$scratch/graphsched/graph/generated" ]; then
    echo "generate: a schema must say 'namespace graphsched.graph.generated;'" >&2
    exit 2
fi
rm -rf "$target"
mkdir -p "$(dirname "$target")"
cp -r "$scratch/graphsched/graph/generated" "$target"
