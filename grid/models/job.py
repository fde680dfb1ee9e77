"""Job definitions, their runs and their schedules: what a person wants to have computed again, each time that it was asked for, and when
it is run by itself."""

from django.conf import settings
from django.db import models
from django.db.models import CheckConstraint, Index, Q, UniqueConstraint
from django.utils import timezone

from grid.core.reasons import ANYBODY, words_of
from grid.core.translation import gettext as _
from grid.models.environment import Environment
from grid.models.project import Project
from grid.models.tier import HardwareTier


class Job(models.Model):
    """A job definition: a command with all that it runs with. Each time that it is asked for is a run, and each try of a run an execution.
    It has the id of its first execution, so that a launch that is sent twice creates both once. Editing it changes its later runs only. A
    deleted job stays as a row, because its runs stay in the history."""

    id = models.CharField(primary_key=True, max_length=16, editable=False)
    title = models.CharField(max_length=120, blank=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="jobs")
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="jobs")
    environment = models.ForeignKey(Environment, on_delete=models.PROTECT, related_name="jobs")
    environment_revision = models.PositiveIntegerField(
        default=0, help_text="The revision that it was launched with last; 0: not known."
    )
    tier = models.ForeignKey(HardwareTier, on_delete=models.PROTECT, related_name="jobs")
    cluster = models.JSONField(
        null=True, blank=True, help_text="What was asked for as its cluster: grid.clusters.request; null for none."
    )
    command = models.TextField(
        blank=True, help_text="A line or script for `/bin/sh -c`; empty: the environment's own command."
    )
    variables = models.JSONField(default=dict, blank=True, help_text="Environment variables: name to text.")
    folder = models.CharField(
        max_length=500, blank=True, help_text="Where it starts, below the project's files; empty: their root."
    )
    files_at = models.CharField(
        max_length=200, blank=True, help_text="Branch or commit of files in Git to begin with; empty: main."
    )
    page_port = models.PositiveIntegerField(
        null=True, blank=True, help_text="Where the program serves a web page while it runs; null: the environment's."
    )
    timeout_seconds = models.PositiveIntegerField(null=True, blank=True, help_text="Of each attempt; null: none.")
    retries = models.PositiveIntegerField(default=0, help_text="Further attempts of a run that failed.")
    retry_seconds = models.PositiveIntegerField(
        default=30, help_text="Wait before the first retry; it doubles with each, up to an hour."
    )
    at_once = models.PositiveIntegerField(
        null=True, blank=True, help_text="The most of its runs that are active at once; null: as many as there are."
    )
    runs_made = models.PositiveIntegerField(default=0, help_text="The number of its latest run.")
    created_at = models.DateTimeField(default=timezone.now)
    launched_at = models.DateTimeField(default=timezone.now, help_text="When a run of it was asked for last.")
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-launched_at", "-id"]
        indexes = [
            Index(fields=["owner", "launched_at", "id"], condition=Q(deleted_at__isnull=True), name="jobs_by_owner")
        ]

    def __str__(self) -> str:
        return self.title or f"job-{self.id}"


