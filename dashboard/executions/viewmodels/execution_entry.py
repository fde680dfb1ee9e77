"""One row of the Executions page before it is put into words: the cheap facts by which rows are filtered and sorted; pure."""

from datetime import datetime

import msgspec

from dashboard.shell.viewmodels.states import framework_name
from grid.core.labels import APP_COMPONENT, HEAD, WORKER, Keys
from grid.core.translation import gettext as _
from grid.diagnosis.requests import Amounts, has_ended, pod_requests
from grid.kube.objects import Pod, is_ready
from grid.runtime.executionrows import ExecutionRow

_PARTS = {HEAD: _("Head"), WORKER: _("Worker")}
PARTS_IN_NAMES = {HEAD: _("head"), WORKER: _("worker")}


class Entry(msgspec.Struct, frozen=True, gc=False, eq=False):
    """One row's cheap facts; `pod` is None while there is none, and for a cluster's own row.

    There is one for each pod, and none can be part of a cycle: untracked, they do not lengthen the garbage collector's pauses. It is kept
    until its pod or its execution changes: when one pod of a cluster does, facts of all of them are asked.
    """

    row: ExecutionRow | None
    pod: Pod | None
    keys: Keys
    is_member: bool = False
    pod_state: str = ""  # "" without a pod
    restarts: int = 0
    pod_name: str = ""
    is_head: bool = False  # of a cluster
    _requests: Amounts | None = None  # of those that were shown, because it takes long to read

    @classmethod
    def of(
        cls,
        row: ExecutionRow | None,
        pod: Pod | None,
        keys: Keys,
        *,
        is_member: bool = False,
        known: "Entry | None" = None,
    ) -> "Entry":
        """Return the entry with its pod's state and restarts; `known` is the one before the pod changed."""
        if pod is None:
            return cls(row, None, keys)
        is_head = is_member and pod.metadata.labels.get(APP_COMPONENT) == HEAD
        requests = known._requests if known and known.pod and known.pod.spec is pod.spec else None
        return cls(row, pod, keys, is_member, state_of(pod), restarts_of(pod), pod.metadata.name, is_head, requests)

    def differs_in_status_alone(self, before: "Entry") -> bool:
        """Return whether nothing else has changed; False when it cannot be told at once."""
        if self.pod is None or before.pod is None or self.row is not before.row or self.is_member != before.is_member:
            return False
        return self.pod.spec is before.pod.spec and self.pod.metadata.labels is before.pod.metadata.labels

    @property
    def execution_id(self) -> str:
        return self.row.id if self.row else self._label(self.keys.execution)

    @property
    def name(self) -> str:
        if self.is_member or self.row is None:
            return self.pod_name
        return self.row.title or self.row.object_name

    @property
    def short_name(self) -> str:
        """The name; for a cluster's pod its part and random suffix: "worker t6vgn"."""
        part = self._label(APP_COMPONENT) if self.is_member else ""
        return f"{PARTS_IN_NAMES.get(part, part)} {self.name.rpartition('-')[2]}" if part else self.name

    @property
    def kind(self) -> str:
        return self.row.kind if self.row else self._label(self.keys.workload_type).lower()

    @property
    def part(self) -> str:
        """The part of a cluster's pod, "Head" or "Worker"; for the cluster itself its framework, "Dask cluster"; otherwise ""."""
        if self.is_member:
            part = self._label(APP_COMPONENT)
            return _PARTS.get(part, part)
        framework = self.row.framework if self.row else ""
        return _("{framework} cluster", framework=framework_name(framework)) if framework else ""

    @property
    def tier(self) -> str:
        """The tier's name; for a cluster its workers' tier, for its head the head's own."""
        if self.row is None:
            return self._label(self.keys.tier)
        return (self.is_head and self.row.head_tier_name) or self.row.tier_name

    @property
    def user(self) -> str:
        return self.row.owner_username if self.row else self._label(self.keys.user)

    @property
    def project(self) -> str:
        return self.row.project_name if self.row else self._label(self.keys.project)

    @property
    def state(self) -> str:
        """The execution's state; for a cluster's pod and for an orphan its own."""
        if self.pod is not None and (self.row is None or self.is_member):
            return self.pod_state
        return self.row.state if self.row else ""

    @property
    def node(self) -> str:
        return self.pod.spec.node_name if self.pod else ""

    @property
    def since(self) -> datetime | None:
        return self.pod.metadata.creation_timestamp if self.pod else self.row.requested_at if self.row else None

    @property
    def requests(self) -> Amounts:
        if self._requests is None:
            msgspec.structs.force_setattr(self, "_requests", pod_requests(self.pod) if self.pod else Amounts())
        assert self._requests is not None
        return self._requests

    def _label(self, key: str) -> str:
        return self.pod.metadata.labels.get(key, "") if self.pod else ""


def restarts_of(pod: Pod) -> int:
    """Return how often containers of the pod were restarted."""
    restarts = 0  # a loop, because each pod of a list is asked and `sum` takes three times as long
    for status in (*pod.status.init_container_statuses, *pod.status.container_statuses):
        restarts += status.restart_count
    return restarts


def state_of(pod: Pod) -> str:
    """Return the state that the pod alone would give an execution."""
    if has_ended(pod):
        return "succeeded" if pod.status.phase == "Succeeded" else "failed"
    if pod.metadata.deletion_timestamp is not None:
        return "stopping"
    if not pod.spec.node_name:
        return "deploying"
    return "running" if is_ready(pod) else "preparing"
