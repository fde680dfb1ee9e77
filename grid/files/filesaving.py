"""The controller's part in project files in Git: whether the cluster can keep them, how long to wait for them, and what became of them."""

import logging
from datetime import datetime, timedelta

from django.db import transaction
from msgspec.structs import asdict

from grid.core.errors import Conflict, NotFound
from grid.core.labels import PROGRAM_ENDED
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.diagnosis.beside import EXECUTOR, FRONT, has_ordinary_executor
from grid.diagnosis.run_report import FilesReport, is_saving, left_out_sentence, report_of, was_cut_short
from grid.executions import ledger
from grid.executions.context import Context
from grid.executions.ledger import EventRecord, LedgerRecord
from grid.executions.manifests import GRACE_SECONDS, Manifest, bare
from grid.executions.spec import FilesSpec, parse_spec
from grid.kube.objects import Pod
from grid.kube.resources import PODS
from grid.models import NotificationEvent, RunFiles, State
from grid.notifications import outbox

logger = logging.getLogger(__name__)

_MARGIN = timedelta(minutes=1)
_NOT_STORED = frozenset({"code", "instead_of", "remote"})  # of a report
_CUT_SHORT = FilesReport(problem=_("Saving its files was cut short"), kept="unsure")


class FileSaving:
    def __init__(self, context: Context) -> None:
        self._context = context
        self._has_sidecars = False
        self._recorded: dict[str, FilesReport] = {}

    async def has_sidecars(self, pod: Manifest) -> bool:
        """Return whether the cluster would run the pod's executor and front beside the program: an older API server drops the field that
        makes a container a sidecar, and the pod would wait for ever. A no is asked again, because servers are upgraded."""
        if self._has_sidecars:
            return True
        try:
            seen = await self._context.api.create(PODS, bare(pod).body, namespace=self._context.namespace, dry_run=True)
        except Conflict:  # it was created by an earlier try, after this check
            return True
        # Others are what the cluster adds to every pod.
        ours = [step for step in seen["spec"]["initContainers"] if step["name"] in (EXECUTOR, FRONT)]
        self._has_sidecars = all(step.get("restartPolicy") == "Always" for step in ours)
        return self._has_sidecars

    async def is_saving(self, row: LedgerRecord) -> bool:
        """Record what has become of its files, if that is known; return whether to wait for them before the pod is deleted."""
        files = files_of(row)
        if files is None:
            return False
        pods = list(await self._context.find_pods(row.id))
        # Only now: a pod may have been deleted while the API server was asked.
        pods += [gone.pod for gone in self._context.pods.deleted_pods.get(row.id, {}).values()]
        for pod in pods:
            report = _CUT_SHORT if was_cut_short(pod) else report_of(pod)
            if report is not None and not is_saving(pod) and self._recorded.get(row.id) != report:
                await self._record(row, report.worded)
                self._recorded[row.id] = report
        if row.state != State.FINISHING:
            return False
        patience = timedelta(seconds=files.save_seconds + GRACE_SECONDS) + _MARGIN
        for pod in pods:
            if is_saving(pod) and has_ordinary_executor(pod) and PROGRAM_ENDED not in pod.metadata.annotations:
                await self._tell(pod)
        is_late = self._context.clock() - row.state_since > patience
        return not is_late and any(is_saving(pod) and pod.metadata.deletion_timestamp is None for pod in pods)

    async def _tell(self, pod: Pod) -> None:
        """Tell the executor, which is no sidecar, that the program has ended."""
        change = {"metadata": {"uid": pod.metadata.uid, "annotations": {PROGRAM_ENDED: "true"}}}
        try:
            await self._context.api.patch(PODS, pod.metadata.name, change, namespace=pod.metadata.namespace)
        except (NotFound, Conflict) as error:
            logger.debug("pod is gone or another now pod=%s reason=%s", pod.metadata.key, error)

    def forget(self, execution_id: str) -> None:
        self._recorded.pop(execution_id, None)

    async def _record(self, row: LedgerRecord, report: FilesReport) -> None:
        now = self._context.clock()
        level = "Warning" if report.problem or report.left_out or report.results_problem else "Normal"
        reason = "FilesNotPushed" if report.problem else "FilesSaved"
        event = EventRecord(f"files-{row.id}", now, "Files", level, reason, sentence_of(report), 1)
        await self._context.database(record, row.id, report, now)
        await self._context.database(ledger.note_events, row.id, [event])


def files_of(row: LedgerRecord) -> FilesSpec | None:
    """Return where the files of a run are; None when they are a volume. Most are, so their specs are not parsed."""
    return parse_spec(row).files if isinstance(row.spec, dict) and row.spec.get("files") else None


def record(execution_id: str, report: FilesReport, now: datetime) -> None:
    """Store what became of the files, and tell the owner when they could not be saved as usual: once, whoever records it again."""
    columns = {name: value for name, value in asdict(report).items() if name not in _NOT_STORED}
    with transaction.atomic():
        before = RunFiles.objects.select_for_update().filter(execution_id=execution_id).first()
        _, is_new = RunFiles.objects.update_or_create(execution_id=execution_id, defaults=columns)
        if report.has_trouble and (is_new or (before is not None and not before.has_trouble)):
            outbox.record_once_a_sweep(execution_id, NotificationEvent.FILES_NOT_SAVED, sentence_of(report), now=now)


def sentence_of(report: FilesReport) -> str:
    kept = _("Results: {files}.", files=plural(report.results_files, "file", "files")) if report.results else ""
    problem = report.results_problem and f"{report.results_problem}."
    gone = _(
        "The branch {branch}, where the workspace had left its files, is gone, so it began at the project's usual one."
    )
    gone = gone.format(branch=report.instead_of) if report.instead_of else ""
    return " ".join(filter(None, (gone, _changes_sentence(report), kept, problem)))


def _changes_sentence(report: FilesReport) -> str:
    if report.problem:
        where = {
            "repository": _("They are kept beside the repository: push them again."),
            "home": _("They are kept in HOME, in the folder unpushed-files."),
            "copy": _("A copy of them is kept beside the branches: ask an operator for it."),
            "unsure": _(
                "The history of the project's files, and in HOME the folder unpushed-files, say what of them was saved."
            ),
        }
        return f"{report.problem}. {where.get(report.kept, _('They are lost.')) if report.code == 0 else ''}".strip()
    sentence = _("Nothing in the project's files has changed.")
    if report.ended != report.began:
        sentence = _("The project's files are saved: commit {commit} on {branch}.")
        sentence = sentence.format(commit=report.ended[:8], branch=report.branch)
    left_out = left_out_sentence(report.left_out, report.left_out_names) if report.left_out else ""
    return f"{sentence} {left_out}".strip()
