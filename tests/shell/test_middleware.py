"""What every answer of the dashboard has in common: never under the workspaces' host name, parts of files as they are, and
nothing private stored by caches."""

from pathlib import Path

import pytest
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import include, path
from pytest_django import DjangoAssertNumQueries, Settings

from tests.conftest import People


@pytest.mark.parametrize(("host", "status"), [("localhost:8000", 302), ("127.0.0.1:8000", 200)])
def test_workspaces_host_leads_elsewhere(db: None, client: Client, settings: Settings, host: str, status: int) -> None:
    settings.ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
    settings.DASHBOARD_ORIGIN, settings.WORKSPACE_ORIGIN = "http://127.0.0.1:8000", "http://localhost:8001"
    answer = client.get("/login/?next=/tiers/", headers={"host": host})
    assert answer.status_code == status
    if status == 302:
        assert answer["Location"] == "http://127.0.0.1:8000/login/?next=/tiers/"


def test_partial_file_is_not_compressed(db: None, client: Client) -> None:
    answer = client.get("/static/dashboard.css", headers={"accept-encoding": "gzip", "range": "bytes=0-99"})
    assert (answer.status_code, answer.get("Content-Encoding")) == (206, None)
    assert b"".join(answer.streaming_content) == Path("static/dashboard.css").read_bytes()[:100]  # type: ignore[attr-defined]


def test_probe_reads_no_session(
    people: People, client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    client.force_login(people.owner)
    with django_assert_num_queries(0):
        answer = client.get("/healthz")
    assert "Cookie" not in answer.get("Vary", "")


UNSTORED = "no-store, private"


def broken(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("broken")


def shared(request: HttpRequest) -> HttpResponse:
    return HttpResponse("all of it", headers={"Cache-Control": "public, max-age=60"})


urlpatterns = [path("broken/", broken), path("shared/", shared), path("", include("grid.urls"))]


@pytest.mark.urls("tests.shell.test_middleware")
def test_failed_and_careless_pages_are_not_stored(people: People) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(people.owner)
    answers = {page: client.get(f"/{page}/") for page in ("broken", "shared", "no-such")}
    assert {page: (answer.status_code, answer["Cache-Control"]) for page, answer in answers.items()} == {
        "broken": (500, UNSTORED),
        "shared": (200, UNSTORED),
        "no-such": (404, UNSTORED),
    }


def test_redirects_and_foreign_hosts_are_not_stored(db: None, client: Client, settings: Settings) -> None:
    settings.SECURE_SSL_REDIRECT = True
    redirect = Client().get("/account/")
    settings.SECURE_SSL_REDIRECT = False
    refusal = client.get("/account/", headers={"host": "evil.example"})
    assert [(answer.status_code, answer["Cache-Control"]) for answer in (redirect, refusal)] == [
        (301, UNSTORED),
        (400, UNSTORED),
    ]
