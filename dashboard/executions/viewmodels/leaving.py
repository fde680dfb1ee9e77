"""The notice on the page of an execution whose owner has left its project, only views it, or has a closed account; pure."""

from dataclasses import dataclass
from datetime import datetime

from dashboard.executions.viewmodels.execution import ExecutionRecord, Person
from dashboard.shell.viewmodels.format import either
from dashboard.shell.viewmodels.live import Fragment
from grid.core.translation import gettext as _


@dataclass(frozen=True, slots=True)
class Leaving:
    """The notice, which is not shown when `why` is ""; `stops_at` is when the execution will be stopped, None when past or unknown."""

    why: str
    stops_at: datetime | None = None
    advice: str = ""


def leaving(record: ExecutionRecord, person: Person) -> Fragment:
    return Fragment("leaving", "executions/fragments/execution_leaving.html", _leaving(record, person))


_ASK = _("To work in the project again, ask its owner or an admin.")


def _denied(person: Person) -> str:
    denied = [_("open it")]
    if not person.may_change:
        denied.append(_("change it"))
    if not person.may_read:
        denied.append(_("read its log"))
    return _("You no longer {denied}.", denied=either(denied))


def left_sentence(record: ExecutionRecord) -> str:
    """Return the sentence that tells the owner why some rights are gone."""
    if record.owner_id in record.project_roles:
        return _("You are only a viewer of the project {project_name} now.", project_name=record.project_name)
    return _("You have left the project {project_name}.", project_name=record.project_name)


def _leaving(record: ExecutionRecord, person: Person) -> Leaving:
    if record.owner_has_access or (record.is_final and not person.has_left):
        return Leaving("")
    stops_at = None if record.is_final or record.stop_requested_at is not None else record.stops_at
    is_viewer = record.owner_id in record.project_roles
    if person.has_left or (person.is_owner and is_viewer):
        return Leaving(left_sentence(record), stops_at, f"{_denied(person)} {_ASK}")
    if not record.owner_is_active:
        return Leaving(_("The account of {owner_username} is closed.", owner_username=record.owner_username), stops_at)
    named = {"owner": record.owner_username, "project": record.project_name}
    if is_viewer:
        return Leaving(_("{owner} only views the project {project} now.", **named), stops_at)
    return Leaving(_("{owner} has left the project {project}.", **named), stops_at)
