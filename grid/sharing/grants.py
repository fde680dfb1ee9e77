"""Access grants: one-time tickets from the dashboard, exchanged for a secret on the execution's own origin.

A grant holds as long as the dashboard session that it came from is logged in, the user may open the execution (`grid.sharing.opening`), and
the execution has not ended. A ticket is made for one browser, to which the other origin has given an opener: following somebody else's link
with a ticket gives nothing, so nobody can be led into another person's workspace.

A grant for a shared port of a workspace holds as long as it is shared with the user. Its place is the share and never the execution, so
that it opens nothing else.

The database decides, for many grants in a few queries, so that a proxy can check all its open connections again.
"""

import hashlib
import secrets
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from grid.accounts import sessions
from grid.clusters.frameworks import framework
from grid.configuration import GRANT_LONGEST_DAYS
from grid.core.labels import HEAD
from grid.core.reasons import Reader
from grid.executions.spec import base_url
from grid.models import Execution, PortShare, State, User, WorkspaceGrant
from grid.models.environment import Kind
from grid.sharing.opening import openable, openable_ports

Key = tuple[str, str]  # an execution's id, or a shared port's, and a secret
Use = tuple[str, str]  # an execution's id and the stored key of the session in which it is used
TICKET_LIFETIME = timedelta(seconds=30)  # the browser follows the redirect at once
SECRET_LIFETIME = timedelta(
    days=GRANT_LONGEST_DAYS
)  # in the browser; the grant behind it ends earlier, with the dashboard's session


@dataclass(frozen=True, slots=True)
class Passage:
    """The proxy's view of an execution that may be opened. For a cluster, `component` names the pod that answers.

    `base_url` is the path of its program's root, and `start_path` where Open leads to below it. An execution that `has_ended` is not
    reached any more: a browser with a secret of it is told so, and learns nothing else.
    """

    execution_id: str
    state: str
    message: str
    port: int
    base_url: str = "/"
    component: str = ""
    strips_prefix: bool = False
    allows_service_workers: bool = False
    has_ended: bool = False
    session_key: str = ""
    start_path: str = ""
    front_port: int = 0  # of the nginx in front, if its pod has one
    is_shared_port: bool = False  # not the execution's own program, but one that its owner started in it

    @property
    def state_word(self) -> str:
        return State(self.state).label.lower()


def new_opener() -> str:
    """Return a new opener, which the workspaces' origin lets a browser keep while it fetches its ticket."""
    return secrets.token_urlsafe(32)


def issue_ticket(
    place: Execution | PortShare, *, user: User, session_key: str, opener_digest: str, now: datetime
) -> str:
    """Return a ticket for a user, in the browser that keeps that opener; the caller has checked that the user may open the place."""
    ticket = secrets.token_urlsafe(32)
    WorkspaceGrant.objects.create(
        execution=place if isinstance(place, Execution) else place.execution,
        port_share=place if isinstance(place, PortShare) else None,
        user=user,
        session_key=sessions.stored_key(session_key),
        ticket_hash=_hash(f"{ticket}.{opener_digest}"),
        created_at=now,
    )
    return ticket


def exchange_ticket(place_id: str, ticket: str, opener: str, *, now: datetime) -> str | None:
    """Return the secret for the cookie; None when the ticket is unknown, used, too old, for another place or another browser."""
    secret = secrets.token_urlsafe(32)
    # A single statement decides, so that two requests with the same ticket cannot both win.
    exchanged = WorkspaceGrant.objects.filter(
        Q(execution_id=place_id, port_share=None) | Q(port_share_id=place_id),
        ticket_hash=_hash(f"{ticket}.{digest(opener)}"),
        secret_hash__isnull=True,
        created_at__gt=now - TICKET_LIFETIME,
    ).update(secret_hash=_hash(secret))
    return secret if exchanged else None


def passages(keys: Collection[Key]) -> dict[Key, Passage]:
    """Return the passages that these secrets open, in a handful of queries; a key that is absent opens nothing (any more)."""
    wanted, secrets_by_hash = set(keys), {_hash(secret): secret for _, secret in keys}
    grants = WorkspaceGrant.objects.select_related("execution__owner", "port_share")
    stored = (
        ((_place(grant), secrets_by_hash[str(grant.secret_hash)]), grant)
        for grant in grants.filter(secret_hash__in=secrets_by_hash)
    )
    held = {key: grant for key, grant in stored if key in wanted}
    living = [grant for grant in held.values() if not grant.execution.is_final]
    logged_in = sessions.valid_users({grant.session_key for grant in living})
    ports = {(grant.user_id, _place(grant)) for grant in living if grant.port_share_id}
    allowed = openable({(grant.user_id, grant.execution_id) for grant in living if not grant.port_share_id})
    allowed |= openable_ports(ports) if ports else set()

    def may_pass(grant: WorkspaceGrant) -> bool:
        user = logged_in.get(grant.session_key)
        return user is not None and user.pk == grant.user_id and (grant.user_id, _place(grant)) in allowed

    return {key: _passage(grant) for key, grant in held.items() if grant.execution.is_final or may_pass(grant)}


def touch(used: Collection[Use], now: datetime) -> None:
    """Record that these executions are used in these sessions: neither counts as idle."""
    sessions.touch([session_key for _, session_key in used], now)
    with transaction.atomic():
        for execution_id, session_key in sorted(used):
            grants = WorkspaceGrant.objects.filter(execution=execution_id, session_key=session_key)
            grants.filter(secret_hash__isnull=False).update(used_at=now)


def _place(grant: WorkspaceGrant) -> str:
    return grant.port_share_id or grant.execution_id


def _passage(grant: WorkspaceGrant) -> Passage:
    execution = grant.execution
    if execution.is_final:
        return Passage(execution.pk, execution.state, "", 0, has_ended=True)
    reader = Reader(execution.owner.get_username(), grant.user_id == execution.owner_id)
    passage = Passage(execution.pk, execution.state, execution.words(reader), 0, session_key=grant.session_key)
    if grant.port_share is not None:
        return replace(passage, port=grant.port_share.port, strips_prefix=True, is_shared_port=True)
    port, component, strips_prefix = _web_server(execution)
    environment = execution.spec.get("environment") or {}
    return replace(
        passage,
        port=port,
        base_url=base_url(str(execution.spec.get("address", ""))),
        component=component,
        strips_prefix=strips_prefix,
        allows_service_workers=bool(environment.get("allows_service_workers")),
        start_path=str(environment.get("start_path") or ""),
        front_port=int((execution.spec.get("front") or {}).get("port") or 0),
    )


def _web_server(execution: Execution) -> tuple[int, str, bool]:
    """Return port and component of its web server, and whether paths lose their prefix; of a cluster the UI's, port 0 without one."""
    if execution.kind != Kind.CLUSTER:
        # The page of a job knows nothing of the path below which it is shown.
        return int(execution.spec.get("port") or 0), "", execution.kind == Kind.JOB
    try:
        made_of = framework(execution.framework)
    except ValueError:
        return 0, HEAD, False
    return made_of.ui_port, HEAD, made_of.strips_prefix


def digest(opener: str) -> str:
    return _hash(f"opener {opener}")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
