"""What stopping executions means, in words; pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from dashboard.viewmodels.execution import ExecutionRecord, Person
from dashboard.viewmodels.states import ENDED_STATES
from grid.wording import plural


@dataclass(frozen=True, slots=True)
class StopLine:
    """One of several executions or jobs that somebody wants to change. `ends_too` names its attached cluster, `why_not` says why it
    stays as it is."""

    id: str
    name: str
    owner: str
    project: str
    state: str
    is_own: bool
    ends_too: str = ""
    why_not: str = ""

    @property
    def is_possible(self) -> bool:
        return not self.why_not


Decision = Literal["hold", "release", "cancel"]


@dataclass(frozen=True, slots=True)
class BulkQuestion:
    """What is asked before something is done to several at once. `act` and `done` are the verb in other forms, `keep` is the other
    button."""

    verb: str
    act: str
    done: str
    noun: str
    consequence: str
    keep: str
    style: Literal["main", "danger"]


STOP = BulkQuestion(
    *("Stop", "stop", "stopped", "execution"),
    "Files in their projects are kept. What is only in the programs' memory is lost. Workspaces can be resumed later.",
    "Keep them running",
    "danger",
)
STOP_RUNS = BulkQuestion(
    *("Stop the runs of", "stop", "stopped", "job"),
    "Waiting runs are not started, and stopped runs are not retried. Schedules continue. Files in their projects are kept.",
    "Keep them running",
    "danger",
)
WRITE = BulkQuestion(
    *("Write to the owners of", "write about", "written about", "execution"),
    "Each owner gets one notification, with your name, your text and the names of the owner’s own executions in this selection.",
    "Write nothing",
    "main",
)
HOLD = BulkQuestion(
    *("Hold", "hold", "held", "execution"),
    "They do not start until an operator releases them, and others go ahead of them. Their owners see the reason and your name.",
    "Let them wait for their turn",
    "main",
)
RELEASE = BulkQuestion(
    *("Release", "release", "released", "execution"),
    "Each starts when its turn comes. Their owners see the change and your name.",
    "Keep them held",
    "main",
)
CANCEL = BulkQuestion(
    *("Cancel", "cancel", "cancelled", "execution"),
    "They leave the queue and do not start. Launched again, they wait at the end of it. Files in their projects are kept.",
    "Let them wait",
    "danger",
)
QUEUE_QUESTIONS: Mapping[Decision, BulkQuestion] = {"hold": HOLD, "release": RELEASE, "cancel": CANCEL}


def done_words(question: BulkQuestion, done: int, left: int) -> str:
    """Return what came of it: how many were done, and how many of those that were asked for were left as they are."""
    words = f"{plural(done, question.noun)} {question.done}." if done else f"Nothing was {question.done}."
    if not left:
        return words
    return f"{words} {left:,} {'was' if left == 1 else 'were'} left alone: that was no longer possible, or you may not change it."


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
