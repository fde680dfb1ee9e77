"""The executor: the container beside an execution's program that fetches the project's files from Git, and saves what changed.

It stands alone: Python's standard library and git, nothing else of this project. It runs before the program starts and until after the
program's end, when it is sent SIGTERM:

    prepare   check out the branch or commit into the working copy; then the file `ready` appears
    wait      until SIGTERM, or until a stop (`stopping` appears) has nearly used up the grace period
    save      commit what changed, push it; on a conflict to a branch named after the execution. Of a job, what it wrote into its
              results folder goes to refs/results/<execution> and not to the branch

Where the cluster has no native sidecars, two containers share this: one that only prepares (`--only-prepare`), and then one beside the
program that is told of its end by a file (`--told`), because SIGTERM reaches both at the same time there.

Nothing is overwritten, and nothing is lost as long as any volume can be written: what cannot be pushed is kept as a bundle in the
repository's volume, or else in HOME; of what cannot even be committed a copy is kept, in HOME or else in the repository's volume. Its last
words, as JSON, are the container's termination message.

The branches are those of the repository's volume, or with `remote` those of a server of the project's own: then a folder of the pod has
the secret and, for SSH, the server's key. Git gets the secret through a file and a program that prints it, never as an argument, in a
variable or in the URL; no other scheme, no redirect and no unknown key is followed.

Its own Git directory is out of the program's reach, so no configuration, hook or filter of the program's is ever obeyed. A `.git` that the
program made is saved as plain files under another name, and gets its own back at the next start of the same person: its configuration and
hooks are run by whatever looks at it, so nobody gets another's. What a remote repository says of its authors anybody may have written, so
what comes from there keeps the other name.
"""

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

KEPT = ".kept"  # the ending of a saved .git
_UNUSABLE = "The project's repository cannot be used:"
GONE, UNUSABLE = 3, 4  # exit codes: what was asked for is not there; the repository cannot be used now
_TRIES = 5
_LOOK_SECONDS = 0.5
_COMMAND_SECONDS = 1800.0
_LEAST_SECONDS = (
    30.0  # for a command that begins near the end; the grace period leaves as much again as there was for all
)
_LONGEST_REPORT = 4000
_LONGEST_PAUSE = 5.0
_MOST_RESULTS = 10_000  # files of an execution
_BATCH = 500  # paths of one command
_LEFT_OUT_BY_GIT = ".,:;<>\"\\' "  # at the ends of a name
_ATTRIBUTES = "* -text -filter -ident -working-tree-encoding -export-subst !merge\n"
_CONFIGURATION = """\
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
_REMOTE = re.compile(r"(https|ssh)://[A-Za-z0-9]")
_CREDENTIALS = re.compile(r"//[^/\s@]*@")  # in a URL; none of ours has any, but a server may have said one
_REJECTED = "[remote rejected]"  # git's mark of a branch that the server does not accept


class GitError(Exception):
    """Git refused or failed; the message is its own, and the exit code too."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class TooLarge(Exception):
    """The repository may not grow so far."""


class Missing(Exception):
    """The branch or commit does not exist."""


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
    fallback: str = (
        ""  # the branch to take where a remote repository has `branch` no more, as nobody has asked for that one
    )
    results: str = ""
    results_bytes: int = 0
    author: str = ""
    title: str = ""
    grace: float = 30.0
    seconds: float = 60.0
    told: Path | None = None
    only_prepare: bool = False
    patience: float = 0.0
    largest: int = 0  # GiB that the repository on the volume may have; 0 for no bound
    remote: str = ""
    secret: Path = Path("/nonexistent")

    @property
    def source(self) -> str:
        """Where the branches are."""
        return self.remote or str(self.repository)

    @property
    def git(self) -> Path:
        return self.state / "git"

    @property
    def ready(self) -> Path:
        return self.state / "ready"


