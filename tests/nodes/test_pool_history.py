"""The last hours of the node pools, and their minimum and maximum: what is shown, what changes, and who is refused."""

import re
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import OperationalError
from django.template.loader import render_to_string

from dashboard.nodes.pages import use_history
from dashboard.nodes.pages.use_history import PoolHistory
from dashboard.nodes.records import read_points, read_trends
from dashboard.nodes.viewmodels.pool_history import (
    COLUMNS,
    POINTS,
    RANGES,
    PoolPoint,
    Trends,
    history_rows,
    moments,
    pool_charts,
    pool_samples_with,
    pool_trends,
    section,
    width_of,
)
from dashboard.nodes.viewmodels.pool_limits import Limits, PricedTier, parse_limits, preview
from grid.core.errors import ClusterUnavailable, Conflict
from grid.diagnosis.nodeshapes import NodeShape, PoolShapes
from grid.kube.pools import NodeGroup
from grid.kube.resources import CONFIG_MAPS, NODES
from grid.models import AuditEntry, PoolSample
from grid.models.pool import ALL_POOLS
from grid.runtime import Runtime
from grid.tiers.tierdoctor import TierRequest
from tests.conftest import People, client_of
from tests.nodes.test_use_history import FakePrometheus
from tests.shell.charting import make_day, minute_of
from tests.support import builders
from tests.support.builders import MOMENT
from tests.support.cluster import POPULATION, FakeCluster
from tests.support.golden import assert_golden, plain
from tests.support.runtime import fill

LAST = minute_of(MOMENT)
PATH = "/infrastructure/history/"


def point(minute: int, **known: Any) -> PoolPoint:
    values: dict[str, Any] = dict.fromkeys(COLUMNS, 1) | known
    return PoolPoint(minute, **values)


@pytest.fixture
def day(runtime: Runtime) -> None:
    make_day(MOMENT, minutes=6 * 60 + 1)


# --- Rules ---


@pytest.mark.parametrize("range", RANGES)
def test_range_has_at_most_the_points_of_a_chart(range: str) -> None:
    minutes = RANGES[range]
    shown = moments([point(minute) for minute in iterate(minutes)], width_of(minutes), until=LAST)
    assert minutes / 3 - 1 <= len(shown.minutes) <= POINTS
    assert None not in shown.points


def iterate(minutes: int) -> list[int]:
    return list(range(LAST - minutes + 1, LAST + 1))


def test_a_moment_has_the_highest_values_of_its_minutes() -> None:
    start = LAST // 3 * 3
    quiet = [point(minute, used_millicores=None) for minute in (start, start + 1, start + 2)]
    quiet[1] = replace(quiet[1], pods_waiting=7, used_millicores=5)
    shown = moments(quiet, 3, until=start + 2)
    assert shown.minutes == (start,)
    assert shown.points == (point(start, pods_waiting=7, used_millicores=5),)


@pytest.mark.parametrize(("missing", "has_gap"), [(2, False), (3, True)])
def test_long_minutes_without_sample_are_a_gap(missing: int, has_gap: bool) -> None:
    shown = moments([point(10), point(11 + missing)], 1, until=11 + missing)
    assert (None in shown.points) is has_gap
    assert shown.minutes == tuple(sorted(set(shown.minutes)))
    assert (moments([point(10)], 1, until=11 + missing).points[-1] is None) is has_gap


def test_charts_have_title_units_and_gaps_as_null() -> None:
    sample = point(5, requested_millicores=1500, used_millicores=None, allocatable_mebibytes=1536, nodes=3)
    drawn = pool_charts(moments([sample], 1, until=99), "1h", until=99)
    assert drawn["times"] == [300, 360]
    cpu, memory = (drawn["charts"][name]["lines"] for name in ("cpu", "memory"))
    assert (cpu["requested"]["values"], cpu["used"]["values"]) == ([1.5, None], [None, None])
    assert memory["allocatable"]["values"] == [1.5, None]
    assert drawn["charts"]["nodes"]["lines"]["nodes"]["values"] == [3, None]
    for chart in drawn["charts"].values():
        dashes = [tuple(line["dash"]) for line in chart["lines"].values()]
        assert len(set(dashes)) == len(dashes), "told apart without colours"
        assert {line["scale"] for line in chart["lines"].values()} <= set(chart["scales"])


