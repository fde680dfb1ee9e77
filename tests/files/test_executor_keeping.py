"""What the executor keeps when it cannot save, and whose repositories it gives back."""

import stat
import subprocess
import tarfile
from pathlib import Path

import pytest

from grid.files.executor import saving
from grid.files.repositories import Repository
from tests.files.conftest import Run, Runs
from tests.files.test_executor import Read, git_init


def authors(repository: Repository) -> list[str]:
    command = ["git", f"--git-dir={repository.path}", "log", "--format=%an <%ae>", "main"]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout.splitlines()


def copied(run: Run, folder: Path) -> list[str]:
    with tarfile.open(folder / f"{run.task.name}.tar.gz") as archive:
        return sorted(file.name for file in archive if file.isfile())


# --- Whatever fails before the push ---


def test_uncommittable_files_are_copied_to_home(runs: Runs) -> None:
    run = runs()
    process = run.start()
    run.write("a", "not lost")
    (run.task.git / "HEAD").unlink()
    report = run.end(process)
    assert (process.returncode, report["kept"]) == (0, "home")
    assert "could not be saved: fatal: not a git repository" in report["problem"]
    assert copied(run, run.task.home / "unpushed-files") == ["./a"]


def test_without_home_the_copy_is_beside_the_branches(runs: Runs, repository: Repository) -> None:
    run = runs().prepare().write("a", "not lost")
    (run.task.git / "HEAD").unlink()
    (run.task.home / "unpushed-files").write_text("in the way")
    assert run.save()["kept"] == "copy"
    assert copied(run, repository.path / "unpushed") == ["./a"]
    assert repository.unpushed() == []


def test_unreadable_start_note_ends_in_a_report(runs: Runs) -> None:
    run = runs()
    process = run.start()
    run.write("a", "not lost")
    run.task.ready.write_text("")  # as a full disk leaves it
    assert run.end(process)["kept"] == "home"


def test_push_is_reported_when_executor_disk_is_full(runs: Runs, read: Read, monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs().prepare().write("a", "1")

    def full(*_: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr(saving, "write_state", full)
    assert run.save()["branch"] == "main"
    assert read("a") == "1"


def test_unwritable_index_makes_no_empty_commit(runs: Runs) -> None:
    run = runs().prepare().write("a", "not lost")
    (run.task.git / "index.lock").touch()
    report = run.save()
    assert (report["ended"], report["kept"]) == ("", "home")
    run.prepare()  # the lock is of a process that is gone
    assert run.save()["branch"] == "main"


def test_bundle_folder_is_open_to_group_of_dashboard(runs: Runs, repository: Repository) -> None:
    run = runs().prepare().write("a", "1")
    (repository.path / "refs" / "heads" / "main.lock").touch()
    assert run.save()["kept"] == "repository"
    assert stat.S_IMODE((repository.path / "unpushed").stat().st_mode) == 0o2770


# --- Who is named ---


@pytest.mark.parametrize("name", ["...", "<>", ".alice"])
def test_author_name_shortened_by_git_stays_distinct(runs: Runs, repository: Repository, name: str) -> None:
    run = runs(author=name).prepare().write("a", "1")
    assert run.save()["branch"] == "main"
    (author,) = authors(repository)
    assert "<alice@" not in author


# --- Repositories inside the files ---


def test_nested_repository_is_returned_only_to_its_maker(runs: Runs) -> None:
    run = runs().prepare()
    git_init(run.work / "sub")
    run.save()
    other = runs(author="bob").prepare()
    assert [path.name for path in (other.work / "sub").iterdir()] == [".git.kept"]
    assert (runs().prepare().work / "sub" / ".git" / "HEAD").exists()


def test_nested_repository_changed_by_others_is_not_returned(runs: Runs) -> None:
    first = runs().prepare()
    git_init(first.work / "sub")
    first.save()
    meanwhile, other = runs().prepare(), runs(author="bob").prepare()
    other.write("sub/.git.kept/config", "[core]\nfsmonitor = touch /tmp/sprung\n")
    other.save()
    meanwhile.write("a", "merged with it")
    assert meanwhile.save()["branch"] == "main"
    assert not (runs().prepare().work / "sub" / ".git").exists()


def test_saving_moves_nothing_and_saves_a_repository_beside_anothers(runs: Runs, read: Read) -> None:
    first = runs(author="bob").prepare()
    git_init(first.work / "sub")
    first.save()
    run = runs().prepare().write("sub/.git", "gitdir: elsewhere\n").write(".GIT", "a file\n")
    for _ in range(2):
        assert run.save()["branch"] == "main"
    assert sorted(path.name for path in (run.work / "sub").iterdir()) == [".git", ".git.kept"]
    assert read("sub/.git.kept.kept") == "gitdir: elsewhere\n"
    assert (read("sub/.git.kept/HEAD") or "").startswith("ref: ")
    assert read(".GIT.kept") == "a file\n"


def test_repository_beyond_bound_keeps_changes_in_home(
    runs: Runs, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = runs(largest=1).prepare().write("a", "1")
    assert first.save()["branch"] == "main"
    monkeypatch.setattr(saving, "size_of", lambda folder: 2**30 * 3 // 4)
    run = runs(largest=1).prepare().write("a", "2")
    report = run.save()
    assert (report["branch"], report["kept"]) == ("", "home")
    assert "would have 1.5 GiB, and may have 1 GiB. Ask an admin" in report["problem"]
    assert (run.task.home / "unpushed-files" / f"{run.task.name}.bundle").is_file()
    assert list(repository.unpushed()) == []
