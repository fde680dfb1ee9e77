"""Whether `make run` puts an nginx in front of workspaces and apps."""

from pathlib import Path

import pytest

from grid.management.commands import up


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder in which programs are found."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(up, "SYSTEM_PATH", str(tmp_path / "sbin"))
    monkeypatch.delenv("GRID_FRONT_IMAGE", raising=False)
    return tmp_path


def test_there_is_none_where_the_machine_has_no_nginx(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert up._front_image() == ""
    monkeypatch.setenv("GRID_FRONT_IMAGE", "compute-grid/nginx:1")
    assert up._front_image() == ""


def test_nginx_is_found_in_system_programs_and_optional(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (programs / "sbin").mkdir()
    (programs / "sbin" / "nginx").touch(0o755)
    assert up._front_image() == "compute-grid/nginx:1"
    monkeypatch.setenv("GRID_FRONT_IMAGE", "")
    assert up._front_image() == ""
