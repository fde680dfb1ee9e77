"""The notice on the page of an execution whose owner has left its project, only views it, or has a closed account; pure."""

from dataclasses import dataclass
from datetime import datetime

from dashboard.viewmodels.execution import ExecutionRecord, Person
from dashboard.viewmodels.live import Fragment


@dataclass(frozen=True, slots=True)
class Leaving:
    """The notice, which is not shown when `why` is ""; `stops_at` is when the execution will be stopped, None when past or unknown."""

    why: str
    stops_at: datetime | None = None
    advice: str = ""


def leaving(record: ExecutionRecord, person: Person) -> Fragment:
    return Fragment("leaving", "dashboard/fragments/execution_leaving.html", _leaving(record, person))


_ASK = "To work in the project again, ask its owner or an admin."


def _denied(person: Person) -> str:
    rights = {"open it": False, "change it": person.may_change, "read its log": person.may_read}
    *others, last = (what for what, may in rights.items() if not may)
    return f"You no longer {', '.join(others)}{' or ' if others else ''}{last}."


def left_sentence(record: ExecutionRecord) -> str:
    """Return the sentence that tells the owner why some rights are gone."""
    if record.owner_id in record.project_roles:
        return f"You are only a viewer of the project {record.project_name} now."
    return f"You have left the project {record.project_name}."


def _leaving(record: ExecutionRecord, person: Person) -> Leaving:
    if record.owner_has_access:
        return Leaving("")
    stops_at = None if record.is_final or record.stop_requested_at is not None else record.stops_at
    if person.has_left:
        return Leaving(left_sentence(record), stops_at, f"{_denied(person)} {_ASK}")
    if record.is_final:
        return Leaving("")
    is_viewer = record.owner_id in record.project_roles
    if person.is_owner and is_viewer:
        return Leaving(left_sentence(record), stops_at, f"{_denied(person)} {_ASK}")
    if record.owner_is_active:
        project = f"the project {record.project_name}"
        what = f"only views {project} now" if is_viewer else f"has left {project}"
        return Leaving(f"{record.owner_username} {what}.", stops_at)
    return Leaving(f"The account of {record.owner_username} is closed.", stops_at)
