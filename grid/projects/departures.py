"""Says who may no longer launch in a project, and stops the executions of people who have left it, only view it now, or whose account was
closed, after a grace time. The database is asked each time and the execution's row remembers the loss: so nothing is forgotten when the
controller dies, and a person who is back in time loses nothing. `opening` denies access meanwhile."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import BooleanField, Exists, ExpressionWrapper, OuterRef, Q

from grid.configuration import ACCESS_LOST_TIMEOUT, value_of
from grid.core.reasons import ANYBODY, Reader, Reason, Sentence, Value, Values, filled, sentence_of
from grid.core.translation import gettext as _
from grid.core.wording import duration
from grid.executions.lifecycle import record_change
from grid.executions.stopping import ACCOUNT_CLOSED, LEFT_PROJECT, ONLY_VIEWS, request_stop
from grid.models import Execution, Membership, Project, State, User
from grid.models.execution import ACTIVE_STATES
from grid.notifications.outbox import tell_of_coming_stop

PROJECTS_PATH = "/projects/"  # who has left a project does not see the execution's page any more
BY = "Compute Grid"  # recorded as the person who requested the stop
LIVES = Q(state__in=ACTIVE_STATES - {State.STOPPING, State.FINISHING}, stop_requested_at__isnull=True)
INACTIVE, ARCHIVED, NOT_CONTRIBUTOR = "inactive", "archived", "not_contributor"


def has_access(path: str = "") -> Q:
    """Return the condition that the owner may launch in the project; `path` leads to the row that has both."""
    ids = {"project_id": OuterRef(f"{path}project_id"), "user_id": OuterRef(f"{path}owner_id")}
    memberships = Membership.objects.filter(role__in=Membership.CONTRIBUTING, **ids)
    return Q(**{f"{path}owner__is_active": True}) & Q(Exists(memberships))


def why_departed(owner: User, project: Project) -> Reason | None:
    """Return why the owner can launch nothing in the project; None when he can. What was launched before goes on in an archived one."""
    if owner.is_active and project.is_archived:
        return Reason(ARCHIVED, {"project": project.name})
    return _departed(owner, project)


def departed_owners(data_plane: str) -> dict[tuple[int, str], Reason]:
    """Return the owners who have departed of what waits in the data plane, each with the project; nearly always none."""
    rows = Execution.objects.in_data_plane(data_plane).queued().filter(~has_access()).order_by()
    # Each once: of somebody who has just left, thousands may wait until they are stopped.
    waiting = rows.select_related("owner", "project").only("owner", "project")
    pairs = {(row.owner_id, row.project_id): (row.owner, row.project) for row in waiting}
    return {pair: reason for pair, both in pairs.items() if (reason := _departed(*both)) is not None}


def _departed(owner: User, project: Project) -> Reason | None:
    if not owner.is_active:
        return Reason(INACTIVE, {"owner": owner.get_username()})
    role = Membership.objects.filter(project=project, user=owner).values_list("role", flat=True).first()
    if role in Membership.CONTRIBUTING:
        return None
    names = {"owner": owner.get_username(), "project": project.name}
    return Reason(NOT_CONTRIBUTOR, {**names, "views": role is not None})


def has_losses(data_plane: str) -> bool:
    """Return whether a loss is recorded whose time is not over; it takes a look at all that is active."""
    return Execution.objects.in_data_plane(data_plane).unsettled().filter(access_lost_at__isnull=False).exists()


def stop_departed(data_plane: str, *, now: datetime) -> Sequence[str]:
    """Record which executions in the data plane have an owner without access, and clear that of owners who are back. Request the stop of
    those whose time is over, or that wait in the queue, where nothing is lost; return the ids of the stopped.

    A cluster that was launched with a workspace or job ends with it.
    """
    stopped = []
    limit = timedelta(seconds=value_of(ACCESS_LOST_TIMEOUT))
    for execution in _concerned(data_plane, now - limit):
        if getattr(execution, "has_access"):  # noqa: B009 - annotated, so the type does not know it
            record_change(execution, {"access_lost_at": None}, Reason("AccessRegained", _of(execution)), by="", now=now)
            continue
        is_due = execution.state == State.QUEUED or now - (execution.access_lost_at or now) >= limit
        if not is_due and execution.access_lost_at is None:
            _record_loss(execution, limit, now)
        # Asked again, because stopping many executions takes time: its owner may have access again since all rows were read.
        elif (
            is_due
            and execution.attached_to_id is None
            and not Execution.objects.filter(has_access(), pk=execution.pk).exists()
        ):
            request_stop(execution, by=BY, reason=_reason(execution), now=now)
            stopped.append(execution.pk)
    return stopped


def _record_loss(execution: Execution, limit: timedelta, now: datetime) -> None:
    """Write the loss, and tell the owner of the coming stop in the same transaction; once, as the execution's revision says."""
    reason = _reason(execution)
    lost = Reason("AccessLost", {**_of(execution), "why": reason, "seconds": limit.total_seconds()})
    with transaction.atomic():
        is_written = record_change(execution, {"access_lost_at": now}, lost, by="", now=now)
        if is_written and execution.attached_to_id is None:
            path = PROJECTS_PATH if reason == LEFT_PROJECT else ""
            tell_of_coming_stop(execution.pk, sentence_of(lost, ANYBODY), now=now, path=path)


