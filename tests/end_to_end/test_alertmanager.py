"""Alerts by a real Alertmanager, with the receiver that we ship, to a real web process, whose page shows and silences them."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from tests.end_to_end.grid import ROOT, Session
from tests.support.ports import free_ports
from tests.support.waiting import wait_until

PROGRAM = shutil.which("prometheus-alertmanager") or shutil.which("alertmanager") or ""
AMTOOL = shutil.which("amtool") or ""
SHIPPED = ROOT / "deploy" / "monitoring" / "alertmanager.yml"
PASSWORD = "a-long-password"
TOKEN = "0123456789abcdef0123456789abcdef"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not PROGRAM, reason="no prometheus-alertmanager here"),
]


@pytest.mark.skipif(not AMTOOL, reason="no amtool here")
def test_shipped_alertmanager_configuration_is_valid() -> None:
    done = subprocess.run([AMTOOL, "check-config", str(SHIPPED)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def manager_port() -> int:
    """Of Alertmanager; the next one is the web process's."""
    return free_ports(2)


@pytest.fixture
def environment(tmp_path: Path, manager_port: int) -> dict[str, str]:
    """Of our processes, whose database is in the folder."""
    return {
        **{name: text for name, text in os.environ.items() if not name.startswith(("GRID_", "DJANGO_"))},
        "GRID_VAR": str(tmp_path),
        "GRID_SECRET_KEY": "x" * 50,
        "GRID_ALERTS_TOKEN": TOKEN,
        "GRID_ALERTMANAGER_URL": f"http://127.0.0.1:{manager_port}/",
        "KUBECONFIG": str(tmp_path / "none"),
    }


@pytest.fixture
def web(tmp_path: Path, environment: dict[str, str], manager_port: int) -> Iterator[str]:
    """The address of a web process without a cluster."""
    port = manager_port + 1
    environment |= {"GRID_DASHBOARD_ORIGIN": f"http://127.0.0.1:{port}"}
    manage = [sys.executable, "manage.py"]
    subprocess.run([*manage, "migrate", "-v0"], cwd=ROOT, env=environment, check=True, timeout=120)
    with (tmp_path / "web.log").open("w") as log:
        process = subprocess.Popen(
            [*manage, "web", "--port", str(port)], cwd=ROOT, env=environment, stdout=log, stderr=log
        )
    try:
        url = f"http://127.0.0.1:{port}"
        wait_until(lambda: answers(f"{url}/healthz"), 90, "the web process answers")
        yield url
    finally:
        process.terminate()
        process.wait(60)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except OSError:
        return False


def alerts_in(folder: Path) -> list[tuple[str, bool]]:
    """Name and whether it is over, of each stored alert."""
    with sqlite3.connect(folder / "grid.sqlite3") as database:
        return [
            (name, ended is not None)
            for name, ended in database.execute("SELECT name, ended_at FROM grid_alert ORDER BY id")
        ]


