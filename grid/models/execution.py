"""Executions: what a person asked to run, its state, and its history."""

import secrets
from collections.abc import Iterable
from typing import Any, Self

from django.conf import settings
from django.db import models
from django.db.models import CheckConstraint, F, Index, Q, UniqueConstraint
from django.utils import timezone

from grid.core.reasons import ANYBODY, Reader, words_of
from grid.core.translation import gettext as _
from grid.models.dataplane import DataPlane
from grid.models.environment import Environment, Framework, Kind
from grid.models.job import JobRun
from grid.models.project import Project
from grid.models.tier import HardwareTier
from grid.models.workspace import Workspace

_ID_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"  # no l, o, 0, 1: an id is read aloud and typed
_ID_LENGTH = 10


def new_execution_id() -> str:
    return "".join(secrets.choice(_ID_ALPHABET) for _ in range(_ID_LENGTH))


class State(models.TextChoices):
    """A state of an execution; each is entered once and recorded. They are in the order of life; see the state diagram in docs/."""

    QUEUED = "queued", _("Queued")
    DEPLOYING = "deploying", _("Deploying")
    PREPARING = "preparing", _("Preparing")
    RUNNING = "running", _("Running")
    FINISHING = "finishing", _("Finishing")
    STOPPING = "stopping", _("Stopping")
    SUCCEEDED = "succeeded", _("Succeeded")
    STOPPED = "stopped", _("Stopped")
    FAILED = "failed", _("Failed")
    ERROR = "error", _("Error")

    @property
    def is_final(self) -> bool:
        return self in FINAL_STATES


FINAL_STATES = frozenset({State.SUCCEEDED, State.STOPPED, State.FAILED, State.ERROR})
ACTIVE_STATES = frozenset(State) - FINAL_STATES
HOLDS_SLOTS = Q(slots_reserved_at__isnull=False, slots_freed_at__isnull=True)
_UNSETTLED = Q(settled_at__isnull=True)
_HAS_WORKERS = Q(workers_minimum__gte=1, workers_maximum__gte=F("workers_minimum"))
_WITHOUT_HEAD = Q(
    head_tier__isnull=True,
    workers_minimum=0,
    workers_maximum=0,
    head_millicores=0,
    head_memory_bytes=0,
    head_gpus=0,
    head_price_per_hour=0,
)
_OF_A_POD = ("node_pool", "millicores", "memory_bytes", "gpus", "gpu_resource", "price_per_hour")
_ROWS_OF_A_LAUNCH = ("owner", "project", "tier", "head_tier", "data_plane")  # each is protected from being deleted
FROZEN_AT_LAUNCH = frozenset(
    {
        "spec",
        "framework",
        *_ROWS_OF_A_LAUNCH,
        *(f"{name}_id" for name in _ROWS_OF_A_LAUNCH),
        *_OF_A_POD,
        *(f"head_{name}" for name in _OF_A_POD),
    }
)


class FrozenAtLaunch(Exception):
    """Raised on a write to a stored execution's column that only its launch may write."""


class ExecutionQuerySet(models.QuerySet["Execution"]):
    def update(self, **columns: Any) -> int:
        """Raise FrozenAtLaunch for columns that only the launch may write."""
        _refuse_frozen(columns)
        return super().update(**columns)

    def bulk_create(self, objs: Iterable["Execution"], *args: Any, **options: Any) -> list["Execution"]:
        """Raise FrozenAtLaunch when stored executions would be updated in columns that only the launch may write."""
        _refuse_frozen(options.get("update_fields") or ())
        return super().bulk_create(objs, *args, **options)

    def in_data_plane(self, data_plane: str) -> Self:
        return self.filter(data_plane=data_plane)

    def unsettled(self) -> Self:
        """Return those that have not ended, or whose pods are not confirmed gone. A partial index serves it, however many are settled."""
        return self.filter(_UNSETTLED)

    def queued(self) -> Self:
        return self.unsettled().filter(state=State.QUEUED)

    def holding_slots(self) -> Self:
        return self.unsettled().filter(HOLDS_SLOTS)


