"""What an execution asks of the executor, what it remembers between its steps, and its last words."""

import argparse
import errno
import json
import os
import stat
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

GONE, UNUSABLE = 3, 4  # exit codes: what was asked for is not there; the repository cannot be used now


class Missing(Exception):
    """The branch or commit does not exist."""


class TooLarge(Exception):
    """The repository may not grow so far."""


Known = dict[str, tuple[str, str]]  # by the path under which it is saved: "<mode> <object>", and the stamp


@dataclass(frozen=True)
class Task:
    """What is asked for: the places, where the files begin, and the execution's name. Without a branch, the work goes to its own.
    `results` is the folder, below the files, whose content is kept apart for this execution, at most so many bytes; "" for none."""

    repository: Path
    work: Path
    state: Path
    report: Path
    home: Path
    name: str
    branch: str = ""
    commit: str = ""
    # The branch to take where a remote repository has `branch` no more, as nobody has asked for that one.
    fallback: str = ""
    results: str = ""
    results_bytes: int = 0
    author: str = ""
    title: str = ""
    grace: float = 30.0
    seconds: float = 60.0
    end_note: Path | None = None  # a file that says when the program has ended, instead of a signal
    only_prepare: bool = False
    patience: float = 0.0
    largest: int = 0  # GiB that the repository on the volume may have; 0 for no bound
    remote: str = ""
    secret: Path = Path("/nonexistent")

    @property
    def source(self) -> str:
        return self.remote or str(self.repository)

    @property
    def git(self) -> Path:
        return self.state / "git"

    @property
    def ready(self) -> Path:
        return self.state / "ready"

    @property
    def known(self) -> Path:
        """What was checked out: by path git's mode and object, and a stamp by which an unchanged file is known."""
        return self.state / "known"


def parse_task(arguments: Sequence[str] | None) -> Task:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("repository", "work", "state", "report", "home"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--name", required=True)
    for name in ("branch", "commit", "fallback", "remote", "results"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--secret", type=Path, default=Path("/nonexistent"))
    for name in ("largest", "results-bytes"):
        parser.add_argument(f"--{name}", type=int, default=0)
    for name in ("grace", "seconds"):
        parser.add_argument(f"--{name}", type=float, required=True)
    parser.add_argument("--told", type=Path, dest="end_note")
    parser.add_argument("--only-prepare", action="store_true")
    parser.add_argument("--patience", type=float, default=0.0)
    given = vars(parser.parse_args(arguments))
    return Task(**given, author=os.environ.get("GRID_AUTHOR", ""), title=os.environ.get("GRID_TITLE", ""))


def write_state(path: Path, content: dict[str, Any]) -> None:
    unfinished = path.with_name(f"{path.name}.unfinished")
    unfinished.write_text(json.dumps(content))
    unfinished.replace(path)


_LONGEST_REPORT = 4000


def short_reason(error: Exception, task: Task) -> str:
    """Return git's last line; of a server's answer all of them, without the secret: there the last one says the least."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    text = _without_credentials(" ".join(lines)) if task.remote else lines[-1]
    with suppress(OSError):
        token = (task.secret / "token").read_text(errors="replace").strip()
        text = text.replace(token, "***") if token else text
    return text[:500].encode(errors="replace").decode()


def _without_credentials(text: str) -> str:
    """Return the text without what is before the @ of a URL; none of ours has any, but a server may have said one."""
    first, *rest = text.split("//")
    for part in rest:
        name, at, after = part.partition("@")
        hides = at and "/" not in name and not any(letter.isspace() for letter in name)
        first += f"//{after if hides else part}"
    return first


def tell(task: Task, code: int, **report: Any) -> int:
    if task.remote:
        report["remote"] = True
    longest = 500
    while len(text := json.dumps({"code": code, **_cut(report, longest)})) > _LONGEST_REPORT:
        longest //= 2
    sys.stdout.write(f"{text}\n")
    try:
        with os.fdopen(_open_report(task.report), "w") as file:
            file.write(text)
    except OSError as error:
        sys.stderr.write(f"the report was not written: {error}\n")
    return code


def _cut(report: Mapping[str, Any], longest: int) -> dict[str, Any]:
    """Return the report with sentences of at most so many characters: half a report could not be read."""
    sentences = ("problem", "results_problem", "left_out_names")
    return {name: value[:longest] if name in sentences else value for name, value in report.items()}


def _open_report(path: Path) -> int:
    """Return a descriptor of the file for its last words, which is empty then. Raise OSError where it is no file of its own. It is a mount,
    so no other can be put in its place."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            raise OSError(errno.EINVAL, "it is no file of its own")
        os.ftruncate(file, 0)
    except OSError:
        os.close(file)
        raise
    return file
