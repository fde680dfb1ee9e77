"""What stopping executions means, in words; pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.viewmodels.execution import ExecutionRecord, Person
from dashboard.viewmodels.states import ENDED_STATES


@dataclass(frozen=True, slots=True)
class StopLine:
    """One of several executions that somebody wants to stop. `ends_too` names its attached cluster, `why_not` says why it stays."""

    id: str
    name: str
    owner: str
    project: str
    state: str
    is_own: bool
    ends_too: str = ""
    why_not: str = ""

    @property
    def can_be_stopped(self) -> bool:
        return not self.why_not


def consequences(record: ExecutionRecord, who: Person) -> Sequence[str]:
    """Return sentences: whose it is, what is lost and kept, and what ends or goes on with it."""
    sentences = []
    if not who.is_owner:
        sentences.append(f"It belongs to {record.owner_username}.")
    other = record.companion
    if other is not None and other.state not in ENDED_STATES:
        sentences.append(
            f"Its cluster {other.name} ends too."
            if other.cluster is not None
            else f"The {other.kind} {other.name} continues without this cluster."
        )
    sentences.append(
        f"Files in the project {record.project_name} are kept. What is only in the program's memory is lost."
    )
    if record.workspace_id:
        sentences.append(_resuming(who))
    return sentences


def _resuming(who: Person) -> str:
    if not who.is_owner:
        return "Its owner can resume it later."
    if who.contributes:
        return "You can resume it later, with the same files and settings."
    return "You can resume it later if you contribute to that project again."