def main(arguments: Sequence[str] | None = None) -> int:
    task = _task(arguments)
    stop = _Stop(task)
    try:
        _prepare_patiently(task, stop)
    except Missing as error:
        return _tell(task, GONE, problem=str(error), **_where(task))
    except (GitError, OSError, subprocess.TimeoutExpired) as error:
        return _tell(task, UNUSABLE, problem=f"{_UNUSABLE} {_short(error, task)}", **_where(task))
    if task.only_prepare:
        return 0
    if not stop.wait():
        save(task)  # the program is still writing, so it is saved once more when it has ended
        stop.wait_for_signal()
    return _tell(task, 0, **save(task), **_where(task))


def _where(task: Task) -> dict[str, bool]:
    return {"remote": True} if task.remote else {}


# --- Before the program -------------------------------------------------------------------------------------------


def _prepare_patiently(task: Task, stop: "_Stop") -> None:
    """Prepare, and try again for as long as the task's patience lasts and nobody stops it. Raise Missing, GitError, OSError."""
    began, pause = time.monotonic(), 1.0
    while True:
        try:
            return prepare(task)
        except (GitError, OSError, subprocess.TimeoutExpired):
            if stop.is_asked or time.monotonic() + pause - began > task.patience:
                raise
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def prepare(task: Task) -> None:
    """Check out the files, unless an earlier process of this container has: the program may have changed them since.

    Raise Missing, GitError, OSError.
    """
    began = None if task.ready.exists() else _check_out(task)
    for name in ("index.lock", "HEAD.lock"):  # of an earlier process that was killed
        (task.git / name).unlink(missing_ok=True)
    for place in _saved_directories(task.work):
        if not task.remote and _is_own(task, place):
            _restore(place)
    if began is not None:
        commit, branch = began
        instead = {"branch": branch} if branch != task.branch else {}
        _write(task.ready, {"began": commit, "base": commit, **instead})


def _check_out(task: Task) -> tuple[str, str]:
    """Return the commit that is checked out, "" in a repository that has none yet, and the branch that the work goes to."""
    task.state.mkdir(parents=True, exist_ok=True)
    _empty(task.work)
    shutil.rmtree(task.git, ignore_errors=True)
    (task.state / "gitconfig").write_text(_CONFIGURATION)
    if task.remote:
        _take_secret(task)
    else:
        _make_repository(task)
    _git(task, "init", "--quiet", "--template=", str(task.work))
    (task.git / "info").mkdir(exist_ok=True)
    (task.git / "info" / "attributes").write_text(_ATTRIBUTES)
    if not task.remote:  # objects of the repository are read where they are, and not copied
        (task.git / "objects" / "info" / "alternates").write_text(f"{task.repository / 'objects'}\n")
    began, branch = _beginning(task)
    if began:
        _git(task, "checkout", "--quiet", "--force", "--detach", began)
    return began, branch


def _make_repository(task: Task) -> None:
    if (task.repository / "HEAD").is_file():
        return
    bare = ("init", "--quiet", "--bare", "--template=", "--initial-branch=main", "--shared=group")
    _git(task, *bare, directory=task.repository)
    for name in ("receive.denyDeletes", "receive.denyNonFastForwards"):
        _git(task, "config", name, "true", directory=task.repository)


