"""Commits what changed and pushes it; what cannot be pushed is kept, as a bundle or as an archive. What a job wrote into its results folder
gets a ref of its own, and the repository stays within its bound."""

import errno
import json
import os
import secrets
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from .gitcommand import COMMAND_SECONDS, TRIES, GitError, fetch, git, make_repository
from .task import Known, Task, TooLarge, short_reason, write_state
from .tree import WorkFile, WorkTree, ignored_paths, list_left_out, make_tree, scan, store_files, with_parents

_MODULE = "160000 "  # how git marks another repository's commit
_REJECTED = "[remote rejected]"  # git's mark of a branch that the server does not accept


def save(task: Task) -> dict[str, Any]:
    report = _save_changes(task)
    return {**report, **save_results(task)} if task.results else report


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
            report |= {"left_out": len(left_out), "left_out_names": list_left_out(left_out), "kept": keep_copy(task)}
        return report if commit == known["base"] else _push_or_keep(task, report)
    except Exception as error:  # whatever it is: the working copy is all there is, and it is deleted with the pod
        problem = f"Its changes could not be saved: {short_reason(error, task)}"
        return {"began": began, "ended": "", "kept": keep_copy(task), "problem": problem}


def _push_or_keep(task: Task, report: dict[str, Any]) -> dict[str, Any]:
    commit, began = report["ended"], report["began"]
    deadline = time.monotonic() + task.seconds
    for number in range(TRIES):
        try:
            if not task.remote:
                check_size(task, size_of(task.git / "objects"), "It was not pushed")
            branch, ended = _push(task, commit, task.branch or task.name, deadline)
        except TooLarge as error:
            kept = keep_bundle(task, commit, began, at_home_first=True) or keep_copy(task)
            return {**report, "branch": "", "kept": kept, "problem": str(error)}
        except (GitError, OSError, subprocess.TimeoutExpired) as error:
            problem = short_reason(error, task)
        else:
            with suppress(OSError):  # without it the next save merges what is on the branch already
                write_state(task.ready, {**json.loads(task.ready.read_text()), "base": commit})
            return {**report, "branch": branch, "ended": ended}
        pause = 2.0**number
        if time.monotonic() + pause > deadline:
            break
        time.sleep(pause)
    kept = keep_bundle(task, commit, began) or keep_copy(task)
    return {**report, "branch": "", "kept": kept, "problem": f"It could not be pushed: {problem}"}


def _commit(task: Task, base: str) -> tuple[str, dict[str, str]]:
    """Commit the working copy; return the commit, `base` when nothing has changed, and why files are not in it, by path."""
    known: Known = json.loads(task.known.read_text())
    left_out: dict[str, str] = {}
    with WorkTree(task.work) as tree:
        entries = scan(tree, "", left_out, without=task.results)
        for path in ignored_paths(task, tree, entries, [path for path in entries if path not in known]):
            entries.pop(path, None)
        unchanged = {
            path: known[path][0] for path, entry in entries.items() if path in known and known[path][1] == entry.stamp
        }
        changed = {path: entry for path, entry in entries.items() if path not in unchanged}
        stored = store_files(task, tree, changed, left_out)
        stay = {path: facts for path, (facts, _) in known.items() if _stays(task, tree, path, facts, left_out)}
    tree_id = make_tree(task, {**stay, **unchanged, **stored})
    before = git(task, "rev-parse", f"{base}^{{tree}}") if base else git(task, "mktree")
    if tree_id == before:
        return base, left_out
    message = f"{task.title or task.name}\n\nExecution: {task.name}\n"
    commit = git(task, "commit-tree", tree_id, *(("-p", base) if base else ()), "-m", message)
    git(task, "update-ref", "--no-deref", "HEAD", commit)  # so that it is found if this process is killed now
    return commit, left_out


def _stays(task: Task, tree: WorkTree, path: str, facts: str, left_out: Mapping[str, str]) -> bool:
    """Return whether the branch keeps what it has at the path, whatever the program did: what could not be read, the job's results, and
    other repositories whose folder is there. Files that are found in such a folder take its place."""
    if any(part in left_out or (task.results and part == task.results) for part in with_parents(path)):
        return True
    if not facts.startswith(_MODULE):
        return False
    try:
        tree.folder(path)
    except OSError:
        return False
    return True


