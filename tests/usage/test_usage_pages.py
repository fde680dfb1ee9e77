"""The pages of usage: what is added up, for whom, and as which file."""

import csv
import io
import re
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db import connection
from django.template.loader import render_to_string
from django.test.utils import CaptureQueriesContext

from dashboard.usage.usage_records import read_everybody, read_usage
from dashboard.usage.viewmodels.usage import (
    SHOWN,
    HeldTime,
    UsageMonth,
    UsageView,
    day_bars,
    last_months,
    picture_sentence,
    tables,
    total_of,
    usage_csv,
)
from grid.models import Execution, UsageInterval
from grid.usage import dailyusage
from tests.clusters.clustering import make_interval
from tests.conftest import People, client_of
from tests.executions.executing import make_execution, make_project, make_tier
from tests.support.builders import MOMENT
from tests.support.golden import assert_golden
from tests.test_query_plans import scans

MARCH, DAY = UsageMonth(date(2026, 3, 1)), 24 * 60
NOW = MOMENT  # the fourth of March 2026, 9:00
ROW = HeldTime(
    *(date(2026, 3, 2), 1, "alice", "churn", "Churn", "small", "Small", "default", "job"),
    *(Decimal("0.60"), 3600, 3_600_000, 0),
)


def read(user: Any, first: date = MARCH.first, last: date = MARCH.last) -> list[HeldTime]:
    return read_usage(first, last, NOW, user.pk)


def by_day(rows: list[HeldTime]) -> dict[str, int]:
    seconds = Counter[str]()
    for row in rows:
        seconds[row.day.isoformat()] += row.pod_seconds
    return dict(seconds)


def test_last_months_cross_the_year_with_this_one_first() -> None:
    months = last_months(datetime(2026, 1, 31, 23, 0, tzinfo=UTC))
    assert [months[0].value, months[1].value, months[-1].value, len(months)] == ["2026-01", "2025-12", "2025-02", 12]
    assert months[-1].last == date(2025, 2, 28)
    east = datetime.fromisoformat("2026-04-01T01:00:00+05:00")
    assert last_months(east)[0].value == "2026-03", "months are those of UTC"


@pytest.mark.parametrize("month", ["", "2024-01", "2026-13"])
def test_unknown_month_and_column_become_the_defaults(month: str) -> None:
    view = UsageView.parse({"month": month, "sort": "colour", "pool": "\0"}, NOW)
    assert (view.month.value, view.sort, view.only) == ("2026-03", "cost", {})


def test_tables_begin_with_largest_and_sum_the_rest() -> None:
    rows = [
        ROW._replace(user_id=number, username=f"user-{number:02}", pod_seconds=number * 3600) for number in range(1, 61)
    ]
    people, projects, tiers, _ = tables(rows, UsageView(MARCH), is_everybody=True)
    assert [line.name for line in people.lines][:2] == ["user-60", "user-59"]
    assert people.lines[0].user_id == 60
    assert projects.lines[0].user_id == 0
    assert len(people.lines) == SHOWN
    assert people.more is not None
    assert people.more.name == "10 more"
    assert people.more.total.pods == sum(range(1, 11))
    assert tiers.lines[0].share == 100


def test_pools_are_summed_and_lead_to_their_page() -> None:
    view = UsageView(MARCH, "gpus", {"tier": "small"})
    rows = [ROW, ROW._replace(node_pool="gpu", gpu_seconds=3600), ROW._replace(node_pool="gpu", user_id=2)]
    _, projects, tiers, pools = tables(rows, view, is_everybody=True)
    assert [(line.name, int(line.total.pods)) for line in pools.lines] == [("gpu", 2), ("default", 1)]
    assert pools.lines[0].only == "?month=2026-03&sort=gpus&tier=small&pool=gpu"
    assert projects.lines[0].only.endswith("&tier=small&project=churn")
    assert tiers.lines[0].only == ""


def test_narrowed_page_says_its_filters_and_clears_them() -> None:
    query = {"month": "2026-03", "pool": "gpu", "project": "churn", "tier": ""}
    view = UsageView.parse(query, NOW)
    assert [(chip.words, chip.without) for chip in view.chips([ROW])] == [
        ("Project: Churn", "?month=2026-03&sort=cost&pool=gpu"),
        ("Node pool: gpu", "?month=2026-03&sort=cost&project=churn"),
    ]
    assert [chip.words for chip in view.chips([])] == ["Project: churn", "Node pool: gpu"]
    assert view.cleared == "?month=2026-03&sort=cost"


def test_days_are_bars_of_cost_or_hours_when_free() -> None:
    later = ROW._replace(day=date(2026, 3, 31), pod_seconds=1800)
    for rows in ([ROW, later], [row._replace(price_per_hour=Decimal(0)) for row in (ROW, later)]):
        bars = day_bars(rows, MARCH)
        assert len(bars) == 31
        assert [(bar.day.day, bar.height) for bar in bars if bar.height] == [(2, 100), (31, 50)]
    assert day_bars([ROW, ROW._replace(day=date(2026, 3, 5), pod_seconds=1)], MARCH)[4].height == 2, "it is seen"
    assert picture_sentence(day_bars([ROW], MARCH), MARCH) == (
        "Used on 1 day of March 2026. The most: 2 March: $0.60, 1.0 pod hours."
    )
    assert picture_sentence(day_bars([], MARCH), MARCH) == "Nothing was used in March 2026."