class Execution(models.Model):
    """One launch. `spec` is the request, with the tier and environment as they were at launch, so that editing them later changes nothing;
    it is never written again. Later requests of people and the controller's status have columns of their own.

    The columns from `node_pool` to `price_per_hour` describe one pod, so that SQL can sum them: of a cluster one worker, and the `head_`
    columns its head; for other kinds those are 0 and "". `slots` counts against quotas from `slots_reserved_at` until `slots_freed_at`,
    which is set only when the pods are confirmed gone; `settled_at` with the later of that and the end. `revision` grows with every write;
    a writer that read an older revision must read again.
    """

    id = models.CharField(primary_key=True, max_length=16, default=new_execution_id, editable=False)
    kind = models.CharField(max_length=20, choices=Kind.choices)
    title = models.CharField(max_length=120, blank=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="executions")
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="executions")
    # Without indexes: SQLite would scan the whole history by them, to avoid sorting the few unsettled executions.
    environment = models.ForeignKey(Environment, on_delete=models.PROTECT, related_name="executions", db_index=False)
    tier = models.ForeignKey(HardwareTier, on_delete=models.PROTECT, related_name="executions", db_index=False)
    head_tier = models.ForeignKey(
        HardwareTier,
        on_delete=models.PROTECT,
        related_name="head_executions",
        db_index=False,
        null=True,
        blank=True,
        help_text="Of a cluster: the tier of its head; `tier` is its workers'.",
    )
    data_plane = models.ForeignKey(
        DataPlane, on_delete=models.PROTECT, related_name="+", db_index=False, help_text="That of its tiers at launch."
    )
    attached_to = models.ForeignKey(
        "self",
        on_delete=models.CASCADE,
        related_name="attached",
        null=True,
        blank=True,
        help_text="Of a cluster: the workspace or job that it lives and dies with.",
    )
    # Things that outlive one launch own executions, each kind by a key of its own; an execution may have no such owner.
    workspace = models.ForeignKey(
        Workspace, on_delete=models.PROTECT, related_name="executions", db_index=False, null=True, blank=True
    )
    run = models.ForeignKey(
        JobRun, on_delete=models.PROTECT, related_name="attempts", db_index=False, null=True, blank=True
    )
    attempt = models.PositiveIntegerField(
        default=0, help_text="Of a run: which attempt this is, from 1; 0 without a run."
    )
    spec = models.JSONField(
        default=dict, help_text="What was asked for at launch: grid.executions.spec. Never written again."
    )
    node_pool = models.CharField(max_length=63, help_text="Of a pod: the value of its nodes' node-pool label.")
    millicores = models.PositiveBigIntegerField(help_text="Requested by a pod, in thousandths of a core.")
    memory_bytes = models.PositiveBigIntegerField(help_text="Requested by a pod, in bytes.")
    gpus = models.PositiveIntegerField(help_text="Requested by a pod, in whole GPUs.")
    gpu_resource = models.CharField(
        max_length=100, blank=True, help_text='Resource that its GPUs are, such as nvidia.com/gpu; "" without GPUs.'
    )
    price_per_hour = models.DecimalField(
        max_digits=10, decimal_places=4, help_text="Price of one pod for an hour, in the currency of the tiers."
    )
    head_node_pool = models.CharField(
        max_length=63, blank=True, help_text="Of a cluster's head, as all `head_` columns."
    )
    head_millicores = models.PositiveBigIntegerField(default=0, help_text="In thousandths of a core.")
    head_memory_bytes = models.PositiveBigIntegerField(default=0, help_text="In bytes.")
    head_gpus = models.PositiveIntegerField(default=0, help_text="In whole GPUs.")
    head_gpu_resource = models.CharField(max_length=100, blank=True, help_text='As `gpu_resource`; "" without GPUs.')
    head_price_per_hour = models.DecimalField(
        max_digits=10, decimal_places=4, default=0, help_text="Price of the head for an hour."
    )
    framework = models.CharField(
        max_length=20, choices=Framework.choices, blank=True, help_text="Of a cluster: what it runs."
    )
    workers_minimum = models.PositiveIntegerField(
        default=0, help_text="Of a cluster: the fewest workers, as last asked for; 0 of anything else."
    )
    workers_maximum = models.PositiveIntegerField(
        default=0, help_text="Of a cluster: the most workers, as last asked for; 0 of anything else."
    )
    status = models.JSONField(
        default=dict, blank=True, help_text="What the controller knows of a cluster: grid.clusters.status."
    )
    restart_requested_at = models.DateTimeField(
        null=True, blank=True, help_text="Of a cluster: when somebody asked last for a new head."
    )
    slots = models.PositiveIntegerField(default=1)

    state = models.CharField(max_length=20, choices=State.choices, default=State.QUEUED)
    state_since = models.DateTimeField(default=timezone.now)
    reason = models.CharField(max_length=60, blank=True, help_text="Code of the latest cause, for machines.")
    reason_values = models.JSONField(
        null=True, blank=True, help_text="What the sentence of `reason` needs: grid.core.reasons. None of a text."
    )
    message = models.TextField(
        blank=True, help_text="The latest cause as a text, where it is quoted; once ended, always, for the search."
    )

    requested_at = models.DateTimeField(default=timezone.now)
    slots_reserved_at = models.DateTimeField(null=True, blank=True)
    slots_freed_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    settled_at = models.DateTimeField(null=True, blank=True)
    stop_requested_at = models.DateTimeField(null=True, blank=True)
    stop_requested_by = models.CharField(max_length=150, blank=True)
    stop_reason = models.CharField(
        max_length=60, blank=True, help_text="Code of the cause, when nobody asked for the stop."
    )
    access_lost_at = models.DateTimeField(
        null=True, blank=True, help_text="Since when its owner has been seen without access to the project."
    )
    node_name = models.CharField(max_length=253, blank=True)
    exit_code = models.IntegerField(
        null=True, blank=True, help_text="Of a job, workspace or app: how its program ended, where its pod said so."
    )
    image_id = models.CharField(
        max_length=500, blank=True, help_text="The image that ran, with its digest, as the kubelet named it."
    )
    revision = models.PositiveIntegerField(default=0)
    updated_at = models.DateTimeField(auto_now=True)

    objects = ExecutionQuerySet.as_manager()

    class Meta:
        base_manager_name = "objects"  # the plain base manager would bypass the guard of frozen columns
        ordering = ["-requested_at"]
        indexes = [
            Index(fields=["data_plane", "requested_at", "id"], condition=_UNSETTLED, name="unsettled_by_time"),
            Index(fields=["owner", "state"], condition=_UNSETTLED, name="unsettled_by_owner"),
            Index(fields=["state", "state_since"], condition=_UNSETTLED, name="unsettled_by_state"),
            Index(fields=["kind", "state"], condition=_UNSETTLED, name="unsettled_by_kind"),
            Index(fields=["owner", "-requested_at"], name="launches_by_owner"),
            # The history is listed by end: of everybody, of one person, of one project.
            Index(fields=["ended_at", "id"], name="history"),
            Index(fields=["owner", "ended_at", "id"], name="history_by_owner"),
            Index(fields=["project", "ended_at", "id"], name="history_by_project"),
            Index(
                fields=["workspace", "requested_at", "id"],
                condition=Q(workspace__isnull=False),
                name="lives_by_workspace",
            ),
            Index(fields=["run", "attempt"], condition=Q(run__isnull=False), name="attempts_by_run"),
        ]
        constraints = [
            UniqueConstraint(
                fields=["workspace"],
                condition=Q(settled_at__isnull=True, workspace__isnull=False),
                name="unsettled_once_a_workspace",
            ),
            CheckConstraint(
                condition=Q(workspace__isnull=True) | Q(kind=Kind.WORKSPACE), name="only_workspaces_resume"
            ),
            UniqueConstraint(
                fields=["run"], condition=Q(settled_at__isnull=True, run__isnull=False), name="unsettled_once_a_run"
            ),
            CheckConstraint(
                condition=Q(run__isnull=True, attempt=0) | Q(run__isnull=False, attempt__gte=1, kind=Kind.JOB),
                name="only_jobs_have_runs",
            ),
            CheckConstraint(
                condition=_UNSETTLED | Q(state__in=sorted(FINAL_STATES)) & ~HOLDS_SLOTS,
                name="settled_has_ended_without_slots",
            ),
            CheckConstraint(
                condition=Q(_HAS_WORKERS, kind=Kind.CLUSTER, head_tier__isnull=False)
                | ~Q(kind=Kind.CLUSTER) & _WITHOUT_HEAD,
                name="cluster_has_head_and_workers",
            ),
            CheckConstraint(
                condition=Q(price_per_hour__gte=0, head_price_per_hour__gte=0), name="price_is_not_negative"
            ),
        ]

    def __str__(self) -> str:
        return self.title or self.object_name

    def save(self, **options: Any) -> None:
        """Raise FrozenAtLaunch for a stored execution, unless `update_fields` names only columns that may be written."""
        fields = options.get("update_fields")
        if options.get("force_update") or not (self._state.adding or options.get("force_insert")):
            _refuse_frozen(FROZEN_AT_LAUNCH if fields is None else fields)
        super().save(**options)

    @property
    def object_name(self) -> str:
        return object_name_of(self.kind, self.id)

    def words(self, reader: Reader) -> str:
        return words_of(self.reason, self.reason_values, self.message, reader)

    @property
    def is_final(self) -> bool:
        return self.state in FINAL_STATES

    @property
    def holds_slots(self) -> bool:
        return self.slots_reserved_at is not None and self.slots_freed_at is None


