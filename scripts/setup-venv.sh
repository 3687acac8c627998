#!/usr/bin/env bash
# Make the development environment VENV from the hashed lock file, then install the checkout into it.
#
# Usage: scripts/setup-venv.sh VENV
# Comes in:  PYTHON (optional), requirements-dev.lock, pyproject.toml.
# Goes out:  VENV with the locked packages and an editable graphsched; nothing outside VENV is touched,
#            save that a missing python3-venv is installed when this runs as root on a Debian-like machine.
set -euo pipefail

venv=${1:?usage: scripts/setup-venv.sh VENV}
cd "$(dirname "$0")/.."

die() {
    printf 'setup: %s\n' "$*" >&2
    exit 2
}

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if new_enough "$candidate"; then
            printf '%s\n' "$candidate"
            return 0
        fi
    done
    return 1
}

apt_install() {
    [ "$(id -u)" = 0 ] || die "needs the Debian package(s) $*; run as root: apt-get install $*"
    command -v apt-get >/dev/null || die "needs Python 3.11 or newer with the venv module; install it and run again"
    printf 'setup: installing %s\n' "$*"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

if ! python=$(find_python); then
    [ -z "${PYTHON:-}" ] || die "PYTHON=$PYTHON is not Python 3.11 or newer"
    apt_install python3 python3-venv
    python=$(find_python) || die "the distribution's python3 is older than 3.11; set PYTHON to a newer one"
fi
if ! "$python" -c 'import venv, ensurepip' >/dev/null 2>&1; then
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    apt_install "python$version-venv"
fi

printf 'setup: %s with %s\n' "$venv" "$("$python" --version)"
# A half-made environment, or one of a Python since removed, is made anew; a good one is brought up to date.
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    rm -rf "$venv"
    "$python" -m venv "$venv"
fi
pip=("$venv/bin/python" -m pip --disable-pip-version-check --no-input)
"${pip[@]}" install --quiet --require-hashes --requirement requirements-dev.lock
"${pip[@]}" install --quiet --no-deps --no-build-isolation --editable .
"${pip[@]}" check >/dev/null || die "the installed packages do not fit together; run: $venv/bin/python -m pip check"
