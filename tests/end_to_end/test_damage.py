"""Damaged files of var/: each refused in one sentence by the real command, and left as they were found.

A start of the command takes seconds, so one start meets all files that came to harm in one way: it says a sentence for each.
`tests/management/test_varfiles.py` damages one file at a time.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from grid.core.data_files import SECRET_KEY, ManagedFile, damages
from grid.management.varfiles import KEPT_FILES
from tests.end_to_end.grid import ROOT, Grid
from tests.support.damage import DAMAGES, as_a_usual_user, noticed, state
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

# Not left by a run as a user starts it: written by the sandbox when it runs alone, or with other options.
_NOT_OF_A_RUN = {
    "cluster/kubeconfig",
    "cluster/images",
    "cluster/machine/metrics-server.crt",
    "cluster/machine/metrics-server.key",
}


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What a run leaves that was killed: also the databases' logs, which a clean end takes away."""
    grid = Grid(tmp_path_factory.mktemp("damage") / "var")
    grid.start()
    try:
        wait_until(lambda: (grid.var / "cluster/machine/nodes").is_dir(), 30, "nodes")
        wait_until(lambda: len(grid.kubectl("get", "nodes", "-o", "name").split()) == 3, 60, "the first nodes")
        assert damages(grid.var, KEPT_FILES) == [], "found while it runs"
    finally:
        grid.pull_the_plug()
    for folder in ("images", "cluster/machine/volumes"):  # made with the first execution
        (grid.var / folder).mkdir(exist_ok=True)
    yield grid.var


@pytest.fixture
def var(intact: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(intact, tmp_path / "var", symlinks=True))


def test_run_files_and_rows_match_one_to_one(intact: Path) -> None:
    names = [str(path.relative_to(intact)) for path in intact.rglob("*")]
    unknown = [name for name in names if not any(kept.covers(name) for kept in KEPT_FILES)]
    assert unknown == [], "add a row to grid/management/varfiles.py or grid/sandbox/data_files.py"
    idle = [kept.name for kept in KEPT_FILES if not any(kept.covers(name) for name in names)]
    assert set(idle) <= _NOT_OF_A_RUN


def test_files_of_a_killed_run_are_not_damaged(intact: Path) -> None:
    assert damages(intact, KEPT_FILES) == []


@pytest.mark.parametrize("damage", ["garbage", "unreadable"])
def test_damage_is_reported_in_a_sentence_and_left_alone(var: Path, damage: str) -> None:
    harmed = [kept for kept in KEPT_FILES if damage in noticed(kept) and kept.name not in _NOT_OF_A_RUN]
    harmed = [kept for kept in harmed if not kept.is_folder and kept is not SECRET_KEY]
    for kept in harmed:
        DAMAGES[damage](path_of(var, kept))
    before = state(var)
    answer = run("up", var, "--port", "1")
    assert answer.returncode == 1
    sentences = answer.stderr.removeprefix("CommandError: ").splitlines()
    assert len(sentences) == len(harmed), answer.stderr
    for kept in harmed:
        (sentence,) = [sentence for sentence in sentences if sentence.startswith(f"{path_of(var, kept)}, ")]
        assert kept.holds in sentence and kept.advice in sentence and sentence.endswith(".")
    assert state(var) == before


@pytest.mark.parametrize(("command", "name"), [("web", "grid.sqlite3"), ("controller", "secret-key")])
def test_the_programs_refuse_too_when_they_are_started_alone(var: Path, command: str, name: str) -> None:
    DAMAGES["unreadable"](var / name)
    answer = run(command, var)
    assert answer.returncode == 1
    assert len(answer.stderr.strip().splitlines()) == 1, answer.stderr
    assert str(var / name) in answer.stderr


def test_embedded_cluster_reports_damage_in_a_sentence_too(var: Path) -> None:
    damaged = var / "cluster" / "cluster.sqlite3"
    DAMAGES["cut"](damaged)
    answer = run("sandbox", var, "--data", str(var / "cluster"), "--port", "0")
    assert answer.returncode == 1
    assert len(answer.stderr.strip().splitlines()) == 1, answer.stderr
    assert str(damaged) in answer.stderr


def test_web_server_without_database_does_not_create_one(tmp_path: Path) -> None:
    answer = run("web", tmp_path)
    assert answer.returncode == 1
    assert answer.stderr.startswith(f"CommandError: There is no database at {tmp_path / 'grid.sqlite3'}: make one")
    assert list(tmp_path.iterdir()) == []


def test_lost_cache_is_made_anew(intact: Path, tmp_path: Path) -> None:
    grid = Grid(Path(shutil.copytree(intact, tmp_path / "var")))
    for kept in KEPT_FILES:
        path = grid.var / kept.name
        if kept.made_anew and path.exists():
            DAMAGES["garbage"](path)
    (grid.var / "demo-users.json").unlink()
    grid.start()
    assert "demo-users.json, which holds the first passwords, is gone" in grid.output
    grid.interrupt()


def path_of(var: Path, kept: ManagedFile) -> Path:
    return sorted(var.glob(kept.name))[0] if "*" in kept.name else var / kept.name


def run(command: str, var: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", command, *arguments],
        cwd=ROOT,
        env=Grid(var, port=1).environment(),
        capture_output=True,
        text=True,
        timeout=60,
        preexec_fn=as_a_usual_user,
    )
