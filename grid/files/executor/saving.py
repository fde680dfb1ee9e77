"""Commits what changed and pushes it; what cannot be pushed is kept."""

import json
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from .gitcommand import TRIES, GitError, fetch, git
from .keeping import check_objects, keep_bundle, keep_copy
from .reporting import short_reason
from .results import save_results
from .storing import ignored_paths, list_left_out, make_tree, store_files
from .task import Known, Task, TooLarge, write_state
from .tree import WorkTree, scan, with_parents

_MODULE = "160000 "  # how git marks another repository's commit
_REJECTED = "[remote rejected]"  # git's mark of a branch that the server does not accept


def save(task: Task) -> dict[str, Any]:
    """Save the changes and the results; return what to report."""
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
                check_objects(task, "It was not pushed")
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