class RunSettings(models.Model):
    """What runs of a job were asked to run with, which is never written again. A thousand runs of a sweep share one."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="run_settings")
    record = models.JSONField(help_text="What the job said when it was asked for: grid.jobs.jobsettings.")

    def __str__(self) -> str:
        return _("settings {pk} of {job}", pk=self.pk, job=self.job)


class JobRun(models.Model):
    """A run of a job: what was asked for, which is never written again, and how it goes. Its attempts are executions. It is open until it
    has an outcome; while it is open, it has one unsettled attempt, or `reason` says why it waits."""

    class Outcome(models.TextChoices):
        SUCCEEDED = "succeeded", _("Succeeded")
        FAILED = "failed", _("Failed")
        STOPPED = "stopped", _("Stopped")
        NOT_STARTED = "not_started", _("Not started")

    job = models.ForeignKey(Job, on_delete=models.PROTECT, related_name="runs", db_index=False)
    number = models.PositiveIntegerField(help_text="Counts the runs of its job from 1.")
    parameters = models.JSONField(
        default=dict, blank=True, help_text="Environment variables of this run: name to text."
    )
    settings = models.ForeignKey(RunSettings, on_delete=models.PROTECT, related_name="runs")
    request_key = models.CharField(
        max_length=32,
        blank=True,
        help_text="Of the first run that one showing of a form asked for, so that sending it twice asks once.",
    )
    sweep = models.CharField(max_length=16, blank=True, help_text="Of a run of a sweep: the number of its first run.")
    after = models.ForeignKey(
        "self",
        on_delete=models.SET_NULL,
        related_name="followers",
        null=True,
        blank=True,
        help_text="It starts when that run has succeeded.",
    )
    schedule = models.ForeignKey(
        "grid.Schedule",
        on_delete=models.SET_NULL,
        related_name="runs",
        null=True,
        blank=True,
        db_index=False,
        help_text="Of a run that a schedule asked for; it starts when that schedule's earlier runs have ended.",
    )
    due_at = models.DateTimeField(null=True, blank=True, help_text="Of a schedule's run: the time that it is for.")
    replaced_by = models.PositiveIntegerField(
        null=True, blank=True, help_text="The number of a later run that replaces it."
    )
    requested_at = models.DateTimeField(default=timezone.now)
    requested_by = models.CharField(max_length=150)
    outcome = models.CharField(max_length=20, choices=Outcome.choices, blank=True, help_text="Empty until it ends.")
    reason = models.CharField(
        max_length=40, blank=True, help_text="Why it waits or has ended: a code of grid.jobs.runsteps."
    )
    reason_values = models.JSONField(default=dict, blank=True, help_text="What the sentence of that code needs.")
    message = models.TextField(blank=True, help_text="The same as a text, of before there were codes.")
    next_attempt_at = models.DateTimeField(
        null=True, blank=True, help_text="Of an open run: when to look again; null: when something else has ended."
    )
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-number"]
        indexes = [
            Index(fields=["next_attempt_at", "id"], condition=Q(outcome=""), name="open_runs_by_time"),
            Index(fields=["job", "number"], condition=Q(outcome=""), name="open_runs_by_job"),
            Index(fields=["ended_at", "id"], name="runs_by_end"),
            Index(fields=["job", "sweep", "number"], name="runs_by_sweep"),
        ]
        constraints = [
            UniqueConstraint(fields=["job", "number"], name="run_numbers_of_a_job"),
            UniqueConstraint(fields=["schedule", "due_at"], name="run_once_a_due_time"),
            UniqueConstraint(fields=["job", "request_key"], condition=~Q(request_key=""), name="run_once_a_form"),
            CheckConstraint(
                condition=Q(outcome="", ended_at__isnull=True) | ~Q(outcome="") & Q(ended_at__isnull=False),
                name="run_with_outcome_has_ended",
            ),
        ]

    def __str__(self) -> str:
        return _("run {number} of {job}", number=self.number, job=self.job)

    @property
    def words(self) -> str:
        return words_of(self.reason, self.reason_values, self.message, ANYBODY)


class Schedule(models.Model):
    """The times at which a job is run. Every write holds the lock of its job. `next_at` is moved on in the transaction that stores the run
    of that time, so a time is never run twice. A time without a run, because it was skipped, missed or refused, is told in `history`."""

    class Overlap(models.TextChoices):
        SKIP = "skip", _("Skip it")
        QUEUE = "queue", _("Queue it")
        REPLACE = "replace", _("Replace the run")

    class Missed(models.TextChoices):
        ONCE = "once", _("Run once")
        NONE = "none", _("Do not run")

    job = models.ForeignKey(Job, on_delete=models.CASCADE, related_name="schedules")
    cron = models.CharField(max_length=100)
    time_zone = models.CharField(max_length=60, help_text="IANA name.")
    overlap = models.CharField(
        max_length=10,
        choices=Overlap.choices,
        default=Overlap.SKIP,
        help_text="When it is due while an earlier run of it has not ended.",
    )
    missed = models.CharField(
        max_length=10,
        choices=Missed.choices,
        default=Missed.ONCE,
        help_text="When it was due while Compute Grid was not running.",
    )
    created_at = models.DateTimeField(default=timezone.now)
    set_at = models.DateTimeField(default=timezone.now, help_text="When it was created, edited or resumed last.")
    paused_at = models.DateTimeField(null=True, blank=True)
    next_at = models.DateTimeField(null=True, blank=True, help_text="Null while it is paused.")
    last_at = models.DateTimeField(null=True, blank=True, help_text="The last time for which a run was asked for.")
    history = models.JSONField(
        default=list, blank=True, help_text="The latest of what happened: grid.jobs.schedulehistory."
    )

    class Meta:
        ordering = ["pk"]
        indexes = [Index(fields=["next_at", "id"], condition=Q(next_at__isnull=False), name="schedules_by_next_time")]
        constraints = [
            CheckConstraint(
                condition=Q(paused_at__isnull=True, next_at__isnull=False)
                | Q(paused_at__isnull=False, next_at__isnull=True),
                name="schedule_is_paused_or_has_a_next_time",
            )
        ]

    def __str__(self) -> str:
        return f"{self.cron} ({self.time_zone})"
