"""Writes notifications, and what waits to be sent, in the transaction of what they tell: both happen, or neither.

The caller holds that transaction, and calls once for each person and cause: nothing here remembers an earlier call.
"""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Count, Q

from grid import models
from grid.audit.entries import write_about
from grid.core.reasons import Reader
from grid.core.translation import gettext as _
from grid.core.wording import as_sentence, listed, listed_up_to, plural
from grid.executions.lifecycle import Entered
from grid.models import AuditEntry, Delivery, Execution, Job, JobRun, NotificationEvent, State, User
from grid.models.execution import object_name_of
from grid.notifications.channels import external_channels
from grid.notifications.letters import payload_of

_SENTENCE_LENGTH = 4000
MESSAGE_LONGEST = 300
NAMED = 10  # executions in a notification
# Within which the same message about the same executions is a form that was sent twice.
SENT_TWICE = timedelta(minutes=10)
# By the state of an execution, or the outcome of a run.
_EVENTS = {
    "running": NotificationEvent.STARTED,
    "succeeded": NotificationEvent.SUCCEEDED,
    "failed": NotificationEvent.FAILED,
    "error": NotificationEvent.FAILED,
    "not_started": NotificationEvent.FAILED,
    "stopped": NotificationEvent.STOPPED,
}
_NOT_BY_DEFAULT = {NotificationEvent.STARTED, NotificationEvent.SUCCEEDED, NotificationEvent.QUEUE_POSITION}
_IN_PAGE_ONLY = {NotificationEvent.STOPPED, NotificationEvent.CPU_CONTENTION}


@dataclass(frozen=True, slots=True)
class ChosenChannels:
    in_page: bool = False
    email: bool = False
    webhook: bool = False


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
    if change.state not in _EVENTS:
        return
    rows = Execution.objects.filter(pk=execution_id)
    row = rows.values_list(
        "owner__username", "attached_to_id", "attached_to__run_id", "attempt", "run__number", "run__sweep"
    ).first()
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
    event = event_of(outcome, actor=actor, owner=job.owner.get_username())
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
    _write(_Subject(job.owner, str(job), "job", f"/jobs/{job.pk}/"), NotificationEvent.SCHEDULE_PAUSED, why, now)


def record_once_a_sweep(execution_id: str, event: NotificationEvent, why: str, *, now: datetime) -> None:
    """Tell the owner of an event; of a sweep's runs, for which the cause is most likely the same, only the first is told."""
    run = Execution.objects.filter(pk=execution_id).exclude(run__sweep="").values_list("run__job", "run__sweep").first()
    if run is not None:
        about = {"execution__run__job": run[0], "execution__run__sweep": run[1]}
        if models.Notification.objects.filter(event=event, **about).exists():
            return
    record(execution_id, event, why, now=now)


def tell_of_budget(project_id: str, sentence: str, *, now: datetime) -> None:
    """Tell the owner of a project and the admins that a line of its budget is reached."""
    project = models.Project.objects.get(pk=project_id)
    is_owner = Q(memberships__project=project_id, memberships__role=models.Membership.Role.OWNER)
    for user in User.objects.filter(is_owner | Q(is_superuser=True), is_active=True).distinct().order_by("pk"):
        about = _Subject(user, project.name, "project", f"/projects/{project_id}/budget/")
        _write(about, NotificationEvent.BUDGET, sentence, now)


def tell_of_maintenance(user: User, sentence: str, *, now: datetime) -> None:
    about = _Subject(user, _("No new launches"), "maintenance", "/executions/")
    _write(about, NotificationEvent.MAINTENANCE, sentence, now)


def tell_of_alerts(user: User, title: str, sentence: str, *, path: str, now: datetime) -> None:
    _write(_Subject(user, title[:160], "alert", path), NotificationEvent.ALERT, sentence, now)


def record(execution_id: str, event: NotificationEvent, sentence: str, *, now: datetime, path: str = "") -> None:
    """Write what the owner has chosen to be told of an event of an execution."""
    execution = Execution.objects.select_related("owner").only("owner", "kind", "title").get(pk=execution_id)
    title = execution.title or object_name_of(execution.kind, execution_id)
    path = path or f"/executions/{execution_id}/"
    about = _Subject(execution.owner, title, execution.kind, path, execution_id)
    _write(about, event, sentence, now)


