"""The one pod of a workspace, job or app, as a strategy of `reconcile`.

With a cluster attached, a workspace's pod is created once the cluster's address is known, which it gets, so that both start together; a
job's pod is created once the cluster runs, because a script connects at once and not every framework waits (a Spark session gives up after
a minute). When the cluster was stopped by then, the pod is created without it. When the cluster has failed, a workspace is created without
it, and a job is not created at all: its script would do all the work in its own pod, and nobody would know.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol

from grid.core.errors import GridError
from grid.core.reasons import Reason
from grid.core.regexes import RepeatedExpression
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.diagnosis.beside import programs
from grid.diagnosis.containers import explain_terminated
from grid.diagnosis.held import is_unplaced, scheduler_message
from grid.executions import apply, ingress, ledger, manifests, progress
from grid.executions.context import Context, NotYet
from grid.executions.kinds import NO_VARIABLES, kind_of
from grid.executions.ledger import EventRecord, LedgerRecord
from grid.executions.manifests import Manifest
from grid.executions.progress import Finding, ObservedPod
from grid.executions.spec import parse_spec
from grid.kube.objects import Pod
from grid.models import Kind, State

_MISSING_CLAIM = RepeatedExpression(r'persistentvolumeclaim "([^"]+)" not found')
AWAITS_CLUSTER = "awaits_cluster"  # the cluster's timeouts count meanwhile, not this execution's


class AwaitsCluster(NotYet):
    """Its cluster is being deployed, which takes as long as the cluster's own timeouts allow; without one only its address is missing."""

    def __init__(self, cluster: LedgerRecord | None = None) -> None:
        self.cause = Reason(AWAITS_CLUSTER, {"cluster": cluster.cause if cluster is not None else None})
        super().__init__(AWAITS_CLUSTER)


class ClusterFailed(GridError):
    """The job needs its cluster, which has failed."""

    def __init__(self, cluster: LedgerRecord) -> None:
        self.cause = Reason("cluster_failed", {"cluster": cluster.cause})
        super().__init__(self.cause.code)


class FileSaver(Protocol):
    """Saves the files of runs, beside their programs, as `grid.files.filesaving` does."""

    async def has_sidecars(self, pod: Manifest) -> bool:
        """Return whether the cluster would run the pod's sidecars beside the program."""

    async def is_saving(self, row: LedgerRecord) -> bool:
        """Record what has become of its files, if that is known; return whether to wait for them before the pod is deleted."""

    def forget(self, execution_id: str) -> None:
        """Drop what is remembered of an execution that is settled."""