def start(folder: Path, web: str, port: int) -> "subprocess.Popen[bytes]":
    made = yaml.safe_load(SHIPPED.read_text())
    made["route"] |= {"group_wait": "0s", "group_interval": "1s", "repeat_interval": "2s"}
    webhook = made["receivers"][0]["webhook_configs"][0]
    webhook["url"] = f"{web}/alerts/received/"
    webhook["http_config"]["authorization"]["credentials_file"] = str(folder / "token")
    (folder / "token").write_text(TOKEN)
    (folder / "alertmanager.yml").write_text(yaml.safe_dump(made))
    arguments = [f"--config.file={folder}/alertmanager.yml", f"--storage.path={folder}/alertmanager"]
    arguments += [f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="]
    with (folder / "alertmanager.log").open("a") as log:
        return subprocess.Popen([PROGRAM, *arguments], stdout=log, stderr=log)


def tell(port: int, began: datetime, ends: datetime) -> None:
    labels = {"alertname": "NoControllerLeads", "severity": "page"}
    alert = {
        "labels": labels,
        "annotations": {"runbook": "no-controller-leads"},
        "startsAt": began.isoformat(),
        "endsAt": ends.isoformat(),
    }
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/api/v2/alerts", json.dumps([alert]).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=10):
        pass


@pytest.fixture
def alertmanager(tmp_path: Path, web: str, manager_port: int) -> Iterator[Callable[[], None]]:
    """A running Alertmanager; called, it is started again."""
    running = list[subprocess.Popen[bytes]]()

    def end() -> None:
        while running:
            running[-1].terminate()
            running.pop().wait(30)

    def restart() -> None:
        end()
        running.append(start(tmp_path, web, manager_port))
        wait_until(lambda: answers(f"http://127.0.0.1:{manager_port}/-/ready"), 60, "Alertmanager answers")

    try:
        restart()
        yield restart
    finally:
        end()


# What the leading controller does, without a cluster; what is missing is over soon.
PASSER = """
import asyncio, random
from datetime import timedelta
from asgiref.sync import sync_to_async
from django.conf import settings
from django.utils import timezone
from grid.database.periodic import PeriodicRunner
from grid.database.trouble import TroubleLog
from grid.alerts import silence_sync as passing
from grid.alerts.silence_sync import Alertmanager
passing.LOOK_SECONDS, passing.MISSING = 0.2, timedelta(seconds=1)
async def database(work, /, *args, **kwargs):
    return await sync_to_async(work)(*args, **kwargs)
manager = Alertmanager(settings.ALERTMANAGER_URL)
passer = passing.SilenceSynchronizer(manager, database, timezone.now)
runner = PeriodicRunner(TroubleLog(lambda: 0.0), clock=timezone.now, rng=random.Random())
asyncio.run(runner.run([passer.periodic()]))
"""


@pytest.fixture
def passer(environment: dict[str, str], web: str, tmp_path: Path) -> Iterator[None]:
    with (tmp_path / "passer.log").open("w") as log:
        command = [sys.executable, "manage.py", "shell", "-v0", "-c", PASSER]
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
    yield
    process.terminate()
    process.wait(30)


@pytest.fixture
def operator(web: str, environment: dict[str, str]) -> Session:
    """Somebody who may operate, in front of the web process."""
    named = {"DJANGO_SUPERUSER_PASSWORD": PASSWORD, "DJANGO_SUPERUSER_EMAIL": "ada@example.com"}
    command = [sys.executable, "manage.py", "createsuperuser", "--noinput", "--username", "ada"]
    subprocess.run(command, cwd=ROOT, env=environment | named, check=True, timeout=120)
    place: Any = SimpleNamespace(url=web, password=lambda username: PASSWORD)
    return Session(place, "ada")


def silences_in(port: int) -> list[tuple[str, str]]:
    """Who created each silence that Alertmanager has, and its state."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v2/silences", timeout=10) as answer:
        return [(silence["createdBy"], silence["status"]["state"]) for silence in json.load(answer)]


def test_page_shows_alert_and_silence_ends_in_alertmanager(
    tmp_path: Path, operator: Session, alertmanager: Callable[[], None], passer: None, manager_port: int
) -> None:
    began = datetime.now(UTC)
    tell(manager_port, began, began + timedelta(hours=1))
    wait_until(lambda: "/silence/" in operator.get("/alerts/"), 60, "the page shows the alert")
    alertmanager()
    tell(manager_port, began, began + timedelta(hours=1))
    page = operator.get("/alerts/")
    assert 'class="notice announcement notice-error"' in page
    path = re.findall(r'"(/alerts/\d+/silence/)"', page)[0]
    operator.post(path, {"minutes": "60", "reason": "Known."}, page=path)
    page = operator.get("/alerts/")
    assert "Silenced by ada until" in page
    assert 'class="notice announcement notice-error"' not in page
    wait_until(lambda: silences_in(manager_port) == [("ada", "active")], 60, "Alertmanager has the silence")
    wait_until(lambda: "Here and in Alertmanager." in operator.get("/alerts/"), 60, "the page says so")
    ending = re.findall(r'"(/alerts/silences/\d+/end/)"', operator.get("/alerts/"))[0]
    operator.post(ending, {}, page=ending)
    wait_until(lambda: silences_in(manager_port) == [("ada", "expired")], 60, "Alertmanager has ended it")
    assert 'class="notice announcement notice-error"' in operator.get("/alerts/")
    operator.post(path, {"minutes": "60", "reason": "Again."}, page=path)
    wait_until(lambda: ("ada", "active") in silences_in(manager_port), 60, "Alertmanager has the second silence")
    tell(manager_port, began, datetime.now(UTC))
    wait_until(lambda: "Nothing fires." in operator.get("/alerts/"), 60, "what ended while silenced is over")
    assert alerts_in(tmp_path) == [("NoControllerLeads", True)], "one alert, despite a restart of Alertmanager"
