"""The repository is tidy, and each check of tidiness catches what it is for."""

import pathlib
import subprocess

import pytest

from tests.architecture import tidy

MARK = "TO" + "DO"
ELSEWHERE = "shar" + "ed/data/nodes.csv"
HOST = "files.python" + "hosted.org"
DOC = '"""Why."""\n'


@pytest.fixture(scope="module")
def everything() -> list[tidy.Source]:
    """Every file that a person maintains."""
    return tidy.sources()


@pytest.mark.parametrize("check", tidy.CHECKS, ids=lambda check: check.__name__)
def test_the_repository_passes(check: tidy.Check, everything: list[tidy.Source]) -> None:
    """No file of the repository breaks this rule."""
    problems = [problem for source in everything for problem in check(source)]

    assert not problems, "\n" + "\n".join(map(str, sorted(problems)))


def test_every_module_is_used(everything: list[tidy.Source]) -> None:
    """No module of the package lies about unused."""
    problems = tidy.dead_modules(everything)

    assert not problems, "\n" + "\n".join(map(str, problems))


def test_the_files_that_matter_are_seen(everything: list[tidy.Source]) -> None:
    """The checks would pass on nothing; so they are shown to see something."""
    seen = {source.path for source in everything}

    assert {"Makefile", ".ci/run", "graphsched/__init__.py", "tests/architecture/tidy.py"} <= seen
    assert not any(path.startswith((".venv/", ".git/")) for path in seen)


