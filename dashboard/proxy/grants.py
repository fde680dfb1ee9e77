"""Who may pass: one-time tickets from the dashboard, exchanged for a secret on the workspaces' origin.

A grant holds as long as the dashboard session that it came from is logged in, the user may open the execution (see
`grid.launch.opening`; whoever leaves the project may not), and the execution has not ended. A ticket is made for one browser,
which the other origin has given an opener to keep: who follows somebody else's link with a ticket gets nothing, so nobody can be
led into a workspace whose code then runs beside his own. The check reads the database, so a logout works at once in every
process; callers may keep its answer for a second or two.
"""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth.models import User

from grid.labels import HEAD
from grid.launch.frameworks import framework
from grid.launch.opening import may_open
from grid.models import Execution, WorkspaceGrant
from grid.models.environment import Kind
from grid.sessions import stored_key, valid_users

TICKET_LIFETIME = timedelta(seconds=30)  # the browser follows the redirect at once


@dataclass(frozen=True, slots=True)
class Passage:
    """What the proxy needs to know of an execution that may be opened. Of a cluster, `component` names the pod that answers,
    and its page is kept below its prefix."""

    execution_id: str
    state: str
    message: str
    port: int
    component: str = ""
    strips_prefix: bool = False

    @property
    def keeps_below_prefix(self) -> bool:
        return bool(self.component)


def new_opener() -> str:
    """What the workspaces' origin lets a browser keep while it fetches its ticket."""
    return secrets.token_urlsafe(32)


def issue_ticket(execution: Execution, *, user: User, session_key: str, opener_digest: str, now: datetime) -> str:
    """A ticket for a user, in the browser that keeps that opener; the caller has checked that the user may open it."""
    ticket = secrets.token_urlsafe(32)
    WorkspaceGrant.objects.create(
        execution=execution,
        user=user,
        session_key=stored_key(session_key),
        ticket_hash=_hash(f"{ticket}.{opener_digest}"),
        created_at=now,
    )
    return ticket


def exchange_ticket(execution_id: str, ticket: str, opener: str, *, now: datetime) -> str | None:
    """The secret for the cookie; None when the ticket is unknown, used, too old, for another execution or another browser."""
    secret = secrets.token_urlsafe(32)
    # One statement decides, so two requests with the same ticket cannot both win.
    exchanged = WorkspaceGrant.objects.filter(
        ticket_hash=_hash(f"{ticket}.{digest(opener)}"),
        execution_id=execution_id,
        secret_hash__isnull=True,
        created_at__gt=now - TICKET_LIFETIME,
    ).update(secret_hash=_hash(secret))
    return secret if exchanged else None


def passage(execution_id: str, secret: str) -> Passage | None:
    """The passage that `secret` opens, or None when there is none (any more)."""
    grant = (
        WorkspaceGrant.objects.select_related("execution__project")
        .filter(secret_hash=_hash(secret), execution_id=execution_id)
        .first()
    )
    if grant is None or grant.execution.is_final or not may_open(grant.user_id, grant.execution):
        return None
    if _logged_in_user(grant.session_key) != grant.user_id:
        return None
    execution = grant.execution
    web = _web_server(execution)
    return Passage(
        execution_id=execution_id,
        state=execution.state,
        message=execution.message,
        port=web.port,
        component=web.component,
        strips_prefix=web.strips_prefix,
    )


@dataclass(frozen=True, slots=True)
class _WebServer:
    port: int
    component: str = ""
    strips_prefix: bool = False


def _web_server(execution: Execution) -> _WebServer:
    """A cluster's is the framework's own, on its head; of an unknown framework there is none."""
    if execution.kind != Kind.CLUSTER:
        return _WebServer(int(execution.spec.get("port") or 0))
    try:
        made_of = framework(str((execution.spec.get("cluster") or {}).get("framework", "")))
    except ValueError:
        return _WebServer(0, HEAD)
    return _WebServer(made_of.ui_port, HEAD, made_of.strips_prefix)


def _logged_in_user(session_key: str) -> int | None:
    """Whose session it is now: expired, logged out and changed passwords all give None."""
    return valid_users([session_key]).get(session_key)


def digest(opener: str) -> str:
    """What the dashboard is told of an opener."""
    return _hash(f"opener {opener}")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
