"""
The style as a test: what the formatter, the linter and the type checker do not see.

Comes in: the files of the repository, as text. Goes out: problems, each naming file, line, what is wrong and how to
mend it. `test_tidy.py` runs every check on the whole repository, and on a bad sample that it must catch.

Invariant: a check is a pure function of one source (or of all of them) and reads nothing else, so that it can be shown
to work. Words that the checks look for are written in pieces here, or this file would find itself.
"""

import ast
import dataclasses
import functools
import os
import pathlib
import re
from collections.abc import Callable, Iterable, Iterator

ROOT = pathlib.Path(__file__).resolve().parents[2]

LINE_LENGTH_MAX = 120
MODULE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70

# Programs that are started rather than imported.
ENTRY_POINTS = frozenset({"graphsched.app.cli", "graphsched.__main__"})
GENERATED = "graphsched/graph/generated/"
PURE = ("graphsched/graph/", "graphsched/decision/")
# They wait for real processes, which have no virtual time.
MAY_SLEEP = ("tests/controlplane/", "benchmarks/", "examples/")
MAY_PRINT = ("graphsched/app/", "tests/", "benchmarks/", "examples/", "scripts/")
LOCK_FILES = ("requirements.lock", "requirements-dev.lock")

_SKIPPED_FOLDERS = frozenset({"__pycache__", "build", "dist", "out", "node_modules"})
_SEEN_DOT_FOLDERS = frozenset({".ci"})
_CODE_SUFFIXES = frozenset({".py", ".sh", ".fbs", ".toml", ".c", ".h"})
_TEXT_SUFFIXES = _CODE_SUFFIXES | {".md", ".yaml", ".yml", ".tpl", ".txt", ".json", ".cfg", ".mod", ".j2", ".lock"}
_TEXT_NAMES = frozenset({"Makefile", "Dockerfile", ".dockerignore", ".gitignore", "run"})
_SIZE_BYTES_MAX = 1 << 20  # larger files are data

_VAGUE_NAMES = frozenset({"utils", "util", "helpers", "helper", "common", "misc"})
_MARKER = re.compile(r"\b(" + "TO" + "DO|FIX" + "ME|X" + r"XX)\b")
_OUTSIDE = re.compile(r"(?<![\w-])" + "shar" + r"ed/[\w.*]")
_REGISTRY = re.compile(
    "|".join(
        re.escape(".".join(parts))
        for parts in (
            ("pypi", "org"),
            ("pythonhosted", "org"),
            ("proxy", "golang", "org"),
            ("sum", "golang", "org"),
            ("npmjs", "org"),
            ("crates", "io"),
            ("deb", "debian", "org"),
            ("maven", "org"),
        )
    ),
)
_RANDOM_ALLOWED = frozenset({"Random", "default_rng", "Generator", "PCG64", "SeedSequence", "BitGenerator"})


