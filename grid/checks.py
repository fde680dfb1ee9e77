"""System checks: what is wrong with an installation's settings, with a hint that says what to change."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

from grid.edge.addresses import matcher


@register
def origins(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """The dashboard and the workspaces must not share an origin, and should not share a host name."""
    dashboard, workspaces = urlsplit(settings.DASHBOARD_ORIGIN), urlsplit(settings.WORKSPACE_ORIGIN)
    if dashboard[:2] == workspaces[:2]:
        return [
            Error(
                "The dashboard and the workspaces have the same origin, so user code could act as the dashboard.",
                hint="Give GRID_WORKSPACE_ORIGIN a host name of its own.",
                id="grid.E001",
            )
        ]
    if dashboard.hostname == workspaces.hostname:
        return [
            Warning(
                "The dashboard and the workspaces differ only by port, and browsers share cookies between ports.",
                hint="Give GRID_WORKSPACE_ORIGIN a host name of its own.",
                id="grid.W001",
            )
        ]
    return []


@register
def trusted_proxies(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """uvicorn takes a word that is no network for the name of a socket, and then believes nobody."""
    try:
        matcher(settings.TRUSTED_PROXIES)
    except ValueError as error:
        return [
            Error(
                f"GRID_TRUSTED_PROXIES is no list of addresses and networks: {error}.",
                hint="Write them like 10.1.0.0/16,10.2.0.7 and name no host names.",
                id="grid.E020",
            )
        ]
    return []
