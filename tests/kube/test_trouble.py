"""Kinds of trouble with the API server, in words."""

import pytest

from grid.core.errors import ClusterUnavailable, Expired, GridError, NotAllowed, TooManyRequests
from grid.kube.errors import Status, error_of
from grid.kube.trouble import ClusterTrouble, sentence_of, trouble_of

ACCOUNT = 'User "system:serviceaccount:compute-grid-system:web"'


def forbidden(rest: str) -> GridError:
    return error_of(403, Status(message=f"it is forbidden: {ACCOUNT} cannot {rest}"))


@pytest.mark.parametrize(
    ("error", "trouble", "words"),
    [
        (
            forbidden('list resource "pods" in API group "" at the cluster scope'),
            ClusterTrouble.REFUSED,
            "The right to list pods in the whole cluster is missing: an admin of the cluster has to apply deploy/access.yaml.",
        ),
        (
            forbidden('watch resource "deployments" in API group "apps" in the namespace "compute-grid"'),
            ClusterTrouble.REFUSED,
            "The right to watch deployments.apps in compute-grid is missing: an admin of the cluster has to apply deploy/access.yaml.",
        ),
        (
            NotAllowed("denied by policy."),
            ClusterTrouble.REFUSED,
            "The API server refuses us: denied by policy. An admin of the cluster has to apply deploy/access.yaml.",
        ),
        (
            error_of(401, Status()),
            ClusterTrouble.REFUSED,
            "The cluster does not accept our credentials; they may have expired.",
        ),
        (
            error_of(429, Status(), {"Retry-After": "12"}),
            ClusterTrouble.THROTTLED,
            "The API server has too many requests (HTTP 429) and asks us to wait 12 s.",
        ),
        (Expired("too old"), ClusterTrouble.EXPIRED, "too old"),
        (ClusterUnavailable("Refused."), ClusterTrouble.SILENT, "Refused."),
        (
            TooManyRequests("busy"),
            ClusterTrouble.THROTTLED,
            "The API server has too many requests (HTTP 429) and asks us to wait 1 s.",
        ),
    ],
)
def test_error_has_kind_and_sentence(error: GridError, trouble: ClusterTrouble, words: str) -> None:
    assert (trouble_of(error), sentence_of(error)) == (trouble, words)
