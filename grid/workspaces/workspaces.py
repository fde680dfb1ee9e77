"""Resumes, restarts, renames and deletes workspaces. Stopping a workspace is stopping its execution (`stopping`). Each is one transaction
that locks the workspace, so of two at the same moment the second sees what the first has done."""

import logging
from dataclasses import replace
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, Max, OuterRef, QuerySet

from grid.announcements.maintenance import MAINTENANCE
from grid.clusters.request import read_cluster_settings
from grid.core.errors import Problem, Rejected, rejection
from grid.core.translation import gettext as _
from grid.core.wording import POD_STAYS_SENTENCE
from grid.database.trouble import trouble_of
from grid.diagnosis.launchfit import Pools
from grid.environments.revisions import pinned_to
from grid.executions.launchrequest import LaunchRequest, Offers, wrong_tier
from grid.executions.podkind import PodKind, environment_problem
from grid.executions.request import submit, validate, wrong_title
from grid.executions.spec import launched_revision
from grid.executions.stopping import RESTART, request_stop
from grid.models import Environment, Execution, HardwareTier, NotificationEvent, State, Workspace
from grid.models.environment import Kind
from grid.models.execution import FINAL_STATES
from grid.notifications import outbox
from grid.projects.departures import ARCHIVED, INACTIVE, NOT_CONTRIBUTOR, why_departed
from grid.queue.launches import why_not_launch
from grid.queue.snapshot import why_closed

logger = logging.getLogger(__name__)

ACTIVE, STOPPING, POD_STAYS, DELETED = "active", "stopping", "pod_stays", "deleted"
ENDED = "ended"
BUSY = (ACTIVE, STOPPING, POD_STAYS)
_RESTART = ("restart_requested_at", "restart_problem")  # columns
_DEPARTED = {
    INACTIVE: _("This account is disabled; ask your admin."),
    ARCHIVED: _("Its project, {name}, is archived. Its files are kept; ask an admin to restore it."),
    NOT_CONTRIBUTOR: _(
        "You are no longer a contributor of its project, {name}. Your files are kept; "
        "ask the project's owner or an admin to make you a contributor again."
    ),
}


def why_busy(state: str, *, stop_wanted: bool) -> Problem:
    """Return why a workspace whose latest execution, in this state, is not settled cannot be changed."""
    if state in FINAL_STATES:
        return Problem("", POD_STAYS_SENTENCE, POD_STAYS)
    if stop_wanted or state in (State.STOPPING, State.FINISHING):
        return Problem("", _("It is still stopping. Wait until it has ended."), STOPPING)
    return Problem("", _("It has not ended yet. Stop it first."), ACTIVE)


def why_not_resume(workspace: Workspace) -> Problem | None:
    """Return why its owner cannot resume it at present, whatever tier is chosen; None when they can."""
    return _busy(workspace) or _why_not_launch(workspace)


def _why_not_launch(workspace: Workspace) -> Problem | None:
    if (departed := why_departed(workspace.owner, workspace.project)) is None:
        return None
    return Problem("", _DEPARTED[departed.code].format(name=workspace.project.name), departed.code)


def why_not_as_launched(workspace: Workspace, offers: Offers) -> Problem | None:
    """Return why its owner, to whom `offers` are made, cannot launch it on the same tier in the same environment. None when that
    is possible, as far as can be told without nodes and the cluster: a list asks for each of its rows."""
    if (problem := environment_problem(workspace.environment)) is not None:
        return problem
    if any(tier.pk == workspace.tier_id for tier in offers.tiers(Kind.WORKSPACE)):
        return None
    return wrong_tier(workspace.owner, workspace.tier, Kind.WORKSPACE)


def problems_as_launched(workspace: Workspace, *, pools: Pools | None = None) -> list[Problem]:
    """Return all problems of resuming it unchanged, such as a tier that is no longer offered."""
    try:
        return validate(_request(workspace, workspace.environment, workspace.tier, with_cluster=True), pools=pools)
    except Rejected as gone:
        return list(gone.problems)