def test_the_repository_holds_no_link() -> None:
    """A link leads a clone out of itself: to an environment of somebody else's, say."""
    if not (tidy.ROOT / ".git").exists():
        return  # an unpacked archive: nothing is recorded in it
    listing = subprocess.run(
        ["git", "-c", f"safe.directory={tidy.ROOT}", "ls-files", "--stage"],
        cwd=tidy.ROOT,
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout

    assert listing, "git lists no file"
    assert [line for line in listing.splitlines() if line.startswith("120000 ")] == []


BAD = [
    pytest.param(tidy.size_of_modules, "graphsched/a.py", "x = 1\n" * 501, 501, id="a module of 501 lines"),
    pytest.param(tidy.size_of_functions, "graphsched/a.py", "def f():\n" + "    x = 1\n" * 70, 1, id="71 lines"),
    pytest.param(
        tidy.size_of_functions,
        "tests/test_a.py",
        "async def f():\n" + "    x = 1\n" * 70,
        1,
        id="71 lines of coroutine",
    ),
    pytest.param(tidy.length_of_lines, "graphsched/a.py", "\n#" + "x" * 120, 2, id="121 characters"),
    pytest.param(tidy.length_of_lines, "scripts/a.sh", "#" + "x" * 120, 1, id="121 characters of shell"),
    pytest.param(tidy.docstrings, "graphsched/a.py", "x = 1\n", 1, id="a module without docstring"),
    pytest.param(tidy.docstrings, "tests/test_a.py", "x = 1\n", 1, id="a test module without docstring"),
    pytest.param(tidy.docstrings, "graphsched/a.py", DOC + "def f(): ...\n", 2, id="a function without docstring"),
    pytest.param(
        tidy.docstrings,
        "graphsched/a.py",
        DOC + 'class A:\n    """A."""\n    def f(self): ...\n',
        4,
        id="a bare method",
    ),
    pytest.param(tidy.docstrings, "graphsched/a.py", DOC + "class A: ...\n", 2, id="a class without docstring"),
    pytest.param(tidy.names_of_modules, "graphsched/utils.py", DOC, 1, id="a module named utils"),
    pytest.param(tidy.names_of_modules, "tests/common/a.py", DOC, 1, id="a folder named common"),
    pytest.param(tidy.banned_calls, "graphsched/base/a.py", "print(1)\n", 1, id="print below the command line"),
    pytest.param(tidy.banned_calls, "graphsched/a.py", "import time\ntime.sleep(1)\n", 2, id="sleep"),
    pytest.param(tidy.banned_calls, "tests/test_a.py", "import time\ntime.sleep(1)\n", 2, id="a test that sleeps"),
    pytest.param(tidy.banned_calls, "graphsched/a.py", "eval('1')\n", 1, id="eval"),
    pytest.param(tidy.banned_calls, "graphsched/a.py", "exec('1')\n", 1, id="exec"),
    pytest.param(tidy.banned_calls, "graphsched/a.py", "os.system('ls')\n", 1, id="os.system"),
    pytest.param(tidy.banned_calls, "graphsched/a.py", "import requests\n", 1, id="requests"),
    pytest.param(tidy.banned_calls, "graphsched/a.py", "from requests.x import y\n", 1, id="a part of requests"),
    pytest.param(tidy.banned_calls, "graphsched/graph/a.py", "datetime.datetime.now()\n", 1, id="now in the graph"),
    pytest.param(tidy.banned_calls, "graphsched/decision/a.py", "datetime.utcnow()\n", 1, id="utcnow in the decision"),
    pytest.param(tidy.banned_calls, "graphsched/decision/a.py", "random.choice(x)\n", 1, id="global random"),
    pytest.param(tidy.banned_calls, "graphsched/graph/a.py", "np.random.rand(3)\n", 1, id="numpy's global random"),
    pytest.param(
        tidy.swallowed_errors,
        "graphsched/a.py",
        "try:\n    f()\nexcept Exception:\n    pass\n",
        3,
        id="a swallowed error",
    ),
    pytest.param(
        tidy.swallowed_errors, "graphsched/a.py", "try:\n    f()\nexcept:\n    return None\n", 3, id="a bare except"
    ),
    pytest.param(
        tidy.swallowed_errors,
        "graphsched/a.py",
        "try:\n    f()\nexcept (ValueError, BaseException):\n    ...\n",
        3,
        id="a broad tuple",
    ),
    pytest.param(tidy.swallowed_errors, "graphsched/a.py", "with suppress(Exception): f()\n", 1, id="a broad suppress"),
    pytest.param(tidy.markers, "graphsched/a.py", f"x = 1  # {MARK}: later\n", 1, id="work left in a comment"),
    pytest.param(tidy.markers, "docs/a.md", f"\n{MARK}\n", 2, id="work left in the docs"),
    pytest.param(tidy.paths_outside, "tests/a.py", f'open("../{ELSEWHERE}")\n', 1, id="a path outside"),
    pytest.param(tidy.registry_hosts, "requirements.lock", f"--index-url https://{HOST}/simple\n", 1, id="a host"),
]


@pytest.mark.parametrize(("check", "path", "text", "line"), BAD)
def test_a_bad_sample_is_caught(check: tidy.Check, path: str, text: str, line: int) -> None:
    """The check names the file and the line of what it is there to find."""
    problems = list(check(tidy.Source(path, text)))

    assert [(path, line)] == [(problem.path, problem.line) for problem in problems]


GOOD = [
    pytest.param("graphsched/a.py", DOC + "x = 1\n" * 499, id="a module of 500 lines"),
    pytest.param("graphsched/a.py", DOC + 'def f():\n    """F."""\n' + "    x = 1\n" * 68, id="70 lines"),
    pytest.param("graphsched/a.py", DOC + "#" + "x" * 119 + "\n", id="120 characters"),
    pytest.param("graphsched/a.py", DOC + "def _f(): ...\n\n\nclass _A: ...\n", id="private things"),
    pytest.param("graphsched/app/a.py", DOC + "print(1)\n", id="the command line prints"),
    pytest.param("graphsched/graph/a.py", DOC + "np.random.default_rng(seed)\nrandom.Random(1)\n", id="seeded"),
    pytest.param("tests/controlplane/a.py", DOC + "time.sleep(1)\n", id="waiting for a real process"),
    pytest.param(
        "graphsched/a.py", DOC + "try:\n    f()\nexcept Exception as e:\n    count(e)\n", id="an error that is counted"
    ),
    pytest.param("graphsched/a.py", DOC + "try:\n    f()\nexcept KeyError:\n    pass\n", id="a named error"),
    pytest.param("docs/a.md", "the shared mode, and " + "x" * 200 + "\n", id="prose"),
    pytest.param(tidy.GENERATED + "A.py", "def f():\n" + "    print(1)\n" * 600, id="generated code"),
]


@pytest.mark.parametrize(("path", "text"), GOOD)
def test_a_good_sample_passes(path: str, text: str) -> None:
    """What is allowed is not reported by any check."""
    source = tidy.Source(path, text)

    assert [] == [problem for check in tidy.CHECKS for problem in check(source)]


def test_a_module_that_nobody_imports_is_dead() -> None:
    """Programs, packages and imported modules live; what only imports itself or is only imported by tests is dead."""
    everything = [
        tidy.Source("graphsched/app/cli.py", "from graphsched.graph import store\nimport graphsched.base.one\n"),
        tidy.Source("graphsched/graph/__init__.py", ""),
        tidy.Source("graphsched/graph/store.py", ""),
        tidy.Source("graphsched/base/one.py", ""),
        tidy.Source("graphsched/base/two.py", "from graphsched.base import two\n"),
        tidy.Source("tests/test_two.py", "from graphsched.base import two\n"),
    ]

    assert ["graphsched/base/two.py"] == [problem.path for problem in tidy.dead_modules(everything)]


def test_reading_skips_what_is_made(tmp_path: pathlib.Path) -> None:
    """Environments, builds and data are not read; hidden CI scripts are."""
    for path in (".venv/a.py", "build/a.py", "x/__pycache__/a.py", "data.csv", ".ci/run", "x/a.py"):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(DOC)

    assert [".ci/run", "x/a.py"] == [source.path for source in tidy.sources(tmp_path)]