def _beginning(task: Task) -> tuple[str, str]:
    """Return the commit to begin with, "" in a repository that has none yet, and its branch: the fallback where the other is gone."""
    _fetch(task)
    branches = [task.branch, *filter(None, [task.fallback])]
    for branch in branches:
        name = task.commit or f"refs/remotes/origin/{branch}"
        with suppress(GitError):
            return _git(task, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"), branch
    if not task.commit and not _git(task, "for-each-ref", "--count=1", "refs/remotes/origin/"):
        return "", branches[-1]
    what = f"commit {task.commit}" if task.commit else f"branch {branches[-1]}"
    raise Missing(f"The project's repository has no {what}.")


def _take_secret(task: Task) -> None:
    """Prepare what git and ssh need of it. Raise GitError for a URL that must not be followed."""
    if not _REMOTE.match(task.remote):
        raise GitError("Only https:// and ssh:// are followed.", 1)
    key, askpass = task.state / "key", task.state / "askpass"
    if (task.secret / "key").is_file():  # ssh uses no key of its own user that others may read, as volumes have it
        key.unlink(missing_ok=True)
        key.touch(0o600)
        key.write_bytes((task.secret / "key").read_bytes())
    askpass.write_text(ASKPASS.format(secret=shlex.quote(str(task.secret))))
    askpass.chmod(0o700)


def _fetch(task: Task, until: float | None = None) -> None:
    names = "+refs/heads/*:refs/remotes/origin/*"
    _git(task, "fetch", "--quiet", "--no-tags", "--prune", "--", task.source, names, until=until)


def _is_own(task: Task, place: Path) -> bool:
    """Return whether nobody but this person has ever changed what is at the place."""
    if not _git(task, "for-each-ref", "--count=1", "refs/remotes/origin/"):
        return True
    path = str(place.relative_to(task.work))
    authors = _git(task, "log", "--full-history", "-m", "--format=%ae", "HEAD", "--", path)
    return set(authors.splitlines()) <= {identity(task.author)[1]}


def _restore(place: Path) -> None:
    """Give a .git its name back, and the empty folders without which it is no repository."""
    target = place.with_name(place.name.removesuffix(KEPT))
    if os.path.lexists(target):
        return
    place.rename(target)
    if not target.is_symlink() and (target / "HEAD").is_file():
        for name in ("refs/heads", "objects"):
            with suppress(OSError):
                (target / name).mkdir(parents=True, exist_ok=True)


# --- After it -----------------------------------------------------------------------------------------------------


def save(task: Task) -> dict[str, Any]:
    """Save the changes and the results; return what to report."""
    report = _save_changes(task)
    return {**report, **_save_results(task)} if task.results else report


def _save_changes(task: Task) -> dict[str, Any]:
    """Commit and push what changed since the last time; return what to report. Whatever fails, the changes are kept."""
    began = ""
    try:
        known = json.loads(task.ready.read_text())
        began = known["began"]
        gone, task = task.branch, replace(task, branch=known.get("branch", task.branch))
        commit, left_out = _commit(task, known["base"])
        report: dict[str, Any] = {"began": began, "ended": commit, "branch": task.branch}
        if task.branch != gone:
            report["instead_of"] = gone
        if left_out:
            report |= {"left_out": left_out, "kept": _keep_copy(task)}
        return report if commit == known["base"] else _push_or_keep(task, report)
    except Exception as error:  # whatever it is: the working copy is all there is, and it is deleted with the pod
        problem = f"Its changes could not be saved: {_short(error, task)}"
        return {"began": began, "ended": "", "kept": _keep_copy(task), "problem": problem}


def _push_or_keep(task: Task, report: dict[str, Any]) -> dict[str, Any]:
    commit, began = report["ended"], report["began"]
    deadline = time.monotonic() + task.seconds
    for number in range(_TRIES):
        try:
            if not task.remote:
                _check_size(task, size_of(task.git / "objects"), "It was not pushed")
            branch, ended = _push(task, commit, task.branch or task.name, deadline)
        except TooLarge as error:
            kept = _keep(task, commit, began, at_home_first=True) or _keep_copy(task)
            return {**report, "branch": "", "kept": kept, "problem": str(error)}
        except (GitError, OSError, subprocess.TimeoutExpired) as error:
            problem = _short(error, task)
        else:
            with suppress(OSError):  # without it the next save merges what is on the branch already
                _write(task.ready, {**json.loads(task.ready.read_text()), "base": commit})
            return {**report, "branch": branch, "ended": ended}
        pause = 2.0**number
        if time.monotonic() + pause > deadline:
            break
        time.sleep(pause)
    kept = _keep(task, commit, began) or _keep_copy(task)
    return {**report, "branch": "", "kept": kept, "problem": f"It could not be pushed: {problem}"}


def _commit(task: Task, base: str) -> tuple[str, int]:
    """Commit the working copy; return the commit, `base` when nothing has changed, and how many files could not be read."""
    _open_folders(task.work)
    for place in _git_directories(task.work):
        place.rename(_free(place.with_name(place.name + KEPT)))
    for module in _modules(task):
        if any((task.work / module).iterdir()):
            _git(task, "update-index", "--force-remove", "--", module)
    _exclude_results(task)
    try:
        _git(task, "add", "--all", "--", ".")
        left_out = 0
    except GitError:  # most likely files without the right to read them
        _open_folders(task.work, files=True)
        left_out = _add_what_can_be_added(task)
    _forget_results(task)
    tree = _git(task, "write-tree")
    before = _git(task, "rev-parse", f"{base}^{{tree}}") if base else _git(task, "mktree")
    if tree == before:
        return base, left_out
    message = f"{task.title or task.name}\n\nExecution: {task.name}\n"
    commit = _git(task, "commit-tree", tree, *(("-p", base) if base else ()), "-m", message)
    _git(task, "update-ref", "--no-deref", "HEAD", commit)  # so that it is found if this process is killed now
    return commit, left_out


def _check_size(task: Task, more: int, what: str) -> None:
    """Raise TooLarge, with `what` became of it, when the repository on the volume would have more than it may."""
    if not task.largest:
        return
    size = (size_of(task.repository) + more) / 2**30
    if size > task.largest:
        raise TooLarge(
            f"{what}: the project's repository would have {size:.1f} GiB, and may have {task.largest} GiB. "
            "Ask an admin to raise that, or keep large files elsewhere: what is in the history stays there"
        )


def size_of(folder: Path) -> int:
    """Return the bytes of all that is in the folder."""
    found = 0
    for place in _all_below(folder):
        with suppress(OSError):  # gone meanwhile
            found += place.lstat().st_size
    return found


def _push(task: Task, commit: str, target: str, until: float) -> tuple[str, str]:
    """Push the commit to its branch, merged with what others have pushed meanwhile, or to a branch of its own where both changed the
    same, or where a server refuses the branch. Return the branch and the commit. Raise GitError."""
    for _ in range(_TRIES):
        try:
            _push_to(task, commit, target, until)
        except GitError as error:
            _fetch(task, until)
            theirs = _git(task, "for-each-ref", "--format=%(objectname)", f"refs/remotes/origin/{target}")
            if not theirs or _is_ancestor(task, theirs, commit):  # nobody has pushed meanwhile
                if task.remote and _REJECTED in str(error) and target != task.name:
                    break  # a protected branch, for example
                raise
        else:
            return target, commit
        merged = _merge(task, theirs, commit)
        if not merged:
            break
        commit = merged
    _push_to(task, commit, task.name, until)
    return task.name, commit


def _push_to(task: Task, commit: str, branch: str, until: float) -> None:
    # Servers differ in what they accept: from a remote one, nothing but a branch is asked.
    more = () if task.remote else (f"{commit}:{_ref(task)}",)
    atomic = () if task.remote else ("--atomic",)
    _git(task, "push", "--quiet", *atomic, "--", task.source, f"{commit}:refs/heads/{branch}", *more, until=until)


def _merge(task: Task, theirs: str, ours: str) -> str:
    """Return a commit with both changes; "" when they touch the same lines, or this git is too old to say."""
    try:
        tree = _git(task, "merge-tree", "--write-tree", "--no-messages", theirs, ours).split()[0]
    except GitError:
        return ""
    message = f"Merge {task.name}\n\nExecution: {task.name}\n"
    return _git(task, "commit-tree", tree, "-p", theirs, "-p", ours, "-m", message)


def _ref(task: Task) -> str:
    """Return the name under which the repository remembers an execution's result, whatever becomes of the branches."""
    return f"refs/executions/{task.name}"


def _is_ancestor(task: Task, old: str, new: str) -> bool:
    try:
        _git(task, "merge-base", "--is-ancestor", old, new)
    except GitError:
        return False
    return True


def _keep(task: Task, commit: str, began: str, *, at_home_first: bool = False) -> str:
    """Keep the commit as a bundle; return where: `repository`, `home`, or "" when nothing can be written."""
    places = (
        # What a server has may not be there when it is pushed again, so for that the bundle is whole, too.
        ("repository", task.repository / "unpushed", (f"^{began}",) if began and not task.remote else ()),
        ("home", task.home / "unpushed-files", ()),  # whole: perhaps the repository is what is broken
    )
    if task.remote:  # the bundle has all that the server has, and every run whose push fails leaves one
        try:
            _check_size(task, size_of(task.git / "objects"), "")
        except TooLarge:
            at_home_first = True
    for place, folder, since in reversed(places) if at_home_first else places:
        try:
            _git(task, "update-ref", "refs/heads/kept", commit)
            _make_folder(folder, is_shared=place == "repository")
            _git(task, "bundle", "create", "--quiet", str(folder / f"{task.name}.bundle"), "refs/heads/kept", *since)
        except (GitError, OSError, subprocess.TimeoutExpired):
            continue
        return place
    return ""


def _keep_copy(task: Task, *, only_at_home: bool = False) -> str:
    """Keep a copy of the files as an archive; return where: `home`, `copy` beside the branches, or "" when nothing can be written."""
    places = (("home", task.home / "unpushed-files"), ("copy", task.repository / "unpushed"))
    for place, folder in places[:1] if only_at_home else places:
        unfinished = folder / f"{task.name}.tar.gz.unfinished"
        command = ["tar", "-C", str(task.work), "--ignore-failed-read", "-czf", str(unfinished), "."]
        try:
            _make_folder(folder, is_shared=place == "copy")
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, start_new_session=True, timeout=_COMMAND_SECONDS, check=False
            )
            if done.returncode <= 1:  # 1: a file changed meanwhile
                unfinished.replace(unfinished.with_suffix(""))
                return place
        except (OSError, subprocess.TimeoutExpired):
            pass
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
    return ""


