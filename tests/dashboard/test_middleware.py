"""What every answer of the dashboard has in common: never under the workspaces' host name, no foreign scripts."""

import re
from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings


@pytest.mark.parametrize(("host", "status"), [("localhost:8000", 302), ("127.0.0.1:8000", 200)])
def test_the_workspaces_host_name_leads_to_the_dashboards_own(
    db: None, client: Client, settings: Settings, host: str, status: int
) -> None:
    settings.ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
    settings.DASHBOARD_ORIGIN, settings.WORKSPACE_ORIGIN = "http://127.0.0.1:8000", "http://localhost:8001"
    answer = client.get("/login/?next=/tiers/", headers={"host": host})
    assert answer.status_code == status
    if status == 302:
        assert answer["Location"] == "http://127.0.0.1:8000/login/?next=/tiers/"


@pytest.mark.parametrize("path", ["/login/", "/healthz", "/nothing-here/", "/admin/login/"])
def test_no_script_runs_but_our_own_files(db: None, client: Client, settings: Settings, path: str) -> None:
    settings.WORKSPACE_ORIGIN = "http://localhost:8001"
    policy = client.get(path)["Content-Security-Policy"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["frame-ancestors"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == "'self'"
    assert rules["form-action"] == "'self' http://localhost:8001"


def test_no_template_needs_what_the_policy_forbids() -> None:
    inline = re.compile(r"<style|\sstyle=|<script(?![^>]*\ssrc=)|\son[a-z]+=|javascript:", re.IGNORECASE)
    found = [str(one) for one in Path("templates").rglob("*.html") if inline.search(one.read_text(encoding="utf-8"))]
    assert found == []


def test_a_part_of_a_file_is_that_part_and_not_compressed(db: None, client: Client) -> None:
    answer = client.get("/static/dashboard.css", headers={"accept-encoding": "gzip", "range": "bytes=0-99"})
    assert (answer.status_code, answer.get("Content-Encoding")) == (206, None)
    assert b"".join(answer.streaming_content) == Path("static/dashboard.css").read_bytes()[:100]  # type: ignore[attr-defined]
