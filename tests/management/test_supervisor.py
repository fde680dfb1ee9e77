"""The supervisor with real processes: all of its programs end with it, and nothing else does."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from grid.management.supervisor import StartFailed, SupervisedProgram, Supervisor, end_leftovers
from tests.support.waiting import wait_until

SLEEPER = "import signal,sys,pathlib,time; pathlib.Path(sys.argv[1]).write_text('up'); time.sleep(600)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {SLEEPER}"


def program(folder: Path, name: str, code: str, *, stop_seconds: float = 5.0) -> SupervisedProgram:
    flag = folder / f"{name}.up"
    return SupervisedProgram(
        name=name,
        arguments=[sys.executable, "-c", code, str(flag)],
        environment=dict(os.environ),
        log=folder / f"{name}.log",
        is_ready=flag.exists,
        start_seconds=60.0,
        stop_seconds=stop_seconds,
    )


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    supervisor = Supervisor(tmp_path / "processes.json")
    yield supervisor
    supervisor.stop()


@contextmanager
def watched(supervisor: Supervisor) -> Iterator[None]:
    watcher = threading.Thread(target=supervisor.watch)
    watcher.start()
    yield
    supervisor.request_stop()
    watcher.join()


def pid_of(folder: Path, name: str) -> int:
    entries = json.loads((folder / "processes.json").read_text() or "[]")
    return next((entry["pid"] for entry in entries if entry["name"] == name), 0)


def registered(folder: Path) -> dict[str, psutil.Process]:
    entries = json.loads((folder / "processes.json").read_text())
    return {entry["name"]: psutil.Process(entry["pid"]) for entry in entries}


def test_a_stop_ends_every_program(supervisor: Supervisor, tmp_path: Path) -> None:
    supervisor.start(program(tmp_path, "one", SLEEPER))
    supervisor.start(program(tmp_path, "two", SLEEPER))
    processes = registered(tmp_path)
    supervisor.stop()
    assert [name for name, process in processes.items() if process.is_running()] == []
    assert not (tmp_path / "processes.json").exists()


def test_a_program_that_ignores_the_stop_is_killed(supervisor: Supervisor, tmp_path: Path) -> None:
    supervisor.start(program(tmp_path, "stubborn", STUBBORN, stop_seconds=0.2))
    process = registered(tmp_path)["stubborn"]
    supervisor.stop()
    assert not process.is_running()


def test_ending_program_is_reported_while_another_is_awaited(supervisor: Supervisor, tmp_path: Path) -> None:
    never = SupervisedProgram(
        "cluster", [sys.executable, "-c", SLEEPER, os.devnull], {}, tmp_path / "c.log", lambda: False
    )
    ending = program(tmp_path, "web", "import sys; print('CommandError: port 1 is taken'); sys.exit(1)")
    with pytest.raises(StartFailed, match=r"^The web ended while starting: port 1 is taken$"):
        supervisor.start(never, ending)


def test_a_program_that_ends_by_itself_is_started_again(supervisor: Supervisor, tmp_path: Path) -> None:
    supervisor.start(program(tmp_path, "one", SLEEPER))
    first = registered(tmp_path)["one"]
    with watched(supervisor):
        first.kill()
        wait_until(lambda: pid_of(tmp_path, "one") not in (0, first.pid))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
def test_a_killed_supervisor_takes_its_programs_along(tmp_path: Path) -> None:
    code = (
        "from pathlib import Path; from tests.management.test_supervisor import *;"
        f"folder = Path({str(tmp_path)!r}); s = Supervisor(folder / 'processes.json');"
        "s.start(program(folder, 'one', SLEEPER)); s.watch()"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[2])
    try:
        register = tmp_path / "processes.json"
        wait_until(lambda: (tmp_path / "one.up").exists() and register.exists() and pid_of(tmp_path, "one") != 0)
        child = registered(tmp_path)["one"]
    finally:
        parent.kill()
        parent.wait()
    wait_until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


@pytest.mark.parametrize("moved", [0.0, 1.0, -1.0], ids=["", "the clock was set forward", "the clock was set back"])
def test_the_next_start_ends_what_was_left_behind(tmp_path: Path, moved: float) -> None:
    leftover = subprocess.Popen([sys.executable, "-c", SLEEPER, str(tmp_path / "up")], start_new_session=True)
    process = psutil.Process(leftover.pid)
    register = tmp_path / "processes.json"
    register.write_text(json.dumps([{"name": "web", "pid": leftover.pid, "created": process.create_time() + moved}]))
    reaper = threading.Thread(target=leftover.wait)  # here it is our child; either of the two may take its end in
    reaper.start()
    assert end_leftovers(register) == ["web"]
    reaper.join()
    assert not process.is_running()


def test_foreign_process_with_reused_id_is_left_alone(tmp_path: Path) -> None:
    register = tmp_path / "processes.json"
    register.write_text(json.dumps([{"name": "web", "pid": os.getpid(), "created": 1.0}]))
    assert end_leftovers(register) == []


@pytest.mark.parametrize("content", [b"", b"{", b"{}", b"[1]", b'[{"name": "web"}]', b"\xff\x00"])
def test_a_damaged_register_is_no_obstacle(tmp_path: Path, content: bytes) -> None:
    register = tmp_path / "processes.json"
    register.write_bytes(content)
    assert end_leftovers(register) == []
