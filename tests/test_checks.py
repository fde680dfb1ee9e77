"""System checks say what is wrong with an installation's settings; debugging is for this machine alone, however a server starts."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.core.checks import run_checks
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.test import override_settings
from pytest_django import Settings

from grid.checks import (
    _BUILDERS,
    builds,
    demand_service,
    egress,
    ingress,
    log_receiver,
    notifications,
    origins,
    stored_secrets,
    trusted_proxies,
)
from grid.core.origins import beyond_loopback
from grid.database.encryption import encrypt
from grid.edge.wrappers import LoopbackOnly
from grid.environments.buildjobs import BUILDERS
from grid.models import StoredSecret, User, WebhookTarget
from tests.edge.process import ROOT
from tests.edge.test_limits import asked
from tests.test_deploy import DEPLOY

HERE = ("http://127.0.0.1:8000", "http://localhost:8001")
NAMES = ("127.0.0.1", "localhost", "[::1]", ".localhost")


@pytest.mark.parametrize(
    ("dashboard", "workspaces", "expected"),
    [
        ("https://grid.example.org", "https://work.example.net", []),
        ("https://grid.example.co.uk", "https://work.another.co.uk", []),
        ("http://127.0.0.1:8000", "http://localhost:8001", []),
        ("https://grid.example.org", "https://work.example.org", ["grid.I001"]),
        ("https://grid.example.org", "https://work.grid.example.org", ["grid.I001"]),
        ("https://grid.work.example.co.uk", "https://work.example.co.uk", ["grid.I001"]),
        ("https://grid.example.org", "https://grid.example.org:8443", ["grid.W001"]),
        ("https://grid.example.org", "https://grid.example.org", ["grid.E001"]),
        ("http://grid.example.org", "http://work.example.net", ["grid.W003"]),
        ("https://grid.example.org", "http://work.example.net", ["grid.W003"]),
        ("https://grid.example.org", "https://198.51.100.7", ["grid.E002"]),
        ("http://127.0.0.1:8000", "http://127.0.0.2:8001", ["grid.E002"]),
    ],
)
def test_the_origins_are_kept_apart(settings: Settings, dashboard: str, workspaces: str, expected: list[str]) -> None:
    settings.DASHBOARD_ORIGIN, settings.WORKSPACE_ORIGIN = dashboard, workspaces
    assert [message.id for message in origins(None)] == expected


@pytest.mark.parametrize(
    ("proxies", "expected"),
    [([], []), (["10.1.0.0/16", "::1"], []), (["10.1.2.3/16"], ["grid.E020"]), (["ingress"], ["grid.E020"])],
)
def test_proxies_are_named_by_address(settings: Settings, proxies: list[str], expected: list[str]) -> None:
    settings.TRUSTED_PROXIES = proxies
    assert [message.id for message in trusted_proxies(None)] == expected


def test_shared_origin_of_executions_is_warned_of(settings: Settings) -> None:
    settings.DASHBOARD_ORIGIN, settings.WORKSPACE_ORIGIN = "https://grid.example.org", "https://work.example.net"
    settings.WORKSPACE_PATHS = True
    (message,) = origins(None)
    assert message.id == "grid.W002"
    assert "terminals of every other" in message.msg


def test_mistake_in_egress_is_an_error_with_a_sentence(settings: Settings) -> None:
    settings.EGRESS, settings.STORAGE_EGRESS, settings.EGRESS_EXCEPT = ["10.0.0.0/8"], ["10.0.0.5"], ["x"]
    messages = egress(None)
    assert [message.id for message in messages] == ["grid.E003"] * 3
    assert "GRID_EGRESS names “10.0.0.0/8”" in messages[0].msg


def test_impossible_mail_and_webhook_settings_are_errors(settings: Settings) -> None:
    assert notifications(None) == []
    settings.WEBHOOK_PRIVATE, settings.EMAIL_TLS = ["10.0.0.0/8", "10.0.0.1/8"], "yes"
    settings.EMAIL_HOST, settings.DEFAULT_FROM_EMAIL = "mail.example.com", ""
    messages = notifications(None)
    assert [message.id for message in messages] == ["grid.E040", "grid.E041", "grid.E042"]
    assert "begins at its first one: 10.0.0.0/8" in messages[0].msg


@pytest.mark.parametrize(
    ("builder", "repository", "expected"),
    [
        ("", "", []),
        ("buildkit", "registry.example.com:5000/grid/images", []),
        ("kaniko", "registry.example.com/grid", ["grid.E050"]),
        ("buildah", "", ["grid.E051"]),
        ("buildah", "registry.example.com/grid,push=false", ["grid.E051"]),
        ("buildah", "https://registry.example.com/grid", ["grid.E051"]),
    ],
)
def test_impossible_image_builder_is_an_error(
    settings: Settings, builder: str, repository: str, expected: list[str]
) -> None:
    assert tuple(BUILDERS) == _BUILDERS
    settings.BUILDER, settings.BUILD_REPOSITORY = builder, repository
    assert [message.id for message in builds(None)] == expected


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ("", []),
        ("https://pypi.example.com/a@b/simple", []),
        ("https://token:s3cret@pypi.example.com/simple", ["grid.E052"]),
        ("https://s3cret@[x", ["grid.E052"]),
    ],
)
def test_credentials_in_the_package_index_are_refused(settings: Settings, index: str, expected: list[str]) -> None:
    settings.PACKAGE_INDEX = index
    messages = builds(None)
    assert [message.id for message in messages] == expected
    assert "s3cret" not in str(messages)


def test_no_controller_starts_with_such_a_mistake(settings: Settings) -> None:
    settings.EGRESS = ["10.0.0.0/8"]
    with pytest.raises(SystemCheckError, match="GRID_EGRESS names"):
        call_command("controller", skip_checks=False)


def test_the_settings_that_deploy_names_are_without_fault(settings: Settings) -> None:
    documents = yaml.safe_load_all((DEPLOY / "compute-grid.yaml").read_text())
    (named,) = [document["data"] for document in documents if document["kind"] == "ConfigMap"]
    settings.DASHBOARD_ORIGIN = named["GRID_DASHBOARD_ORIGIN"]
    settings.WORKSPACE_ORIGIN = named["GRID_WORKSPACE_ORIGIN"]
    settings.TRUSTED_PROXIES = named["GRID_TRUSTED_PROXIES"].split(",")
    assert [message for message in run_checks() if (message.id or "").startswith("grid.")] == []


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        ("demand.compute-grid-system:443", []),
        ("demand.compute-grid-system", ["grid.E025"]),
        ("demand.compute-grid-system.svc:443", ["grid.E025"]),
        ("demand:443", ["grid.E025"]),
    ],
)
def test_metrics_service_is_named_with_namespace_and_port(
    settings: Settings, service: str, expected: list[str]
) -> None:
    settings.DEMAND_SERVICE = service
    assert [message.id for message in demand_service(None)] == expected


@pytest.mark.django_db
def test_unreadable_secret_is_told_with_its_missing_key(settings: Settings) -> None:
    assert stored_secrets(None, ["default"]) == []
    first, new = "first" * 8, "new" * 11
    settings.SECRET_KEY, settings.ENCRYPTION_KEYS = first, [first]
    owner = User.objects.create_user(username="alice")
    StoredSecret.objects.create(name="A", owner=owner, ciphertext=encrypt("value"))
    for keys, key, expected in (
        ([first], first, []),
        ([new, first], first, []),
        ([new], first, ["grid.W032"]),  # GRID_ENCRYPTION_KEYS was set for the first time, with a new key alone
        ([new], "another" * 6, ["grid.W033"]),
    ):
        settings.ENCRYPTION_KEYS, settings.SECRET_KEY = keys, key
        messages = stored_secrets(None, ["default"])
        assert [message.id for message in messages] == expected
        assert all("The stored secret A cannot be read" in message.msg for message in messages)
    assert stored_secrets(None, None) == [], "without a database to ask"


@pytest.mark.django_db
def test_unreadable_webhook_secret_is_told_too(settings: Settings) -> None:
    first, new = "first" * 8, "new" * 11
    settings.SECRET_KEY, settings.ENCRYPTION_KEYS = first, [first]
    owner = User.objects.create_user(username="alice")
    WebhookTarget.objects.create(user=owner, url="https://example.com/", secret=encrypt("value"))
    assert stored_secrets(None, ["default"]) == []
    settings.ENCRYPTION_KEYS = [new]
    (message,) = stored_secrets(None, ["default"])
    assert message.id == "grid.W032"
    assert f"The stored secret of the webhook of {owner.pk} cannot be read" in message.msg


def test_an_ingress_that_would_lead_nowhere_is_refused() -> None:
    def ids_with(**changes: Any) -> list[str | None]:
        good = {"INGRESS_CLASS": "nginx", "FRONT_IMAGE": "nginx:1", "WORKSPACE_PATHS": False}
        with override_settings(**{**good, **changes}):
            return [message.id for message in ingress(None)]

    assert ids_with() == ids_with(INGRESS_CLASS="", INGRESS_PROXY="") == []
    assert ids_with(INGRESS_PROXY="proxy.10-0-0-1.example:80") == ids_with(INGRESS_PROXY="proxy1:80") == []
    for wrong in ("proxy", "http://proxy:80", "10.0.0.1:80", "127.1:80", "1:80", "[::1]:80"):
        assert ids_with(INGRESS_PROXY=wrong) == ["grid.E043"], wrong
    assert ids_with(FRONT_IMAGE="") == ids_with(WORKSPACE_PATHS=True) == ["grid.W044"]


@pytest.mark.parametrize(
    ("url", "link", "expected"),
    [
        ("", "", []),
        ("https://loki.example.com/otlp", "https://g.example.com/?id={execution}", []),
        ("http://127.0.0.1:3100", "", []),
        ("collector:4318", "", ["grid.E070"]),
        ("http://[::1", "", ["grid.E070"]),
        ("http://collector:99999", "", ["grid.E070"]),
        ("https://otlp.example.com/?key=hush", "", ["grid.E070"]),
        ("https://me:hush@collector.example.com", "", ["grid.E071"]),
        ("http://collector.example.com:4318", "", ["grid.W072"]),
        ("https://loki.example.com", "https://g.example.com/", ["grid.E073"]),
        ("https://loki.example.com", "javascript:{execution}", ["grid.E073"]),
        ("https://loki.example.com", "https://[{execution}", ["grid.E073"]),
    ],
)
def test_useless_or_leaking_log_receiver_is_told(settings: Settings, url: str, link: str, expected: list[str]) -> None:
    settings.LOG_RECEIVER_URL, settings.LOG_LINK = url, link
    settings.LOG_RECEIVER_AUTHORIZATION = "Bearer hush"
    messages = log_receiver(None)
    assert [message.id for message in messages] == expected
    assert not any("hush" in message.msg for message in messages)


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


def test_proxy_checks_settings_and_loads_no_pages(tmp_path: Path) -> None:
    checked = (
        "import django, sys; django.setup(); from grid.management.commands.proxy import Command; command = Command(); "
        "command.check(tags=command.requires_system_checks); print('dashboard.urls' in sys.modules)"
    )
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "grid.settings", "GRID_DEMO": "1", "GRID_VAR": str(tmp_path)}
    command, same = [sys.executable, "-c", checked], {"GRID_WORKSPACE_ORIGIN": "http://127.0.0.1:8000"}
    sound = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert sound.stdout.strip() == "False"
    wrong = subprocess.run(command, cwd=ROOT, env={**environment, **same}, capture_output=True, text=True, timeout=60)
    assert "grid.E00" in wrong.stderr
