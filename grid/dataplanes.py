"""The data planes of this installation, and a client for each. A process keeps its state of a Kubernetes cluster once per data plane.

Only one is supported now, which the settings say how to reach. A start is refused when the database has others.
"""

from collections.abc import Sequence

from django.conf import settings
from django.db import DatabaseError, InterfaceError

from grid.core.translation import gettext as _
from grid.kube.credentials import CredentialSource
from grid.kube.http import HttpKubeApi
from grid.models import DataPlane
from grid.models.dataplane import LOCAL


class UnsupportedDataPlanes(Exception):
    """The database has other data planes than the supported one; the message says what to do."""


def data_planes() -> Sequence[str]:
    """Return the ids of all data planes: the local one, also while the database does not answer or has no tables yet.

    Raise UnsupportedDataPlanes when there are others.
    """
    try:
        others = list(DataPlane.objects.exclude(pk=LOCAL).order_by("pk").values_list("pk", flat=True))
    except (DatabaseError, InterfaceError):
        others = []
    if others:
        named = ", ".join(f"“{id}”" for id in others)
        raise UnsupportedDataPlanes(
            _(
                "A second data plane is not supported yet, and the database has {named} beside “{local}”. "
                "Remove it from the table grid_dataplane, with the tiers and executions that point to it, and start again.",
                named=named,
                local=LOCAL,
            )
        )
    return [LOCAL]


def api_of(data_plane: str) -> HttpKubeApi:
    """Return a client of its Kubernetes API, which has sent nothing yet. Raise UnsupportedDataPlanes for one that no setting reaches."""
    if data_plane != LOCAL:
        words = _("No setting says how to reach the data plane “{data_plane}”.", data_plane=data_plane)
        raise UnsupportedDataPlanes(words)
    return HttpKubeApi(CredentialSource(settings.KUBECONFIG, settings.KUBE_CONTEXT))
