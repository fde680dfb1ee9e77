"""What the executor of a run's pod says of the project's files in Git: read from its container's status and its termination message."""

import msgspec

from grid.core.decoding import prepared
from grid.core.translation import gettext as _
from grid.diagnosis.beside import EXECUTOR, PREPARER, has_ordinary_executor, has_ordinary_front, program_ended, programs
from grid.diagnosis.diagnosis import Diagnosis
from grid.diagnosis.remotetroubles import explain
from grid.kube.objects import ContainerStatus, Pod, Terminated

FILES_MISSING = "files_missing"
_GONE = 3  # its exit code when the branch or commit does not exist


class FilesReport(msgspec.Struct, frozen=True, kw_only=True):
    """The executor's last words: the commits, the branch that has the changes, or where they are kept and why. `code` is not 0 when the
    files could not be fetched."""

    code: int = 0
    began: str = ""
    ended: str = ""
    branch: str = ""
    instead_of: str = ""  # the branch that the workspace had left, which is gone
    kept: str = ""
    problem: str = ""
    left_out: int = 0
    left_out_names: str = ""  # some of them, each with the reason
    remote: bool = False  # the repository is a remote one
    results: str = ""  # the commit that has the results
    results_files: int = 0
    results_bytes: int = 0
    results_problem: str = ""
    results_kept: str = ""

    @property
    def worded(self) -> "FilesReport":
        """The report with the problem in words, where git's own are known."""
        sentence = explain(self.problem) if self.remote and self.problem else ""
        if not sentence:
            return self
        what = self.problem.partition(":")[0]
        return msgspec.structs.replace(self, problem=f"{what}: {sentence.rstrip('.')}")

    @property
    def has_trouble(self) -> bool:
        """True when changes or results are not where they belong; not when they were never fetched."""
        return self.code == 0 and bool(self.problem or self.left_out or self.results_kept)

    @property
    def is_final(self) -> bool:
        """True when trying again would change nothing."""
        return self.code == _GONE


def left_out_sentence(count: int, names: str) -> str:
    """Return how many files are not saved, and which."""
    if not names:  # of an executor from before it said them
        return _("{count} files could not be saved and are not in it.", count=count)
    return _("{count} files could not be saved and are not in it: {names}.", count=count, names=names)


def fetches(pod: Pod, status: ContainerStatus) -> bool:
    """Return whether the program starts when this container has fetched the files."""
    if status.name not in (PREPARER, EXECUTOR):
        return False
    is_setup = any(other.name == status.name for other in pod.status.init_container_statuses)
    return is_setup and status.name == (PREPARER if has_ordinary_executor(pod) else EXECUTOR)


def report_of(pod: Pod) -> FilesReport | None:
    """Return what its executor reported when it last ended; None when it never has, or was killed."""
    ends = [status.state.terminated or status.last_state.terminated for status in _statuses(pod)]
    return next((_read(ended) for ended in ends if ended is not None), None)


def was_cut_short(pod: Pod) -> bool:
    """Return whether its executor has ended for good, after the program, and reported nothing: it was killed while it saved."""
    status = _status(pod)
    ended = status.state.terminated if status is not None else None
    if ended is None or _read(ended) is not None:
        return False
    has_run = any(program.state.terminated is not None for program in programs(pod))
    return has_run and (pod.metadata.deletion_timestamp is not None or program_ended(pod))


def is_saving(pod: Pod) -> bool:
    """Return whether its files are still being saved, or will be: an ordinary container may start later than its program, or again."""
    status = _status(pod)
    if status is None or not program_ended(pod):
        return False
    return status.state.terminated is None if has_ordinary_executor(pod) else status.state.running is not None


def has_ended_before_its_pod(pod: Pod) -> bool:
    """Return whether the program has ended while the pod, undeleted, goes on: for its files, or for an nginx that is no sidecar."""
    goes_on = _status(pod) is not None or has_ordinary_front(pod)
    return pod.metadata.deletion_timestamp is None and goes_on and program_ended(pod)


def explain_files(status: ContainerStatus, *, is_over: bool = False) -> Diagnosis | None:
    """Explain an executor that has not fetched the files yet, or never will if the pod `is_over`; None when something else explains it."""
    ended = status.state.terminated or status.last_state.terminated
    report = _read(ended) if ended is not None else None
    if status.started and status.name == EXECUTOR:
        return None
    if report is not None and report.is_final:
        return Diagnosis(FILES_MISSING, report.problem, "problem", "you", _("Choose another branch or commit."))
    if report is not None and report.problem and report.remote:
        step = _(
            "It is tried again by itself. The project's owner can test the connection at the project's remote repository."
        )
        return Diagnosis("files_unusable", report.worded.problem, "problem", "you", step, link="project")
    if report is not None and report.problem:
        then = _("{step} Then launch it again.") if is_over else _("It is tried again by itself. {step}")
        step = then.format(step=_("Ask an operator to look at the repositories' volume."))
        return Diagnosis("files_unusable", report.problem, "problem", "operator", step)
    if status.state.running is None:
        return None
    return Diagnosis("files", _("Fetching the project's files from Git."), "wait", "")


def _status(pod: Pod) -> ContainerStatus | None:
    return next((status for status in _statuses(pod) if status.name == EXECUTOR), None)


def _statuses(pod: Pod) -> list[ContainerStatus]:
    """Return the statuses of its executor, the one that saves first."""
    if not has_ordinary_executor(pod):
        return [status for status in pod.status.init_container_statuses if status.name == EXECUTOR]
    both = (*pod.status.container_statuses, *pod.status.init_container_statuses)
    return [status for status in both if status.name in (EXECUTOR, PREPARER)]


def _read(ended: Terminated) -> FilesReport | None:
    try:
        return msgspec.json.decode(ended.message, type=prepared(FilesReport))
    except (msgspec.DecodeError, UnicodeEncodeError):
        return None
