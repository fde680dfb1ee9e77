"""How workspaces and apps, which rules may stop, are shown on the pages that all executions have."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from dashboard.executions.forms import LaunchForm
from dashboard.executions.kinds import ExecutionKindFace
from dashboard.executions.viewmodels.execution import ExecutionRecord, Person
from dashboard.executions.viewmodels.kind_record import KindRecord
from dashboard.executions.viewmodels.launch import Slots
from dashboard.shell.viewmodels.live import Fragment
from dashboard.workspaces.shutdown_records import stop_outlook
from dashboard.workspaces.viewmodels.shutdown import StopOutlook, stop_notice
from dashboard.workspaces.workspace_records import has_stopped
from grid.models import Execution
from grid.models.environment import Kind


@dataclass(frozen=True, slots=True)
class _StoppedByRule(KindRecord):
    outlook: StopOutlook | None  # None without a limit


def _read(execution: Execution, now: datetime | None) -> KindRecord:
    return _StoppedByRule(stop_outlook(execution, now)) if now is not None else KindRecord()


def _fragments(record: ExecutionRecord, viewer: Person) -> list[Fragment]:
    own = record.kind_record
    return [stop_notice(own.outlook if isinstance(own, _StoppedByRule) else None, may_keep=viewer.may_stop)]


def _launch_context(form: LaunchForm, held: Slots, running: Mapping[str, int]) -> dict[str, Any]:
    return {"has_stopped": has_stopped(form.user.pk)}


APP = ExecutionKindFace(Kind.APP, read=_read, fragments=_fragments)
WORKSPACE = replace(APP, kind=Kind.WORKSPACE, launch_context=_launch_context)
