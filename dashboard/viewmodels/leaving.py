"""Said on the page of an execution whose owner has left its project, or has no account any more; pure."""

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


def left_sentence(record: ExecutionRecord) -> str:
    """To the owner, for what he may not do any more."""
    return f"You have left the project {record.project_name}."


def _leaving(record: ExecutionRecord, person: Person) -> Leaving:
    if record.owner_has_access:
        return Leaving("")
    stops_at = None if record.is_final or record.stop_requested_at is not None else record.stops_at
    if person.has_left:
        advice = "You no longer open it, change it or read its log. If you should be in the project, ask its owner or an admin."
        return Leaving(left_sentence(record), stops_at, advice)
    if record.is_final:
        return Leaving("")
    if record.owner_is_active:
        return Leaving(f"{record.owner_username} has left the project {record.project_name}.", stops_at)
    return Leaving(f"The account of {record.owner_username} is closed.", stops_at)
