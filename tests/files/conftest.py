"""Runs of the executor on real repositories; `Run.program` is where a test plays the user's program."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from grid.files import executor
from grid.files.executor import Task
from grid.files.repositories import Repository
from grid.models import Project
from tests.conftest import People, client_of
from tests.executions.executing import make_project
from tests.support.pages import clock as clock, cluster as cluster, patient as patient, runtime as runtime
from tests.support.shop import shop as shop
from tests.support.waiting import wait_until


@dataclass
class Run:
    task: Task

    @property
    def work(self) -> Path:
        return self.task.work

    def prepare(self) -> "Run":
        executor.prepare(self.task)
        return self

    def write(self, path: str, content: str | bytes) -> "Run":
        """Write a file of the working copy, and the folders above it."""
        place = self.work / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content.encode() if isinstance(content, str) else content)
        return self

    def save(self) -> dict[str, Any]:
        return executor.save(self.task)

    def start(self, *prefix: str) -> subprocess.Popen[bytes]:
        """Start it as the kubelet does, under another command if one is given, and return when the files are there or it has ended."""
        process = self.start_unready(*prefix)
        ready = self.task.ready
        wait_until(lambda: (ready.exists() and _catches_sigterm(process.pid)) or process.poll() is not None)
        return process

    def start_unready(self, *prefix: str) -> subprocess.Popen[bytes]:
        places = ("repository", "work", "state", "report", "home", "name", "branch", "commit", "grace", "seconds")
        arguments = [f"--{name}={getattr(self.task, name)}" for name in places]
        arguments += [f"--{name}={getattr(self.task, name)}" for name in ("fallback", "remote", "secret")]
        arguments += [f"--told={self.task.end_note}"] if self.task.end_note else []
        arguments += ["--only-prepare", f"--patience={self.task.patience}"] if self.task.only_prepare else []
        environment = {"PATH": os.environ["PATH"], "GRID_AUTHOR": self.task.author, "GRID_TITLE": self.task.title}
        environment |= {name: os.environ[name] for name in ("GIT_SSL_CAINFO",) if name in os.environ}
        return subprocess.Popen(
            [*prefix, sys.executable, "-I", str(Path(executor.__file__).parent), *arguments], env=environment
        )

    def end(self, process: subprocess.Popen[bytes]) -> dict[str, Any]:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        return self.report()

    def report(self) -> dict[str, Any]:
        return dict(json.loads(self.task.report.read_text()))


def _catches_sigterm(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    caught = int(status.partition("SigCgt:")[2].split()[0], 16)
    return bool(caught >> (signal.SIGTERM - 1) & 1)


Runs = Callable[..., Run]
ReplaceGit = Callable[[str], None]


@pytest.fixture
def volume(settings: Settings, tmp_path: Path) -> Path:
    """Where the repositories of projects are."""
    settings.REPOSITORIES = str(tmp_path / "volume")
    return tmp_path / "volume"


@pytest.fixture
def project(people: People, volume: Path) -> Project:
    """A project with its files in Git, in whose repository is nothing yet."""
    project = make_project(people.owner, people.teammate)
    project.files = Project.Files.GIT
    project.save()
    return project


@pytest.fixture
def owner(people: People, project: Project) -> Client:
    return client_of(people.owner)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "volume" / "alpha.git")
    made.create()
    return made


@pytest.fixture
def runs(tmp_path: Path, repository: Repository) -> Runs:
    """Makes runs with working copies of their own."""
    made: list[Run] = []

    def make(**changed: Any) -> Run:
        name = f"job-{'abcdefgh'[len(made)]}"
        place = tmp_path / name
        for folder in ("work", "state", "home"):
            (place / folder).mkdir(parents=True)
        task = Task(
            repository=repository.path,
            work=place / "work",
            state=place / "state",
            report=place / "report",
            home=place / "home",
            name=name,
            branch="main",
            author="alice",
            title="Train",
            seconds=0.5,
        )
        made.append(Run(replace(task, **changed)))
        return made[-1]

    return make


@pytest.fixture
def read(repository: Repository) -> Callable[[str, str], str | None]:
    """Returns what a file of a branch says; None where there is none."""

    def text(path: str, branch: str = "main") -> str | None:
        commit = repository.resolve(branch)
        entry = repository.entry(commit, path) if commit else None
        return repository.head_of(entry, 1000).decode() if entry else None

    return text


@pytest.fixture
def replace_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ReplaceGit:
    """Puts a shell script in the place of git."""

    def put(script: str) -> None:
        program = tmp_path / "bin" / "git"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(program.parent), prepend=":")

    return put


def see_end_of(pid: str) -> None:
    """Wait until a process that was killed is gone, or a zombie: a kill takes effect when the machine has time for it."""
    wait_until(lambda: not _is_alive(pid))


def _is_alive(pid: str) -> bool:
    try:
        return "(zombie)" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
