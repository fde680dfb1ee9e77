"""System checks say what is wrong with an installation's settings."""

import pytest
from pytest_django import Settings

from grid.checks import origins, trusted_proxies


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


@pytest.mark.parametrize(
    ("proxies", "expected"),
    [([], []), (["10.1.0.0/16", "::1"], []), (["10.1.2.3/16"], ["grid.E020"]), (["ingress"], ["grid.E020"])],
)
def test_proxies_are_named_by_address(settings: Settings, proxies: list[str], expected: list[str]) -> None:
    settings.TRUSTED_PROXIES = proxies
    assert [message.id for message in trusted_proxies(None)] == expected
