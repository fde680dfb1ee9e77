"""The health of the platform as the leading controller saw it last, and its incidents."""

from django.conf import settings
from django.db import models


class PlatformReport(models.Model):
    """The last look at a data plane: lights, workloads and versions in the form of `grid.diagnosis.platform`."""

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


class PlatformIncident(models.Model):
    """A time in which a light was bad. A light has at most one open incident."""

    data_plane = models.CharField(max_length=40)
    part = models.CharField(max_length=40)
    name = models.CharField(max_length=80)
    sentence = models.TextField()
    at = models.DateTimeField(help_text="When it was first seen.")
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["data_plane", "part"], condition=models.Q(ended_at=None), name="one_open_incident_of_a_part"
            )
        ]
        indexes = [models.Index(fields=["at"], name="incident_by_time")]

    def __str__(self) -> str:
        return self.name


class ApiCheckRun(models.Model):
    """An admin's request to check the cluster's API, and what was found. A data plane has at most one that has not ended.

    `token` and `namespace` name all that it makes; `is_clean` is False from before the first object until they are deleted.
    """

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
            models.UniqueConstraint(
                fields=["data_plane"], condition=models.Q(ended_at=None), name="one_open_api_check_of_a_data_plane"
            )
        ]

    def __str__(self) -> str:
        return self.namespace
