"""The settings of deploy/compute-grid.yaml, as the web pods have them: cookies, https, and Django's own checks."""

import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.test import Client
from psycopg.conninfo import make_conninfo
from pytest_django import Settings

from grid.models import User

ROOT = Path(__file__).parents[1]
HOST = "grid.example.com"
_APPLIED = (
    *("ALLOWED_HOSTS", "CSRF_COOKIE_NAME", "CSRF_COOKIE_SECURE", "CSRF_TRUSTED_ORIGINS", "DASHBOARD_ORIGIN"),
    *("SECURE_HSTS_INCLUDE_SUBDOMAINS", "SECURE_HSTS_SECONDS", "SECURE_PROXY_SSL_HEADER", "SECURE_REDIRECT_EXEMPT"),
    *("SECURE_SSL_REDIRECT", "SESSION_COOKIE_NAME", "SESSION_COOKIE_SECURE", "WORKSPACE_ORIGIN"),
)


def environment(folder: Path) -> dict[str, str]:
    """Of a web pod: the ConfigMap, and the Secret as docs/installation.md makes it."""
    objects = yaml.safe_load_all((ROOT / "deploy/compute-grid.yaml").read_text())
    (config,) = [
        document
        for document in objects
        if document["kind"] == "ConfigMap" and document["metadata"]["name"] == "settings"
    ]
    return {**config["data"], "GRID_SECRET_KEY": os.urandom(32).hex(), "GRID_VAR": str(folder)}


@pytest.fixture
def production(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings) -> dict[str, Any]:
    """These settings in force for this test's requests; and all of them."""
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    values = runpy.run_path(str(ROOT / "grid/settings.py"))
    for name in _APPLIED:
        setattr(settings, name, values[name])
    return values


@pytest.fixture
def browser(production: dict[str, Any], db: None) -> Client:
    """Of somebody who reaches the dashboard by https, through the ingress."""
    User.objects.create_user("alice", password="alice-password")
    return Client(headers={"host": HOST, "x-forwarded-proto": "https"})


def test_djangos_checks_for_deployment_find_nothing(tmp_path: Path) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("GRID_", "DJANGO_"))}
    done = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "WARNING"],
        cwd=ROOT,
        env={**clean, **environment(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


def test_cookies_are_bound_to_this_host_and_to_https(browser: Client) -> None:
    browser.get("/login/")
    browser.post("/login/", {"username": "alice", "password": "alice-password"})
    assert set(browser.cookies) == {"__Host-grid_csrf", "__Host-grid_session"}
    for cookie in browser.cookies.values():
        assert (cookie["secure"], cookie["path"], cookie["domain"]) == (True, "/", "")
    assert browser.cookies["__Host-grid_session"]["httponly"]


def test_cookie_of_a_sibling_host_is_not_believed(browser: Client) -> None:
    """Browsers take `grid_session` for the parent domain from any of its hosts, but nothing named `__Host-`."""
    browser.post("/login/", {"username": "alice", "password": "alice-password"})
    stolen = browser.cookies["__Host-grid_session"].value
    victim = Client(headers={"host": HOST, "x-forwarded-proto": "https"})
    victim.cookies["grid_session"] = stolen
    assert victim.get("/account/").status_code == 302
    victim.cookies["__Host-grid_session"] = stolen
    assert victim.get("/account/").status_code == 200


def test_a_forged_csrf_cookie_is_not_believed(browser: Client) -> None:
    strict = Client(enforce_csrf_checks=True, headers={"host": HOST, "x-forwarded-proto": "https"})
    strict.cookies["grid_csrf"] = "a" * 32
    form = {"username": "alice", "password": "alice-password", "csrfmiddlewaretoken": "a" * 32}
    assert strict.post("/login/", form, headers={"origin": f"https://{HOST}"}).status_code == 403


def test_on_http_cookies_have_plain_names(client: Client, db: None) -> None:
    client.get("/login/")
    assert set(client.cookies) == {"grid_csrf"}
    assert not client.cookies["grid_csrf"]["secure"]


def test_browsers_are_told_to_stay_on_https(browser: Client) -> None:
    assert browser.get("/login/")["Strict-Transport-Security"] == "max-age=2592000; includeSubDomains"
    plain = Client(headers={"host": HOST, "x-forwarded-proto": "http"})
    assert plain.get("/login/")["Location"] == f"https://{HOST}/login/"


def test_the_kubelets_probes_are_answered_on_http(browser: Client) -> None:
    assert Client(headers={"host": "localhost"}).get("/healthz").status_code == 200


def test_how_long_is_a_setting(monkeypatch: pytest.MonkeyPatch, production: dict[str, Any]) -> None:
    monkeypatch.setenv("GRID_HSTS_SECONDS", "0")
    values = runpy.run_path(str(ROOT / "grid/settings.py"))
    assert (values["SECURE_HSTS_SECONDS"], values["SECURE_HSTS_INCLUDE_SUBDOMAINS"]) == (0, False)


_OF_DJANGO = ("server_side_binding", "prepare_threshold")


def test_vanished_database_server_is_noticed_within_configured_time(
    monkeypatch: pytest.MonkeyPatch, production: dict[str, Any]
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgres://grid:secret@db.example.com/grid?connect_timeout=20")
    options = runpy.run_path(str(ROOT / "grid/settings.py"))["DATABASES"]["default"]["OPTIONS"]
    assert (options["connect_timeout"], options["tcp_user_timeout"]) == (20, 10_000)
    of_the_library = {name: value for name, value in options.items() if name not in _OF_DJANGO}
    assert "keepalives_idle=10" in make_conninfo(**of_the_library), "PostgreSQL's own library takes all of them"