def test_prometheus_values_precede_samples() -> None:
    own = moments([point(3, nodes=9, executions_running=4), point(4, nodes=9)], 1, until=4)
    merged = pool_samples_with({3: {"nodes": 2}, 5: {"nodes": 1}}, own)
    assert [(each.minute, each.nodes, each.executions_running) for each in merged] == [
        *((3, 2, 4), (4, 9, 1), (5, 1, None))
    ]
    assert (merged[2].used_millicores, merged[2].pods_waiting) == (None, None)
    assert history_rows([merged[2]])[0].waiting == "–"


# --- As HTML ---


def html(fragment: str, *, room: str = "nodes", **context: Any) -> str:
    return render_to_string(f"{room}/fragments/{fragment}.html", context)


def test_the_section_looks_as_stored() -> None:
    samples = [point(minute, allocatable_millicores=4000, nodes=2) for minute in range(LAST - 2, LAST + 1)]
    shown = section(
        replace(moments(samples, 1, until=LAST), is_from_prometheus=True),
        "1h",
        pool="gpu",
        is_read=True,
        query_of=lambda range: f"?pool=gpu&range={range}",
        url="/h/",
    )
    stretches: dict[str, list[tuple[int, ...]]] = {
        name: [(LAST - 1, 500, 4000, 1024, 8192, 0), (LAST, 1500, 4000, 1024, 8192, 2)] for name in ("*", "", "gpu")
    }
    read = Trends(stretches, {"gpu": samples[-1], "*": samples[-1]})
    trends = pool_trends(read, "1h", until=LAST, chosen="gpu", query_of=lambda name: f"?pool={name}&range=1h")
    whole = html("pool_history", history=shown, trends=trends)
    assert_golden("pool-history", whole)
    # What is sent anew each minute is what the page began with.
    for part in ("pool_history_rows", "pool_trends"):
        assert plain(html(part, history=shown, trends=trends)) in plain(whole)


# --- Stored samples ---


@pytest.mark.django_db
def test_pool_samples_are_read_in_order_and_range(day: None) -> None:
    shown = read_points("batch", LAST - 60, LAST)
    assert [each_point.minute for each_point in shown] == iterate(60)
    assert any(each_point.pods_waiting for each_point in shown)
    assert all(each_point.used_millicores is None for each_point in read_points("default-gpu", LAST - 60, LAST))
    whole = {each_point.minute: each_point for each_point in read_points(ALL_POOLS, LAST - 60, LAST)}
    each = [read_points(pool, LAST - 60, LAST) for pool in ("batch", "default", "default-gpu")]
    assert all(
        whole[of[0].minute].nodes == sum(each_point.nodes for each_point in of) for of in zip(*each, strict=True)
    )


@pytest.mark.django_db
def test_trends_end_with_newest_figures_and_name_extremes(day: None) -> None:
    PoolSample.objects.create(pool="gone", minute=LAST - 100, **dict.fromkeys(COLUMNS, 2))
    trends = read_trends(LAST - 1440, LAST, width_of(1440, 48))
    rows = pool_trends(trends, "24h", until=LAST, chosen="batch", query_of=lambda name: f"?pool={name}")
    assert [row.title for row in rows] == ["All pools", "batch", "default", "default-gpu", "gone"]
    assert [row.title for row in rows if row.is_chosen] == ["batch"]
    newest = PoolSample.objects.get(pool="batch", minute=LAST)
    assert rows[1].waiting == str(newest.executions_waiting)
    assert rows[1].cpu.startswith(f"{newest.requested_millicores / 1000:g} of ")
    most = max(each_point.executions_waiting or 0 for each_point in read_points("batch", LAST - 1440, LAST))
    assert rows[1].waiting_line.words == f"Executions waiting in the last day: 0 to {most}"
    assert (rows[4].cpu, rows[4].nodes, rows[4].waiting) == ("", "", "")


# --- Pages ---


