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


# So long a server that was away may refuse what it allows later: it reads rights and accounts before anything else, in seconds.
STARTING_SECONDS = 20.0
_STARTS = _("The API server starts: it refuses everything until it has read who may do what.")


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


class TroubleJudge:
    """Judges the errors of requests that follow each other. An API server that starts refuses everything (403, and 401 of service accounts)
    until it has read who may do what, so refusals that follow silence are a part of it, for as long as a start may take."""

    def __init__(self) -> None:
        self._was_silent = False
        self._refused_at: float | None = None  # first after silence

    def judge(self, error: GridError, now: float) -> tuple[str, ClusterTrouble]:
        """Return what is wrong, as a sentence and as a kind."""
        trouble = trouble_of(error)
        if trouble is ClusterTrouble.SILENT:
            self.silent()
        elif trouble is ClusterTrouble.REFUSED and self._was_silent:
            self._refused_at = now if self._refused_at is None else self._refused_at
            if now - self._refused_at < STARTING_SECONDS:
                return _STARTS, ClusterTrouble.SILENT
        return sentence_of(error), trouble

    def silent(self) -> None:
        self._was_silent, self._refused_at = True, None

    def answered(self) -> None:
        self._was_silent, self._refused_at = False, None

    @property
    def is_starting(self) -> bool:
        """Whether the last error was the refusal of a server that starts, or may still be."""
        return self._refused_at is not None


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