def _make_folder(folder: Path, *, is_shared: bool) -> None:
    folder.mkdir(exist_ok=True)
    if is_shared:
        with suppress(PermissionError):
            folder.chmod(0o2770)  # the dashboard, another user of the same group, removes what it has taken in


def _add_what_can_be_added(task: Task) -> int:
    try:
        _git(task, "add", "--all", "--ignore-errors", "--", ".")
    except GitError as error:
        if error.code != 1:  # it is not about single files
            raise
        others = _git(task, "ls-files", "-z", "--others", "--modified", "--exclude-standard")
        return max(1, others.count("\0"))
    return 0


# --- Results ------------------------------------------------------------------------------------------------------


def _save_results(task: Task) -> dict[str, Any]:
    """Push what is in the results folder to a ref of the execution's own; return what to report of it, nothing where there is nothing."""
    try:
        return _push_results(task)
    except TooLarge as error:  # nor is a copy put beside the branches then
        return {"results_problem": str(error), "results_kept": _keep_copy(task, only_at_home=True)}
    except Exception as error:  # whatever it is: the changes are saved already, and their report has to arrive
        reason = (str(error).strip() or type(error).__name__).splitlines()[-1][:200].encode(errors="replace").decode()
        return {"results_problem": f"The results could not be kept: {reason}", "results_kept": _keep_copy(task)}