def _push(task: Task, commit: str, target: str, until: float) -> tuple[str, str]:
    """Push the commit to its branch, merged with what others have pushed meanwhile, or to a branch of its own where both changed the
    same, or where a server refuses the branch. Return the branch and the commit. Raise GitError."""
    for _ in range(TRIES):
        try:
            _push_to(task, commit, target, until)
        except GitError as error:
            fetch(task, until)
            theirs = git(task, "for-each-ref", "--format=%(objectname)", f"refs/remotes/origin/{target}")
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
    # Servers differ in what they accept: from a remote one, nothing but a branch is asked. Ours remembers the execution's result as well,
    # whatever becomes of the branches.
    more = () if task.remote else (f"{commit}:refs/executions/{task.name}",)
    atomic = () if task.remote else ("--atomic",)
    git(task, "push", "--quiet", *atomic, "--", task.source, f"{commit}:refs/heads/{branch}", *more, until=until)


def _merge(task: Task, theirs: str, ours: str) -> str:
    """Return a commit with both changes; "" when they touch the same lines, or this git is too old to say."""
    try:
        tree = git(task, "merge-tree", "--write-tree", "--no-messages", theirs, ours).split()[0]
    except GitError:
        return ""
    message = f"Merge {task.name}\n\nExecution: {task.name}\n"
    return git(task, "commit-tree", tree, "-p", theirs, "-p", ours, "-m", message)


def _is_ancestor(task: Task, old: str, new: str) -> bool:
    try:
        git(task, "merge-base", "--is-ancestor", old, new)
    except GitError:
        return False
    return True


_MOST_RESULTS = 10_000  # files of an execution


def save_results(task: Task) -> dict[str, Any]:
    """Push what is in the results folder to a ref of the execution's own; return what to report of it, nothing where there is nothing."""
    try:
        return _push_results(task)
    except TooLarge as error:  # nor is a copy put beside the branches then
        return {"results_problem": str(error), "results_kept": keep_copy(task, only_at_home=True)}
    except Exception as error:  # whatever it is: the changes are saved already, and their report has to arrive
        reason = (str(error).strip() or type(error).__name__).splitlines()[-1][:200].encode(errors="replace").decode()
        return {"results_problem": f"The results could not be kept: {reason}", "results_kept": keep_copy(task)}


def _push_results(task: Task) -> dict[str, Any]:
    left_out: dict[str, str] = {}
    with WorkTree(task.work) as tree:
        try:
            tree.folder(task.results)
        except FileNotFoundError:
            return {}
        except OSError as error:
            why = "leads over a link" if error.errno == errno.ELOOP else "is no folder that can be read"
            return {"results_problem": f"The results are not kept, because {task.results[:60]} {why}."}
        entries = scan(tree, task.results, left_out)
        chosen, problem = _choose_results(task, entries)
        stored = store_files(task, tree, {path: entries[path] for path in chosen}, left_out)
    if left_out:
        problem = f"{problem}. " if problem else ""
        problem += f"{len(left_out)} files of the results could not be saved: {list_left_out(left_out)}"
    known: Known = json.loads(task.known.read_text())
    new = {path: facts for path, facts in stored.items() if known.get(path, ("", ""))[0] != facts}
    if not new:
        return {"results_problem": problem} if problem else {}
    sizes = {path: entries[path].size for path in new}
    tree_id = make_tree(task, {path.removeprefix(f"{task.results}/"): facts for path, facts in new.items()})
    check_size(task, sum(sizes.values()), "The results are not with the run")
    commit = git(task, "commit-tree", tree_id, "-m", f"Results of {task.name}\n\nExecution: {task.name}\n")
    target = f"+{commit}:refs/results/{task.name}"  # a program that did not end in time is saved twice
    make_repository(task)  # also beside a remote one, which gets the changes and no results
    until = time.monotonic() + task.seconds
    for number in range(TRIES):
        try:
            local = {"GIT_ALLOW_PROTOCOL": "file"}  # also beside a remote repository
            git(task, "push", "--quiet", str(task.repository), target, until=until, variables=local)
            break
        except GitError:
            if number == TRIES - 1 or time.monotonic() + 2.0**number > until:
                raise
            time.sleep(2.0**number)
    report = {"results": commit, "results_files": len(sizes), "results_bytes": sum(sizes.values())}
    return report | ({"results_problem": problem} if problem else {})