def _concerned(data_plane: str, due: datetime) -> Iterable[Execution]:
    """Return those with a loss or a return to record, and those to stop: who lost access by `due`. Thousands whose time is not over are
    not read again every few seconds."""
    living = Execution.objects.in_data_plane(data_plane).unsettled().filter(LIVES)
    annotated = living.annotate(has_access=ExpressionWrapper(has_access(), output_field=BooleanField()))
    regained = Q(has_access=True, access_lost_at__isnull=False)
    to_note = Q(has_access=False, access_lost_at__isnull=True)
    to_stop = Q(has_access=False, attached_to=None) & (Q(state=State.QUEUED) | Q(access_lost_at__lte=due))
    concerned = annotated.filter(regained | to_note | to_stop)
    # As each second but few; Django takes longer to ask for whole rows than the database to find them.
    if not concerned.exists():
        return ()
    return concerned.select_related("owner", "project").order_by("requested_at", "pk")


def _reason(execution: Execution) -> str:
    if not execution.owner.is_active:
        return ACCOUNT_CLOSED
    departed = _departed(execution.owner, execution.project)
    return ONLY_VIEWS if departed is not None and departed.values["views"] else LEFT_PROJECT


def _of(execution: Execution) -> dict[str, Value]:
    return {"name": execution.owner.get_username(), "project": execution.project.name}


_LOST = {
    LEFT_PROJECT: _("{name} has left the project {project}. It is stopped in {limit}, unless {name} is back by then."),
    ONLY_VIEWS: _(
        "{name} is a viewer of the project {project} now. It is stopped in {limit}, unless that is undone by then."
    ),
    ACCOUNT_CLOSED: _("The account of {name} was closed. It is stopped in {limit}, unless that is undone by then."),
}


def _lost(values: Values, reader: Reader) -> str:
    limit = duration(timedelta(seconds=values["seconds"]))
    return _LOST[values["why"]].format(name=values["name"], project=values["project"], limit=limit)


def _not_contributor(values: Values, reader: Reader) -> str:
    sentence = (
        _("{owner} is a viewer of the project {name} now.")
        if values["views"]
        else _("{owner} has left the project {name}.")
    )
    return sentence.format(owner=values["owner"], name=values["project"])


SENTENCES: dict[str, Sentence] = {
    INACTIVE: filled(_("The account of {owner} was closed.")),
    ARCHIVED: filled(_("The project {project} was archived.")),
    NOT_CONTRIBUTOR: _not_contributor,
    "AccessLost": _lost,
    "AccessRegained": filled(_("{name} has access to the project {project} again; it continues.")),
}