def test_picture_looks_as_stored() -> None:
    bars = day_bars([ROW, ROW._replace(day=date(2026, 3, 9))], MARCH)[:9]
    context = {"bars": bars, "picture": picture_sentence(bars, MARCH)}
    assert_golden("usage-days", render_to_string("usage/fragments/usage_days.html", context))


def test_table_looks_as_stored() -> None:
    view = UsageView(MARCH, "gpus")
    rows = [ROW, ROW._replace(user_id=2, username="b <b>", gpu_seconds=3600)]
    context = {"table": tables(rows, view, is_everybody=True)[0], "view": view, "number": 1}
    assert_golden("usage-table", render_to_string("usage/fragments/usage_table.html", context))


def test_file_has_line_per_sum_and_quotes_formulas() -> None:
    lines = list(csv.DictReader(io.StringIO(usage_csv([ROW._replace(project="=1+1", pod_seconds=1)], has_kinds=True))))
    assert len(lines) == 1
    assert lines[0]["project"] == "'=1+1"
    assert lines[0]["day"] == "2026-03-02"
    assert lines[0]["cost"] == "0.0002"
    assert lines[0]["core_hours"] == "1.0000"


@pytest.mark.django_db
class TestReading:
    @pytest.fixture
    def execution(self, people: People) -> Execution:
        return make_execution(people.owner, make_project(people.owner, people.teammate))

    def test_only_the_part_in_the_month_counts(self, execution: Execution) -> None:
        make_interval(execution, "before", price="1", began=-5 * DAY, ended=-3 * DAY)  # to the first of March, 9:00
        assert by_day(read(execution.owner)) == {"2026-03-01": 9 * 3600}
        february = read(execution.owner, date(2026, 2, 1), date(2026, 2, 28))
        assert by_day(february) == {"2026-02-27": 15 * 3600, "2026-02-28": 24 * 3600}

    def test_running_pod_counts_up_to_now(self, execution: Execution) -> None:
        make_interval(execution, "runs", price="1", began=-10 * 60)
        assert by_day(read(execution.owner)) == {"2026-03-03": 3600, "2026-03-04": 9 * 3600}

    def test_pod_that_ended_at_midnight_counts_for_day_before(self, execution: Execution) -> None:
        make_interval(execution, "to midnight", price="1", began=-10 * 60, ended=-9 * 60)
        make_interval(execution, "from midnight", price="1", began=-9 * 60, ended=-8 * 60)
        assert by_day(read(execution.owner)) == {"2026-03-03": 3600, "2026-03-04": 3600}

    def test_sums_stay_when_the_executions_are_deleted(self, execution: Execution) -> None:
        for number, (began, ended) in enumerate([(-3 * DAY, -60), (-90, -30), (-80, -30)]):
            make_interval(execution, f"u{number}", price="0.7", began=began, ended=ended)
        before = read(execution.owner)
        whole, days = read_everybody(MARCH.first, MARCH.last, NOW)
        dailyusage.add_up_ended(NOW, 100)
        UsageInterval.objects.all().delete()
        after = read(execution.owner)
        assert by_day(after) == by_day(before)
        assert total_of(after) == total_of(before)
        assert {row.kind for row in before} == {"workspace"}
        assert {row.kind for row in after} == {"workspace"}
        assert total_of(whole) == total_of(days) == total_of(before)
        later_whole, later_days = read_everybody(MARCH.first, MARCH.last, NOW)
        assert total_of(later_whole) == total_of(before)
        assert by_day(later_days) == by_day(before)

    def test_everybody_is_the_sum_of_all_persons(self, people: People, execution: Execution) -> None:
        other = make_execution(people.teammate, execution.project, tier=make_tier("gpu", gpus=2), kind="job")
        make_interval(execution, "a", price="1", began=-100, ended=-40)
        make_interval(other, "b", price="2", began=-2 * DAY, ended=-30)
        make_interval(other, "c", price="2", began=-30)
        mine, others = read(people.owner), read(people.teammate)
        whole, days = read_everybody(MARCH.first, MARCH.last, NOW)
        assert total_of(whole) == total_of(days) == total_of([*mine, *others])
        assert by_day(days) == by_day([*mine, *others])
        for name, rows in (("alice", mine), ("bob", others)):
            assert total_of(row for row in whole if row.username == name) == total_of(rows)
        assert {row.tier for row in others} == {"Gpu"}
        assert read(people.stranger) == []

    def test_narrowed_reading_is_the_part_of_the_whole(self, people: People, execution: Execution) -> None:
        fraud = make_project(people.owner, id="fraud")
        gpu = make_tier("gpu", gpus=2, node_pool="gpu")
        for number, project in enumerate((execution.project, fraud)):
            for tier in (execution.tier, gpu):
                row = make_execution(people.owner, project, tier=tier, kind="job")
                make_interval(row, f"{number}{tier.pk}-over", price="1", began=-2 * DAY, ended=-30 - number)
                make_interval(row, f"{number}{tier.pk}-open", price="2", began=-90 - number)
                gone = make_interval(row, f"{number}{tier.pk}-gone", price="3", began=-50, ended=-40)
                UsageInterval.objects.filter(execution=row).update(node_pool=tier.node_pool)
                dailyusage.add_up([gone.pk])
                gone.delete()
        whole, _ = read_everybody(MARCH.first, MARCH.last, NOW)
        assert {row.node_pool for row in whole} == {"default", "gpu"}
        for only in ({"project_id": "fraud"}, {"node_pool": "gpu"}, {"project_id": "fraud", "tier_id": "gpu"}):
            part = [row for row in whole if all(getattr(row, name) == value for name, value in only.items())]
            assert part
            for rows in (
                *read_everybody(MARCH.first, MARCH.last, NOW, only),
                read_usage(MARCH.first, MARCH.last, NOW, only=only),
                read_usage(MARCH.first, MARCH.last, NOW, people.owner.pk, only),
            ):
                assert total_of(rows) == total_of(part)

    def test_no_reading_reads_all_intervals(self, people: People, execution: Execution) -> None:
        make_interval(execution, "a", price="1", began=-100, ended=-40)
        with CaptureQueriesContext(connection) as queries:
            read(people.owner)
            read_everybody(MARCH.first, MARCH.last, NOW)
            read_everybody(MARCH.first, MARCH.last, NOW, {"project_id": "churn"})
        assert len(queries) == 14
        assert list(scans(queries)) == []


