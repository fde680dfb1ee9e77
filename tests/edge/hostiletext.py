"""Hostile text of each class, where a web process shows people's text: what a person stores, and each page that shows it.

`store` runs in a process with the web process's settings; `Asker` asks for the pages and for `/healthz` meanwhile.
"""

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.edge.process import PASSWORD, ROOT, WebProcess

HARMLESS = "harmless"
HEALTH_SECONDS = 0.05  # between two questions
_LINE = 32_000  # characters
_LOG_BYTES = 64 * 1024  # what is kept of a log


def _line(part: str) -> str:
    return part * (_LINE // len(part))


# One line of each class; a log has as many as it keeps, a notebook twelve.
LINES: Mapping[str, str] = {
    HARMLESS: _line("step 12: loss 0.25, fine; "),
    # A control string that never ends, for which each of its characters is another beginning.
    "strings": _line("\u009d")[:-2] + "\x1bx",
    "device-strings": _line("\u0090")[:-2] + "\x1bx",
    "escapes": _line("\x1b"),
    "csi": _line("\x1b["),
    "osc": _line("\x1b]0;"),
    "colours": _line("\x1b[31mx"),
    "dots": _line("a."),
    "dashes": _line("a-"),
    "letters": _line("a"),
    "levels": _line("info["),
    "spaces": _line(" "),
    "quotes": _line("'"),
    "double-quotes": _line('"'),
    "digits": _line("1"),
    "brackets": _line("["),
    "addresses": _line("://"),
    "tokens": _line("eyJ"),
    "split-tokens": _line("-eyJabcdefgh"),
    "keys": _line("-----BEGIN PRIVATE KEY-----"),
    "passwords": _line("password"),
    "bearers": _line("bearer "),
    "commas": _line(","),
    "line-ends": _line("\r"),
}


def _notebook(line: str) -> str:
    """A notebook of about 384 kB."""
    output = {"output_type": "stream", "name": "stdout", "text": line}
    cell = {"cell_type": "code", "source": line, "outputs": [output], "metadata": {}}
    return json.dumps({"nbformat": 4, "metadata": {}, "cells": [cell] * 6}, ensure_ascii=False)


def _odd_files() -> dict[str, str]:
    """Files that are hostile by their structure."""
    cell = '{"cell_type": "code", "source": "", "outputs": []}'
    return {
        "deep.ipynb": '{"nbformat": 4, "cells": ' + "[" * 400_000 + "]" * 400_000 + "}",
        "cells.ipynb": '{"nbformat": 4, "cells": [' + ",".join([cell] * 100_000) + "]}",
        "lists.ipynb": '{"nbformat": 4, "cells": [' + ",".join(["[]"] * 2_500_000) + "]}",
        "fields.csv": '"' + "a,b" * 1_000_000,
    }


def files() -> dict[str, str]:
    """Return the project's files by their paths."""
    files = {f"{name}.ipynb": _notebook(line) for name, line in LINES.items()}
    files |= {f"{name}.txt": f"{line}\n" * 8 for name, line in LINES.items()}
    return files | _odd_files()


def store() -> None:
    """Store ada's project with the files, and for each class an execution with its log, history and notification, and a build's log."""
    from django.conf import settings
    from django.utils import timezone

    from grid.files.changing import upload
    from grid.files.repositories import Repositories
    from grid.models import EnvironmentRevision, ExecutionLog, LifecycleEntry, Notification, Project, State, User
    from tests.executions.executing import make_environment, make_execution, make_project

    ada = User.objects.get(username="ada")
    project = make_project(ada)
    Project.objects.update(files=Project.Files.GIT)
    repository = Repositories(settings.REPOSITORIES).of(project.pk)
    repository.create()
    upload(repository, "", {path: text.encode() for path, text in files().items()}, author="ada")
    environment = make_environment()
    now = timezone.now()
    base = environment.revisions.get()
    for number, (name, line) in enumerate(LINES.items()):
        log = f"{line}\n" * (_LOG_BYTES // len(f"{line}\n".encode()) or 1)
        ended: dict[str, Any] = {"state": State.FAILED, "ended_at": now, "settled_at": now}
        execution = make_execution(ada, project, id=execution_id(name), title=name, message=line[:4000], **ended)
        ExecutionLog.objects.create(execution=execution, text=log)
        LifecycleEntry.objects.create(execution=execution, reason="Failed", message=line, source="kubernetes")
        Notification.objects.create(
            user=ada, execution=execution, event="failed", title=name, sentence=line[:4000], path="/"
        )
        EnvironmentRevision.objects.create(
            environment=environment,
            number=number + 2,
            image="b",
            base=base,
            state="failed",
            log=log,
            message=line[:4000],
        )


def execution_id(name: str) -> str:
    return f"e{list(LINES).index(name):07}"


def pages(name: str) -> dict[str, tuple[str, str]]:
    """Return what is asked of one class: by a name, the method and the path."""
    run, number = f"/executions/{execution_id(name)}/", list(LINES).index(name) + 2
    pages = {
        "notebook": f"/projects/churn/files/?path={name}.ipynb",
        "notebook as text": f"/projects/churn/files/?path={name}.ipynb&as=text",
        "file": f"/projects/churn/files/?path={name}.txt",
        "download of a file": f"/projects/churn/files/download/?path={name}.txt",
        "execution": run,
        "log": f"{run}?tab=log",
        "search in a log": f"{run}log/?part=rows&q=needle&level=warning",
        "download of a log": f"{run}log/?download=1",
        "log of a build": f"/environments/jupyterlab/revisions/{number}/",
    }
    return {what: ("GET", path) for what, path in pages.items()} | {"support bundle": ("POST", f"{run}support/")}


def common_pages() -> dict[str, tuple[str, str]]:
    """Return the pages that show the texts of all classes together, and those of the odd files."""
    pages = {"notifications": "/notifications/", "home": "/", "executions": "/executions/?state=all"}
    pages |= {path: f"/projects/churn/files/?path={path}" for path in _odd_files()}
    return {what: ("GET", path) for what, path in pages.items()}


class Asker:
    """Somebody who is logged in as ada and asks for one page after the other."""

    def __init__(self, web: WebProcess) -> None:
        self._web = web
        page = web.get("/login/").decode()
        self._csrf = page.split("set-cookie: grid_csrf=", 1)[1].split(";", 1)[0]
        token = page.split('name="csrfmiddlewaretoken" value="')[1].split('"')[0]
        self._cookies = f"grid_csrf={self._csrf}"
        form = f"csrfmiddlewaretoken={token}&username=ada&password={PASSWORD}"
        answer = self._ask("POST", "/login/", form)
        assert answer.status == 302, answer.status
        set_again = [cookie.split(";", 1)[0] for cookie in answer.headers.get_all("set-cookie", [])]
        self._cookies = "; ".join(set_again)
        self._csrf = next(
            (value for name, _, value in (c.partition("=") for c in set_again) if name == "grid_csrf"), self._csrf
        )

    def ask(self, method: str, path: str) -> int:
        """Return the answer's status, when all of it has come."""
        return self._ask(method, path, f"csrfmiddlewaretoken={self._csrf}" if method == "POST" else None).status

    def _ask(self, method: str, path: str, form: str | None) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self._web.port, timeout=120)
        headers = {"Cookie": self._cookies, "Referer": f"http://127.0.0.1:{self._web.port}/"}
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        connection.request(method, path, form, headers)
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer


class Health:
    """The longest answer of `/healthz` so far, in seconds."""

    longest = 0.0


@contextmanager
def health_of(port: int) -> Iterator[Health]:
    """Ask `/healthz` again and again while the block runs, and once more when it has ended."""
    health, is_over = Health(), threading.Event()

    def ask() -> None:
        while True:
            was_over = is_over.is_set()
            began = time.perf_counter()
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
            with suppress(TimeoutError):
                connection.request("GET", "/healthz")
                connection.getresponse().read()
            connection.close()
            health.longest = max(health.longest, time.perf_counter() - began)
            if was_over:
                return
            is_over.wait(HEALTH_SECONDS)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield health
    finally:
        is_over.set()
        thread.join()


def store_for(web: WebProcess) -> None:
    """Run `store` with the web process's settings."""
    code = "import django; django.setup(); from tests.edge.hostiletext import store; store()"
    environment = {**os.environ, **web.environment, "DJANGO_SETTINGS_MODULE": "grid.settings"}
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=True)


def repositories_in(folder: Path) -> dict[str, str]:
    """Return the setting of a web process that serves the files."""
    (folder / "repositories").mkdir()
    return {"GRID_REPOSITORIES": str(folder / "repositories")}
