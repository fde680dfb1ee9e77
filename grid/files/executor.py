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

In the working copy and in HOME a program may put a link or a pipe in the place of anything, at any moment. So git never reads or writes
there while one runs: files are opened here, each folder from the one above it and without following a link, and git gets their
descriptors. What is new in HOME is written under a name that nobody can guess, and then renamed. State, repository and secret are volumes
that no program has, so paths are safe there.
"""

import argparse
import errno
import json
import os
import resource
import secrets
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, NamedTuple

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
_BATCH = 200  # files that are open at a time
_LONGEST_PATH = 4095  # bytes; no system call takes more
_LARGEST_HOLES = (
    16 * 2**30
)  # bytes of a sparse file that are on no disk: to read them takes longer than there is time to save
_LONGEST_RULES_PATH, _LARGEST_RULES = 1000, 2**20  # bytes, of a .gitignore that is obeyed
_TICK_SECONDS = 0.02  # after so long a file that is changed has another time of change
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MODULE = "160000 "  # how git marks another repository's commit
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

    @property
    def known(self) -> Path:
        """What was checked out: by path git's mode and object, and a stamp by which an unchanged file is known."""
        return self.state / "known"


def main(arguments: Sequence[str] | None = None) -> int:
    task = _task(arguments)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a folder far below is open together with all above it
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
    if not task.ready.exists():
        commit, branch = _check_out(task)
        instead = {"branch": branch} if branch != task.branch else {}
        _write(task.ready, {"began": commit, "base": commit, **instead})
    for name in ("index.lock", "HEAD.lock"):  # of an earlier process that was killed
        (task.git / name).unlink(missing_ok=True)


def _check_out(task: Task) -> tuple[str, str]:
    """Return the commit that is checked out, "" in a repository that has none yet, and the branch that the work goes to. No program runs
    yet, so git writes into the working copy itself."""
    task.state.mkdir(parents=True, exist_ok=True)
    task.work.mkdir(parents=True, exist_ok=True)
    _empty(task.work)
    shutil.rmtree(task.git, ignore_errors=True)
    (task.state / "gitconfig").write_text(_CONFIGURATION)
    if task.remote:
        _take_secret(task)
    else:
        _make_repository(task)
    _git(task, "init", "--quiet", "--bare", "--template=")
    (task.git / "info").mkdir(exist_ok=True)
    (task.git / "info" / "attributes").write_text(_ATTRIBUTES)
    if not task.remote:  # objects of the repository are read where they are, and not copied
        (task.git / "objects" / "info").mkdir(exist_ok=True)
        (task.git / "objects" / "info" / "alternates").write_text(f"{task.repository / 'objects'}\n")
    began, branch = _beginning(task)
    if began:
        here = {"GIT_WORK_TREE": str(task.work)}
        _git(task, "checkout", "--quiet", "--force", "--detach", began, variables=here)
    known = _files_of(task, began) if began else {}
    with _Tree(task.work) as tree:
        _give_back(task, tree, known)
        time.sleep(_TICK_SECONDS)
        for path, entry in _scan(tree, "", {}).items():
            if path in known:
                known[path] = known[path][0], entry.stamp
    _write(task.known, known)
    return began, branch


def _files_of(task: Task, commit: str) -> "_Known":
    lines = _git(task, "ls-tree", "-r", "-z", commit).split("\0")
    found = (line.partition("\t") for line in lines if line)
    return {path: (" ".join(facts.split()[::2]), "") for facts, _, path in found}


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


def _fetch(task: Task, until: float | None = None) -> None:
    names = "+refs/heads/*:refs/remotes/origin/*"
    _git(task, "fetch", "--quiet", "--no-tags", "--prune", "--", task.source, names, until=until)


def _give_back(task: Task, tree: "_Tree", known: "_Known") -> None:
    """Give each .git of this person's its name back, the deepest first."""
    if task.remote:
        return
    places = {
        part for path in known for part in _with_parents(path) if part.rpartition("/")[2].lower() == f".git{KEPT}"
    }
    for place in sorted(places, key=lambda path: path.count("/"), reverse=True):
        if _is_own(task, place):
            _restore(tree, place)


