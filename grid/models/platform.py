"""The platform as operators see and run it: its health and incidents, alerts, what they ask of nodes, and when more is logged."""

from datetime import datetime

from django.conf import settings
from django.db import models
from django.db.models import Index, Q, UniqueConstraint
from django.utils import timezone

from grid.core.translation import gettext as _
from grid.models.fields import Named


class PlatformReport(models.Model):
    """The last look at a data plane: lights, workloads and versions in the form of `grid.platformhealth.facts`."""

    data_plane = models.CharField(primary_key=True, max_length=40)
    checked_at = models.DateTimeField()
    lights = models.JSONField(default=list)
    streaks = models.JSONField(default=dict, help_text="Of each light: how often in a row it was well or not.")
    workloads = models.JSONField(default=list)
    troubles = models.JSONField(default=list, help_text="Sentences that say what could not be read.")
    versions = models.JSONField(default=list)
    tasks = models.JSONField(
        default=list, help_text="Periodic tasks, in the form of `grid.database.periodic.TaskRecord`."
    )

    def __str__(self) -> str:
        return self.data_plane


class PlatformIncident(Named):
    """A time in which a light was bad. A light has at most one open incident."""

    data_plane = models.CharField(max_length=40)
    part = models.CharField(max_length=40)
    name = models.CharField(max_length=80)
    sentence = models.TextField()
    at = models.DateTimeField(help_text="When it was first seen.")
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            UniqueConstraint(
                fields=["data_plane", "part"], condition=Q(ended_at=None), name="one_open_incident_of_a_part"
            )
        ]
        indexes = [Index(fields=["at"], name="incident_by_time")]


class ApiCheckRun(models.Model):
    """An admin's request to check the cluster's API, and what was found. A data plane has at most one open. `token` and `namespace` name
    all that it makes; `is_clean` is False from before the first object until they are deleted."""

    data_plane = models.CharField(max_length=40)
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    asked_by_name = models.CharField(max_length=150, help_text="Kept when the account goes.")
    asked_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    is_shared = models.BooleanField(default=False, help_text="In the executions' namespace, not in one of its own.")
    token = models.CharField(max_length=16)
    namespace = models.CharField(max_length=63)
    is_clean = models.BooleanField(default=True)
    results = models.JSONField(default=list, help_text="In the form of `grid.platformhealth.apicheckresults`.")
    trouble = models.TextField(blank=True, help_text="Why it did not run to its end, as sentences.")
    needs_shared = models.BooleanField(default=False, help_text="No namespace of its own could be created.")

    class Meta:
        constraints = [
            UniqueConstraint(
                fields=["data_plane"], condition=Q(ended_at=None), name="one_open_api_check_of_a_data_plane"
            )
        ]

    def __str__(self) -> str:
        return self.namespace


LONGEST_REASON = 300


class Alert(Named):
    """An alert, from when it began to fire until it was told to be over. The same one fires again under another `started_at`."""

    fingerprint = models.CharField(max_length=64, help_text="Of its labels, as Alertmanager writes it.")
    name = models.CharField(max_length=200)
    severity = models.CharField(max_length=40, blank=True)
    labels = models.JSONField(default=dict)
    annotations = models.JSONField(default=dict)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    heard_at = models.DateTimeField(help_text="When it was told of last.")
    told_at = models.DateTimeField(null=True, blank=True, help_text="When operators were notified that it fires.")
    end_told_at = models.DateTimeField(null=True, blank=True, help_text="When operators were notified of its end.")

    class Meta:
        constraints = [UniqueConstraint(fields=["fingerprint", "started_at"], name="one_row_of_an_alert")]
        indexes = [
            Index(fields=["started_at", "id"], condition=Q(ended_at=None), name="firing_alerts"),
            Index(fields=["ended_at", "id"], name="alerts_by_end"),
            Index(fields=["id"], condition=Q(told_at=None), name="alerts_to_tell"),
            Index(fields=["id"], condition=Q(ended_at__isnull=False, end_told_at=None), name="alert_ends_to_tell"),
        ]


class AlertSilenceQuerySet(models.QuerySet["AlertSilence"]):
    def in_force(self, now: datetime) -> "AlertSilenceQuerySet":
        return self.filter(until_at__gt=now)


