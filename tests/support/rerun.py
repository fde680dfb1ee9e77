"""Runs pytest and gives each test that failed one more try, alone, after all others: `python -m tests.support.rerun -m slow -n 3`.

A slow test starts real programs on a busy machine, and one in a thousand may fail there by chance. More than LIMIT failures are no
chance, and a test that fails again is broken. Each one that passes the second time is printed as `flaky:` with the log of its failure, so
that whoever sees it next can mend it.
"""

import subprocess
import sys
from collections.abc import Callable, Sequence

import pytest

LIMIT = 3  # failed tests that get another try


class FailureRecorder:
    """A plugin that keeps the log of each failed test, by node id."""

    def __init__(self) -> None:
        self.logs: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the first failure of a test; a worker that crashed reports one for the test that it ran."""
        if report.failed:
            self.logs.setdefault(report.nodeid, report.longreprtext)


def exit_code(code: int, logs: dict[str, str], passes_alone: Callable[[str], bool]) -> int:
    """Return pytest's exit code after the second tries, and print the verdict of each test that had one."""
    if code != pytest.ExitCode.TESTS_FAILED or not logs:
        return code
    if len(logs) > LIMIT:
        sys.stdout.write(f"{len(logs)} tests failed, which is no chance: none is tried again (at most {LIMIT} are).\n")
        return code
    fails_again = [node for node in logs if not _passes(node, logs[node], passes_alone)]
    return code if fails_again else pytest.ExitCode.OK


def _passes(node: str, log: str, passes_alone: Callable[[str], bool]) -> bool:
    passes = passes_alone(node)
    sys.stdout.write(f"{'flaky' if passes else 'failed twice'}: {node}\n{log}\n")
    sys.stdout.flush()  # before the next test writes its own
    return passes


def passes_alone(node: str) -> bool:
    """Run one test in a pytest of its own, and return whether it passes."""
    return subprocess.run([sys.executable, "-m", "pytest", node], check=False).returncode == pytest.ExitCode.OK


def main(arguments: Sequence[str]) -> int:
    recorder = FailureRecorder()
    code = pytest.main(list(arguments), plugins=[recorder])
    return exit_code(int(code), recorder.logs, passes_alone)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
