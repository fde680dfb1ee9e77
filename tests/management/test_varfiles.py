"""Files of var/: damaged or of an earlier version, each is named in a sentence and left; logs are whole lines, and bounded."""

import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from django.conf import settings

from grid.core.data_files import SECRET_KEY, ManagedFile, damages, lack_of_room
from grid.management.supervisor import LogFile
from grid.management.varfiles import KEPT_FILES
from grid.sandbox.data_files import KEPT_FILES as CLUSTER_FILES
from tests.support.damage import DAMAGES, as_a_usual_user, noticed, state
from tests.support.smalldisk import fill
from tests.support.varfolder import make_var

# Not left by `make run`.
_ELSEWHERE = (
    "cluster/kubeconfig",
    "cluster/images",
    "cluster/machine/metrics-server.crt",
    "cluster/machine/metrics-server.key",
)
_CASES = [
    pytest.param(kept, damage, id=f"{kept.name}-{damage}")
    for kept in KEPT_FILES
    if kept.name not in _ELSEWHERE
    for damage in noticed(kept)
    if damage != "unreadable"
]


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_var(tmp_path_factory.mktemp("intact") / "var")


@pytest.fixture
def var(intact: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(intact, tmp_path / "var"))


def test_product_files_have_no_damage(intact: Path) -> None:
    assert damages(intact, KEPT_FILES) == []


def test_looking_changes_nothing(var: Path) -> None:
    before = state(var)
    damages(var, KEPT_FILES)
    for name in ("grid.sqlite3", "cluster/cluster.sqlite3"):  # after an end in order there is no log
        (var / f"{name}-wal").unlink()
        (var / f"{name}-shm").unlink()
    damages(var, KEPT_FILES)
    assert state(var) == {name: what for name, what in before.items() if not name.endswith("-wal")} | {
        "cluster": "not a file"
    }


@pytest.mark.parametrize(("kept", "damage"), _CASES)
def test_damaged_file_is_reported_in_a_single_sentence(var: Path, kept: ManagedFile, damage: str) -> None:
    path = sorted(var.glob(kept.name))[0]
    DAMAGES[damage](path)
    (sentence,) = damages(var, KEPT_FILES)
    assert sentence.startswith(f"{path}, which holds {kept.holds}, ")
    assert kept.advice in sentence and sentence.endswith(".") and "\n" not in sentence


def test_unreadable_file_is_reported_with_its_needed_owner(var: Path) -> None:
    """In a process of its own, because root may read everything."""
    harmed = [kept for kept in KEPT_FILES if "unreadable" in noticed(kept) and kept.name not in _ELSEWHERE]
    for kept in harmed:
        DAMAGES["unreadable"](sorted(var.glob(kept.name))[0])
    code = (
        "import sys; from pathlib import Path; from grid.core.data_files import damages;"
        "from grid.sandbox.data_files import KEPT_FILES, ManagedFile; import grid.core.data_files as k;"
        "print(*damages(Path(sys.argv[1]) / 'cluster', KEPT_FILES), *damages(Path(sys.argv[1]), [k.SECRET_KEY]), sep='\\n')"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code, str(var)], capture_output=True, text=True, preexec_fn=as_a_usual_user, check=True
    )
    expected = [kept for kept in harmed if kept is SECRET_KEY or kept.name.startswith("cluster/")]
    assert len(answer.stdout.splitlines()) == len(expected)
    for line in answer.stdout.splitlines():
        assert (
            "cannot be read (Permission denied): give it to the user who starts this (chown, chmod u+rw), or " in line
        )


def test_newer_log_is_inspected_and_foreign_older_database_refused(var: Path) -> None:
    os.truncate(var / "grid.sqlite3-wal", (var / "grid.sqlite3-wal").stat().st_size - 100)
    assert damages(var, KEPT_FILES) == [], "a log that is cut short is what a crash leaves"
    for end in ("", "-wal", "-shm"):
        (var / f"grid.sqlite3{end}").unlink()
    with sqlite3.connect(var / "grid.sqlite3") as other:
        other.execute("CREATE TABLE recipes (name TEXT)")
    other.close()
    (sentence,) = damages(var, KEPT_FILES)
    assert "grid.sqlite3" in sentence and "is a database of another program" in sentence


