"""Keeps what a job wrote into its results folder, under a ref of the execution's own."""

import errno
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .gitcommand import TRIES, GitError, git, make_repository
from .keeping import check_size, keep_copy
from .storing import list_left_out, make_tree, store_files
from .task import Known, Task, TooLarge
from .tree import WorkFile, WorkTree, scan

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
    return {**report, **({"results_problem": problem} if problem else {})}


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
    total = sum(size for size, _ in left) / 2**20
    return (
        kept,
        f"{len(left)} files of the results ({total:.1f} MiB) are not kept, because a run keeps at most {limits}: {shown}",
    )
