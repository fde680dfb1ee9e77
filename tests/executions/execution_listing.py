"""The Executions page's rows from plain rows and pods, as the page makes them when nothing has changed yet."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from dashboard.executions.viewmodels.execution_groups import (
    Entry,
    Group,
    entry_fragment,
    group_of,
    head_fragment,
    orphan_groups,
    status_of,
)
from dashboard.executions.viewmodels.executions import ROWS_PER_PAGE, GroupFilter, page_fragments, window_of
from dashboard.executions.viewmodels.executions_view import ExecutionsView
from dashboard.shell.viewmodels.live import Fragment
from dashboard.shell.viewmodels.states import StatusLine
from grid.core.labels import Keys
from grid.diagnosis.pods import Diagnosis
from grid.kube.objects import Pod
from grid.metrics.usage import Usage
from grid.runtime.executionrows import ExecutionRow


@dataclass(frozen=True)
class Source:
    """`rows` are those that the viewer may see; `orphans` are pods of executions that nobody knows."""

    rows: Collection[ExecutionRow]
    pods_of: Callable[[str], Sequence[Pod]]
    orphans: Sequence[Pod]
    explain: Callable[[Pod], Diagnosis]
    usage_of: Callable[[str], Usage | None]
    keys: Keys
    sees_all: bool

    def status(self, entry: Entry) -> tuple[StatusLine, str]:
        return status_of(entry, self.explain(entry.pod) if entry.pod is not None else None, to_owner=True)

    def usage(self, entry: Entry) -> Usage | None:
        return self.usage_of(entry.pod.metadata.key) if entry.pod is not None else None

    def rows_of(self, group: Group) -> list[Fragment]:
        used = [usage for entry in group.entries if (usage := self.usage(entry)) is not None]
        heads = [head_fragment(group, used)] if group.has_head else []
        entries = [
            entry_fragment(entry, self.status(entry), self.usage(entry), sees_all=self.sees_all)
            for entry in group.entries
        ]
        return heads + entries


def execution_rows(source: Source, view: ExecutionsView, now: datetime) -> list[Fragment]:
    groups = [group_of(row, source.pods_of(row.id), source.keys) for row in source.rows]
    window, wanted = window_of(view), GroupFilter(view, lambda entry: source.status(entry)[0])
    for group in [*filter(None, groups), *orphan_groups(source.orphans, source.keys)]:
        window.put(group.key, wanted.narrowed(group, now))
    page = window.page(view.page, ROWS_PER_PAGE)
    return page_fragments(window, page, view, [row for group in page.items for row in source.rows_of(group)])
