"""What a viewer may do on an execution's page: the buttons, why one is missing, and the notice of lost access to the project; pure."""

from dataclasses import dataclass
from datetime import datetime

from dashboard.executions.viewmodels.execution import ExecutionRecord, Person
from dashboard.shell.viewmodels.format import either
from dashboard.shell.viewmodels.live import Fragment
from dashboard.shell.viewmodels.states import STARTED_STATES
from grid.core.translation import gettext as _
from grid.core.wording import POD_STAYS_SENTENCE


@dataclass(frozen=True, slots=True)
class Actions:
    """The page's buttons; `why_not_open` is the reason beside an Open button that is disabled, "" when it is enabled."""

    execution_id: str
    shows_open: bool
    open_word: str
    why_not_open: str
    shows_stop: bool
    shows_change: bool
    shows_restart: bool
    stopping: str
    resumes: str  # the workspace that the viewer may resume; "" when the page offers to launch again instead
    why_not_resume: str
    again: str = ""  # URL that launches the same run again; "" when the page offers the launch form instead
    shows_share: bool = False
    restarts: str = ""  # the workspace that the viewer may restart
    newer_id: str = ""  # the execution by which the workspace goes on


def actions(record: ExecutionRecord, person: Person, *, is_ready: bool) -> Fragment:
    """Return the page's buttons. `is_ready` tells whether the pod (a cluster's head) answers. Open shows only to persons who may open."""
    stop_asked = record.stop_requested_at is not None or record.state == "stopping"
    shows_open = person.may_open and record.opens and not record.is_final
    shows_change = person.may_change and record.has_members and not record.is_final and not stop_asked
    may_resume = bool(record.workspace_id) and record.is_final and person.is_owner
    unsettled = "" if record.is_settled else POD_STAYS_SENTENCE
    why_not_resume = record.stopping_words if record.is_restarting else unsettled
    shows_restart = person.is_owner and person.contributes and not stop_asked and record.state in STARTED_STATES
    return Fragment(
        "actions",
        "executions/fragments/execution_actions.html",
        Actions(
            execution_id=record.id,
            shows_open=shows_open,
            open_word=_("Open its page") if record.kind == "job" else record.kind_record.open_word,
            why_not_open=_why_not_open(record, stop_asked=stop_asked, is_ready=is_ready),
            shows_stop=person.may_stop and not record.is_final and not stop_asked,
            shows_change=shows_change,
            shows_restart=shows_change and record.state in ("preparing", "running"),
            stopping=record.stopping_words if stop_asked and not record.is_final else "",
            resumes=record.workspace_id if may_resume and record.is_settled and not record.is_restarting else "",
            why_not_resume=why_not_resume if may_resume else "",
            again=record.run.again if record.run and person.is_owner else "",
            shows_share=person.may_share and not record.is_final and not stop_asked,
            restarts=record.workspace_id if shows_restart else "",
            newer_id=record.newer_id,
        ),
    )


def _why_not_open(record: ExecutionRecord, *, stop_asked: bool, is_ready: bool) -> str:
    """Return why it cannot be opened now; "" when it can. A cluster can as soon as its head is up: its page shows the workers joining."""
    if stop_asked:
        return _("It is stopping.")
    if record.has_members and record.state in ("deploying", "preparing", "running"):
        return "" if is_ready else _("You can open it as soon as its head is up.")
    if record.state != "running":
        return _("You can open it as soon as it runs.")
    return "" if is_ready else _("Its program is not answering right now.")


@dataclass(frozen=True, slots=True)
class Leaving:
    """The notice, which is not shown when `why` is ""; `stops_at` is when the execution will be stopped, None when past or unknown."""

    why: str
    stops_at: datetime | None = None
    advice: str = ""


_ASK = _("To work in the project again, ask its owner or an admin.")


def left_sentence(record: ExecutionRecord) -> str:
    """Return the sentence that tells the owner why some rights are gone."""
    if record.owner_id in record.project_roles:
        return _("You are only a viewer of the project {project_name} now.", project_name=record.project_name)
    return _("You have left the project {project_name}.", project_name=record.project_name)


def leaving(record: ExecutionRecord, person: Person) -> Leaving:
    if (record.owner_is_active and record.contributes(record.owner_id)) or (record.is_final and not person.has_left):
        return Leaving("")
    stops_at = None if record.is_final or record.stop_requested_at is not None else record.stops_at
    is_viewer = record.owner_id in record.project_roles
    if person.has_left or (person.is_owner and is_viewer):
        changing, reading = "" if person.may_change else _("change it"), "" if person.may_read else _("read its log")
        denied = _("You no longer {denied}.", denied=either(filter(None, (_("open it"), changing, reading))))
        return Leaving(left_sentence(record), stops_at, f"{denied} {_ASK}")
    if not record.owner_is_active:
        return Leaving(_("The account of {owner_username} is closed.", owner_username=record.owner_username), stops_at)
    named = {"owner": record.owner_username, "project": record.project_name}
    if is_viewer:
        return Leaving(_("{owner} only views the project {project} now.", **named), stops_at)
    return Leaving(_("{owner} has left the project {project}.", **named), stops_at)
