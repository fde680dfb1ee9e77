"""The template tag that keeps parts of live rows."""

from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec
import pytest
from django.template import Context, Template

from dashboard.executions.viewmodels.execution_groups import ExecutionLine
from dashboard.shell.fragments import render_fragment
from dashboard.shell.tags import kept
from dashboard.shell.viewmodels.live import Fragment
from dashboard.shell.viewmodels.states import StatusLine

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
LINE = ExecutionLine(
    id="row", shape="single", execution_id="e1", name="<b>", kind="Workspace", tier="Small", user="ann", project="Demand",
    status=StatusLine("ok", "Running", "Well."), advice="", since=NOW, restarts="0", cpu="2", memory="8 GiB", gpus="",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    name: str
    tier: str
    state: str = "queued"


def part_of(template: Template) -> kept.Kept:
    return next(node for node in template.nodelist if isinstance(node, kept.Kept))


def row_html(line: ExecutionLine) -> str:
    return render_fragment(Fragment(line.id, "executions/fragments/execution_row.html", line), now=NOW)


def test_part_is_rerendered_only_when_its_field_changes() -> None:
    template = Template('{% load kept %}{% kept "name tier" %}{{ x.name }}{% endkept %}')
    rows = (Row("a", "s"), Row("a", "s", "running"), Row("<b>", "s"))
    assert [template.render(Context({"x": x})) for x in rows] == ["a", "a", "&lt;b&gt;"]
    assert len(part_of(template).known) == 2


@pytest.mark.parametrize("field", [field for field in ExecutionLine.__struct_fields__ if field != "shape"])
def test_a_row_of_which_one_field_changed_shows_it(field: str) -> None:
    full = msgspec.structs.replace(
        LINE, used_cpu="1", used_memory="1 GiB", node="n1", pod_namespace="grid", pod_name="p1"
    )
    changed = {"status": StatusLine("wait", "Queued"), "since": None, "node_is_link": True}
    was = getattr(full, field)
    new = msgspec.structs.replace(full, **{field: changed.get(field, was + 1 if isinstance(was, int) else f"{was}x")})
    html = row_html(full)
    assert row_html(new) != html
    assert row_html(full) == html
