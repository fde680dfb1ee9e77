"""Debugging is for this machine alone, whichever server was started and however."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from grid.core.origins import beyond_loopback
from grid.edge.wrappers import LoopbackOnly
from tests.edge.process import ROOT
from tests.edge.test_limits import asked

HERE = ("http://127.0.0.1:8000", "http://localhost:8001")
NAMES = ("127.0.0.1", "localhost", "[::1]", ".localhost")


def imported(application: str, folder: Path, **settings: str) -> "subprocess.CompletedProcess[str]":
    """Import an application as any ASGI server does, with debugging on."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("GRID_", "DJANGO_"))}
    return subprocess.run(
        [sys.executable, "-c", f"import {application}"],
        cwd=ROOT,
        env={**clean, "GRID_VAR": str(folder), "GRID_DEBUG": "true", **settings},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize("application", ["grid.asgi", "grid.proxy_asgi"])
def test_debugging_with_a_public_origin_does_not_start(application: str, tmp_path: Path) -> None:
    done = imported(application, tmp_path, GRID_DASHBOARD_ORIGIN="https://grid.example.com")
    assert done.returncode != 0
    last = done.stderr.strip().splitlines()[-1]
    assert "GRID_DASHBOARD_ORIGIN=https://grid.example.com leads beyond it. Leave GRID_DEBUG out" in last


def test_debugging_on_loopback_starts(tmp_path: Path) -> None:
    done = imported("grid.asgi", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("dashboard", "workspaces", "hosts", "named"),
    [
        (*HERE, NAMES, ""),
        ("http://[::1]:8000", "http://ws.localhost", (), ""),
        ("http://10.1.2.3:8000", HERE[1], NAMES, "GRID_DASHBOARD_ORIGIN=http://10.1.2.3:8000"),
        (HERE[0], "https://ws.example.com", NAMES, "GRID_WORKSPACE_ORIGIN=https://ws.example.com"),
        (HERE[0], "http://localhost.example.com", NAMES, "GRID_WORKSPACE_ORIGIN=http://localhost.example.com"),
        (*HERE, ("*",), "GRID_ALLOWED_HOSTS=*"),
        (*HERE, (*NAMES, ".example.com"), "GRID_ALLOWED_HOSTS=.example.com"),
        (*HERE, ("0.0.0.0",), "GRID_ALLOWED_HOSTS=0.0.0.0"),
    ],
)
def test_settings_beyond_loopback_are_named(
    dashboard: str, workspaces: str, hosts: tuple[str, ...], named: str
) -> None:
    assert beyond_loopback(dashboard, workspaces, hosts) == named


@pytest.mark.parametrize(
    ("server", "status"),
    [
        (("127.0.0.1", 8000), 200),
        (("::1", 8000), 200),
        (("10.1.2.3", 8000), 403),
        (("/run/grid.sock", None), 403),
        (None, 403),
    ],
)
async def test_debugging_answers_loopback_addresses_only(server: Any, status: int) -> None:
    """A server that listens everywhere is asked by a machine's own address, whatever the Host header says."""

    async def inside(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    request = asked(headers={"host": "127.0.0.1:8000"})
    request.scope["server"] = server
    await LoopbackOnly(inside)(request.scope, request.receive, request.send)
    assert request.status == status
