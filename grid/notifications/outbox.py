"""Writes notifications, and what waits to be sent, in the transaction of what they tell: both happen, or neither.

The caller holds that transaction, and calls once for each person and cause: nothing here remembers an earlier call.
"""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q

from grid.core.reasons import Reader
from grid.core.translation import gettext as _
from grid.executions.lifecycle import Entered
from grid.models import (
    Delivery,
    Execution,
    Job,
    JobRun,
    Membership,
    Notification,
    NotificationChoice,
    NotificationEvent,
    Project,
    State,
    User,
)
from grid.models.execution import object_name_of
from grid.notifications.channels import external_channels
from grid.notifications.events import (
    ChosenChannels,
    SweepCounts,
    default_channels,
    event_of,
    event_of_outcome,
    sentence_of,
)
from grid.notifications.letters import payload_of

_SENTENCE_LENGTH = 4000
_TELLING = frozenset({State.RUNNING, State.SUCCEEDED, State.FAILED, State.ERROR, State.STOPPED})


@dataclass(frozen=True, slots=True)
class _Subject:
    """What a notification is about; `execution_id` is "" for a run that has none, and for a sweep."""

    owner: User
    title: str
    kind: str
    path: str
    execution_id: str = ""


def record_state(entered: Entered) -> None:
    """Tell the owner that an execution has entered a state. Of a run only the first start is told here: `record_run` tells its end."""
    execution_id, change = entered.execution_id, entered.change
    if change.state not in _TELLING:
        return
    columns = ("owner__username", "attached_to_id", "attached_to__run_id", "attempt", "run__number", "run__sweep")
    row = Execution.objects.filter(pk=execution_id).values_list(*columns).first()
    if row is None:
        return
    owner, attached_to, run_of_parent, attempt, number, sweep = row
    is_first = attempt == 1 and sweep in ("", str(number))
    if run_of_parent or (number and not (change.state == State.RUNNING and is_first)):
        return
    event = event_of(change.state, actor=change.actor, owner=owner, is_attached=attached_to is not None)
    if event is not None:
        record(execution_id, event, sentence_of(event, change.words(Reader(owner, is_owner=True))), now=entered.now)


def record_run(run: JobRun, outcome: str, why: str, *, actor: str, now: datetime) -> None:
    """Tell the owner how a run, or all of a sweep, has ended; the caller holds the job's lock. `actor` has stopped it, "" for nobody."""
    if run.sweep:
        runs = JobRun.objects.filter(job=run.job_id, sweep=run.sweep).order_by()
        if runs.filter(outcome="").exists():
            return
        counts = SweepCounts(**dict(runs.values_list("outcome").annotate(Count("pk"))))
        outcome, why = counts.outcome, counts.sentence
    job = run.job
    event = event_of_outcome(outcome, actor=actor, owner=job.owner.get_username())
    if event is None:
        return
    attempts = Execution.objects.filter(run=run).order_by("-attempt").values_list("pk", flat=True)
    execution_id = "" if run.sweep else attempts.first() or ""
    path = f"/executions/{execution_id}/" if execution_id else f"/jobs/{job.pk}/"
    path = f"{path}?sweep={run.sweep}" if run.sweep else path
    _write(_Subject(job.owner, str(job), "job", path, execution_id), event, sentence_of(event, why), now)


def tell_of_coming_stop(execution_id: str, why: str, *, now: datetime, path: str = "") -> None:
    """Tell the owner that an execution is about to be stopped, and how to prevent it; `path` is for one who may not see its page."""
    record(execution_id, NotificationEvent.STOPPING_SOON, why, now=now, path=path)


def tell_of_pause(job: Job, why: str, *, now: datetime) -> None:
    """Tell the owner that a schedule of a job was paused by somebody else or by a rule; the caller holds the lock of the job."""
    about = _Subject(job.owner, str(job), "job", f"/jobs/{job.pk}/")
    _write(about, NotificationEvent.SCHEDULE_PAUSED, why, now)