def resume(
    workspace_id: str,
    *,
    environment: Environment,
    tier: HardwareTier,
    with_cluster: bool,
    now: datetime,
    newest: bool = False,
    pools: Pools | None = None,
) -> Execution:
    """Launch it again for its owner, on request with the cluster that it was launched with. It keeps the given environment and tier. In
    the same environment it keeps its revision too, unless the `newest` is asked for. Raise Rejected with all problems; with the code
    `ACTIVE` when it was launched already and has not ended."""
    with transaction.atomic():
        workspace = _locked(workspace_id)
        if problem := why_not_resume(workspace):
            raise Rejected([problem])
        # The newest execution is the one launched last, also when this replica's clock is behind another's.
        last = workspace.executions.aggregate(at=Max("requested_at"))["at"]
        now = max(now, last + timedelta(microseconds=1)) if last else now
        request = _request(workspace, environment, tier, with_cluster=with_cluster)
        if environment.pk == workspace.environment_id and not newest:
            request = replace(request, pinned=pinned_to(environment.pk, workspace.environment_revision))
        execution = submit(request, gate=why_not_launch, now=now, pools=pools)
        workspace.environment_id, workspace.tier_id, workspace.launched_at = environment.pk, tier.pk, now
        workspace.environment_revision = launched_revision(execution)
        workspace.restart_requested_at, workspace.restart_problem = None, ""
        workspace.save(update_fields=["environment", "environment_revision", "tier", "launched_at", *_RESTART])
    return execution


def request_restart(workspace_id: str, *, by: str, now: datetime) -> None:
    """Stop its execution and have the controller resume it with the same settings, once the pod is gone. Asking twice changes nothing.
    Raise Rejected when nothing runs, or when it could not be resumed."""
    with transaction.atomic():
        workspace = _locked(workspace_id)
        if workspace.restart_requested_at is not None:
            return
        execution = workspace.executions.unsettled().first()
        if execution is None or execution.is_final:
            raise rejection(_("It has ended. Resume it instead."), ENDED)
        if execution.state == State.QUEUED:
            raise rejection(_("It has not started yet, so there is nothing to restart."), ACTIVE)
        if problem := _why_not_launch(workspace):
            raise Rejected([problem])
        if closed := why_closed(workspace.project_id, now):
            raise Rejected(closed)
        workspace.restart_requested_at, workspace.restart_problem = now, ""
        workspace.save(update_fields=_RESTART)
        request_stop(execution, by=by, now=now, reason=RESTART)


def cancel_restart(workspace_id: str) -> bool:
    """Leave the workspace stopped. Return False when no restart was asked for, or it has been resumed already."""
    waiting = Workspace.objects.filter(pk=workspace_id, restart_requested_at__isnull=False)
    return bool(waiting.update(restart_requested_at=None))


def to_resume() -> QuerySet[Workspace]:
    """Return the workspaces that restart, and whose execution has settled."""
    unsettled = Execution.objects.unsettled().filter(workspace=OuterRef("pk"))
    return Workspace.objects.filter(~Exists(unsettled), restart_requested_at__isnull=False, deleted_at__isnull=True)


def resume_restarted(*, now: datetime) -> list[str]:
    """Resume each workspace whose restart was asked for and whose execution has settled; return the new executions' ids. One that cannot
    be resumed stays stopped and keeps the reason. One that fails is told to the log, and keeps nobody else waiting. Raise only what
    concerns all: trouble of the database."""
    resumed = []
    for id in list(to_resume().order_by("restart_requested_at").values_list("pk", flat=True)):
        try:
            resumed.append(_resume_restarted(id, now))
        except Exception as error:
            if trouble_of(error) is not None:
                raise
            logger.exception("workspace=%s not resumed", id)
    return [id for id in resumed if id]


