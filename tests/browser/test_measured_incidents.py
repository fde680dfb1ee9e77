"""What a Prometheus adds to incidents: the charts up to the moment of the failure, as many clicks away as the cause."""

import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import pytest
from playwright.sync_api import Page, expect

from tests.browser import incidents, measured
from tests.browser.conftest import Visit
from tests.browser.server import Stage
from tests.browser.stage import StageProcess
from tests.browser.test_incidents import MOST_CLICKS
from tests.support.builders import NAMESPACE
from tests.support.prometheus import RealPrometheus, exposed

_MINUTES = 45  # of history, which is less than the hour that the charts show
_PERIOD = 30  # seconds between samples
_LIMIT = 4 * 2**30


@dataclass(frozen=True)
class Incident:
    """`metrics`: the value of each by the seconds since its history began. `at_last` and `at_first`: what the table
    beside the chart says in the end and at first. `marked`: what is said of the moment of the failure, "" when nothing has failed."""

    scene: Callable[[Stage], Awaitable[None]]
    metrics: dict[str, Callable[[int], float]]
    clicks: Sequence[tuple[str, str]]  # where, and the link's name
    chart: str
    column: str
    at_last: str
    at_first: str
    marked: str = ""


_EXECUTION = (("main", incidents.TITLE),)
INCIDENTS = {
    "memory crept up to the limit": Incident(
        scene=incidents.memory_crept_up,
        metrics={
            "container_memory_working_set_bytes": lambda seconds: _LIMIT * (0.1 + 0.9 * seconds / (60 * _MINUTES)),
            'kube_pod_container_resource_limits{resource="memory"}': lambda _: _LIMIT,
        },
        clicks=_EXECUTION,
        chart="memory",
        column="Memory",
        at_first=r"^(0\.\d+|1) used, 4 limit$",
        at_last=r"^(3\.\d+|4) used, 4 limit$",  # less when it takes long, as below
        marked="ended: OOMKilled, exit code 137",
    ),
    "the disk of a node is full": Incident(
        scene=incidents.disk_filled,
        metrics={"container_fs_writes_bytes_total": lambda seconds: 50 * 2**20 * max(0, seconds - 30 * 60)},
        clicks=_EXECUTION,
        chart="disk",
        column="Disk",
        at_first=r"^0 written$",
        at_last=r"^[1-5]\d(\.\d+)? written$",  # less when it takes long: then the last minutes have no samples
        marked="was evicted: The node was low on resource: ephemeral-storage.",
    ),
    "a program is throttled": Incident(
        scene=measured.cpu_throttled,
        metrics={
            "container_cpu_cfs_periods_total": lambda seconds: 10 * seconds,
            "container_cpu_cfs_throttled_periods_total": lambda seconds: 8 * max(0, seconds - 30 * 60),
        },
        clicks=(("navigation", "Executions"), *_EXECUTION),
        chart="throttled",
        column="Waiting for CPU",
        at_first=r"^0 waiting$",
        at_last=r"^80 waiting$",
    ),
}


@pytest.mark.parametrize("name", INCIDENTS)
def test_the_chart_says_what_led_to_it(
    connected: StageProcess, real_prometheus: RealPrometheus, visit: Visit, name: str
) -> None:
    incident = INCIDENTS[name]
    with exposed(_history(incident)) as configuration:
        real_prometheus.follow(configuration)
        real_prometheus.wait_for(_series(next(iter(incident.metrics))))
        real_prometheus.follow({})
    connected.play(incident.scene)
    page = visit("olga-operator", "/overview/")
    assert len(incident.clicks) <= MOST_CLICKS
    for role, link in incident.clicks:
        page.get_by_role(role).get_by_role("link", name=link).first.click()  # type: ignore[arg-type]
    chart = page.locator(f"#use .chart[data-name={incident.chart}]")
    expect(chart.locator("canvas")).to_be_visible()
    if incident.marked:
        expect(chart.locator(".chart-event")).to_contain_text(incident.marked)
        expect(page.locator("#use li").filter(has_text=incident.marked).first).to_be_visible()
    cells = _column(page, incident.column)
    assert re.search(incident.at_last, cells[0]), cells
    assert re.search(incident.at_first, cells[-1]), cells


def _series(metric: str) -> str:
    name, _, labels = metric.partition("{")
    pod = f'namespace="{NAMESPACE}",pod="workspace-{incidents.ID}",container="run"'
    return f"{name}{{{','.join(filter(None, (labels.rstrip('}'), pod)))}}}"


def _history(incident: Incident) -> str:
    """Return the whole history as what one scrape finds: samples with their times."""
    now = int(time.time())
    return "".join(
        f"{_series(metric)} {value(seconds)} {1000 * (now - 60 * _MINUTES + seconds)}\n"
        for metric, value in incident.metrics.items()
        for seconds in range(0, 60 * _MINUTES + 1, _PERIOD)
    )


def _column(page: Page, title: str) -> list[str]:
    """Return a column of the table beside the charts, newest first, of the moments in which it is known."""
    table = page.locator("#use .samples-table table")
    titles = table.locator("thead th").all_text_contents()
    place = next(number for number, heading in enumerate(titles) if heading.startswith(title))
    cells = [row.locator("td").nth(place).text_content() or "" for row in table.locator("tbody tr").all()]
    return [cell.strip() for cell in cells if cell.strip() != "–"]