def _choose_results(task: Task, entries: Mapping[str, WorkFile]) -> tuple[list[str], str]:
    """Return the files that are kept, and a sentence on those that are too many: the largest are left out."""
    by_size = sorted((entry.size, path) for path, entry in entries.items())
    kept: list[str] = []
    room = task.results_bytes
    for size, path in by_size:
        if size > room or len(kept) >= _MOST_RESULTS:
            break
        room -= size
        kept.append(path)
    left = by_size[len(kept) :]
    if not left:
        return kept, ""
    names = [Path(path).name for _, path in left[:-4:-1]]  # the largest first
    shown = ", ".join(name if len(name) < 40 else f"{name[:40]}…" for name in names).encode(errors="replace").decode()
    limits = f"{task.results_bytes // 2**20} MiB and {_MOST_RESULTS} files"
    lost = f"{len(left)} files of the results ({sum(size for size, _ in left) / 2**20:.1f} MiB)"
    return kept, f"{lost} are not kept, because a run keeps at most {limits}: {shown}"


_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def check_size(task: Task, more: int, what: str) -> None:
    """Raise TooLarge, with `what` became of it, when the repository on the volume would have more than it may."""
    if task.largest and (size := (size_of(task.repository) + more) / 2**30) > task.largest:
        raise TooLarge(
            f"{what}: the project's repository would have {size:.1f} GiB, and may have {task.largest} GiB. "
            "Ask an admin to raise that, or keep large files elsewhere: what is in the history stays there"
        )


def size_of(folder: Path) -> int:
    size = 0
    for place, folders, files in os.walk(folder):
        for name in (*folders, *files):
            with suppress(OSError):  # gone meanwhile
                size += Path(place, name).lstat().st_size
    return size


def keep_bundle(task: Task, commit: str, began: str, *, at_home_first: bool = False) -> str:
    """Keep the commit as a bundle; return where: `repository`, `home`, or "" when nothing can be written."""
    places = (
        # What a server has may not be there when it is pushed again, so for that the bundle is whole, too.
        ("repository", task.repository / "unpushed", (f"^{began}",) if began and not task.remote else ()),
        ("home", task.home / "unpushed-files", ()),  # whole: perhaps the repository is what is broken
    )
    if task.remote:  # the bundle has all that the server has, and every run whose push fails leaves one
        try:
            check_size(task, size_of(task.git / "objects"), "")
        except TooLarge:
            at_home_first = True
    for place, folder, since in reversed(places) if at_home_first else places:
        try:
            git(task, "update-ref", "refs/heads/kept", commit)
            with _new_file(folder, f"{task.name}.bundle", is_shared=place == "repository") as file:
                git(task, "bundle", "create", "--quiet", "-", "refs/heads/kept", *since, output=file)
        except (GitError, OSError, subprocess.TimeoutExpired):
            continue
        return place
    return ""


def keep_copy(task: Task, *, only_at_home: bool = False) -> str:
    """Keep a copy of the files as an archive; return where: `home`, `copy` beside the branches, or "" when nothing can be written."""
    places = (("home", task.home / "unpushed-files"), ("copy", task.repository / "unpushed"))
    command = ["tar", "--ignore-failed-read", "--sparse", "-czf", "-", "."]
    for place, folder in places[:1] if only_at_home else places:
        with suppress(OSError, subprocess.TimeoutExpired), WorkTree(task.work) as tree:
            with _new_file(folder, f"{task.name}.tar.gz", is_shared=place == "copy") as file:
                root = f"/proc/self/fd/{tree.folder('')}"  # below it tar opens folder by folder, and follows no link
                options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "cwd": root, "start_new_session": True}
                # 1: a file changed meanwhile
                if subprocess.run(command, stdout=file, timeout=COMMAND_SECONDS, **options).returncode > 1:
                    raise OSError("tar failed")
            return place
    return ""


@contextmanager
def _new_file(folder: Path, name: str, *, is_shared: bool) -> Iterator[int]:
    """Yield the descriptor of a new file. It gets its name at the end if nothing is raised, in the place of what had it, even of a link. A
    program may write into the folder at the same time. Raise OSError, as where a link is in the place of the folder."""
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
