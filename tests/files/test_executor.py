"""What the executor fetches and saves on real repositories, as a sidecar and as two ordinary containers."""

import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from grid.files.executor import GONE, UNUSABLE, saving
from grid.files.repositories import Repository
from tests.files.conftest import Runs
from tests.support.waiting import wait_until

Read = Callable[..., str | None]


def names(folder: Path) -> list[str]:
    return sorted(str(place.relative_to(folder)) for place in folder.rglob("*") if not place.is_dir())


def git_init(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    who = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    for arguments in (("init", "-q"), (*who, "commit", "-q", "--allow-empty", "-m", "theirs")):
        subprocess.run(["git", "-C", str(folder), *arguments], check=True)


def test_a_second_run_sees_what_the_first_wrote(runs: Runs, repository: Repository) -> None:
    first = runs().prepare().write("data/a.txt", "1\n").write("run.sh", "#!/bin/sh\n")
    (first.work / "run.sh").chmod(0o755)
    report = first.save()
    assert report == {"began": "", "ended": repository.resolve("main"), "branch": "main"}
    second = runs().prepare()
    assert names(second.work) == ["data/a.txt", "run.sh"]
    assert os.access(second.work / "run.sh", os.X_OK)
    (second.work / "data" / "a.txt").unlink()
    again = second.save()
    assert again["began"] == report["ended"]
    assert names(runs().prepare().work) == ["run.sh"]
    last = repository.history(again["ended"], count=5)
    assert [(commit.author, commit.title) for commit in last] == [("alice", "Train")] * 2


def test_a_run_that_changes_nothing_makes_no_commit(runs: Runs, repository: Repository) -> None:
    run = runs().prepare()
    assert run.save()["ended"] == ""
    run.write("a", "1")
    commit = run.save()["ended"]
    assert runs().prepare().save() == {"began": commit, "ended": commit, "branch": "main"}
    assert len(repository.history(commit, count=5)) == 1


def test_runs_are_merged_and_conflict_goes_to_own_branch(runs: Runs, read: Read, repository: Repository) -> None:
    runs().prepare().write("a", "base\n").save()
    first, second, other = (runs().prepare() for _ in range(3))
    assert first.write("a", "first\n").save()["branch"] == "main"
    assert other.write("other", "1").save()["branch"] == "main"
    assert read("other") == "1"
    report = second.write("a", "second\n").save()
    assert report["branch"] == second.task.name
    assert report["ended"] == repository.resolve(second.task.name)
    assert (read("a"), read("a", second.task.name)) == ("first\n", "second\n")


def test_runs_that_push_at_once_lose_nothing(runs: Runs, read: Read) -> None:
    start = runs().prepare().write("base", "base")
    start.save()
    several = [runs() for _ in range(3)]
    processes = [run.start() for run in several]
    for run in several:
        (run.work / run.task.name).write_text(run.task.name)
    for process in processes:
        process.terminate()
    for run, process in zip(several, processes, strict=True):
        assert process.wait(60) == 0
        report = run.report()
        assert read(run.task.name, report["branch"]) == run.task.name


def test_run_starts_at_commit_and_pushes_to_own_branch(runs: Runs, read: Read) -> None:
    first = runs().prepare().write("a", "1")
    old = first.save()["ended"]
    first.write("a", "2")
    first.save()
    run = runs(branch="", commit=old).prepare()
    assert (run.work / "a").read_text() == "1"
    run.write("b", "from the old")
    report = run.save()
    assert (report["began"], report["branch"]) == (old, run.task.name)
    assert (read("a"), read("b"), read("b", run.task.name)) == ("2", None, "from the old")


def test_unpushable_commit_is_kept_and_pushed_again(runs: Runs, repository: Repository, read: Read) -> None:
    runs().prepare().write("a", "1").save()
    run = runs().prepare().write("b", "not lost")
    lock = repository.path / "refs" / "heads" / "main.lock"
    lock.touch()  # as somebody's killed process leaves it
    report = run.save()
    assert (report["kept"], report["branch"]) == ("repository", "")
    assert "could not be pushed" in report["problem"]
    lock.unlink()
    assert repository.unpushed() == [run.task.name]
    repository.push_again(run.task.name)
    assert read("b", run.task.name) == "not lost"
    assert repository.unpushed() == []


def test_without_the_repository_the_changes_are_kept_in_home(
    runs: Runs, repository: Repository, tmp_path: Path
) -> None:
    run = runs().prepare().write("b", "not lost")
    shutil.move(repository.path, tmp_path / "elsewhere")
    report = run.save()
    assert report["kept"] == "home"
    bundle = run.task.home / "unpushed-files" / f"{run.task.name}.bundle"
    copy = tmp_path / "copy"
    subprocess.run(["git", "clone", "-q", "-b", "kept", str(bundle), str(copy)], check=True)
    assert (copy / "b").read_text() == "not lost"


def test_killed_executor_restarts_without_touching_the_files(runs: Runs, read: Read) -> None:
    run = runs()
    process = run.start()
    run.write("a", "written before the kill")
    process.kill()
    process.wait(30)
    again = run.start()
    assert (run.work / "a").read_text() == "written before the kill"
    assert run.end(again)["branch"] == "main"
    assert read("a") == "written before the kill"


def test_a_checkout_that_was_cut_off_begins_anew(runs: Runs) -> None:
    runs().prepare().write("a", "1").save()
    run = runs()
    run.write("half", "of a file")
    run.task.git.mkdir()
    (run.task.git / "index.lock").touch()
    assert names(run.prepare().work) == ["a"]


def test_commit_made_before_a_kill_is_pushed_afterwards(runs: Runs, read: Read) -> None:
    run = runs().prepare().write("a", "1")
    saving._commit(run.task, "")
    run.prepare()
    assert run.save()["branch"] == "main"
    assert read("a") == "1"


def test_program_that_ignores_stop_is_saved_within_grace_period(runs: Runs, repository: Repository) -> None:
    run = runs(grace=0.0)
    process = run.start()
    run.write("a", "1")
    (run.task.state / "stopping").touch()
    while not repository.branches():
        assert process.poll() is None
    run.write("b", "2")
    report = run.end(process)
    assert report["ended"] == repository.resolve("main")
    assert {entry.name for entry in repository.folder(report["ended"], "")} == {"a", "b"}


def test_any_name_of_a_file_comes_back(runs: Runs) -> None:
    run = runs().prepare()
    hostile = ("-rf", "--help", "a\nb", "q\"uo'te", "$(id)", "ü", "a b", ":(top)x", "*", ".gitmodules", "x" * 200)
    for name in (*hostile, os.fsdecode(b"\xff\xfe")):
        (run.work / name).write_text("x")
    before = names(run.work)
    assert run.save()["branch"] == "main"
    assert names(runs().prepare().work) == before


def test_bytes_come_back_as_they_were_whatever_attributes_say(runs: Runs) -> None:
    run = runs().prepare().write(".gitattributes", "* text eol=lf ident filter=evil working-tree-encoding=UTF-16\n")
    run.write("a.txt", b"a\r\nb\n$Id$\n\x00\xff")
    run.save()
    assert (runs().prepare().work / "a.txt").read_bytes() == b"a\r\nb\n$Id$\n\x00\xff"


def test_links_are_kept_as_links_and_never_followed(runs: Runs, repository: Repository, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("of the machine")
    run = runs().prepare()
    (run.work / "out").symlink_to(secret)
    (run.work / "file").symlink_to(secret / "key")
    (run.work / "loop").symlink_to(".")
    commit = run.save()["ended"]
    entry = repository.entry(commit, "file")
    assert entry is not None
    assert entry.is_link
    assert repository.head_of(entry, 100) == os.fsencode(secret / "key")
    assert repository.entry(commit, "out/key") is None
    assert os.readlink(runs().prepare().work / "out") == str(secret)  # noqa: PTH115


def test_repositories_inside_the_files_come_back_whole(runs: Runs) -> None:
    run = runs().prepare()
    for folder in (run.work, run.work / "sub", run.work / "empty"):
        folder.mkdir(exist_ok=True)
        (folder / "file").write_text("x")
    git_init(run.work)
    git_init(run.work / "sub")
    subprocess.run(["git", "init", "-q", str(run.work / "empty")], check=True)
    assert run.save()["branch"] == "main"
    copy = runs().prepare().work
    assert (copy / "sub" / "file").read_text() == "x"
    log = subprocess.run(["git", "-C", str(copy / "sub"), "log", "--format=%s"], capture_output=True, check=True)
    assert log.stdout == b"theirs\n"
    # Its empty folders are in no commit, and it is a repository all the same.
    answer = subprocess.run(
        ["git", "-C", str(copy / "empty"), "rev-parse", "--git-dir"], capture_output=True, check=True
    )
    assert answer.stdout == b".git\n"


def test_program_continuing_after_save_gets_its_repositories_back(runs: Runs) -> None:
    run = runs().prepare()
    git_init(run.work / "sub")
    run.save()
    assert (run.prepare().work / "sub" / ".git" / "HEAD").exists()


def test_hooks_filters_and_commands_in_files_are_not_run(runs: Runs, tmp_path: Path) -> None:
    trap = tmp_path / "sprung"
    run = runs().prepare()
    git_init(run.work)
    for name in ("core.fsmonitor", "core.sshCommand", "core.editor", "filter.evil.clean", "filter.evil.smudge"):
        subprocess.run(["git", "-C", str(run.work), "config", name, f"touch {trap}; cat"], check=True)
    hook = run.work / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {trap}\n")
    hook.chmod(0o755)
    run.write(".gitattributes", "* filter=evil diff=evil merge=evil\n")
    run.write("a", "x")
    assert run.save()["branch"] == "main"
    runs().prepare()
    assert not trap.exists()


def test_unreadable_files_are_saved_too(runs: Runs, read: Read) -> None:
    run = runs()
    # Root reads what it has no right to; a pod's user does not.
    as_root = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--")
    process = run.start(*(as_root if os.geteuid() == 0 else ()))
    run.write("locked/a", "1")
    (run.work / "locked" / "a").chmod(0)
    (run.work / "locked").chmod(0)
    report = run.end(process)
    assert "left_out" not in report
    assert read("locked/a") == "1"


@pytest.mark.slow
def test_a_huge_file_is_saved_in_little_memory(runs: Runs, repository: Repository) -> None:
    run = runs(seconds=60.0)
    process = run.start()
    with (run.work / "huge").open("wb") as file:
        for _ in range(80):
            file.write(os.urandom(2**20))
    prefix = ["prlimit", f"--pid={process.pid}", f"--as={250 * 2**20}"]
    subprocess.run(prefix, check=True)
    report = run.end(process)
    assert report["branch"] == "main"
    assert repository.folder(report["ended"], "")[0].size == 80 * 2**20


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
    assert process.poll() is None
    assert read("a") is None
    end_note.write_text("true")
    assert process.wait(60) == 0
    assert run.report()["branch"] == "main"
    assert read("a") == "1"


@pytest.mark.parametrize("is_caught", [True, False])
def test_stop_waits_for_program_and_then_saves(runs: Runs, read: Read, tmp_path: Path, is_caught: bool) -> None:
    run = runs(end_note=tmp_path / "never", grace=1.5)
    run.prepare()
    process = run.start()
    if is_caught:
        process.send_signal(signal.SIGTERM)  # reaches the program at the same time
    else:
        (run.task.state / "stopping").touch()  # before the signal, which came too early
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