class Runs:
    """Implements `reconcile.Objects`; `files` saves the files of its executions."""

    def __init__(self, context: Context, files: FileSaver) -> None:
        self._context = context
        self._files = files
        self._noted: dict[str, int] = {}  # restarts that the history has, by execution

    async def create(self, row: LedgerRecord) -> Mapping[str, Any]:
        spec, context = parse_spec(row), self._context
        client_variables = await self._client_variables(row)
        token, storage = context.target.token(row.id), context.target.storage
        has_sidecars = not (spec.files or spec.front) or await self._files.has_sidecars(
            manifests.pod(spec, namespace=context.namespace)
        )
        secrets, key = await context.secrets_of(spec), context.target.front_key(row.id)

        def build(anchor_uid: str) -> Sequence[Manifest]:
            owned: dict[str, Any] = {"namespace": context.namespace, "anchor_uid": anchor_uid, "front_key": key}
            made = manifests.build(
                spec, token=token, storage=storage, client_variables=client_variables, secrets=secrets, **owned
            )
            return [*made, *ingress.objects(spec, **owned)]

        await apply.create_all(context.api, spec, build, claims=context.claims, has_sidecars=has_sidecars)
        return {"reason_values": {"kind": row.kind}}

    async def follow(self, row: LedgerRecord) -> Finding:
        context, name = self._context, row.object_name
        pod = await self.main_pod(row)
        if pod is not None:
            await self._note_restarts(row, pod)
            await self._create_missing_claims(row, pod)
        seen = ObservedPod(pod, context.events.about(kind="Pod", name=name, namespace=context.namespace))
        change = progress.next_change(row, seen, timeouts=context.limits, now=context.clock())
        if pod is not None and progress.waits_for_a_node(change, pod):
            seen = replace(seen, scheduling=await context.nodes.of(pod))
            change = progress.next_change(row, seen, timeouts=context.limits, now=context.clock())
        return Finding(change, pod)

    async def main_pod(self, row: LedgerRecord) -> Pod | None:
        known = await self._context.find_pods(row.id)
        return next((pod for pod in known if pod.metadata.name == row.object_name), None)

    async def delete(self, row: LedgerRecord) -> bool:
        context = self._context
        if await self._files.is_saving(row):
            return True
        return bool(await apply.delete_all(context.api, row.object_name, row.id, namespace=context.namespace))

    def is_seen(self, row: LedgerRecord) -> bool:
        return bool(self._context.pods.by("execution", row.id))

    def forget(self, execution_id: str) -> None:
        """Drop what is remembered of an execution that is settled."""
        self._noted.pop(execution_id, None)
        self._files.forget(execution_id)

    async def _note_restarts(self, row: LedgerRecord, pod: Pod) -> None:
        new = [line for line in _bad_ends(pod, self._context.clock()) if self._noted.get(row.id) != line.count]
        if new:
            await self._context.database(ledger.note_events, row.id, new)
            self._noted[row.id] = new[-1].count

    async def _create_missing_claims(self, row: LedgerRecord, pod: Pod) -> None:
        """Create again the claims for lack of which the scheduler leaves the pod: one that was known may have been deleted since."""
        context = self._context
        message = scheduler_message(pod, context.events.about_pod(pod)) if is_unplaced(pod) else ""
        if missing := set(_MISSING_CLAIM.findall(message)):
            claims = manifests.volume_claims(
                parse_spec(row), namespace=context.namespace, storage=context.target.storage
            )
            await apply.create_at_once(context.api, [claim for claim in claims if claim.name in missing], row.id)

    async def audit(self) -> set[str]:
        """Return no execution: the controller's own audit compares all pods."""
        return set()

    def exit_columns(self, pod: Pod) -> Mapping[str, Any]:
        return progress.columns_from_status(pod)

    async def _client_variables(self, row: LedgerRecord) -> Mapping[str, str]:
        """Return how its program finds its cluster; {} without one, or when that ends. Raise AwaitsCluster or ClusterFailed."""
        cluster, is_job = await self._context.database(ledger.attached_cluster, row.id), row.kind == Kind.JOB
        if cluster is None:
            return NO_VARIABLES
        if is_job and cluster.state == State.ERROR:
            raise ClusterFailed(cluster)
        if cluster.is_final or cluster.stop_wanted or cluster.state == State.STOPPING:
            return NO_VARIABLES
        if is_job and cluster.state != State.RUNNING:
            raise AwaitsCluster(cluster)
        variables = kind_of(cluster.kind).client_variables(parse_spec(cluster), cluster.status)
        if variables is None:
            raise AwaitsCluster()
        return variables


def _bad_ends(pod: Pod, now: datetime) -> Iterator[EventRecord]:
    """Yield an entry for each container that ended badly and was started again, or will be: Kubernetes writes no event of a program that
    was killed for memory. The id is made of the pod and the kind, so that the history has one of each."""
    for status in programs(pod):
        ended = status.last_state.terminated
        if ended is None or not (ended.exit_code or ended.reason == "OOMKilled"):
            continue
        why = explain_terminated(pod, status, ended)
        reason = "out_of_memory" if why.code == "out_of_memory" else "restarted"
        # Kubernetes' restart count includes restarts after ends of every kind.
        count = max(1, status.restart_count)
        again = _("It is started again.")
        if count > 1:
            again = _("It was started again {times} in all.", times=plural(count, "time", "times"))
        yield EventRecord(
            uid=f"{pod.metadata.uid or pod.metadata.name}/{reason}"[-64:],
            at=ended.finished_at or now,
            object=f"Pod/{pod.metadata.name}",
            level="Warning",
            reason=reason,
            message=f"{why.sentence} {again} {why.next_step}".strip(),
            count=count,
        )