def _resume_restarted(workspace_id: str, now: datetime) -> str:
    try:
        with transaction.atomic():
            workspace = _locked(workspace_id)
            if workspace.restart_requested_at is None:
                return ""  # another controller was faster, or it was cancelled
            environment, tier, latest = workspace.environment, workspace.tier, _latest(workspace_id)
            had_cluster = latest is not None and Execution.objects.filter(attached_to=latest).exists()
            resumed = resume(workspace_id, environment=environment, tier=tier, with_cluster=had_cluster, now=now)
    except Rejected as refused:
        # One that was resumed by hand meanwhile has no restart left to give up; maintenance ends, and then it is resumed.
        if not {problem.code for problem in refused.problems} & {*BUSY, DELETED, MAINTENANCE}:
            _give_up_restart(workspace_id, refused.sentences, now)
        return ""
    logger.info("execution=%s launched to restart workspace=%s", resumed.pk, workspace_id)
    return resumed.pk


def _give_up_restart(workspace_id: str, why: str, now: datetime) -> None:
    with transaction.atomic():
        waiting = Workspace.objects.filter(pk=workspace_id, restart_requested_at__isnull=False)
        latest = _latest(workspace_id)
        if waiting.update(restart_requested_at=None, restart_problem=why) and latest is not None:
            sentence = _("It was stopped to be restarted, and not started again: {why}", why=why)
            outbox.record(latest.pk, NotificationEvent.FAILED, sentence, now=now, path=f"/workspaces/{workspace_id}/")


def _latest(workspace_id: str) -> Execution | None:
    return Execution.objects.filter(workspace=workspace_id).order_by("-requested_at", "-pk").first()


def rename(workspace_id: str, title: str) -> tuple[Workspace, str]:
    """Set the title of a stopped workspace, "" for none; return the workspace and the title that it had. Raise Rejected."""
    with transaction.atomic():
        workspace = _stopped(workspace_id)
        if problems := list(wrong_title(title)):
            raise Rejected(problems)
        before, workspace.title = workspace.title, title.strip()
        workspace.save(update_fields=["title"])
    return workspace, before


def delete(workspace_id: str, *, now: datetime) -> None:
    """Hide a stopped workspace from all lists; its executions stay in the history, and no file is touched. Raise Rejected."""
    with transaction.atomic():
        workspace = _stopped(workspace_id)
        workspace.deleted_at = now
        workspace.save(update_fields=["deleted_at"])


def _request(
    workspace: Workspace, environment: Environment, tier: HardwareTier, *, with_cluster: bool
) -> LaunchRequest:
    """Return the request. Raise Rejected when a row of its cluster's request no longer exists."""
    return LaunchRequest(
        owner=workspace.owner,
        project=workspace.project,
        environment=environment,
        tier=tier,
        kind=Kind.WORKSPACE,
        title=str(workspace),
        cluster=read_cluster_settings(workspace.cluster) if with_cluster and workspace.cluster else None,
        workspace=workspace,
    )


def _stopped(workspace_id: str) -> Workspace:
    """Return a workspace that has ended; its pod may not be confirmed gone, which may last until a lost node is back."""
    workspace = _locked(workspace_id)
    busy = _busy(workspace)
    if busy is not None and busy.code != POD_STAYS:
        raise Rejected([busy])
    return workspace


def _locked(workspace_id: str) -> Workspace:
    rows = Workspace.objects.select_for_update(no_key=True, of=("self",)).select_related("owner", "project")
    workspace = rows.filter(pk=workspace_id, deleted_at__isnull=True).first()
    if workspace is None:
        raise rejection(_("It was deleted."), DELETED)
    return workspace


def _busy(workspace: Workspace) -> Problem | None:
    if (execution := workspace.executions.unsettled().first()) is None:
        return None
    return why_busy(execution.state, stop_wanted=execution.stop_requested_at is not None)


class WorkspaceKind(PodKind):
    """The kind of interactive programs, such as JupyterLab."""

    starts_at_home = True
    takes_cluster = True

    def store(self, execution: Execution, request: LaunchRequest) -> None:
        execution.workspace = request.workspace or Workspace.objects.create(
            id=execution.pk,
            title=execution.title,
            owner=execution.owner,
            project_id=execution.project_id,
            environment_id=execution.environment_id,
            environment_revision=launched_revision(execution),
            tier_id=execution.tier_id,
            cluster=request.cluster.as_stored if request.cluster else None,
            created_at=execution.requested_at,
            launched_at=execution.requested_at,
        )
