"""The workspaces' origins, from the settings."""

from django.conf import settings

from grid.core.origins import Origins


def workspace_origins() -> Origins:
    return Origins(settings.WORKSPACE_ORIGIN.rstrip("/"), by_path=settings.WORKSPACE_PATHS)