class AlertSilence(Named):
    """A time in which nobody is told of the alerts that have all labels of `matchers`. With an `alertmanager_id` Alertmanager has it, too;
    ended by hand, `until_at` is when that was."""

    name = models.CharField(max_length=200, help_text="Of the alert that was silenced.")
    matchers = models.JSONField(default=dict)
    reason = models.CharField(max_length=LONGEST_REASON)
    author_name = models.CharField(max_length=150, help_text="Kept when the account goes.")
    created_at = models.DateTimeField(default=timezone.now)
    until_at = models.DateTimeField()
    ended_by_name = models.CharField(max_length=150, blank=True)
    alertmanager_id = models.CharField(max_length=64, blank=True, help_text="Empty until Alertmanager has it.")
    alertmanager_problem = models.CharField(max_length=300, blank=True, help_text="Why Alertmanager does not have it.")

    objects = AlertSilenceQuerySet.as_manager()

    class Meta:
        ordering = ["until_at", "pk"]
        indexes = [Index(fields=["until_at"], name="silences_by_end")]


REASON_LONGEST = 200


class NodeTask(models.Model):
    """One request of an operator's about a node, open until `ended_at`. A node has at most one open task."""

    class Action(models.TextChoices):
        CORDON = "cordon", _("Cordon")
        UNCORDON = "uncordon", _("Uncordon")
        DRAIN = "drain", _("Drain")
        TAINT = "taint", _("Add taint")
        UNTAINT = "untaint", _("Remove taint")
        LABEL = "label", _("Set label")
        UNLABEL = "unlabel", _("Remove label")

    class Outcome(models.TextChoices):
        DONE = "done", _("Done")
        CANCELLED = "cancelled", _("Cancelled")
        GONE = "gone", _("Node gone")
        CHANGED = "changed", _("Node was changed")
        REFUSED = "refused", _("Refused")

    node_name = models.CharField(max_length=253)
    node_uid = models.CharField(max_length=64, help_text="A new node with the name of an old one is left alone.")
    action = models.CharField(max_length=10, choices=Action.choices)
    reason = models.CharField(max_length=REASON_LONGEST, blank=True)
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    actor_name = models.CharField(max_length=150, help_text="Kept when the account goes.")
    asked_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=10, choices=Outcome.choices, blank=True)
    trouble = models.CharField(max_length=500, blank=True, help_text="Why it waits now.")
    mark = models.JSONField(default=dict, help_text="Of a taint or label: its key, value and effect.")
    looked_at = models.CharField(max_length=16, blank=True, help_text="Which labels and taints were looked at.")
    progress = models.JSONField(default=dict, help_text="Of a drain: its pods, and what each waits for.")

    class Meta:
        constraints = [
            UniqueConstraint(fields=["node_name"], condition=Q(ended_at=None), name="one_open_task_of_a_node")
        ]
        indexes = [Index(fields=["node_name", "-id"], name="node_task_by_node")]

    def __str__(self) -> str:
        return self.node_name


class VerboseLoggingQuerySet(models.QuerySet["VerboseLogging"]):
    def in_force(self, now: datetime) -> "VerboseLoggingQuerySet":
        return self.filter(until_at__gt=now)


class VerboseLogging(models.Model):
    """All processes of a component, or the lines about an execution, are logged at DEBUG until `until_at`."""

    class Component(models.TextChoices):
        WEB = "web", _("Web")
        PROXY = "proxy", _("Proxy")
        CONTROLLER = "controller", _("Controller")

    component = models.CharField(max_length=20, choices=Component.choices, blank=True)
    execution = models.CharField(max_length=40, blank=True, help_text="Its id; the row outlives it by an hour at most.")
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    actor_name = models.CharField(max_length=150, help_text="Kept when the account goes.")
    reason = models.CharField(max_length=200)
    from_at = models.DateTimeField()
    until_at = models.DateTimeField(db_index=True)

    objects = VerboseLoggingQuerySet.as_manager()

    def __str__(self) -> str:
        if self.component:
            return _("component {component}", component=self.component)
        return _("execution {execution}", execution=self.execution)