@dataclasses.dataclass(frozen=True)
class Source:
    """One file: `path` relative to the repository with forward slashes, and its text."""

    path: str
    text: str

    @functools.cached_property
    def tree(self) -> ast.Module:
        """The parsed module; only asked of Python files."""
        return ast.parse(self.text, self.path)

    @functools.cached_property
    def lines(self) -> list[str]:
        """The text, split at newlines."""
        return self.text.splitlines()

    @property
    def is_python(self) -> bool:
        """Whether this is hand-written Python."""
        return self.path.endswith(".py") and not self.path.startswith(GENERATED)

    @property
    def is_code(self) -> bool:
        """Whether this is hand-written, and read in an editor."""
        name = pathlib.PurePosixPath(self.path)
        return (name.suffix in _CODE_SUFFIXES or name.name in _TEXT_NAMES) and not self.path.startswith(GENERATED)

    @property
    def module(self) -> str:
        """The dotted name, a package's without `__init__`."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@dataclasses.dataclass(frozen=True, slots=True, order=True)
class Problem:
    """What is wrong at one place, and the remedy."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        """Print as compilers do, so that editors jump there."""
        return f"{self.path}:{self.line}: {self.text}"


Check = Callable[[Source], Iterable[Problem]]


def sources(root: pathlib.Path = ROOT) -> list[Source]:
    """Read every text file below `root` that a person maintains, in path order."""
    return sorted(_walk(root), key=lambda source: source.path)


def _walk(root: pathlib.Path) -> Iterator[Source]:
    for folder, subfolders, names in os.walk(root):
        subfolders[:] = [
            name
            for name in subfolders
            if name not in _SKIPPED_FOLDERS and (not name.startswith(".") or name in _SEEN_DOT_FOLDERS)
        ]
        for name in names:
            path = pathlib.Path(folder, name)
            if path.is_symlink() or (path.suffix not in _TEXT_SUFFIXES and name not in _TEXT_NAMES):
                continue
            try:
                if path.stat().st_size <= _SIZE_BYTES_MAX:
                    yield Source(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
            except FileNotFoundError:
                continue  # it vanished between the listing and the reading, as an editor's copy does


def size_of_modules(source: Source) -> Iterator[Problem]:
    """A module that is too long holds two concepts."""
    if source.is_python and len(source.lines) > MODULE_LINES_MAX:
        text = f"{len(source.lines)} lines, at most {MODULE_LINES_MAX}: split it by concept"
        yield Problem(source.path, MODULE_LINES_MAX + 1, text)


def size_of_functions(source: Source) -> Iterator[Problem]:
    """A function fits a screen."""
    if not source.is_python:
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            length = node.end_lineno - node.lineno + 1
            if length > FUNCTION_LINES_MAX:
                text = f"{node.name}() has {length} lines, at most {FUNCTION_LINES_MAX}: give its parts names"
                yield Problem(source.path, node.lineno, text)


def length_of_lines(source: Source) -> Iterator[Problem]:
    """Two windows fit beside each other."""
    if source.is_code and source.path not in LOCK_FILES:
        for number, line in enumerate(source.lines, start=1):
            if len(line) > LINE_LENGTH_MAX:
                yield Problem(source.path, number, f"{len(line)} characters, at most {LINE_LENGTH_MAX}: break the line")


def docstrings(source: Source) -> Iterator[Problem]:
    """Modules, and what they make public, say what they are for."""
    if not source.is_python:
        return
    if ast.get_docstring(source.tree) is None:
        yield Problem(
            source.path, 1, "the module has no docstring: open with why it exists, what comes in and goes out"
        )
    if source.path.startswith("tests/"):
        return
    for node in _public_definitions(source.tree):
        if ast.get_docstring(node) is None:
            yield Problem(source.path, node.lineno, f"{node.name} is public and has no docstring: say what it means")


def _public_definitions(
    tree: ast.Module | ast.ClassDef,
) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_private(node):
            yield node
        elif isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node
            yield from _public_definitions(node)


def _is_private(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function needs no docstring: private, the language's own, or told elsewhere."""
    decorators = {name.rpartition(".")[2] for name in map(_dotted, node.decorator_list)}
    return node.name.startswith("_") or bool(decorators & {"overload", "override", "setter"})


def names_of_modules(source: Source) -> Iterator[Problem]:
    """A module is named after its concept."""
    parts = pathlib.PurePosixPath(source.path).with_suffix("").parts
    if source.is_python and _VAGUE_NAMES.intersection(parts):
        yield Problem(source.path, 1, "a name that says nothing: name the module after its concept")


def banned_calls(source: Source) -> Iterator[Problem]:
    """Calls that have a better way here, and the way."""
    if not source.is_python:
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call):
            remedy = _remedy(_dotted(node.func), source.path)
            if remedy:
                yield Problem(source.path, node.lineno, f"{_dotted(node.func)}() is banned here: {remedy}")
        elif isinstance(node, ast.Import | ast.ImportFrom):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            if any(module.partition(".")[0] == "requests" for module in modules):
                yield Problem(source.path, node.lineno, "requests blocks the loop: use aiohttp")


