"""Runs git: with our configuration and nobody else's, for a limited time, with the secret of a remote repository out of sight."""

import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from .task import Task

TRIES = 5
COMMAND_SECONDS = 1800.0
# For a command that begins near the end; the grace period leaves as much again as there was for all.
_LEAST_SECONDS = 30.0
_LONGEST_WORDS = 2**16  # bytes of what git says when it fails
_LEFT_OUT_BY_GIT = ".,:;<>\"\\' "  # at the ends of a name
CONFIGURATION = """\
[safe]
directory = *
[core]
hooksPath = /dev/null
fsmonitor = false
attributesFile = /dev/null
excludesFile = /dev/null
autocrlf = false
protectHFS = false
protectNTFS = false
bigFileThreshold = 16m
maxTreeDepth = 4096
compression = 1
[gc]
auto = 0
[receive]
autogc = false
[pack]
threads = 1
windowMemory = 32m
[protocol]
allow = never
[protocol "file"]
allow = always
[commit]
gpgSign = false
[http]
followRedirects = false
lowSpeedLimit = 1000
lowSpeedTime = 60
[fetch]
recurseSubmodules = false
[push]
recurseSubmodules = no
"""
# Git of no machine's or user's configuration, which asks nobody and takes paths for what they are.
ISOLATED = {
    "LC_ALL": "C.UTF-8",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_LITERAL_PATHSPECS": "1",
}
# Git asks it for the user name and for the password, each in a call of its own.
ASKPASS = """\
#!/bin/sh
case "$1" in Username*) exec cat {secret}/username ;; *) exec cat {secret}/token ;; esac
"""
SSH_COMMAND = (
    "ssh -F /dev/null -i {key} -o IdentitiesOnly=yes -o IdentityAgent=none -o BatchMode=yes -o UserKnownHostsFile={known} "
    "-o GlobalKnownHostsFile=/dev/null -o StrictHostKeyChecking=yes -o UpdateHostKeys=no -o ForwardAgent=no "
    "-o ClearAllForwardings=yes -o ConnectTimeout=30 -o ServerAliveInterval=15 -o ServerAliveCountMax=4"
)


class GitError(Exception):
    """Git refused or failed; the message is its own, and the exit code too."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def git(
    task: Task,
    *arguments: str,
    directory: Path | None = None,
    until: float | None = None,
    variables: Mapping[str, str] | None = None,
    given: bytes = b"",
    output: int = subprocess.PIPE,
    descriptors: Sequence[int] = (),
) -> str:
    """Return what git prints, unless that goes to the descriptor `output`; it reads `given`, and may open these `descriptors`. Raise
    GitError with its last words, and TimeoutExpired, at about the moment `until`."""
    process = subprocess.Popen(
        ["git", *arguments],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.PIPE,
        env={**_environment(task, directory), **(variables or {})},
        cwd=task.state,
        pass_fds=descriptors,
        start_new_session=True,  # a signal to this program does not end it half-way
    )
    words = LastWords(process)
    left = COMMAND_SECONDS if until is None else min(COMMAND_SECONDS, max(_LEAST_SECONDS, until - time.monotonic()))
    deadline = time.monotonic() + left
    try:
        answer, _ = process.communicate(given, timeout=left)
        complaint = words.text(deadline)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):  # what git has started may outlive it and hold a connection that hangs
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise subprocess.TimeoutExpired(f"git {arguments[0]}", left) from None
    if process.returncode != 0:
        raise GitError(complaint or f"git {arguments[0]}: {process.returncode}", process.returncode)
    return answer.decode(errors="surrogateescape").strip("\n") if answer else ""


class LastWords(threading.Thread):
    """Reads what a program complains of until it ends, and keeps the end of it: a server may have git say any amount."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        super().__init__(daemon=True)
        assert process.stderr is not None
        self._stream, process.stderr = process.stderr, None  # `communicate` would read all of it
        self._command, self._words = process.args, b""
        self.start()

    def run(self) -> None:
        with self._stream:
            while block := os.read(self._stream.fileno(), _LONGEST_WORDS):
                self._words = (self._words + block)[-_LONGEST_WORDS:]

    def text(self, deadline: float | None = None) -> str:
        """Return the last words. Raise TimeoutExpired when somebody can still say more at the deadline."""
        self.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
        if self.is_alive():
            raise subprocess.TimeoutExpired(self._command, 0)
        return self._words.decode(errors="replace").strip()


def _environment(task: Task, directory: Path | None) -> dict[str, str]:
    who = dict(zip(("NAME", "EMAIL"), identity(task.author), strict=True))
    return {
        **ISOLATED,
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(task.state),
        "GIT_DIR": str(directory or task.git),
        "GIT_CONFIG_GLOBAL": str(task.state / "gitconfig"),
        **(_remote_environment(task) if task.remote else {}),
        **{f"GIT_{role}_{part}": text for role in ("AUTHOR", "COMMITTER") for part, text in who.items()},
    }


def _remote_environment(task: Task) -> dict[str, str]:
    paths = {"key": shlex.quote(str(task.state / "key")), "known": shlex.quote(str(task.secret / "known_hosts"))}
    variables = {
        "GIT_ALLOW_PROTOCOL": task.remote.partition(":")[0],
        "GIT_ASKPASS": str(task.state / "askpass"),
        "GIT_SSH_COMMAND": SSH_COMMAND.format(**paths),
        "GIT_SSH_VARIANT": "ssh",
    }
    authorities = os.environ.get("GIT_SSL_CAINFO", "")  # an image may name those of its installation
    return {**variables, "GIT_SSL_CAINFO": authorities} if authorities else variables


def identity(author: str) -> tuple[str, str]:
    """Return the author's name and address for git. It leaves characters out, which must not make one person's address another's."""
    author = author or "compute-grid"
    is_plain = author[0] not in ".-" and all(letter.isalnum() or letter in "_.@+-" for letter in author)
    local = author if is_plain else f"-{author.encode(errors='surrogateescape').hex()}"
    return author if author.strip(_LEFT_OUT_BY_GIT) else "compute-grid", f"{local}@compute-grid.invalid"


def take_secret(task: Task) -> None:
    """Prepare what git and ssh need of it. Raise GitError for a URL that must not be followed."""
    scheme, _, rest = task.remote.partition("://")
    if scheme not in ("https", "ssh") or not (rest[:1].isascii() and rest[:1].isalnum()):
        raise GitError("Only https:// and ssh:// are followed.", 1)
    key, askpass = task.state / "key", task.state / "askpass"
    if (task.secret / "key").is_file():  # ssh uses no key of its own user that others may read, as volumes have it
        key.unlink(missing_ok=True)
        key.touch(0o600)
        key.write_bytes((task.secret / "key").read_bytes())
    askpass.write_text(ASKPASS.format(secret=shlex.quote(str(task.secret))))
    askpass.chmod(0o700)


def make_repository(task: Task) -> None:
    if (task.repository / "HEAD").is_file():
        return
    bare = ("init", "--quiet", "--bare", "--template=", "--initial-branch=main", "--shared=group")
    git(task, *bare, directory=task.repository)
    for name in ("receive.denyDeletes", "receive.denyNonFastForwards"):
        git(task, "config", name, "true", directory=task.repository)


def fetch(task: Task, until: float | None = None) -> None:
    names = "+refs/heads/*:refs/remotes/origin/*"
    git(task, "fetch", "--quiet", "--no-tags", "--prune", "--", task.source, names, until=until)
