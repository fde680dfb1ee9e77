"""The dashboard is not served under the workspaces' host name."""

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
