"""The limits of what the dashboard starts to ask a remote repository: time, what is read, memory, and disk. No server is needed."""

import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from grid.diagnosis.remotetroubles import explain
from grid.files import remotes
from grid.files.remotes import Remote, RemoteCredentials, RemoteFailed
from grid.files.remoteurls import parse

ENVIRONMENT = {"PATH": os.environ["PATH"]}


@pytest.mark.parametrize(
    ("script", "seconds", "sentence"),
    [
        ("printf 12345678901; exec sleep 600", 60.0, "more than anybody would read"),
        ("exec sleep 600", 0.2, "did not answer in time"),
        ("exec >&- 2>&-; exec sleep 600", 0.2, "did not answer in time"),
    ],
)
def test_command_is_bounded_in_time_whatever_it_prints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, seconds: float, sentence: str
) -> None:
    monkeypatch.setattr(remotes, "_LONGEST_ANSWER", 10)
    with pytest.raises(RemoteFailed, match=sentence):
        remotes._run(["sh", "-c", script], ENVIRONMENT, tmp_path, seconds)


def test_talkative_server_ends_at_memory_limit_with_explanation(tmp_path: Path) -> None:
    greedy = [sys.executable, "-c", "import mmap; mmap.mmap(-1, 2**30)"]
    code, output = remotes._run(greedy, ENVIRONMENT, tmp_path, 60.0)
    assert (code, "Cannot allocate memory" in output) == (1, True)
    for text in (output, "fatal: Out of memory, realloc failed"):
        assert "more memory than it may have" in explain(text)
    assert remotes._run(greedy, ENVIRONMENT, tmp_path, 60.0, 4096)[0] == 0


def test_oversized_bundle_is_refused_with_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Remote(parse("https://git.example.com/a"), RemoteCredentials(token="t"), lambda address: False)
    bundle = tmp_path / "job-a.bundle"
    bundle.touch()
    os.truncate(bundle, 201 * 2**20)
    with pytest.raises(
        RemoteFailed, match=r"201 MiB, and 200 MiB is the most .* Ask an operator to push job-a\.bundle"
    ):
        made.push_bundle(bundle, "job-a")
    os.truncate(bundle, 100 * 2**20)
    monkeypatch.setattr("shutil.disk_usage", lambda place: SimpleNamespace(free=150 * 2**20))
    with pytest.raises(RemoteFailed, match="not enough free disk space"):
        made.push_bundle(bundle, "job-a")


def test_leftovers_of_killed_process_are_removed_unless_in_use(tmp_path: Path) -> None:
    for name in ("compute-grid-remote-old", "compute-grid-remote-new", "another"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "token").write_text("secret")
    (tmp_path / "compute-grid-remote-link").symlink_to(tmp_path / "another")
    for name in ("compute-grid-remote-old", "another"):
        os.utime(tmp_path / name, (0, 0))
    remotes._remove_stale_folders(tmp_path, (tmp_path / "compute-grid-remote-new").stat().st_mtime + 60)
    assert sorted(place.name for place in tmp_path.iterdir()) == [
        "another",
        "compute-grid-remote-link",
        "compute-grid-remote-new",
    ]
    assert (tmp_path / "another" / "token").exists()