def _write(about: _Subject, event: NotificationEvent, sentence: str, now: datetime) -> None:
    if not about.owner.is_active:
        return
    user_id = about.owner.pk
    choices = models.NotificationChoice.objects.filter(user=user_id, event=event)
    chosen = choices.values_list("in_page", "email", "webhook").first()
    channels = default_channels(event) if chosen is None else ChosenChannels(*chosen)
    sentence = sentence.replace("\x00", "")[:_SENTENCE_LENGTH]  # PostgreSQL does not store NUL
    if channels.in_page:
        words = {"title": about.title, "sentence": sentence, "path": about.path}
        execution_id = about.execution_id or None
        models.Notification.objects.create(user_id=user_id, execution_id=execution_id, event=event, at=now, **words)
    payload = payload_of(
        event, about.title, sentence, about.path, now, kind=about.kind, execution_id=about.execution_id
    )
    offered = external_channels(about.owner) if channels.email or channels.webhook else ()
    Delivery.objects.bulk_create(
        Delivery(user_id=user_id, channel=channel, payload=payload, at=now, next_try_at=now)
        for channel in offered
        if getattr(channels, channel)
    )


def default_channels(event: NotificationEvent) -> ChosenChannels:
    is_told = event not in _NOT_BY_DEFAULT
    return ChosenChannels(in_page=is_told, email=is_told and event not in _IN_PAGE_ONLY)


def event_of(state: str, *, actor: str, owner: str, is_attached: bool = False) -> NotificationEvent | None:
    """Return what the owner is told of a state or outcome; None for the owner's own stop, and that of an attached cluster."""
    event = _EVENTS.get(state)
    return None if event is NotificationEvent.STOPPED and (is_attached or actor == owner) else event


@dataclass(frozen=True, slots=True)
class SweepCounts:
    """How many runs of a sweep, of which all have ended, ended in which way."""

    succeeded: int = 0
    failed: int = 0
    stopped: int = 0
    not_started: int = 0

    @property
    def outcome(self) -> str:
        """The outcome that its owner has to know of first."""
        return next((name for name in ("failed", "not_started", "stopped") if getattr(self, name)), "succeeded")

    @property
    def sentence(self) -> str:
        counts = (
            (self.succeeded, _("{count:,} succeeded", count=self.succeeded)),
            (self.failed, _("{count:,} failed", count=self.failed)),
            (self.stopped, _("{count:,} stopped", count=self.stopped)),
            (self.not_started, _("{count:,} did not start", count=self.not_started)),
        )
        runs = plural(sum(count for count, _words in counts), "run", "runs")
        ended = listed(words for count, words in counts if count)
        return _("The sweep has ended: of {runs}, {counts}.", runs=runs, counts=ended)


def sentence_of(event: NotificationEvent, message: str) -> str:
    """Return what the execution's page says of the event: its message, with the next step."""
    if event is NotificationEvent.STARTED:
        return _("It is running.")
    return message or (_("It has succeeded.") if event is NotificationEvent.SUCCEEDED else "")


def message_sentence(text: str, executions: Sequence[str]) -> str:
    """Return what one owner reads, who owns these executions; pure."""
    return _("{text} This is about {executions}.", text=as_sentence(text), executions=listed_up_to(NAMED, executions))


@transaction.atomic
def send_message(execution_ids: Collection[str], text: str, *, by: User, now: datetime) -> int:
    """Notify each owner of these executions, with an audit entry; return how many owners. Sent again, it changes nothing and returns 0."""
    # Of two requests at once the second sees the entry of the first.
    User.objects.select_for_update(no_key=True).get(pk=by.pk)
    rows = Execution.objects.filter(pk__in=execution_ids).select_related("owner").defer("spec")
    by_owner: defaultdict[User, list[Execution]] = defaultdict(list)
    for row in rows.order_by("requested_at", "pk"):
        by_owner[row.owner].append(row)
    key = hashlib.sha256("\0".join([text, *sorted(execution_ids)]).encode()).hexdigest()[:32]
    sent = AuditEntry.objects.filter(object_type="message", object_id=key, actor=by, at__gt=now - SENT_TWICE)
    if not by_owner or sent.exists():
        return 0
    title = _("Message from {by}", by=by.get_username())
    for owner, own in by_owner.items():
        names = [row.title or object_name_of(row.kind, row.pk) for row in own]
        only = own[0].pk if len(own) == 1 else ""
        about = _Subject(owner, title[:160], "message", f"/executions/{only}/" if only else "/executions/", only)
        _write(about, NotificationEvent.MESSAGE, message_sentence(text, names), now)
    changes = {
        "text": ["", text],
        "owners": [[], sorted(owner.get_username() for owner in by_owner)],
        "executions": [[], [row.pk for own in by_owner.values() for row in own]],
    }
    write_about(by, ("message", key, text), changes, action=AuditEntry.Action.SENT, at=now)
    return len(by_owner)