def record_once_a_sweep(execution_id: str, event: NotificationEvent, why: str, *, now: datetime) -> None:
    """Tell the owner of an event; of a sweep's runs, for which the cause is most likely the same, only the first is told."""
    run = Execution.objects.filter(pk=execution_id).exclude(run__sweep="").values_list("run__job", "run__sweep").first()
    if run is not None:
        notified = Notification.objects.filter(event=event, execution__run__job=run[0], execution__run__sweep=run[1])
        if notified.exists():
            return
    record(execution_id, event, why, now=now)


def tell_of_budget(project_id: str, sentence: str, *, now: datetime) -> None:
    """Tell the owner of a project and the admins that a line of its budget is reached."""
    project = Project.objects.get(pk=project_id)
    is_owner = Q(memberships__project=project_id, memberships__role=Membership.Role.OWNER)
    for user in User.objects.filter(is_owner | Q(is_superuser=True), is_active=True).distinct().order_by("pk"):
        about = _Subject(user, project.name, "project", f"/projects/{project_id}/budget/")
        _write(about, NotificationEvent.BUDGET, sentence, now)


def tell_of_maintenance(user: User, sentence: str, *, now: datetime) -> None:
    """Tell somebody that nothing new is launched from a time on."""
    about = _Subject(user, _("No new launches"), "maintenance", "/executions/")
    _write(about, NotificationEvent.MAINTENANCE, sentence, now)


def tell_of_message(user: User, title: str, sentence: str, *, execution_id: str, now: datetime) -> None:
    """Tell somebody what an operator writes about the person's executions; `execution_id` is "" for several."""
    path = f"/executions/{execution_id}/" if execution_id else "/executions/"
    _write(_Subject(user, title[:160], "message", path, execution_id), NotificationEvent.MESSAGE, sentence, now)


def tell_of_alerts(user: User, title: str, sentence: str, *, path: str, now: datetime) -> None:
    """Tell an operator what fires and what is over."""
    _write(_Subject(user, title[:160], "alert", path), NotificationEvent.ALERT, sentence, now)


def record(execution_id: str, event: NotificationEvent, sentence: str, *, now: datetime, path: str = "") -> None:
    """Write what the owner has chosen to be told of an event of an execution."""
    execution = Execution.objects.select_related("owner").only("owner", "kind", "title").get(pk=execution_id)
    title = execution.title or object_name_of(execution.kind, execution_id)
    path = path or f"/executions/{execution_id}/"
    about = _Subject(execution.owner, title, execution.kind, path, execution_id)
    _write(about, event, sentence, now)


def _write(about: _Subject, event: NotificationEvent, sentence: str, now: datetime) -> None:
    channels = channels_of(about.owner.pk, event)
    if not about.owner.is_active:
        return
    user_id = about.owner.pk
    sentence = sentence.replace("\x00", "")[:_SENTENCE_LENGTH]  # PostgreSQL does not store NUL
    if channels.in_page:
        Notification.objects.create(
            user_id=user_id,
            execution_id=about.execution_id or None,
            event=event,
            title=about.title,
            sentence=sentence,
            path=about.path,
            at=now,
        )
    payload = payload_of(
        event, about.title, sentence, about.path, now, kind=about.kind, execution_id=about.execution_id
    )
    Delivery.objects.bulk_create(
        Delivery(user_id=user_id, channel=channel, payload=payload, at=now, next_try_at=now)
        for channel in _outward(channels, about.owner)
    )


def channels_of(user_id: int, event: NotificationEvent) -> ChosenChannels:
    """Return the channels that a person has chosen for an event, or the event's defaults."""
    columns = ("in_page", "email", "webhook")
    chosen = NotificationChoice.objects.filter(user=user_id, event=event).values_list(*columns).first()
    return default_channels(event) if chosen is None else ChosenChannels(*chosen)


def _outward(channels: ChosenChannels, owner: User) -> list[Delivery.Channel]:
    """Return the chosen channels that lead out of the page and are set up for the owner."""
    if not channels.email and not channels.webhook:
        return []
    return [channel for channel in external_channels(owner) if getattr(channels, channel)]
