"""What kind of trouble we have with the API server, in a headline and in a sentence for people; pure."""

from enum import Enum

from grid.core.errors import Expired, GridError, NotAllowed, TooManyRequests
from grid.core.regexes import Expression
from grid.core.translation import gettext as _
from grid.kube.errors import answer_of

# Kubernetes' own words when RBAC gives no such right; a webhook that authorizes may have others.
_MISSING = Expression(
    r'cannot (?P<verb>[\w*]+) resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]+)")?'
)


class ClusterTrouble(Enum):
    """A kind of trouble; the value is its headline."""

    SILENT = _("The cluster does not answer")
    REFUSED = _("The cluster refuses Compute Grid a right")
    THROTTLED = _("The cluster limits our requests")
    SLOW = _("The cluster answers slowly")
    EXPIRED = _("The cluster’s history has expired")
    GARBLED = _("The cluster’s answers are not understood")


def trouble_of(error: GridError) -> ClusterTrouble:
    match error:
        case NotAllowed():
            return ClusterTrouble.REFUSED
        case TooManyRequests():
            return ClusterTrouble.THROTTLED
        case Expired():
            return ClusterTrouble.EXPIRED
    return ClusterTrouble.SILENT


def sentence_of(error: GridError) -> str:
    """Return what is wrong and who can mend it; of other errors their own sentence."""
    match error:
        case TooManyRequests():
            return _(
                "The API server has too many requests (HTTP 429) and asks us to wait {seconds:g} s.",
                seconds=error.retry_after,
            )
        case NotAllowed() if answer_of(error).code != 401:
            return _missing_right(str(error))
    return str(error)


def _missing_right(message: str) -> str:
    missing = _MISSING.search(message)
    if missing is None:
        return _(
            "The API server refuses us: {message}. An admin of the cluster has to apply deploy/access.yaml.",
            message=message.rstrip("."),
        )
    return _(
        "The right to {verb} {resource} in {namespace} is missing: an admin of the cluster has to apply deploy/access.yaml.",
        verb=missing["verb"],
        resource=".".join(filter(None, (missing["resource"], missing["group"]))),
        namespace=missing["namespace"] or _("the whole cluster"),
    )
