"""Which data planes there are, and the client of each. What a process keeps of a Kubernetes cluster, it makes for each of them.

There is one now, which is reached as the settings say. Whoever starts while the database answers that it has others is refused.
"""

from collections.abc import Sequence

from django.conf import settings
from django.db import DatabaseError, InterfaceError

from grid.kube.credentials import CredentialSource
from grid.kube.http import HttpKubeApi
from grid.models import DataPlane
from grid.models.dataplane import LOCAL


class UnsupportedDataPlanes(Exception):
    """The database has other data planes than the one that can be served; the message says what to do."""


def data_planes() -> Sequence[str]:
    """Return the ids of all data planes: of the one that each database has, also while the database does not answer or is being made.

    Raises UnsupportedDataPlanes.
    """
    try:
        others = list(DataPlane.objects.exclude(pk=LOCAL).order_by("pk").values_list("pk", flat=True))
    except (DatabaseError, InterfaceError):
        others = []
    if others:
        named = ", ".join(f"“{id}”" for id in others)
        raise UnsupportedDataPlanes(
            f"A second data plane is not supported yet, and the database has {named} beside “{LOCAL}”. "
            "Remove it from the table grid_dataplane, with the tiers and executions that point to it, and start again."
        )
    return [LOCAL]


def api_of(data_plane: str) -> HttpKubeApi:
    """Return a client of its Kubernetes API, which has asked nothing yet. Raises UnsupportedDataPlanes for what no setting reaches."""
    if data_plane != LOCAL:
        raise UnsupportedDataPlanes(f"No setting says how to reach the data plane “{data_plane}”.")
    return HttpKubeApi(CredentialSource(settings.KUBECONFIG, settings.KUBE_CONTEXT))