def _is_own(task: Task, path: str) -> bool:
    """Return whether nobody but this person has ever changed what is at the path."""
    authors = _git(task, "log", "--full-history", "-m", "--format=%ae", "HEAD", "--", path)
    return set(authors.splitlines()) <= {identity(task.author)[1]}


def _restore(tree: "_Tree", path: str) -> None:
    """Give a .git its name back, and the empty folders without which it is no repository."""
    folder, _, name = path.rpartition("/")
    inside, target = tree.folder(folder), path.removesuffix(KEPT)
    if name.removesuffix(KEPT) in _list(inside):
        return
    os.rename(name, name.removesuffix(KEPT), src_dir_fd=inside, dst_dir_fd=inside)
    with suppress(OSError):  # it is a file or a link, or has no HEAD
        os.close(_open(tree.folder(target), "HEAD"))
        for place, new in ((target, "objects"), (target, "refs"), (f"{target}/refs", "heads")):
            with suppress(FileExistsError):
                os.mkdir(new, dir_fd=tree.folder(place))


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
            report |= {"left_out": len(left_out), "left_out_names": _named(left_out), "kept": _keep_copy(task)}
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


def _commit(task: Task, base: str) -> tuple[str, dict[str, str]]:
    """Commit the working copy; return the commit, `base` when nothing has changed, and why files are not in it, by path."""
    known: _Known = json.loads(task.known.read_text())
    left_out: dict[str, str] = {}
    with _Tree(task.work) as tree:
        found = _scan(tree, "", left_out, without=task.results)
        for path in _ignored(task, tree, found, [path for path in found if path not in known]):
            found.pop(path, None)
        unchanged = {
            path: known[path][0] for path, one in found.items() if path in known and known[path][1] == one.stamp
        }
        changed = {path: one for path, one in found.items() if path not in unchanged}
        stored = _store(task, tree, changed, left_out)
        stay = {path: facts for path, (facts, _) in known.items() if _stays(task, tree, path, facts, left_out)}
    tree_id = _make_tree(task, {**stay, **unchanged, **stored})
    before = _git(task, "rev-parse", f"{base}^{{tree}}") if base else _git(task, "mktree")
    if tree_id == before:
        return base, left_out
    message = f"{task.title or task.name}\n\nExecution: {task.name}\n"
    commit = _git(task, "commit-tree", tree_id, *(("-p", base) if base else ()), "-m", message)
    _git(task, "update-ref", "--no-deref", "HEAD", commit)  # so that it is found if this process is killed now
    return commit, left_out


def _stays(task: Task, tree: "_Tree", path: str, facts: str, left_out: Mapping[str, str]) -> bool:
    """Return whether the branch keeps what it has at the path, whatever the program did: what could not be read, the job's results, and
    other repositories whose folder is there. Files that are found in such a folder take its place."""
    if any(part in left_out or (task.results and part == task.results) for part in _with_parents(path)):
        return True
    if not facts.startswith(_MODULE):
        return False
    try:
        tree.folder(path)
    except OSError:
        return False
    return True


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
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            with suppress(OSError):  # gone meanwhile
                found += Path(place, name).lstat().st_size
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
            with _new_file(folder, f"{task.name}.bundle", is_shared=place == "repository") as file:
                _git(task, "bundle", "create", "--quiet", "-", "refs/heads/kept", *since, output=file)
        except (GitError, OSError, subprocess.TimeoutExpired):
            continue
        return place
    return ""


def _keep_copy(task: Task, *, only_at_home: bool = False) -> str:
    """Keep a copy of the files as an archive; return where: `home`, `copy` beside the branches, or "" when nothing can be written."""
    places = (("home", task.home / "unpushed-files"), ("copy", task.repository / "unpushed"))
    command = ["tar", "--ignore-failed-read", "--sparse", "-czf", "-", "."]
    for place, folder in places[:1] if only_at_home else places:
        with suppress(OSError, subprocess.TimeoutExpired), _Tree(task.work) as tree:
            with _new_file(folder, f"{task.name}.tar.gz", is_shared=place == "copy") as file:
                done = subprocess.run(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    cwd=f"/proc/self/fd/{tree.folder('')}",  # below it tar opens folder by folder, and follows no link
                    start_new_session=True,
                    timeout=_COMMAND_SECONDS,
                    check=False,
                )
                if done.returncode > 1:  # 1: a file changed meanwhile
                    raise OSError("tar failed")
            return place
    return ""