def _push_results(task: Task) -> dict[str, Any]:
    found, problem = _choose_results(task)
    try:
        sizes = _index_results(task, found)
        if not sizes:
            return {"results_problem": problem} if problem else {}
        tree = _git(task, "write-tree", f"--prefix={task.results}/")
    finally:
        _forget_results(task)
    _check_size(task, sum(sizes.values()), "The results are not with the run")
    commit = _git(task, "commit-tree", tree, "-m", f"Results of {task.name}\n\nExecution: {task.name}\n")
    target = f"+{commit}:refs/results/{task.name}"  # a program that did not end in time is saved twice
    _make_repository(task)  # also beside a remote one, which gets the changes and no results
    until = time.monotonic() + task.seconds
    for number in range(_TRIES):
        try:
            _git(task, "push", "--quiet", str(task.repository), target, until=until, is_local=True)
            break
        except GitError:
            if number == _TRIES - 1 or time.monotonic() + 2.0**number > until:
                raise
            time.sleep(2.0**number)
    report = {"results": commit, "results_files": len(sizes), "results_bytes": sum(sizes.values())}
    return {**report, **({"results_problem": problem} if problem else {})}


def _choose_results(task: Task) -> tuple[dict[str, int], str]:
    """Return the files of the results folder with their sizes, and a sentence on those that are too many: the largest are left out."""
    root = task.work
    for part in Path(task.results).parts:
        root = root / part
        if root.is_symlink():
            return {}, f"The results are not kept, because {task.results[:60]} leads over a link."
    found = []
    for folder, folders, names in os.walk(root, followlinks=False):
        for name in (*names, *folders):
            place = Path(folder, name)
            status = place.lstat()
            if stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode):
                _allow(place, 0o400)
                found.append((status.st_size, str(place.relative_to(task.work))))
    kept: dict[str, int] = {}
    room = task.results_bytes
    for size, path in sorted(found):
        if size > room or len(kept) >= _MOST_RESULTS:
            break
        room -= size
        kept[path] = size
    left = sorted(found)[len(kept) :]
    if not left:
        return kept, ""
    names = [Path(path).name for _, path in left[:-4:-1]]  # the largest first
    shown = ", ".join(name if len(name) < 40 else f"{name[:40]}…" for name in names).encode(errors="replace").decode()
    limits = f"{task.results_bytes // 2**20} MiB and {_MOST_RESULTS} files"
    total = sum(size for size, _ in left) / 2**20
    return (
        kept,
        f"{len(left)} files of the results ({total:.1f} MiB) are not kept, because a run keeps at most {limits}: {shown}",
    )


