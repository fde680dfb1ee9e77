"""Puts a workspace into words: its present state, the one button that fits, and its card; pure."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from urllib.parse import urlencode

from dashboard.executions.viewmodels.execution import CONTRIBUTING
from dashboard.shell.viewmodels.states import ACTIVE_STATES, STARTED_STATES, StatusLine, state_status
from grid.core.translation import gettext as _
from grid.core.wording import POD_STAYS_SENTENCE

_LONGEST_NAME = 115  # with " copy" as long as a title may be

Button = Literal["open", "stop", "resume", "choose", "again", ""]


@dataclass(frozen=True, slots=True)
class WorkspaceExecution:
    """One execution of a workspace."""

    id: str
    state: str
    since: datetime
    message: str
    is_settled: bool = True  # it has ended, and its pod has been seen gone

    @property
    def is_active(self) -> bool:
        return self.state in ACTIVE_STATES


@dataclass(frozen=True, slots=True)
class WorkspaceRecord:
    """The stored values of a workspace; `latest` is None when all of its executions were dropped from the history."""

    id: str
    name: str
    title: str
    owner_id: int
    owner_username: str
    project_id: str
    project_name: str
    project_roles: Mapping[int, str]  # by the member's id
    environment_name: str
    tier_name: str
    created_at: datetime
    launched_at: datetime
    latest: WorkspaceExecution | None
    environment_id: str = ""
    revision: int = 0  # of the environment, as launched last; 0: not known
    tier_id: str = ""
    is_restarting: bool = False  # it is launched again as soon as its execution has settled
    restart_problem: str = ""  # why the last restart ended without a launch
    why_not_as_launched: str = ""  # why it cannot be launched on the same tier in the same environment

    @property
    def project_member_ids(self) -> Collection[int]:
        return self.project_roles.keys()

    @property
    def is_active(self) -> bool:
        return self.latest is not None and self.latest.is_active

    @property
    def may_restart(self) -> bool:
        return self.latest is not None and self.latest.state in STARTED_STATES and not self.is_restarting

    @property
    def status(self) -> StatusLine:
        if self.is_restarting:
            return StatusLine("wait", _("Restarting"))
        if self.latest is None:
            return StatusLine("neutral", _("Stopped"))
        return state_status(self.latest.state, message=self.latest.message)[0]

    @property
    def since(self) -> datetime:
        return self.launched_at if self.latest is None else self.latest.since

    @property
    def why_not_resume(self) -> str:
        """The reason why it cannot be resumed yet: the pod of its ended execution may still exist; "" when it can."""
        holds = self.latest is not None and not self.latest.is_active and not self.latest.is_settled
        return POD_STAYS_SENTENCE if holds else ""

    @property
    def clone_query(self) -> str:
        """The query of the launch form for another workspace like this one."""
        title = _("{title} copy", title=self.name[:_LONGEST_NAME])
        if self.latest is not None:  # it knows the cluster
            return urlencode({"from": self.latest.id, "title": title})
        same = {"project": self.project_id, "environment": self.environment_id, "tier": self.tier_id}
        return urlencode({"kind": "workspace", **same, "title": title})

    def button(self, user_id: int) -> Button:
        """Return the user's button; "" for everybody but the owner. Others who may stop it do so on its execution's page."""
        if user_id != self.owner_id or self.is_restarting:
            return ""
        if self.latest is None or not self.latest.is_active:
            if self.why_not_resume:
                return "again"
            return "choose" if self.why_not_as_launched else "resume"
        return fitting_button(self.latest.state, contributes=self.project_roles.get(user_id) in CONTRIBUTING)


@dataclass(frozen=True, slots=True)
class MyExecution:
    """A card. `environment` is a cluster's framework; `execution_id` is "" for a stopped workspace, `workspace_id` for anything else. Of
    several runs of one job, `job_id` is the job's and `runs` counts them by state."""

    execution_id: str
    workspace_id: str
    name: str
    environment: str
    tier: str
    project: str
    status: StatusLine
    since: datetime
    button: Button
    is_active: bool
    advice: str = ""
    why_not_resume: str = ""  # or not with one click
    launched_as: str = ""  # the execution that "Launch again" copies
    job_id: str = ""
    runs: str = ""


def workspace_card(workspace: WorkspaceRecord) -> MyExecution:
    execution = workspace.latest
    return MyExecution(
        execution_id=execution.id if execution is not None and workspace.is_active else "",
        workspace_id=workspace.id,
        name=workspace.name,
        environment=workspace.environment_name,
        tier=workspace.tier_name,
        project=workspace.project_name,
        status=workspace.status,
        since=workspace.since,
        button=workspace.button(workspace.owner_id),
        is_active=workspace.is_active,
        why_not_resume=workspace.why_not_resume or ("" if workspace.is_active else workspace.why_not_as_launched),
        launched_as=execution.id if execution is not None else "",
    )


def fitting_button(state: str, *, contributes: bool) -> Button:
    """Return the owner's button for a workspace in this active state; only a contributor to its project may open it."""
    if state in ("finishing", "stopping"):
        return ""
    return "open" if state == "running" and contributes else "stop"