@contextmanager
def _new_file(folder: Path, name: str, *, is_shared: bool) -> Iterator[int]:
    """Yield the descriptor of a new file. It gets its name at the end if nothing is raised, in the place of what had it, even of a link.

    A program may write into the folder at the same time. Raise OSError, as where a link is in the place of the folder.
    """
    with ExitStack() as opened:
        above = os.open(folder.parent, _FOLDER)
        opened.callback(os.close, above)
        with suppress(FileExistsError):
            os.mkdir(folder.name, dir_fd=above)
        inside = os.open(folder.name, _FOLDER, dir_fd=above)
        opened.callback(os.close, inside)
        if is_shared:
            with suppress(PermissionError):
                os.fchmod(inside, 0o2770)  # the dashboard, another user of the same group, removes what it has taken in
        unfinished = f"{name}.{secrets.token_hex(8)}.unfinished"
        file = os.open(
            unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=inside
        )
        opened.callback(os.close, file)
        try:
            yield file
            os.rename(unfinished, name, src_dir_fd=inside, dst_dir_fd=inside)
        except BaseException:
            with suppress(OSError):
                os.unlink(unfinished, dir_fd=inside)
            raise


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
    left_out: dict[str, str] = {}
    with _Tree(task.work) as tree:
        try:
            tree.folder(task.results)
        except FileNotFoundError:
            return {}
        except OSError as error:
            why = "leads over a link" if error.errno == errno.ELOOP else "is no folder that can be read"
            return {"results_problem": f"The results are not kept, because {task.results[:60]} {why}."}
        found = _scan(tree, task.results, left_out)
        chosen, problem = _choose_results(task, found)
        stored = _store(task, tree, {path: found[path] for path in chosen}, left_out)
    if left_out:
        problem = f"{problem}. " if problem else ""
        problem += f"{len(left_out)} files of the results could not be saved: {_named(left_out)}"
    known: _Known = json.loads(task.known.read_text())
    new = {path: facts for path, facts in stored.items() if known.get(path, ("", ""))[0] != facts}
    if not new:
        return {"results_problem": problem} if problem else {}
    sizes = {path: found[path].size for path in new}
    tree_id = _make_tree(task, {path.removeprefix(f"{task.results}/"): facts for path, facts in new.items()})
    _check_size(task, sum(sizes.values()), "The results are not with the run")
    commit = _git(task, "commit-tree", tree_id, "-m", f"Results of {task.name}\n\nExecution: {task.name}\n")
    target = f"+{commit}:refs/results/{task.name}"  # a program that did not end in time is saved twice
    _make_repository(task)  # also beside a remote one, which gets the changes and no results
    until = time.monotonic() + task.seconds
    for number in range(_TRIES):
        try:
            local = {"GIT_ALLOW_PROTOCOL": "file"}  # also beside a remote repository
            _git(task, "push", "--quiet", str(task.repository), target, until=until, variables=local)
            break
        except GitError:
            if number == _TRIES - 1 or time.monotonic() + 2.0**number > until:
                raise
            time.sleep(2.0**number)
    report = {"results": commit, "results_files": len(sizes), "results_bytes": sum(sizes.values())}
    return {**report, **({"results_problem": problem} if problem else {})}


def _choose_results(task: Task, entries: Mapping[str, "_Entry"]) -> tuple[list[str], str]:
    """Return the files that are kept, and a sentence on those that are too many: the largest are left out."""
    found = sorted((entry.size, path) for path, entry in entries.items())
    kept: list[str] = []
    room = task.results_bytes
    for size, path in found:
        if size > room or len(kept) >= _MOST_RESULTS:
            break
        room -= size
        kept.append(path)
    left = found[len(kept) :]
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


