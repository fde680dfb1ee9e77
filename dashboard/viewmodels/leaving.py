"""Said on the page of an execution whose owner has left its project, only views it, or has no account any more; pure."""

from dataclasses import dataclass
from datetime import datetime

from dashboard.viewmodels.execution import ExecutionRecord, Person
from dashboard.viewmodels.live import Fragment


@dataclass(frozen=True, slots=True)
class Leaving:
    """Nothing is said without sentences; `stops_at` is when it will be stopped, None when that is past or not known."""

    why: str
    stops_at: datetime | None = None
    advice: str = ""


def leaving(record: ExecutionRecord, person: Person) -> Fragment:
    return Fragment("leaving", "dashboard/fragments/execution_leaving.html", _leaving(record, person))


_ASK = "If you should work in the project, ask its owner or an admin."


def _denied(person: Person) -> str:
    denied = [
        "open it",
        *(["change it"] if not person.may_change else []),
        *(["read its log"] if not person.may_read else []),
    ]
    return f"You no longer {' or '.join([', '.join(denied[:-1]), denied[-1]] if denied[1:] else denied)}."


def left_sentence(record: ExecutionRecord) -> str:
    """To the owner, for what he may not do any more."""
    if record.owner_id in record.project_roles:
        return f"You only look at the project {record.project_name} now."
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
        what = "only looks at" if is_viewer else "has left"
        now = " now" if is_viewer else ""
        return Leaving(f"{record.owner_username} {what} the project {record.project_name}{now}.", stops_at)
    return Leaving(f"The account of {record.owner_username} is closed.", stops_at)
