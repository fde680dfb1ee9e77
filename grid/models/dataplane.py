"""Data planes: the Kubernetes clusters that executions run in."""

from typing import Any

from django.apps import apps as installed_apps
from django.apps.registry import Apps
from django.db import models

from grid.core.translation import gettext as _
from grid.models.fields import Named

LOCAL = "local"  # each database has this data plane, see `grid.dataplanes`


class DataPlane(Named):
    """One Kubernetes cluster. The nodes of a tier are in one data plane, and an execution stays in its tier's."""

    id = models.CharField(primary_key=True, max_length=40)
    name = models.CharField(max_length=80)


def make_local(using: str, apps: Apps = installed_apps, **kwargs: Any) -> None:
    """Make the row of this cluster after migrations and after a flush, unless it is there."""
    try:
        model: Any = apps.get_model("grid", "DataPlane")
    except LookupError:  # migrated back to where there was no such table
        return
    model.objects.using(using).get_or_create(pk=LOCAL, defaults={"name": _("This cluster")})
