"""The set-up before `make run`: one short line for each step, and what pip says only when it fails."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.grid import ROOT

NOISE = "\n".join(f"echo 'WARNING: warning {number}' >&2" for number in range(48))


@pytest.fixture
def script(tmp_path: Path) -> dict[str, Any]:
    """The script's functions, for a folder with a lock file and a virtual environment without a Python."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "requirements.lock").write_text("a==1\n")
    functions = runpy.run_path(str(ROOT / ".ci" / "setup_environment.py"))
    functions["install"].__globals__.update(ROOT=str(tmp_path), VENV=str(tmp_path))
    return functions


def python_that(folder: Path, *, ends: int) -> None:
    program = folder / "bin" / "python"
    program.write_text(f"#!/bin/sh\n{NOISE}\necho 'ERROR: no such package'\nexit {ends}\n")
    program.chmod(0o755)


def test_pip_output_is_shown_on_failure(
    script: dict[str, Any], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    python_that(tmp_path, ends=1)
    with pytest.raises(SystemExit):
        script["install"]("requirements.lock")
    output = capfd.readouterr()
    assert "ERROR: no such package" in output.err
    assert "WARNING: warning 47" in output.err
    assert output.err.splitlines()[-1].startswith("The packages in requirements.lock could not be installed")
    assert not (tmp_path / "installed-requirements.lock").exists()
