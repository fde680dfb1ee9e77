"""The executor as two ordinary containers: one that only prepares, and one that is told of the program's end by a file."""

import signal
from pathlib import Path

from grid.files.executor import GONE, UNUSABLE
from grid.files.repositories import Repository
from tests.files.conftest import Runs
from tests.files.test_executor import Read
from tests.support.waiting import wait_until


def test_missing_branch_or_commit_ends_setup_step_at_once(runs: Runs) -> None:
    runs().prepare().write("a", "1").save()
    run = runs(only_prepare=True, branch="other", patience=300)
    assert run.start().wait(60) == GONE
    assert run.report()["problem"] == "The project's repository has no branch other."
    run = runs(only_prepare=True, branch="", commit="0" * 40, patience=300)
    assert run.start().wait(60) == GONE
    assert "no commit" in run.report()["problem"]


def test_a_repository_that_cannot_be_used_is_waited_for(runs: Runs, repository: Repository) -> None:
    settings = repository.path / "config"
    settings.rename(repository.path / "away")
    settings.write_text("[damaged")
    run = runs(only_prepare=True)
    assert run.start().wait(60) == UNUSABLE  # without patience
    patient = runs(only_prepare=True, patience=600)
    process = patient.start_unready()
    wait_until(patient.task.git.exists)  # it has begun
    assert process.poll() is None
    (repository.path / "away").replace(settings)
    assert process.wait(60) == 0
    assert (patient.task.ready.exists(), patient.task.report.exists()) == (True, False)


def test_executor_saves_and_ends_only_on_annotation(runs: Runs, read: Read, tmp_path: Path) -> None:
    end_note = tmp_path / "told"
    end_note.write_text("")  # as the kubelet writes an annotation that is not there
    run = runs(end_note=end_note)
    run.prepare()
    process = run.start()
    run.write("a", "1")
    (run.task.state / "stopping").touch()  # of no meaning here
    assert process.poll() is None
    assert read("a") is None
    end_note.write_text("true")
    assert process.wait(60) == 0
    assert run.report()["branch"] == "main"
    assert read("a") == "1"


def test_stop_waits_for_program_and_then_saves(runs: Runs, read: Read, tmp_path: Path) -> None:
    run = runs(end_note=tmp_path / "never", grace=1.5)
    run.prepare()
    process = run.start()
    process.send_signal(signal.SIGTERM)  # reaches the program at the same time
    run.write("late", "1")
    assert process.wait(60) == 0
    assert read("late") == "1"


def test_executor_killed_while_saving_saves_after_restart(runs: Runs, read: Read, tmp_path: Path) -> None:
    end_note = tmp_path / "told"
    run = runs(end_note=end_note)
    run.prepare()
    process = run.start()
    run.write("a", "1")
    (run.task.git / "index.lock").touch()
    process.kill()
    process.wait()
    end_note.write_text("true")
    assert run.start().wait(60) == 0
    assert read("a") == "1"
