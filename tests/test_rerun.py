"""Of the tests that failed once, the second try decides, and only while they are few."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.rerun import LIMIT, exit_code

FAILED = pytest.ExitCode.TESTS_FAILED
ROOT = Path(__file__).parents[1]
FLAKY = """
from pathlib import Path

def test_second_try_passes():
    seen = Path(__file__).with_name("seen")
    again = seen.exists()
    seen.touch()
    assert again, "the first try"

def test_other_is_run_once():
    seen = Path(__file__).with_name("other")
    assert not seen.exists()
    seen.touch()
"""


def run(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(code)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": "-p no:randomly -p no:django"}
    environment.pop("PYTEST_XDIST_WORKER", None)
    command = [sys.executable, "-m", "tests.support.rerun", "test_it.py", "-n", "2"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_flaky_test_is_printed_with_its_log_and_passes(tmp_path: Path) -> None:
    ran = run(tmp_path, FLAKY)
    assert ran.returncode == 0, ran.stdout
    assert "flaky: test_it.py::test_second_try_passes" in ran.stdout
    assert "AssertionError: the first try" in ran.stdout.partition("flaky: ")[2]


def test_broken_test_fails_the_run(tmp_path: Path) -> None:
    ran = run(tmp_path, "def test_broken():\n    assert 1 == 2\n")
    assert ran.returncode == FAILED
    assert "failed twice: test_it.py::test_broken" in ran.stdout


def test_many_failures_get_no_second_try() -> None:
    def never(node: str) -> bool:
        raise AssertionError(node)

    assert exit_code(FAILED, dict.fromkeys(map(str, range(LIMIT + 1)), "log"), never) == FAILED


def test_broken_test_among_flaky_ones_fails_the_run() -> None:
    assert exit_code(FAILED, {"a": "", "b": "", "c": ""}, lambda node: node != "b") == FAILED
    assert exit_code(FAILED, {"a": "", "b": "", "c": ""}, lambda _: True) == 0


@pytest.mark.parametrize("code", [pytest.ExitCode.INTERRUPTED, pytest.ExitCode.USAGE_ERROR, pytest.ExitCode.OK])
def test_other_exit_codes_stay(code: int) -> None:
    assert exit_code(code, {}, lambda _: True) == code
