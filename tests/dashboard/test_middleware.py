"""What every answer of the dashboard has in common: never under the workspaces' host name, and parts of files as they are."""

from pathlib import Path

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings

from tests.conftest import People


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


def test_a_part_of_a_file_is_that_part_and_not_compressed(db: None, client: Client) -> None:
    answer = client.get("/static/dashboard.css", headers={"accept-encoding": "gzip", "range": "bytes=0-99"})
    assert (answer.status_code, answer.get("Content-Encoding")) == (206, None)
    assert b"".join(answer.streaming_content) == Path("static/dashboard.css").read_bytes()[:100]  # type: ignore[attr-defined]


def test_who_asks_is_not_read_where_no_login_is_needed(
    people: People, client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    client.force_login(people.owner)
    with django_assert_num_queries(0):
        answer = client.get("/healthz")
    assert "Cookie" not in answer.get("Vary", "")
