"""Checks out the project's files before the program starts."""

import os
import shutil
import subprocess
import time
from contextlib import suppress
from pathlib import Path

from .gitcommand import CONFIGURATION, GitError, LastWords, fetch, git, identity, make_repository, take_secret
from .task import Known, Missing, Task, write_state
from .tree import KEPT, WorkTree, list_folder, open_at, scan, with_parents

_TICK_SECONDS = 0.02  # after so long a file that is changed has another time of change
_ATTRIBUTES = "* -text -filter -ident -working-tree-encoding -export-subst !merge\n"


def prepare(task: Task) -> None:
    """Check out the files, unless an earlier process of this container has: the program may have changed them since. Raise Missing,
    GitError, OSError."""
    if not task.ready.exists():
        commit, branch = _check_out(task)
        instead = {"branch": branch} if branch != task.branch else {}
        write_state(task.ready, {"began": commit, "base": commit, **instead})
    for name in ("index.lock", "HEAD.lock"):  # of an earlier process that was killed
        (task.git / name).unlink(missing_ok=True)


def _check_out(task: Task) -> tuple[str, str]:
    """Return the commit that is checked out, "" in a repository that has none yet, and the branch that the work goes to. No program runs
    yet, so git writes into the working copy itself."""
    task.state.mkdir(parents=True, exist_ok=True)
    task.work.mkdir(parents=True, exist_ok=True)
    _empty(task.work)
    shutil.rmtree(task.git, ignore_errors=True)
    (task.state / "gitconfig").write_text(CONFIGURATION)
    if task.remote:
        take_secret(task)
    else:
        make_repository(task)
    git(task, "init", "--quiet", "--bare", "--template=")
    for folder in ("info", "objects/info"):
        (task.git / folder).mkdir(exist_ok=True)
    (task.git / "info" / "attributes").write_text(_ATTRIBUTES)
    if not task.remote:  # objects of the repository are read where they are, and not copied
        (task.git / "objects" / "info" / "alternates").write_text(f"{task.repository / 'objects'}\n")
    began, branch = _beginning(task)
    known: Known = {}
    if began:
        git(task, "checkout", "--quiet", "--force", "--detach", began, variables={"GIT_WORK_TREE": str(task.work)})
        lines = git(task, "ls-tree", "-r", "-z", began).split("\0")
        entries = (line.partition("\t") for line in lines if line)
        known = {path: (" ".join(facts.split()[::2]), "") for facts, _, path in entries}
    with WorkTree(task.work) as tree:
        _give_back(task, tree, known)
        time.sleep(_TICK_SECONDS)
        for path, entry in scan(tree, "", {}).items():
            if path in known:
                known[path] = known[path][0], entry.stamp
    write_state(task.known, known)
    return began, branch


def _beginning(task: Task) -> tuple[str, str]:
    """Return the commit to begin with, "" in a repository that has none yet, and its branch: the fallback where the other is gone."""
    fetch(task)
    branches = [task.branch, *filter(None, [task.fallback])]
    for branch in branches:
        name = task.commit or f"refs/remotes/origin/{branch}"
        with suppress(GitError):
            return git(task, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"), branch
    if not task.commit and not git(task, "for-each-ref", "--count=1", "refs/remotes/origin/"):
        return "", branches[-1]
    what = f"commit {task.commit}" if task.commit else f"branch {branches[-1]}"
    raise Missing(f"The project's repository has no {what}.")


def _give_back(task: Task, tree: WorkTree, known: Known) -> None:
    """Give its name back to each .git that nobody but this person has ever changed, the deepest first."""
    if task.remote:
        return
    places = {part for path in known for part in with_parents(path) if part.rpartition("/")[2].lower() == f".git{KEPT}"}
    for place in sorted(places, key=lambda path: path.count("/"), reverse=True):
        authors = git(task, "log", "--full-history", "-m", "--format=%ae", "HEAD", "--", place)
        if set(authors.splitlines()) <= {identity(task.author)[1]}:
            _restore(tree, place)


def _restore(tree: WorkTree, path: str) -> None:
    """Give a .git its name back, and the empty folders without which it is no repository."""
    folder, _, name = path.rpartition("/")
    inside, target = tree.folder(folder), path.removesuffix(KEPT)
    if name.removesuffix(KEPT) in list_folder(inside):
        return
    os.rename(name, name.removesuffix(KEPT), src_dir_fd=inside, dst_dir_fd=inside)
    with suppress(OSError):  # it is a file or a link, or has no HEAD
        os.close(open_at(tree.folder(target), "HEAD"))
        for place, new in ((target, "objects"), (target, "refs"), (f"{target}/refs", "heads")):
            with suppress(FileExistsError):
                os.mkdir(new, dir_fd=tree.folder(place))


def _empty(folder: Path) -> None:
    """Remove all that is in the folder, however deep. Raise OSError."""
    process = subprocess.Popen(["find", str(folder), "-mindepth", "1", "-delete"], stderr=subprocess.PIPE)
    words = LastWords(process)
    if process.wait() != 0:
        raise OSError(words.text())
