"""What each node used over the last half hour, as lines in its row and on its page."""

from collections.abc import Mapping

from django.template.loader import render_to_string
from django.utils import timezone

from dashboard.nodes.pages.infrastructure import InfrastructurePage
from dashboard.nodes.pages.node import NodePage, NodeView
from dashboard.nodes.viewmodels.infrastructure import InfrastructureView, NodeRow
from dashboard.nodes.viewmodels.node import NodeFacts, TaskLine
from dashboard.shell.access import Role, Viewer
from dashboard.shell.pages.periodic import PeriodicRead
from dashboard.shell.viewmodels.charts import usage_line
from dashboard.shell.viewmodels.live import Fragment
from grid.kube.objects import Node
from grid.metrics.usage import Measured, Usage
from grid.models.dataplane import LOCAL
from grid.nodes.scaledown import ScaleDownRules
from grid.runtime import Runtime, new_runtime
from tests.shell.live import Clock
from tests.support import builders
from tests.support.builders import MOMENT, decode
from tests.support.cluster import FakeCluster
from tests.support.virtual import virtual_time

OPERATOR = Viewer(id=90, username="olga", role=Role.OPERATOR)
GIB = 2**30


async def rules() -> ScaleDownRules:
    return ScaleDownRules(threshold_percent=50, unneeded_seconds=600)


async def no_tasks() -> Mapping[str, TaskLine]:
    return {}


class Place:
    """One node with 4 cores and 16 GiB, a page that shows it, and a clock."""

    def __init__(self) -> None:
        self.clock = Clock(MOMENT)
        self.runtime: Runtime = new_runtime(
            {LOCAL: FakeCluster()}, clock=self.clock.now, monotonic=self.clock.monotonic
        )
        self._page = InfrastructurePage(PeriodicRead(rules, clock=timezone.now))
        self.runtime.nodes.apply(decode(builders.node("n1", cpu="4", memory="16Gi"), Node))

    def measure(self, cpu: int, memory: int, *, after: float = 60) -> None:
        self.clock.seconds += after
        self.runtime.usage.replace(Measured({"n1": Usage(cpu, memory)}, {}))

    async def row(self) -> Fragment:
        view = InfrastructureView()
        facts = await self._page.read(self.runtime, OPERATOR, view)
        fragments = self._page.fragments(self.runtime, OPERATOR, view, facts, self.clock.now())
        return next(fragment for fragment in fragments if isinstance(fragment.context, NodeRow))

    async def page(self) -> NodeRow:
        page, view = (
            NodePage(PeriodicRead(rules, clock=timezone.now), PeriodicRead(no_tasks, clock=timezone.now)),
            NodeView("n1"),
        )
        facts = await page.read(self.runtime, OPERATOR, view)
        node_facts = page.fragments(self.runtime, OPERATOR, view, facts, self.clock.now())[0].context
        assert isinstance(node_facts, NodeFacts)
        assert node_facts.row is not None
        return node_facts.row


def words(row: object) -> list[str]:
    assert isinstance(row, NodeRow)
    return [share.line.words for share in row.shares if share.line is not None]


def test_usage_line_gives_lowest_highest_and_last_value() -> None:
    line = usage_line("CPU", [(100, 480), (101, 2440), (129, 1600)], 4000, 1600)
    assert line is not None
    assert line.words == "CPU of the last 30 min: 12 % to 61 %, now 40 %"
    assert [len(each.split()) for each in line.lines] == [2, 2]  # the gap is left out; a value alone is a short line
    assert (line.lines[0][:2], line.areas) == ("0,", ())


@virtual_time
async def test_row_and_page_show_the_measured_usage() -> None:
    place = Place()
    place.measure(400, 8 * GIB)
    place.measure(2000, 4 * GIB)
    expected = ["CPU of the last 2 min: 10 % to 50 %, now 50 %", "Memory of the last 2 min: 25 % to 50 %, now 25 %"]
    assert words((await place.row()).context) == words(await place.page()) == expected


@virtual_time
async def test_row_is_not_resent_for_usage_line_alone() -> None:
    place = Place()
    place.measure(400, 8 * GIB)
    before = await place.row()
    for _ in range(5):
        place.measure(400, 8 * GIB)
        assert (await place.row()) is before
    place.measure(800, 8 * GIB)
    assert words((await place.row()).context)[0] == "CPU of the last 7 min: 10 % to 20 %, now 20 %"


@virtual_time
async def test_usage_line_vanishes_when_usage_becomes_unknown() -> None:
    place = Place()
    place.measure(400, 8 * GIB)
    await place.row()
    place.runtime.usage.mark_unavailable("There is no metrics-server.", forget=True)
    row = await place.row()
    assert words(row.context) == []
    html = render_to_string(row.template, {"x": row.context, "id": row.id, "now": MOMENT})
    assert "<polyline" not in html
    assert "no metrics" in html