# --- Reading where a program writes --------------------------------------------------------------------------------


class _Entry(NamedTuple):
    """A file or link of the working copy: where it is, its size, and a stamp that changes with each change of it."""

    path: str
    size: int
    stamp: str


_Known = dict[str, tuple[str, str]]  # by the path under which it is saved: "<mode> <object>", and the stamp


class _Tree:
    """A folder in which a program writes, perhaps at this moment. Each folder in it is opened from the one above it, without following a
    link, and held, so what a program puts in the place of one is not read instead."""

    def __init__(self, root: Path) -> None:
        self._names: list[str] = []
        above = os.open(root.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._folders = [_open(above, root.name, is_folder=True)]
        finally:
            os.close(above)

    def __enter__(self) -> "_Tree":
        return self

    def __exit__(self, *_: object) -> None:
        self._close(0)
        os.close(self._folders.pop())

    def folder(self, path: str) -> int:
        """Return the descriptor of a folder, "" for the root; it is good until another is asked for. Raise OSError."""
        names = path.split("/") if path else []
        pairs = zip(names, self._names, strict=False)
        same = next((at for at, (new, old) in enumerate(pairs) if new != old), min(len(names), len(self._names)))
        self._close(same)
        for name in names[same:]:
            self._folders.append(_open(self._folders[-1], name, is_folder=True))
            self._names.append(name)
        return self._folders[-1]

    def _close(self, depth: int) -> None:
        """Close the folders that are deeper."""
        while len(self._names) > depth:
            self._names.pop()
            os.close(self._folders.pop())


def _open(folder: int, name: str, *, is_folder: bool = False) -> int:
    """Open a file or a folder for reading, and give its owner the right to. Raise OSError; its number is ELOOP for a link.

    What is there is looked at before it is opened: a pipe would be waited for, and a device may do something.
    """
    place = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        mode = os.fstat(place).st_mode
        if stat.S_ISLNK(mode):
            raise OSError(errno.ELOOP, "It is a link")
        if not (stat.S_ISDIR(mode) if is_folder else stat.S_ISREG(mode)):
            raise OSError(errno.EINVAL, "It is no folder" if is_folder else "It is no file")
        itself, needed = f"/proc/self/fd/{place}", 0o500 if is_folder else 0o400
        if mode & needed != needed:
            with suppress(OSError):  # not ours
                Path(itself).chmod(stat.S_IMODE(mode) | needed)
        return os.open(itself, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    finally:
        os.close(place)


def _scan(tree: _Tree, below: str, left_out: dict[str, str], *, without: str = "") -> dict[str, _Entry]:
    """Return files and links by the paths under which they are saved, but for the folder `without`; note what cannot be saved. Pipes,
    sockets and devices have nothing to save."""
    found: dict[str, _Entry] = {}
    waiting = [(below, below)]
    while waiting:
        path, saved = waiting.pop()
        try:
            statuses = _list(tree.folder(path))
        except OSError as error:
            if path == below:
                raise
            if not isinstance(error, FileNotFoundError):  # that one is gone meanwhile
                left_out[saved] = "it cannot be read"
            continue
        for name, status in statuses.items():
            here, there = _join(path, name), _join(saved, _saved_name(name, statuses))
            if here == without or not any(kind(status.st_mode) for kind in (stat.S_ISDIR, stat.S_ISREG, stat.S_ISLNK)):
                continue
            if why := _why_left_out(there, status):
                left_out[there] = why
            elif stat.S_ISDIR(status.st_mode):
                waiting.append((here, there))
            else:
                found[there] = _Entry(here, status.st_size, _stamp(status))
    return found


def _list(folder: int) -> dict[str, os.stat_result]:
    found = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):  # gone meanwhile
                found[entry.name] = entry.stat(follow_symlinks=False)
    return found


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _saved_name(name: str, beside: Mapping[str, object]) -> str:
    """Return the name under which it is saved: git never commits a .git, in any spelling, and leaves out whatever lies beside it."""
    if name.lower() == ".git":
        name += KEPT
        while name in beside:
            name += KEPT
    return name


def _with_parents(path: str) -> Iterator[str]:
    """Yield the path and those of the folders above it."""
    while path:
        yield path
        path = path.rpartition("/")[0]


def _why_left_out(path: str, status: os.stat_result) -> str:
    if len(os.fsencode(path)) > _LONGEST_PATH:
        return f"its path has more than {_LONGEST_PATH} bytes"
    if stat.S_ISREG(status.st_mode) and status.st_size - 512 * status.st_blocks > _LARGEST_HOLES:
        return "most of it is on no disk"
    if stat.S_ISLNK(status.st_mode) and path.rpartition("/")[2].lower() == ".gitmodules":
        return "git takes no link of that name"
    return ""


def _stamp(status: os.stat_result) -> str:
    return f"{status.st_ino}.{status.st_size}.{status.st_mtime_ns}.{status.st_ctime_ns}"


def _named(left_out: Mapping[str, str]) -> str:
    """Return some of the paths, each with the reason."""
    shown = []
    for path, why in sorted(left_out.items())[:3]:
        text = path if len(path) <= 60 else f"{path[:30]}…{path[-29:]}"
        shown.append(f"{text.encode(errors='replace').decode()} ({why})")
    return ", ".join([*shown, *(["…"] if len(left_out) > len(shown) else [])])


def _ignored(task: Task, tree: _Tree, found: Mapping[str, _Entry], asked: Iterable[str]) -> list[str]:
    """Return which of the paths a .gitignore names. Git reads copies of these, not the program's own."""
    with tempfile.TemporaryDirectory(dir=task.state) as rules:
        for path, entry in found.items():
            folder, _, name = path.rpartition("/")
            if name == ".gitignore" and len(path) <= _LONGEST_RULES_PATH and entry.size <= _LARGEST_RULES:
                Path(rules, folder).mkdir(parents=True, exist_ok=True)
                with (
                    suppress(OSError),
                    os.fdopen(_open(tree.folder(entry.path.rpartition("/")[0]), name), "rb") as file,
                ):
                    Path(rules, path).write_bytes(file.read(_LARGEST_RULES))
        paths = os.fsencode("".join(f"./{path}\0" for path in asked))
        here = {"GIT_WORK_TREE": rules, "GIT_LITERAL_PATHSPECS": "0"}
        command = ("-C", rules, "check-ignore", "-z", "--stdin", "--no-index")
        try:
            said = _git(task, *command, given=paths, variables=here)
        except GitError as error:
            if error.code != 1:  # none
                raise
            return []
    return [path.removeprefix("./") for path in said.split("\0")]


def _store(task: Task, tree: _Tree, entries: Mapping[str, _Entry], left_out: dict[str, str]) -> dict[str, str]:
    """Have git store files and links; return mode and object by path, and note what could not be read."""
    stored: dict[str, str] = {}
    paths = list(entries)
    waiting = [paths[start : start + _BATCH] for start in range(0, len(paths), _BATCH)]
    while waiting:
        batch = waiting.pop()
        with ExitStack() as opened:
            files: dict[str, tuple[int, str]] = {}
            for path in batch:
                try:
                    file, mode = _content(task, tree, entries[path].path)
                    files[path] = opened.enter_context(file).fileno(), mode
                except FileNotFoundError:  # gone meanwhile
                    continue
                except OSError:
                    left_out[path] = "it cannot be read"
            numbers = [number for number, _ in files.values()]
            given = "".join(f"/proc/self/fd/{number}\n" for number in numbers).encode()
            try:
                ids = _git(
                    task, "hash-object", "-w", "--no-filters", "--stdin-paths", given=given, descriptors=numbers
                ).split()
            except GitError:  # a file that becomes shorter while it is read fails, and all that are stored with it
                if len(batch) > 1:
                    waiting += [[path] for path in files]
                else:
                    left_out[batch[0]] = "it cannot be read"
                    _git(
                        task, "hash-object", "-w", "--stdin", given=os.urandom(16)
                    )  # raises where nothing can be stored
                continue
        stored |= {path: f"{mode} {id}" for (path, (_, mode)), id in zip(files.items(), ids, strict=True)}
    return stored


def _content(task: Task, tree: _Tree, path: str) -> tuple[IO[bytes], str]:
    """Return an open file with what git stores of the file or link, and git's mode. Raise OSError."""
    above, _, name = path.rpartition("/")
    folder = tree.folder(above)
    try:
        number = _open(folder, name)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        target = os.fsencode(os.readlink(name, dir_fd=folder))
        file = tempfile.TemporaryFile(dir=task.state)  # noqa: SIM115 - who asks for it closes it
        file.write(target)
        file.flush()
        return file, "120000"
    return os.fdopen(number, "rb"), "100755" if os.fstat(number).st_mode & 0o100 else "100644"


def _make_tree(task: Task, files: Mapping[str, str]) -> str:
    """Return git's tree of these; where one is a folder of another, the later one is in it."""
    _git(task, "read-tree", "--empty")
    lines = "".join(f"{facts}\t{path}\0" for path, facts in files.items())
    _git(task, "update-index", "-z", "--index-info", given=os.fsencode(lines))
    return _git(task, "write-tree")


# --- Git and files ------------------------------------------------------------------------------------------------


def _git(
    task: Task,
    *arguments: str,
    directory: Path | None = None,
    until: float | None = None,
    variables: Mapping[str, str] | None = None,
    given: bytes = b"",
    output: int = subprocess.PIPE,
    descriptors: Sequence[int] = (),
) -> str:
    """Return what git prints, unless that goes to the descriptor `output`; it reads `given`, and may open these `descriptors`.

    Raise GitError with its last words, and TimeoutExpired, at about the moment `until`.
    """
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
    left = _COMMAND_SECONDS if until is None else min(_COMMAND_SECONDS, max(_LEAST_SECONDS, until - time.monotonic()))
    try:
        said, complained = process.communicate(given, timeout=left)
    except subprocess.TimeoutExpired:
        _end(process)
        raise subprocess.TimeoutExpired(f"git {arguments[0]}", left) from None
    if process.returncode != 0:
        words = complained.decode(errors="replace").strip()
        raise GitError(words or f"git {arguments[0]}: {process.returncode}", process.returncode)
    return said.decode(errors="surrogateescape").strip("\n") if said else ""


def _end(process: subprocess.Popen[bytes]) -> None:
    """End git and what it has started, which may outlive it and hold a connection that hangs."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _environment(task: Task, directory: Path | None) -> dict[str, str]:
    who = dict(zip(("NAME", "EMAIL"), identity(task.author), strict=True))
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(task.state),
        "LC_ALL": "C.UTF-8",
        "GIT_DIR": str(directory or task.git),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(task.state / "gitconfig"),
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_LITERAL_PATHSPECS": "1",
        **(_remote_environment(task) if task.remote else {}),
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
    is_plain = author[0] not in ".-" and all(one.isalnum() or one in "_.@+-" for one in author)
    local = author if is_plain else f"-{author.encode(errors='surrogateescape').hex()}"
    return author if author.strip(_LEFT_OUT_BY_GIT) else "compute-grid", f"{local}@compute-grid.invalid"


def _empty(folder: Path) -> None:
    """Remove all that is in the folder, however deep. Raise OSError."""
    done = subprocess.run(["find", str(folder), "-mindepth", "1", "-delete"], capture_output=True, check=False)
    if done.returncode != 0:
        raise OSError(done.stderr.decode(errors="replace").strip())


def _write(path: Path, content: dict[str, Any]) -> None:
    unfinished = path.with_name(f"{path.name}.unfinished")
    unfinished.write_text(json.dumps(content))
    unfinished.replace(path)


def _short(error: Exception, task: Task) -> str:
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
        hides = at and "/" not in name and not any(one.isspace() for one in name)
        first += f"//{after if hides else part}"
    return first


def _tell(task: Task, code: int, **report: Any) -> int:
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
    """Return whether the file has any text. The kubelet has made it, of links, in a volume that no program has."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return stat.S_ISREG(os.fstat(file).st_mode) and bool(os.read(file, 1000).strip())
        finally:
            os.close(file)
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