@pytest.mark.django_db
def test_range_and_pool_are_selectable_with_default_for_errors(people: People, day: None) -> None:
    client = client_of(people.operator)
    assert len(client.get(f"{PATH}?range=1h&pool=batch").json()["times"]) == 60
    assert len(client.get(f"{PATH}?range=9y").json()["times"]) in (120, 121)
    assert client.get(f"{PATH}?pool=no-such").json()["times"] == []
    rows = client.get(f"{PATH}?part=rows&range=6h").text
    assert rows.count("<tr>") == 24
    assert "range=6h" in rows
    assert client.get(f"{PATH}?part=pools&pool=batch").text.count("<svg") == 12


@pytest.mark.django_db
def test_page_has_the_section_with_its_ranges(people: People, day: None) -> None:
    path = "/infrastructure/"
    text = client_of(people.operator).get(f"{path}?range=6h&state=ready").text
    assert "The last 6 hours" in text
    assert text.count("data-chart=") == 5
    assert re.search(r'href="\?[^"]*#pool-history" aria-current="true">6 hours', text)
    assert "state=ready&amp;range=1h" in text
    assert client_of(people.operator).get(f"{path}?range=<script>").text.count("The last day") >= 1


@pytest.mark.django_db
def test_page_before_first_sample_says_when_it_comes(people: People, runtime: Runtime) -> None:
    text = client_of(people.operator).get("/overview/").text
    assert text.count("Nothing is sampled yet. The first values come within two minutes.") == 2
    assert text.count("data-chart=") == 4, "no GPUs are known"


@pytest.mark.django_db
def test_failing_database_hides_history(people: People, runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*args: object) -> None:
        raise OperationalError("no such disk")

    monkeypatch.setattr(use_history, "read_points", fails)
    monkeypatch.setattr(use_history, "read_trends", fails)
    answer = client_of(people.operator).get("/infrastructure/")
    assert answer.status_code == 200
    assert answer.text.count("The samples cannot be read now.") == 3
    assert "The samples cannot be read now." in client_of(people.operator).get(f"{PATH}?part=pools").text
    assert "Nothing is sampled yet" not in answer.text


# --- Prometheus ---


def read(runtime: Runtime, prometheus: FakePrometheus, pool: str = "batch") -> Any:
    history = PoolHistory(runtime, prometheus)  # type: ignore[arg-type]
    return async_to_sync(history.read)(pool, "24h")


