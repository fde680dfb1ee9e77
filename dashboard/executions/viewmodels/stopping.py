"""What stopping executions means, in words; pure."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from dashboard.executions.viewmodels.execution import ExecutionRecord, Person
from dashboard.shell.viewmodels.states import ENDED_STATES, kind_name
from grid.core.translation import gettext as _, ngettext


@dataclass(frozen=True, slots=True)
class StopLine:
    """An execution or job of several that somebody wants to change; `ends_too` names its cluster, `why_not` why it stays as it is."""

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
    """What is asked before something is done to several. `left` stands above what is left alone, `keep` on the other button."""

    title: str
    headline: Callable[[int], str]
    nothing: str
    impossible: str
    left: str
    consequence: str
    keep: str
    style: Literal["main", "danger"] = "main"
    unchosen: str = _("Select executions in the list first.")
    done: Callable[[int], str] = str
    none_done: str = ""


STOP = BulkQuestion(
    title=_("Stop several"),
    headline=lambda count: ngettext("Stop {count} execution", "Stop {count} executions", count),
    nothing=_("Nothing to stop"), impossible=_("None of these can be stopped."), left=_("Not stopped"),
    consequence=_("Files in their projects are kept. What is only in the programs' memory is lost. Workspaces can be resumed later."),
    keep=_("Keep them running"), style="danger",
)  # fmt: skip
STOP_RUNS = replace(
    STOP,
    title=_("Stop the runs of several"),
    headline=lambda count: ngettext("Stop the runs of {count} job", "Stop the runs of {count} jobs", count),
    unchosen=_("Select jobs in the list first."),
    consequence=_("Waiting runs are not started, and stopped runs are not retried. Schedules continue. Files in their projects are kept."),
)  # fmt: skip
WRITE = BulkQuestion(
    title=_("Write to the owners of several"),
    headline=lambda count: ngettext("Write to the owners of {count} execution", "Write to the owners of {count} executions", count),
    nothing=_("Nothing to write about"), impossible=_("None of these can be written about."), left=_("Not written about"),
    consequence=_("Each owner gets one notification, with your name, your text and the names of the owner’s own executions in this "
                  "selection."),
    keep=_("Write nothing"),
)  # fmt: skip
HOLD = BulkQuestion(
    title=_("Hold several"),
    headline=lambda count: ngettext("Hold {count} execution", "Hold {count} executions", count),
    nothing=_("Nothing to hold"), impossible=_("None of these can be held."), left=_("Not held"),
    consequence=_("They do not start until an operator releases them, and others go ahead of them. Their owners see the reason and "
                  "your name."),
    keep=_("Let them wait for their turn"),
    done=lambda count: ngettext("{count:,} execution held.", "{count:,} executions held.", count),
    none_done=_("Nothing was held."),
)  # fmt: skip
RELEASE = BulkQuestion(
    title=_("Release several"),
    headline=lambda count: ngettext("Release {count} execution", "Release {count} executions", count),
    nothing=_("Nothing to release"), impossible=_("None of these can be released."), left=_("Not released"),
    consequence=_("Each starts when its turn comes. Their owners see the change and your name."),
    keep=_("Keep them held"),
    done=lambda count: ngettext("{count:,} execution released.", "{count:,} executions released.", count),
    none_done=_("Nothing was released."),
)  # fmt: skip
CANCEL = BulkQuestion(
    title=_("Cancel several"),
    headline=lambda count: ngettext("Cancel {count} execution", "Cancel {count} executions", count),
    nothing=_("Nothing to cancel"), impossible=_("None of these can be cancelled."), left=_("Not cancelled"),
    consequence=_("They leave the queue and do not start. Launched again, they wait at the end of it. Files in their projects are kept."),
    keep=_("Let them wait"), style="danger",
    done=lambda count: ngettext("{count:,} execution cancelled.", "{count:,} executions cancelled.", count),
    none_done=_("Nothing was cancelled."),
)  # fmt: skip
QUEUE_QUESTIONS: Mapping[Decision, BulkQuestion] = {"hold": HOLD, "release": RELEASE, "cancel": CANCEL}


def done_words(question: BulkQuestion, done: int, left: int) -> str:
    """Return what came of it: how many were done, and how many of those that were asked for were left as they are."""
    words = question.done(done) if done else question.none_done
    others = ngettext(
        "{count:,} was left alone: that was no longer possible, or you may not change it.",
        "{count:,} were left alone: that was no longer possible, or you may not change it.",
        left,
    )
    return f"{words} {others}" if left else words


def consequences(record: ExecutionRecord, who: Person) -> Sequence[str]:
    """Return sentences: whose it is, what is lost and kept, and what ends or goes on with it."""
    sentences = []
    if not who.is_owner:
        sentences.append(_("It belongs to {owner_username}.", owner_username=record.owner_username))
    other = record.companion
    if other is not None and other.state not in ENDED_STATES:
        goes_on = _("The {kind} {name} continues without this cluster.")
        sentence = _("Its cluster {name} ends too.") if other.is_attached else goes_on
        sentences.append(sentence.format(kind=kind_name(other.kind).lower(), name=other.name))
    kept = _("Files in the project {project_name} are kept. What is only in the program's memory is lost.")
    sentences.append(kept.format(project_name=record.project_name))
    if record.workspace_id:
        own = _("You can resume it later if you contribute to that project again.")
        own = _("You can resume it later, with the same files and settings.") if who.contributes else own
        sentences.append(own if who.is_owner else _("Its owner can resume it later."))
    return sentences
