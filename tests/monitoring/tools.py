"""Prometheus and promtool for the tests, from the Debian package `prometheus`.

Comes in: nothing. Goes out: the paths of the programs, installed first where root may do so.
"""

import functools
import os
import pathlib
import shutil
import subprocess

PACKAGE = "prometheus"
_APT_S = 900.0


@functools.cache
def program(name: str) -> pathlib.Path:
    """The path of `prometheus` or `promtool`.

    Raises:
        FileNotFoundError: It is missing and can not be installed; the text names the package.
    """
    found = shutil.which(name)
    if found is None:
        _install()
        found = shutil.which(name)
    if found is None:
        raise FileNotFoundError(f"{name} is missing: install the Debian package {PACKAGE}")
    return pathlib.Path(found)


def _install() -> None:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return
    # No service: the package would start one on a port that a test may want.
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", PACKAGE]):
        subprocess.run(["apt-get", *command], check=True, capture_output=True, timeout=_APT_S, env=environment)