def _index_results(task: Task, found: dict[str, int]) -> dict[str, int]:
    """Put the files into the index, whatever .gitignore says; return those that are not as they were at the beginning."""
    _git(task, "rm", "-r", "--cached", "--force", "--quiet", "--ignore-unmatch", "--", task.results)
    paths = list(found)
    for start in range(0, len(paths), _BATCH):
        _git(task, "update-index", "--add", "--remove", "--", *paths[start : start + _BATCH])
    began = json.loads(task.ready.read_text())["began"]
    names = ("--name-only", "-z", "--diff-filter=d", "--no-renames")
    if began:
        changed = _git(task, "diff-index", "--cached", *names, began, "--", task.results)
    else:
        changed = _git(task, "ls-files", "-z", "--", task.results)
    new = {path: found.get(path, 0) for path in changed.split("\0") if path}
    old = [path for path in paths if path not in new]
    for start in range(0, len(old), _BATCH):
        _git(task, "update-index", "--force-remove", "--", *old[start : start + _BATCH])
    return new


def _exclude_results(task: Task) -> None:
    """Keep new files of the results folder out of the branch."""
    if task.results:
        pattern = re.sub(r"([\\*?\[\]!# ])", r"\\\1", task.results)
        (task.git / "info" / "exclude").write_text(f"/{pattern}/\n")


def _forget_results(task: Task) -> None:
    """Have the index say of the results folder what the commit says."""
    if task.results:
        _git(task, "reset", "--quiet", "--", task.results)


# --- Git and files ------------------------------------------------------------------------------------------------


