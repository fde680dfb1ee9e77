"""Which run and attempt of a job an execution is, and what became of its project's files in Git, for its page; pure."""

from dataclasses import dataclass

from dashboard.shell.viewmodels.live import Fragment
from grid.core.quantity import format_bytes
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.diagnosis.run_report import left_out_sentence

_TEMPLATE = "executions/fragments/run_files.html"
_WHERE_KEPT = {
    "repository": _("Its changes are kept beside the branches."),
    "home": _("Its changes are kept in HOME, in the folder unpushed-files."),
    "unsure": _("The history of its files, and in HOME the folder unpushed-files, say what of its changes was saved."),
    "copy": _("A copy of its files is kept beside the branches: ask an operator for it."),
}
# Where files that are in no commit are.
_WHERE_COPIED = {"home": _("A copy of all is in HOME, in the folder unpushed-files."), "copy": _WHERE_KEPT["copy"]}


@dataclass(frozen=True, slots=True)
class RunFilesRecord:
    """The stored values. `asked` is the branch or commit to begin with; the rest is empty until the files are saved."""

    project_id: str
    name: str  # of the branch that an execution has for itself
    asked: str
    is_reported: bool = False
    began: str = ""
    ended: str = ""
    branch: str = ""
    kept: str = ""
    problem: str = ""
    left_out: int = 0
    left_out_names: str = ""
    results_files: int = 0
    results_bytes: int = 0
    results_problem: str = ""
    results_kept: str = ""

    @property
    def results_words(self) -> str:
        """How many results are kept; "" for none."""
        words = f"{plural(self.results_files, 'file', 'files')}, {format_bytes(self.results_bytes)}"
        return words if self.results_files else ""

    @property
    def results_notice(self) -> str:
        """What of the results is not kept, and where a copy is; "" when all are kept."""
        notice = f"{self.results_problem}. {_WHERE_COPIED.get(self.results_kept, '')}".strip()
        return notice if self.results_problem else ""


@dataclass(frozen=True, slots=True)
class RunFilesLine:
    """`may_browse` is True for the project's owner and contributors, who get links; `pushes` is what they may push again, or ""."""

    record: RunFilesRecord
    sentence: str
    problem: str
    may_browse: bool
    pushes: str

    @property
    def execution_id(self) -> str:
        return self.record.name.rpartition("-")[2]

    @property
    def began(self) -> str:
        return self.record.began[:8]

    @property
    def ended(self) -> str:
        """The commit that the repository has; "" where nothing was changed or pushed."""
        is_there = self.record.branch and self.record.ended != self.record.began
        return self.record.ended[:8] if is_there else ""


def run_files(
    record: RunFilesRecord | None, *, state: str, is_final: bool, contributes: bool, job_of: str = ""
) -> Fragment:
    """Return the fragment; where the files are a volume it has the project `job_of` of a job, which has no kept results, or nothing."""
    if record is None:
        return Fragment("files", _TEMPLATE, job_of or None)
    kept = _WHERE_KEPT.get(record.kept, _("Nothing could be written, so its changes are lost.") if is_final else "")
    problem = f"{record.problem}. {kept}".strip() if record.problem else ""
    sentence = "" if problem else _sentence(record, state=state, is_final=is_final)
    pushes = record.name if contributes and record.kept == "repository" else ""
    return Fragment("files", _TEMPLATE, RunFilesLine(record, sentence, problem, contributes, pushes))


def _sentence(record: RunFilesRecord, *, state: str, is_final: bool) -> str:
    if not record.is_reported:
        if state in ("finishing", "stopping"):
            return _("Saving the changes to its files.")
        if is_final:
            return _("It did not report which commit it saved; see the history of the files.")
        return _("It begins with {asked}, and saves its changes as a commit when it ends.", asked=record.asked)
    notes = [left_out_sentence(record.left_out, record.left_out_names)] if record.left_out else []
    if record.left_out and record.kept:
        notes.append(_WHERE_COPIED.get(record.kept, ""))
    if record.began == record.ended:
        return " ".join([_("Nothing in its files has changed."), *notes])
    if record.branch == record.name and record.asked == "main":
        notes.insert(0, _("Somebody else changed the same lines in the meantime."))
    return " ".join([_("Its changes are on branch {branch}.", branch=record.branch), *notes])


@dataclass(frozen=True, slots=True)
class SiblingAttempt:
    """Another attempt of the same run."""

    execution_id: str
    number: int
    state: str
    message: str

    @property
    def words(self) -> str:
        """What came of it, such as "failed: Exit code 1."."""
        return f"{self.state}: {self.message}" if self.message else self.state


@dataclass(frozen=True, slots=True)
class RunPlace:
    """A value of a live fragment, so hashable. `job_id` is "" for a deleted job; `message` says why the run waits, or how it ended."""

    execution_id: str
    job_id: str
    job_name: str
    number: int
    attempt: int
    most_attempts: int
    parameters: tuple[tuple[str, str], ...]
    others: tuple[SiblingAttempt, ...]
    message: str
    exit_words: str  # "137, it was killed (SIGKILL)"; "" until its pod says so
    again: str  # URL for another run of the same; "" when there is no job any more
    is_tried_again: bool  # it failed, and the run launches another attempt by itself

    @property
    def attempt_words(self) -> str:
        words = _("Attempt {attempt} of {most_attempts}", attempt=self.attempt, most_attempts=self.most_attempts)
        return words if self.most_attempts > 1 else ""