def test_a_key_of_another_authority_is_noticed(var: Path, tmp_path: Path) -> None:
    other = make_var(tmp_path / "other")
    shutil.copyfile(other / "cluster" / "ca.crt", var / "cluster" / "ca.crt")
    (sentence,) = damages(var / "cluster", CLUSTER_FILES)
    assert sentence.startswith(str(var / "cluster" / "server.pem")) and "was not signed by ca.crt" in sentence


def test_disk_without_space_is_reported_even_without_folder(tmp_path: Path) -> None:
    assert lack_of_room(tmp_path / "not" / "yet", 1) == ""
    free = shutil.disk_usage(tmp_path).free
    sentence = lack_of_room(tmp_path / "not" / "yet", free + 2**40)
    assert sentence.startswith(f"The disk of {tmp_path / 'not' / 'yet'} is full (")
    assert lack_of_room(Path("/proc/compute-grid"), 2**20) == "", "no disk at all"


@pytest.fixture
def former(tmp_path: Path, first: str) -> Path:
    """What the first migration of the versions before left, as far as anybody looks; the second was written anew once."""
    path = tmp_path / "grid.sqlite3"
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute(
            "CREATE TABLE django_migrations (id INTEGER PRIMARY KEY, app varchar(255), name varchar(255), applied datetime)"
        )
        for app, name in (("auth", "0001_initial"), ("grid", first)):
            database.execute(
                "INSERT INTO django_migrations (app, name, applied) VALUES (?, ?, '2026-11-01')", (app, name)
            )
    database.close()
    return path


@pytest.mark.slow
@pytest.mark.parametrize(("first", "command"), [("0001_initial", "web"), ("0001_foundation", "up")])
def test_database_of_earlier_version_is_refused_with_advice(former: Path, command: str) -> None:
    before = hashlib.sha256(former.read_bytes()).digest()
    answer = subprocess.run(
        [sys.executable, "manage.py", command],
        cwd=settings.BASE_DIR,
        env=os.environ
        | {
            "DJANGO_SETTINGS_MODULE": "grid.settings",
            "GRID_VAR": str(former.parent),
            "GRID_DEMO": "1",
            "DATABASE_URL": f"sqlite:///{former}",
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert answer.returncode == 1
    assert f"The database {former} was created by an earlier version of Compute Grid" in answer.stderr
    assert "docs/repair.md says how to start afresh" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert hashlib.sha256(former.read_bytes()).digest() == before


def written(path: Path) -> list[str]:
    """Oldest first."""
    older = sorted(path.parent.glob(f"{path.name}.*"), key=lambda file: -int(file.suffix[1:]))
    return [line for file in [*older, path] if file.exists() for line in file.read_text().splitlines()]


def printed(log: LogFile, text: bytes) -> None:
    """As a program that prints it and ends."""
    theirs = os.dup(log.input)
    log.start()
    with os.fdopen(theirs, "wb") as output:
        output.write(text)
    log.close(within=60)


def test_log_rotation_loses_and_tears_no_line(tmp_path: Path) -> None:
    path = tmp_path / "log" / "web.log"
    log = LogFile(path, file_bytes=10_000, older_files=20)
    code = "for n in range(3000): print(f'line {n:05} ' + 'x' * 40, flush=n % 7 == 0)"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=log.input)
    log.start()
    process.wait()
    log.close(within=60)
    assert written(path) == [f"line {number:05} {'x' * 40}" for number in range(3000)]
    assert max(file.stat().st_size for file in path.parent.iterdir()) <= 10_000


def test_only_the_newest_files_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "web.log"
    log = LogFile(path, file_bytes=1_000, older_files=2)
    printed(log, b"".join(b"%05d\n" % number for number in range(5_000)))
    assert {file.name for file in tmp_path.iterdir()} == {"web.log", "web.log.1", "web.log.2"}
    assert written(path)[-1] == "04999"
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) <= 3_000


def test_full_disk_does_not_block_logging_and_lines_return(disk: Path) -> None:
    path = disk / "log" / "web.log"
    log = LogFile(path)
    ballast = fill(disk)
    printed(log, b"lost or late\n" * 20_000)
    ballast.unlink()
    printed(LogFile(path), b"there is room again\n")
    assert written(path)[-1] == "there is room again"