def _git(
    task: Task, *arguments: str, directory: Path | None = None, until: float | None = None, is_local: bool = False
) -> str:
    """Return what git prints. Raise GitError with its last words, and TimeoutExpired, at about the moment `until`. With `is_local`
    it may speak to the repository on the volume, and otherwise to the remote one if there is one."""
    process = subprocess.Popen(
        ["git", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_environment(task, directory, is_local=is_local),
        cwd=task.work if directory is None else directory.parent,
        start_new_session=True,  # a signal to this program does not end it half-way
    )
    left = _COMMAND_SECONDS if until is None else min(_COMMAND_SECONDS, max(_LEAST_SECONDS, until - time.monotonic()))
    try:
        said, complained = process.communicate(timeout=left)
    except subprocess.TimeoutExpired:
        _end(process)
        raise subprocess.TimeoutExpired(f"git {arguments[0]}", left) from None
    if process.returncode != 0:
        words = complained.decode(errors="replace").strip()
        raise GitError(words or f"git {arguments[0]}: {process.returncode}", process.returncode)
    return said.decode(errors="surrogateescape").strip("\n")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End git and what it has started, which may outlive it and hold a connection that hangs."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _environment(task: Task, directory: Path | None, *, is_local: bool = False) -> dict[str, str]:
    who = dict(zip(("NAME", "EMAIL"), identity(task.author), strict=True))
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(task.state),
        "LC_ALL": "C.UTF-8",
        "GIT_DIR": str(directory or task.git),
        **({} if directory else {"GIT_WORK_TREE": str(task.work)}),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(task.state / "gitconfig"),
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_LITERAL_PATHSPECS": "1",
        **(_remote_environment(task) if task.remote and not is_local else {}),
        **{f"GIT_{role}_{part}": text for role in ("AUTHOR", "COMMITTER") for part, text in who.items()},
    }


def _remote_environment(task: Task) -> dict[str, str]:
    paths = {"key": shlex.quote(str(task.state / "key")), "known": shlex.quote(str(task.secret / "known_hosts"))}
    found = {
        "GIT_ALLOW_PROTOCOL": task.remote.partition(":")[0],
        "GIT_ASKPASS": str(task.state / "askpass"),
        "GIT_SSH_COMMAND": SSH_COMMAND.format(**paths),
        "GIT_SSH_VARIANT": "ssh",
    }
    authorities = os.environ.get("GIT_SSL_CAINFO", "")  # an image may name those of its installation
    return {**found, "GIT_SSL_CAINFO": authorities} if authorities else found


def identity(author: str) -> tuple[str, str]:
    """Return the author's name and address for git. It leaves characters out, which must not make one person's address another's."""
    author = author or "compute-grid"
    is_plain = re.fullmatch(r"[\w@+][\w.@+-]*", author)
    local = author if is_plain else f"-{author.encode(errors='surrogateescape').hex()}"
    return author if author.strip(_LEFT_OUT_BY_GIT) else "compute-grid", f"{local}@compute-grid.invalid"


def _modules(task: Task) -> Iterator[str]:
    """Yield the folders that the commit names as other repositories, whose files git would leave out."""
    for line in _git(task, "ls-files", "--stage", "-z").split("\0"):
        facts, _, path = line.partition("\t")
        if facts.startswith("160000 ") and (task.work / path).is_dir() and not (task.work / path).is_symlink():
            yield path


def _git_directories(root: Path) -> list[Path]:
    """Return everything called .git, in any spelling: git never commits that, and leaves out whatever lies beside it."""
    return [place for place in _all_below(root) if place.name.lower() == ".git"]


def _saved_directories(root: Path) -> list[Path]:
    return [place for place in _all_below(root) if place.name.lower() == f".git{KEPT}"]


def _all_below(root: Path) -> Iterator[Path]:
    """Yield files and folders, the deepest first, so that each may be renamed. No link is followed."""
    for folder, folders, files in os.walk(root, topdown=False, followlinks=False):
        for name in (*files, *folders):
            yield Path(folder, name)


def _free(place: Path) -> Path:
    while os.path.lexists(place):
        place = place.with_name(place.name + KEPT)
    return place


