"""System checks say what is wrong with an installation's origins."""

import pytest
from pytest_django import Settings

from grid.checks import origins


@pytest.mark.parametrize(
    ("dashboard", "workspaces", "expected"),
    [
        ("https://grid.example.org", "https://work.example.org", []),
        ("http://127.0.0.1:8000", "http://localhost:8001", []),
        ("https://grid.example.org", "https://grid.example.org:8443", ["grid.W001"]),
        ("https://grid.example.org", "https://grid.example.org", ["grid.E001"]),
    ],
)
def test_the_two_origins_are_kept_apart(
    settings: Settings, dashboard: str, workspaces: str, expected: list[str]
) -> None:
    settings.DASHBOARD_ORIGIN, settings.WORKSPACE_ORIGIN = dashboard, workspaces
    assert [message.id for message in origins(None)] == expected
