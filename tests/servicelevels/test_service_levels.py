"""The page of service levels: what it says in each state, and where it has it from. Who may open it: tests/access."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import connection, transaction
from django.template.loader import render_to_string
from django.test.utils import CaptureQueriesContext

from dashboard.servicelevels import views as pages
from dashboard.servicelevels.viewmodel import level_card
from dashboard.servicelevels.views import ReadLevels, ServiceLevels, read_level_days
from dashboard.shell.pages import periodic
from dashboard.starts.startup_records import read_start_times
from dashboard.starts.viewmodels.start_times import StartTimesView
from grid.core.errors import ClusterUnavailable
from grid.metrics.history import LevelDays, PrometheusLevels, burn_query, days_query
from grid.models import StartUp, State
from grid.runtime import Runtime
from grid.servicelevels.levels import LevelDay, LevelTarget, default_targets, status_of
from grid.starts.startups import count_start
from tests.conftest import People, client_of
from tests.executions.executing import make_environment, make_execution, make_project, make_tier
from tests.support.builders import MOMENT
from tests.support.golden import assert_golden
from tests.test_query_plans import scans

PATH = "/service-levels/"
TARGETS = default_targets()
BY_ID = {target.level.id: target for target in TARGETS}
TODAY = MOMENT.date()


class FakePrometheus:
    """Answers `known`, or raises it."""

    def __init__(self, known: Mapping[str, LevelDays] | Exception) -> None:
        self.known = known

    def read(self, targets: Any, until: Any) -> Mapping[str, LevelDays]:
        if isinstance(self.known, Exception):
            raise self.known
        return self.known


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(periodic, "FIRST_SECONDS", 60.0)
    pages._levels.clear()


def days(*bad: float, total: float = 1000) -> list[LevelDay]:
    return [LevelDay(TODAY - timedelta(days=len(bad) - 1 - number), count, total) for number, count in enumerate(bad)]


def read(runtime: Runtime, known: Mapping[str, LevelDays] | Exception | None) -> ReadLevels:
    prometheus: Any = None if known is None else FakePrometheus(known)
    levels = async_to_sync(ServiceLevels(runtime, prometheus).read)()
    assert levels is not None
    return levels


# --- What a card says


def test_a_card_shows_what_is_known() -> None:
    card = level_card(status_of(BY_ID["start-time"], days(40, 80, 90), None), "database", has_prometheus=False)
    html = render_to_string("servicelevels/fragments/service_level.html", {"card": card})
    assert_golden("service-level-missed", html)


@pytest.mark.parametrize(
    ("counted", "ratio", "severity", "state", "left", "burn"),
    [
        (days(0, 1, 0), 0.001, "ok", "Met", "93.3 % left", "0.2 times"),
        (days(0, 1, 2), 0.02, "wait", "Met, burning too fast", "80 % left", "4.0 times"),
        (days(2, 6, 4), 0.0, "wait", "Met, little budget left", "20 % left", "0.0 times"),
        (days(9, 9, 9), 0.02, "problem", "Missed", "overspent by 80 %", "4.0 times"),
    ],
)
def test_state_follows_from_budget_and_burn_rate(
    counted: list[LevelDay], ratio: float, severity: str, state: str, left: str, burn: str
) -> None:
    card = level_card(status_of(BY_ID["pages"], counted, ratio), "prometheus", has_prometheus=True)
    assert (card.severity, card.meter, card.state, card.left) == (severity, severity, state, left)
    assert card.burn == f"{burn} the allowed rate, in the last hour"


def test_level_unknown_to_prometheus_says_what_to_check() -> None:
    card = level_card(status_of(BY_ID["pages"], [], None), "", has_prometheus=True)
    assert card.advice.startswith("Prometheus has no metrics of it: check that it scrapes")


def test_share_just_below_everything_is_not_rounded_up() -> None:
    card = level_card(status_of(BY_ID["pages"], days(0.1, total=10_000), None), "prometheus", has_prometheus=True)
    assert card.attained == "99.999 %"


# --- What the database knows


@pytest.fixture
def start(people: People) -> Any:
    tier, environment = make_tier(), make_environment()

    def make(total: float, queued: float = 0, *, days: int = 0) -> None:
        values: dict[str, Any] = {"kind": "job", "tier": tier, "environment": environment, "image": "lab:1"}
        id, at = f"e{StartUp.objects.count()}", MOMENT - timedelta(days=days)
        with transaction.atomic():
            count_start(
                StartUp(execution_id=id, total=total, queued=queued, at=at, ran=True, node_pool="default", **values)
            )

    return make


def test_starts_of_the_window_are_good_within_the_threshold(start: Any) -> None:
    start(10)
    start(1000, queued=900)
    start(400, queued=20, days=1)
    start(400, days=30)
    levels = read_level_days(BY_ID, MOMENT)
    assert levels["start-time"] == LevelDays((LevelDay(TODAY - timedelta(days=1), 1, 1), LevelDay(TODAY, 1, 2)), 0.5)
    assert [day.bad for day in levels["queue-time"].days] == [0, 1]
    assert set(levels) == {"start-time", "queue-time", "failure-rate"}
    shown = read_start_times(StartTimesView(range="30"), MOMENT).shown.whole.starts
    assert shown == sum(day.total for day in levels["start-time"].days), "the page of start-up times counts the same"


def test_program_failures_and_full_quotas_are_not_counted(people: People) -> None:
    project = make_project(people.owner)
    ends = [(State.SUCCEEDED, "completed"), (State.FAILED, "exit_code")]
    ends += [(State.ERROR, "over_quota_timeout"), (State.ERROR, "pod_gone")]
    for state, reason in ends:
        make_execution(people.owner, project, state=state, reason=reason, ended_at=MOMENT, settled_at=MOMENT)
    old = MOMENT - timedelta(days=31)
    make_execution(people.owner, project, state=State.ERROR, reason="pod_gone", ended_at=old, settled_at=old)
    with CaptureQueriesContext(connection) as queries:
        levels = read_level_days(BY_ID, MOMENT)
    assert levels["failure-rate"] == LevelDays((LevelDay(TODAY, 1, 4),), 0.25)
    assert list(scans(queries)) == [], "no history is read from end to end"


# --- The page


@pytest.mark.django_db(transaction=True)
def test_without_prometheus_page_shows_what_database_knows(people: People, runtime: Runtime, start: Any) -> None:
    start(10)
    page = client_of(people.operator).get(PATH).content.decode()
    assert page.count("Needs Prometheus, which is not connected: set GRID_PROMETHEUS_URL.") == 4
    assert "0 of 1 starts that ran broke the promise" in page and "0 of 1 starts broke the promise" in page
    assert "No executions that ended in the last 30 days." in page
    assert "Edit objectives" not in page


@pytest.mark.django_db(transaction=True)
def test_levels_unknown_to_prometheus_come_from_database(runtime: Runtime, start: Any) -> None:
    start(10)
    levels = read(runtime, {"pages": LevelDays(tuple(days(1)), 0.0)})
    assert {level.status.target.level.id: level.source for level in levels.levels} == {
        "start-time": "database",
        "queue-time": "database",
        "queue-length": "",
        "failure-rate": "database",
        "event-to-screen": "",
        "pages": "prometheus",
        "workspaces": "",
    }
    assert not levels.is_silent


@pytest.mark.django_db(transaction=True)
def test_silent_prometheus_is_replaced(people: People, runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    silent: Any = FakePrometheus(ClusterUnavailable("Prometheus cannot be asked: no answer in time."))
    monkeypatch.setattr(pages, "_levels", [ServiceLevels(runtime, silent)])
    page = client_of(people.operator).get(PATH).content.decode()
    assert "Prometheus does not answer, so this is what the database knows." in page
    assert "Nothing to measure" in page


# --- Prometheus' answers


def asked(
    monkeypatch: pytest.MonkeyPatch, range_answer: Any, answer: Any, targets: Sequence[LevelTarget] = TARGETS
) -> dict[str, LevelDays]:
    levels = PrometheusLevels("http://user:password@prometheus.example")
    client = SimpleNamespace(custom_query_range=lambda *_: range_answer, custom_query=lambda *_, **__: answer)
    monkeypatch.setattr(levels, "_client", client)
    return levels.read(targets, MOMENT)


def test_days_and_the_present_share_are_read_by_level(monkeypatch: pytest.MonkeyPatch) -> None:
    now, before = int(MOMENT.timestamp()), int((MOMENT - timedelta(days=1)).timestamp())
    series = [
        {"metric": {"level": "pages", "count": "bad"}, "values": [[before, "1"], [now, "NaN"]]},
        {"metric": {"level": "pages", "count": "total"}, "values": [[before, "100"], [now, "50"]]},
        {"metric": {"level": "workspaces", "count": "bad"}, "values": [[now, "0"]]},
    ]
    levels = asked(monkeypatch, series, [{"metric": {"level": "pages"}, "value": [now, "0.5"]}])
    assert levels == {"pages": LevelDays((LevelDay(TODAY - timedelta(days=1), 1, 100), LevelDay(TODAY, 0, 50)), 0.5)}


@pytest.mark.parametrize("answer", [[{}], [{"metric": {}, "values": []}], None, "text"])
def test_strange_answer_is_rejected_without_showing_the_password(monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    with pytest.raises(ClusterUnavailable) as raised:
        asked(monkeypatch, answer, [])
    assert "password" not in str(raised.value)


def test_no_expression_has_a_mark_that_was_not_filled() -> None:
    for text in (days_query(TARGETS), burn_query(TARGETS)):
        assert "$" not in text
        assert len(text) < 6000, "it is asked with GET"