def _remedy(call: str, path: str) -> str | None:
    """Return what to do instead of `call` in `path`, or None where it is allowed."""
    if call == "print" and not path.startswith(MAY_PRINT):
        return "only the command line prints; return a value, or log"
    if call == "time.sleep" and not path.startswith(MAY_SLEEP):
        return "wait for the event, or take the clock as an argument"
    if call in {"eval", "exec", "builtins.eval", "builtins.exec"}:
        return "parse what you expect"
    if call == "os.system":
        return "use subprocess.run with a list"
    if path.startswith(PURE):
        return _remedy_in_pure_code(call)
    return None


def _remedy_in_pure_code(call: str) -> str | None:
    head, _, last = call.rpartition(".")
    if last in {"now", "utcnow", "today"} and head.rpartition(".")[2] in {"datetime", "date"}:
        return "time comes in as an argument"
    if head in {"random", "np.random", "numpy.random", "secrets"} and last not in _RANDOM_ALLOWED:
        return "a seeded generator comes in as an argument"
    return None


def _dotted(node: ast.expr) -> str:
    """Return `a.b.c` for a name or an attribute of one (a call's callee for a call), else an empty string."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        head = _dotted(node.value)
        return f"{head}.{node.attr}" if head else ""
    return _dotted(node.func) if isinstance(node, ast.Call) else ""


def swallowed_errors(source: Source) -> Iterator[Problem]:
    """What is caught is handled, counted or raised again."""
    if not source.is_python:
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ExceptHandler) and _is_broad(node.type) and all(map(_does_nothing, node.body)):
            yield Problem(source.path, node.lineno, "an error is swallowed: name the exception, and handle or count it")
        elif isinstance(node, ast.Call) and _suppresses_all(node):
            yield Problem(source.path, node.lineno, "errors are suppressed wholesale: name the exception")


def _suppresses_all(node: ast.Call) -> bool:
    return _dotted(node.func).rpartition(".")[2] == "suppress" and any(map(_is_broad, node.args))


def _is_broad(node: ast.expr | None) -> bool:
    """Whether an `except` clause catches whatever comes."""
    if isinstance(node, ast.Tuple):
        return any(map(_is_broad, node.elts))
    return node is None or _dotted(node).rpartition(".")[2] in {"Exception", "BaseException"}


def _does_nothing(node: ast.stmt) -> bool:
    """Whether a statement leaves no trace of the error: pass, `...`, continue, break, or returning a constant."""
    if isinstance(node, ast.Return):
        return node.value is None or isinstance(node.value, ast.Constant)
    return isinstance(node, ast.Pass | ast.Continue | ast.Break) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    )


def markers(source: Source) -> Iterator[Problem]:
    """Work that is left is an issue, not a comment."""
    yield from _matches(source, _MARKER, "work left in the text: do it, or file it")


def paths_outside(source: Source) -> Iterator[Problem]:
    """The repository stands alone."""
    yield from _matches(source, _OUTSIDE, "a path outside the repository: copy what is needed")


def registry_hosts(source: Source) -> Iterator[Problem]:
    """Where packages come from is the machine's business."""
    yield from _matches(source, _REGISTRY, "names a package registry: the client's own settings say where it is")


def _matches(source: Source, pattern: re.Pattern[str], text: str) -> Iterator[Problem]:
    for number, line in enumerate(source.lines, start=1):
        if pattern.search(line):
            yield Problem(source.path, number, text)


def dead_modules(everything: Iterable[Source]) -> list[Problem]:
    """Every module of the package is imported by another one, or is a program."""
    package = {
        source.module: source
        for source in everything
        if source.path.startswith("graphsched/") and source.path.endswith(".py")
    }
    reached = set(ENTRY_POINTS)
    for source in package.values():
        reached.update(name for name in _imported(source) if name != source.module)
    return [
        Problem(source.path, 1, "no module imports it: wire it in, or remove it")
        for module, source in sorted(package.items())
        if module not in reached and not source.path.endswith("/__init__.py") and source.is_python
    ]


def _imported(source: Source) -> Iterator[str]:
    """Yield every dotted name an import may mean: `from a import b` is both `a` and `a.b`."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


CHECKS: tuple[Check, ...] = (
    size_of_modules,
    size_of_functions,
    length_of_lines,
    docstrings,
    names_of_modules,
    banned_calls,
    swallowed_errors,
    markers,
    paths_outside,
    registry_hosts,
)