@pytest.mark.django_db
def test_prometheus_is_asked_at_the_moments_of_the_samples(day: None, runtime: Runtime) -> None:
    prometheus = FakePrometheus({LAST // 3 * 3: {"nodes": 77}})
    shown = read(runtime, prometheus)
    assert shown.is_from_prometheus
    assert shown.points[-1].nodes == 77
    assert shown.points[-1].executions_waiting > 0, "which only the samples know"
    assert prometheus.asked == [("batch", (LAST - 1440) // 3 * 3, LAST // 3 * 3, 3)]
    read(runtime, prometheus, pool="")
    assert prometheus.asked[1][0] is None


@pytest.mark.django_db
@pytest.mark.parametrize("known", [{}, ClusterUnavailable("Prometheus cannot be asked: no answer in time.")])
def test_without_an_answer_of_prometheus_the_samples_are_shown(
    day: None, runtime: Runtime, known: Any, caplog: pytest.LogCaptureFixture
) -> None:
    shown = read(runtime, FakePrometheus(known))
    assert not shown.is_from_prometheus
    assert len(shown.known) in (120, 121)
    assert "the charts show what was sampled" in caplog.text


PAGE = "/pools/default/limits/"
STATUS = "nodeGroups: [{name: default, health: {cloudProviderTarget: 2, minSize: 1, maxSize: 5}}]"
WANTED = {"minimum": "3", "maximum": "4", "was": "1-5", "reason": "Course on <Monday>"}


@pytest.fixture
def scene(db: None, cluster: FakeCluster, runtime: Runtime) -> FakeCluster:
    cluster.put(NODES, builders.node("n1"))
    about = builders.config_map("cluster-autoscaler-status", {"status": STATUS}, namespace="kube-system")
    cluster.put(CONFIG_MAPS, about)
    cluster.sandbox = POPULATION
    fill(runtime, cluster)
    return cluster


def test_operator_previews_and_sets_limits_with_audit_entry(scene: FakeCluster, people: People) -> None:
    client = client_of(people.operator)
    page = client.get(PAGE, WANTED).text
    assert "1 node is started at once" in page and "At its largest the pool has 1 node less." in page
    assert client.post(PAGE, WANTED | {"reason": " "}).status_code == 422
    assert client.post(PAGE, WANTED).status_code == 302
    assert scene.asked_of_sandbox[-1] == ("PATCH", "pools/default", {"minimum": 3, "maximum": 4, "was": [1, 5]})
    entry = AuditEntry.objects.get()
    assert (entry.object_type, entry.object_id) == ("nodepool", "default")
    assert entry.changes == {"minimum": [1, 3], "maximum": [5, 4], "reason": ["", "Course on <Monday>"]}


def test_stale_limits_are_refused(scene: FakeCluster, people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    client = client_of(people.operator)
    late = client.post(PAGE, WANTED | {"was": "0-5"})
    assert late.status_code == 422 and "Look again" in late.text and "1 node is started at once" in late.text
    assert "already" in client.post(PAGE, WANTED | {"minimum": "1", "maximum": "5"}).text
    assert "at most the maximum" in client.post(PAGE, WANTED | {"minimum": "9"}).text
    assert not AuditEntry.objects.exists()

    async def changed(method: str, path: str, body: object = None) -> dict[str, str]:
        if method == "PATCH":
            raise Conflict("The pool's limits were changed meanwhile.")
        return {}

    monkeypatch.setattr(scene, "ask_sandbox", changed)
    assert "changed meanwhile" in client.post(PAGE, WANTED).text
    assert [sorted(entry.changes) for entry in AuditEntry.objects.order_by("pk")] == [
        ["maximum", "minimum", "reason"],
        ["not done"],
    ]


def test_other_clusters_explain_where_limits_are_set(scene: FakeCluster, people: People) -> None:
    scene.sandbox = None
    client = client_of(people.operator)
    page = client.get(PAGE).text
    assert "They cannot be changed here." in page and "aws eks update-nodegroup-config" in page
    assert client.post(PAGE, WANTED).status_code == 422
    assert not AuditEntry.objects.exists()


def test_silent_cluster_hides_limits(scene: FakeCluster, people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*_: object) -> dict[str, str]:
        raise ClusterUnavailable("It does not answer.")

    monkeypatch.setattr(scene, "ask_sandbox", away)
    page = client_of(people.operator).get(PAGE).text
    assert "not known now" in page and "cannot be changed here" not in page


def test_the_preview_counts_nodes_money_and_room() -> None:
    pool = PoolShapes("default", (NodeShape({"cpu": 8000, "memory": 2**35}, {}, (), 2, 0),), 5)
    tier = PricedTier("Medium", TierRequest("default", {"cpu": 2000, "memory": 2**32}), Decimal("0.50"))
    group = NodeGroup("default", 1, 5, 4)
    grown = " ".join(preview(group, Limits(6, 8), pool, [tier], 0))
    assert "2 nodes are started at once: $4.00 an hour by the price of the tier Medium." in grown
    assert "Up to 3 more nodes may be started when pods ask for them: $6.00 an hour" in grown
    shrunk = " ".join(preview(group, Limits(0, 3), pool, [tier], 2))
    assert "down to the new minimum" in shrunk and "less room for executions: 8 of Medium" in shrunk
    assert "The pool has 4 nodes now. None is removed for this" in shrunk and "2 pods that wait" in shrunk
    assert [*preview(group, Limits(1, 4), PoolShapes("default"), [], 0)] == ["At its largest the pool has 1 node less."]


@pytest.mark.parametrize(
    ("minimum", "maximum"), [("-1", "2"), ("x", "2"), ("3", "2"), ("0", "0"), ("1", "²"), ("", "")]
)
def test_limits_that_cannot_be_are_refused(minimum: str, maximum: str) -> None:
    assert parse_limits(minimum, maximum)[0] is None