def _open_folders(root: Path, *, files: bool = False) -> None:
    """Make folders readable for their owner, or git leaves them out without a word; with `files` also files. No link is followed."""
    _allow(root, 0o700)
    for folder, folders, names in os.walk(root, followlinks=False):
        for name in folders:
            _allow(Path(folder, name), 0o700)
        for name in names if files else ():
            _allow(Path(folder, name), 0o600)


def _allow(place: Path, rights: int) -> None:
    with suppress(OSError):  # not ours, or gone
        mode = place.lstat().st_mode
        if not stat.S_ISLNK(mode) and mode & rights != rights:
            place.chmod(stat.S_IMODE(mode) | rights)


def _empty(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for place in folder.iterdir():
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink()


def _write(path: Path, content: dict[str, Any]) -> None:
    unfinished = path.with_name(f"{path.name}.unfinished")
    unfinished.write_text(json.dumps(content))
    unfinished.replace(path)


def _short(error: Exception, task: Task) -> str:
    """Return git's last line; of a server's answer all of them, without the secret: there the last one says the least."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    text = _CREDENTIALS.sub("//", " ".join(lines)) if task.remote else lines[-1]
    with suppress(OSError):
        token = (task.secret / "token").read_text(errors="replace").strip()
        text = text.replace(token, "***") if token else text
    return text[:500].encode(errors="replace").decode()


def _tell(task: Task, code: int, **report: Any) -> int:
    text = json.dumps({"code": code, **report})
    sys.stdout.write(f"{text}\n")
    try:
        task.report.write_text(text[:_LONGEST_REPORT])
    except OSError as error:
        sys.stderr.write(f"the report was not written: {error}\n")
    return code


class _Stop:
    """Waits for the end of the program, of which SIGTERM tells, or the file `told`."""

    def __init__(self, task: Task) -> None:
        self.is_asked = False
        self._told = task.told
        self._stopping = task.state / "stopping"
        self._patience = max(1.0, task.grace)
        signal.signal(signal.SIGTERM, self._ask)

    def wait(self) -> bool:
        """Return True when the program has ended; False when a stop has lasted so long that the program does not seem to end."""
        if self._told is not None:
            return self._wait_until_told(self._told)
        began = None
        while not self.is_asked:
            if began is None and self._stopping.exists():
                began = time.monotonic()
            if began is not None and time.monotonic() - began > self._patience:
                return False
            time.sleep(_LOOK_SECONDS)
        return True

    def _wait_until_told(self, told: Path) -> bool:
        """Return True when the file says that the program has ended, or SIGTERM has given it the time to end that it has elsewhere."""
        deadline = None
        while not _says_something(told) and (deadline is None or time.monotonic() < deadline):
            if self.is_asked and deadline is None:
                deadline = time.monotonic() + self._patience
            time.sleep(_LOOK_SECONDS)
        return True

    def wait_for_signal(self) -> None:
        while not self.is_asked:
            time.sleep(_LOOK_SECONDS)

    def _ask(self, *_: object) -> None:
        self.is_asked = True


def _says_something(path: Path) -> bool:
    try:
        return bool(path.read_text().strip())
    except OSError:
        return False


def _task(arguments: Sequence[str] | None) -> Task:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    for name in ("repository", "work", "state", "report", "home"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--results", default="")
    parser.add_argument("--results-bytes", type=int, default=0)
    for name in ("branch", "commit", "fallback", "remote"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--secret", type=Path, default=Path("/nonexistent"))
    parser.add_argument("--largest", type=int, default=0)
    for name in ("grace", "seconds"):
        parser.add_argument(f"--{name}", type=float, required=True)
    parser.add_argument("--told", type=Path)
    parser.add_argument("--only-prepare", action="store_true")
    parser.add_argument("--patience", type=float, default=0.0)
    given = vars(parser.parse_args(arguments))
    return Task(**given, author=os.environ.get("GRID_AUTHOR", ""), title=os.environ.get("GRID_TITLE", ""))


if __name__ == "__main__":
    sys.exit(main())
