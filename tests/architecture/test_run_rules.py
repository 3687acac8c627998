"""The rules of `tests/conftest.py` hold: a skipped test fails a strict run, an expected failure does not."""

import pathlib
import subprocess
import sys

import pytest

from tests import conftest
from tests.architecture import tidy

SKIPPED_TEST = "import pytest\n\n\ndef test_a():\n    pytest.skip('no such thing here')\n"
SKIPPED_MODULE = "import pytest\n\npytest.importorskip('no_such_module')\n\n\ndef test_a():\n    pass\n"
EXPECTED_FAILURE = "import pytest\n\n\n@pytest.mark.xfail\ndef test_a():\n    assert False\n"
LAST_RESORT_S = 110
"""For a run that hangs: one takes two seconds, and a minute where twenty others want the same two cores."""
GOOD = "def test_good():\n    pass\n"


def run(folder: pathlib.Path, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run one test file, and a good one beside it, under the rules and without CI's environment."""
    (folder / "test_good.py").write_text(GOOD)
    (folder / "test_sample.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-c", str(tidy.ROOT / "pyproject.toml"), "-p", "tests.conftest"]
    return subprocess.run(
        [*command, f"--rootdir={folder}", "-p", "no:cacheprovider", *options, str(folder)],
        cwd=tidy.ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=LAST_RESORT_S,
        env={"PATH": ""},
    )


@pytest.mark.parametrize("text", [SKIPPED_TEST, SKIPPED_MODULE], ids=["a test", "a module"])
def test_a_skip_fails_the_strict_run(tmp_path: pathlib.Path, text: str) -> None:
    """What is skipped is named, and the run does not pass."""
    result = run(tmp_path, text, conftest.FAIL_ON_SKIP)

    assert result.returncode == pytest.ExitCode.TESTS_FAILED, result.stdout
    assert "1 skipped, so the run fails" in result.stdout
    assert "test_sample.py" in result.stdout


@pytest.mark.parametrize("text", [SKIPPED_TEST, SKIPPED_MODULE], ids=["a test", "a module"])
def test_a_skip_is_allowed_on_a_poorer_machine(tmp_path: pathlib.Path, text: str) -> None:
    """Without the option a skip is a skip."""
    result = run(tmp_path, text)

    assert result.returncode == pytest.ExitCode.OK, result.stdout


def test_an_expected_failure_is_no_skip(tmp_path: pathlib.Path) -> None:
    """The strict run watches skips; `xfail_strict` watches expected failures."""
    result = run(tmp_path, EXPECTED_FAILURE, conftest.FAIL_ON_SKIP)

    assert result.returncode == pytest.ExitCode.OK, result.stdout


def test_a_failure_names_its_seed(tmp_path: pathlib.Path) -> None:
    """The order is random, and a failed run says how to have it again."""
    result = run(tmp_path, "def test_a():\n    assert False\n", "--randomly-seed=7")

    assert result.returncode == pytest.ExitCode.TESTS_FAILED, result.stdout
    assert "the same order again: PYTEST_ARGS='--randomly-seed=7'" in result.stdout


def test_a_warning_is_an_error(tmp_path: pathlib.Path) -> None:
    """A warning nobody handled fails the test that raised it."""
    result = run(tmp_path, "import warnings\n\n\ndef test_a():\n    warnings.warn('old', DeprecationWarning)\n")

    assert result.returncode == pytest.ExitCode.TESTS_FAILED, result.stdout
