"""What the browser tests of project files put on the stage: a project whose files are in Git, as two executions have left them."""

import base64
import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings

from grid.files import executor
from grid.files.executor import Task
from grid.models import Execution, Project, RunFiles
from tests.browser import executing
from tests.browser.server import Stage
from tests.files.test_files import PIXEL
from tests.support.frozen import write_frozen

_FOLDER = settings.VAR_DIR / "repositories"
SAVED, KEPT = "saved22222", "kept333333"
README = (
    "# Customer churn\n\nWho leaves, and why.\n"
    + "A line that is longer than a phone is wide, as people write them. " * 4
)

_OUTPUTS = (
    {"output_type": "stream", "name": "stdout", "text": ["\x1b[32mfitted\x1b[0m in 3 s\n", "wide " * 60]},
    {
        "output_type": "execute_result",
        "data": {"text/html": "<script>alert(1)</script>", "text/plain": "   left\n0     1"},
    },
    {"output_type": "display_data", "data": {"image/png": base64.b64encode(PIXEL).decode()}},
    {"output_type": "error", "ename": "ValueError", "evalue": "", "traceback": ["\x1b[31mValueError\x1b[0m: no rows"]},
)
_NOTEBOOK = {
    "cells": [
        {"cell_type": "markdown", "source": "# Who leaves\n\nBy **month**.\n"},
        {"cell_type": "code", "source": "fit(data)", "execution_count": 3, "outputs": _OUTPUTS},
    ]
}


def _commits(folder: Path) -> tuple[str, dict[str, Any]]:
    for name in ("work", "state", "home"):
        (folder / name).mkdir()
    task = Task(
        repository=folder / "churn.git",
        work=folder / "work",
        state=folder / "state",
        report=folder / "report",
        home=folder / "home",
        name="job-first",
        branch="main",
        author="alice",
        title="Prepare the data",
    )
    task.repository.mkdir()
    executor.prepare(task)
    (task.work / "data").mkdir()
    (task.work / "data" / "customers.csv").write_text("name,left\n<script>alert(1)</script>,1\n")
    (task.work / "README.md").write_text(README)
    (task.work / "plot.png").write_bytes(PIXEL)
    (task.work / "model.bin").write_bytes(bytes(5000))
    (task.work / "plots.ipynb").write_text(json.dumps(_NOTEBOOK))
    (task.work / ("a-very-long-name-of-a-result-" * 5)).touch()
    first = executor.save(task)["ended"]
    (task.work / "data" / "customers.csv").write_text("name,left\nbob,0\n")
    (task.work / "results").mkdir()
    (task.work / "results" / "accuracy.csv").write_text("step,accuracy\n1,0.9\n")
    (task.work / "results" / "curve.png").write_bytes(PIXEL)
    (task.work / "results" / ("a-long-name-of-a-result-" * 6)).touch()
    (task.work / "results" / "weights.bin").write_bytes(bytes(2**21))
    task = replace(task, name="job-second", branch="", author="bob", title="Clean them")
    return first, executor.save(replace(task, results="results", results_bytes=2**20))


def _files() -> None:
    shutil.rmtree(_FOLDER, ignore_errors=True)
    _FOLDER.mkdir(parents=True)
    settings.REPOSITORIES = str(_FOLDER)
    began, report = _commits(Path(settings.REPOSITORIES))
    Project.objects.filter(pk="churn").update(files=Project.Files.GIT)
    kept = _FOLDER / "churn.git" / "unpushed"
    kept.mkdir()
    (kept / "workspace-dddd5555ff.bundle").touch()
    for id, columns in (
        (SAVED, {"branch": "job-second", **{name: report[name] for name in report if name.startswith("results")}}),
        (KEPT, {"kept": "repository", "problem": "It could not be pushed: no space left on device"}),
    ):
        execution = Execution.objects.get(pk=id)
        write_frozen(execution, spec={**execution.spec, "files": {"branch": "main"}})
        RunFiles.objects.create(execution=execution, began=began, ended=report["ended"], **columns)


async def two_runs(stage: Stage) -> None:
    await executing.working_day(stage)
    for id in (SAVED, KEPT):
        await executing.put(stage, id, "succeeded", minutes=90, title="Clean them", ended_at=datetime.now(UTC))
    await sync_to_async(_files)()