@pytest.mark.django_db
@pytest.mark.usefixtures("runtime")
class TestPages:
    @pytest.fixture
    def used(self, people: People) -> Execution:
        """An hour of the owner's, today."""
        execution = make_execution(people.owner, make_project(people.owner, people.teammate))
        now = datetime.now(UTC).replace(microsecond=0)
        midnight = now.replace(hour=0, minute=0, second=0)
        row = make_interval(execution, "today", price="12.34", began=0, ended=60)
        UsageInterval.objects.filter(pk=row.pk).update(began_at=midnight, ended_at=midnight + timedelta(hours=1))
        return execution

    def test_own_page_shows_month_by_project_tier_and_kind(self, people: People, used: Execution) -> None:
        page = client_of(people.owner).get("/usage/").content.decode()
        for text in ("$12.34", "Customer churn", "By project", "By hardware tier", "By kind", "Workspace", "By month"):
            assert text in page, text
        assert len(re.findall(r'<th scope="row">\s*<a href="\?month=', page)) == 12
        assert "Everybody" not in page[page.index("<main") :]

    def test_others_work_is_not_in_it(self, people: People, used: Execution) -> None:
        page = client_of(people.teammate).get("/usage/").content.decode()
        assert "Nothing was used in" in page
        assert "12.34" not in page
        assert "12.34" not in client_of(people.teammate).get("/usage/?download=1").content.decode()

    def test_home_shows_the_cost_of_this_month(self, people: People, used: Execution) -> None:
        for person, cost in ((people.owner, "$12.34"), (people.teammate, "$0.00")):
            home = client_of(person).get("/").content.decode()
            spent = home[home.index("Cost so far") :]
            assert 'href="/usage/"' in spent
            assert f"<span>{cost}</span>" in spent

    def test_operator_sees_everybody_and_finds_a_person_by_name(self, people: People, used: Execution) -> None:
        client = client_of(people.operator)
        page = client.get("/usage/everybody/").content.decode()
        assert f'href="/usage/people/{people.owner.pk}/?month=' in page
        assert "$12.34" in page
        assert "Usage of alice" in client.get(f"/usage/people/{people.owner.pk}/").content.decode()
        admins_page = client_of(people.admin).get(f"/people/{people.owner.pk}/").content.decode()
        assert f'href="/usage/people/{people.owner.pk}/"' in admins_page
        assert client.get("/usage/everybody/?person=alice")["Location"] == f"/usage/people/{people.owner.pk}/"
        assert "Nobody has the name “&lt;b&gt;”." in client.get("/usage/everybody/?person=<b>").content.decode()
        assert client.get("/usage/everybody/?person=%00").status_code == 200

    def test_files_are_for_those_who_see_the_page(self, people: People, used: Execution) -> None:
        path = f"/usage/people/{people.owner.pk}/?download=1"
        answer = client_of(people.owner).get(path)
        assert answer["Content-Type"].startswith("text/csv")
        assert answer["Content-Disposition"].startswith('attachment; filename="usage-')
        assert "12.34" in answer.content.decode()
        everybody = client_of(people.admin).get("/usage/everybody/?download=1").content.decode()
        assert "alice,churn,Customer churn,small,Small,default,12.3400,1.0000" in everybody
        assert "kind" not in everybody