def object_name_of(kind: str, id: str) -> str:
    """Return the name of an execution's Kubernetes objects, derived from its id so that a retry finds existing ones."""
    return f"{kind}-{id}"


def _refuse_frozen(columns: Iterable[str]) -> None:
    frozen = sorted(FROZEN_AT_LAUNCH.intersection(columns))
    if frozen:
        names = ", ".join(frozen)
        raise FrozenAtLaunch(f"only the launch writes {names} of an execution; name the columns that changed")


class LifecycleEntry(models.Model):
    """One entry of an execution's history, from us or from Kubernetes; it outlives the pod and its events. One with source CHANGE records
    what a person did: resized a cluster or restarted its head."""

    class Source(models.TextChoices):
        STATE = "state", _("State")
        KUBERNETES = "kubernetes", "Kubernetes"
        CHANGE = "change", _("Change")

    execution = models.ForeignKey(Execution, on_delete=models.CASCADE, related_name="lifecycle")
    at = models.DateTimeField(default=timezone.now)
    source = models.CharField(max_length=20, choices=Source.choices, default=Source.STATE)
    from_state = models.CharField(max_length=20, blank=True)
    to_state = models.CharField(max_length=20, blank=True)
    object = models.CharField(
        max_length=300, blank=True, help_text="Kind/name the entry is about, for Kubernetes events."
    )
    event_uid = models.CharField(max_length=64, blank=True)
    level = models.CharField(max_length=10, default="Normal")
    reason = models.CharField(max_length=80)
    reason_values = models.JSONField(null=True, blank=True, help_text="As of an execution.")
    message = models.TextField(blank=True)
    count = models.PositiveIntegerField(default=1)
    actor = models.CharField(max_length=150, blank=True)

    class Meta:
        ordering = ["at", "id"]
        indexes = [
            # Retention deletes the oldest of these; changes of state stay as long as their execution.
            Index(fields=["at"], condition=~Q(source="state"), name="lifecycle_by_age")
        ]
        constraints = [
            UniqueConstraint(
                fields=["execution", "to_state"], condition=Q(source="state"), name="each_state_entered_once"
            ),
            UniqueConstraint(
                fields=["execution", "event_uid"], condition=Q(source="kubernetes"), name="each_event_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.reason}: {self.words(ANYBODY)}"

    def words(self, reader: Reader) -> str:
        return words_of(self.reason, self.reason_values, self.message, reader)
