"""The page says that an execution is about to be stopped, with the evidence, and those who may stop it keep it longer."""

from datetime import timedelta

import pytest
from django.utils import timezone

from grid.configuration import WORKSPACE_IDLE, WORKSPACE_LIFETIME
from grid.models import ConfigRecord, Execution, StopPlan
from tests.conftest import People
from tests.executions.executing import make_execution, make_project
from tests.shell.browsing import client_of
from tests.support.builders import MOMENT

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runtime")]
BUTTON = "Keep it 2 h longer"
EVIDENCE = "no kernel busy, no terminal activity, CPU under 1 %"


@pytest.fixture
def idle(people: People) -> Execution:
    """The team-mate's, in the owner's project; it is announced to be stopped."""
    now = timezone.now()
    started = now - timedelta(hours=5)
    project = make_project(people.owner, people.teammate)
    execution = make_execution(people.teammate, project, title="notebook", started_at=started)
    ConfigRecord.objects.create(key=WORKSPACE_IDLE.key, value="75")
    StopPlan.objects.create(
        execution=execution,
        active_at=now - timedelta(minutes=52),
        looked_at=now,
        evidence=EVIDENCE,
        cause="idle",
        stops_at=now + timedelta(minutes=23),
    )
    return execution


def page(execution: Execution, who: object) -> str:
    shown = client_of(who).get(f"/executions/{execution.pk}/").content.decode()  # type: ignore[arg-type]
    return " ".join(shown.split())


def keep(execution: Execution, who: object, **posted: str) -> str:
    client = client_of(who)  # type: ignore[arg-type]
    answer = client.post(f"/executions/{execution.pk}/keep/", posted, follow=True)
    return answer.content.decode()


def token(execution: Execution) -> str:
    stops_at = StopPlan.objects.get(execution=execution).stops_at
    return stops_at.isoformat() if stops_at else ""


def test_page_says_idle_time_evidence_and_moment_of_stop(people: People, idle: Execution) -> None:
    since, stops_at = MOMENT - timedelta(minutes=52), MOMENT + timedelta(minutes=23)  # by the pages' clock
    StopPlan.objects.filter(execution=idle).update(active_at=since, stops_at=stops_at)
    shown = page(idle, people.teammate)
    assert ">52 min</time></strong>: no kernel busy, no terminal activity, CPU under 1 %. It stops" in shown
    assert ">in 23 min</time>, at 09:23:00 UTC." in shown
    assert BUTTON in shown


@pytest.mark.parametrize("who", ["teammate", "owner", "operator"])
def test_its_owner_the_projects_owner_and_operators_keep_it(people: People, idle: Execution, who: str) -> None:
    before = StopPlan.objects.get(execution=idle).stops_at
    assert "notebook is kept until" in keep(idle, getattr(people, who), stops_at=token(idle))
    plan = StopPlan.objects.get(execution=idle)
    assert before is not None
    assert (plan.stops_at, plan.kept_idle_until) == (None, before + timedelta(hours=2))
    shown = page(idle, people.teammate)
    assert BUTTON not in shown
    assert "It stops when idle for 1 h 15 min." in shown


def test_second_of_two_keepers_is_told_of_the_first(people: People, idle: Execution) -> None:
    seen = token(idle)
    keep(idle, people.teammate, stops_at=seen)
    assert "bob has already kept it, until" in keep(idle, people.owner, stops_at=seen)


@pytest.mark.parametrize("text", ["", "2026-01-01T00:00:00+00:00", "9999-12-31T23:59:59-12:00"])
def test_a_time_that_was_not_announced_changes_nothing(people: People, idle: Execution, text: str) -> None:
    assert "That stop was withdrawn" in keep(idle, people.teammate, stops_at=text)
    assert StopPlan.objects.get(execution=idle).kept_idle_until is None


def test_busy_unknown_or_timed_execution_says_so(people: People, idle: Execution) -> None:
    now = timezone.now()
    plans = StopPlan.objects.filter(execution=idle)
    plans.update(cause="", stops_at=None, active_at=now, evidence="1 kernel is busy")
    assert "In use: 1 kernel is busy. It stops when idle for 1 h 15 min." in page(idle, people.teammate)
    plans.update(is_unknown=True, evidence="not known, because its program does not answer")
    assert "Whether it is idle is not known, because its program does not answer." in page(idle, people.teammate)
    ConfigRecord.objects.filter(key=WORKSPACE_IDLE.key).update(value="0")
    ConfigRecord.objects.create(key=WORKSPACE_LIFETIME.key, value="8")
    shown = page(idle, people.teammate)
    assert "Its maximum lifetime of 8 h ends" in shown
    assert "idle" not in shown[shown.index("stop-notice") :][:300].replace("idle-", "")
    plans.update(cause="lifetime", stops_at=now + timedelta(minutes=29))
    assert "Its maximum lifetime of 8 h ends.</strong>" in page(idle, people.teammate)


def test_project_owner_sets_limits_and_change_is_recorded(people: People) -> None:
    project = make_project(people.owner)
    client = client_of(people.owner)
    values = {"name": "Churn", "description": "", "idle_minutes": "45", "lifetime_hours": ""}
    assert client.post(f"/projects/{project.pk}/", values).status_code == 302
    project.refresh_from_db()
    assert (project.idle_minutes, project.lifetime_hours) == (45, None)
    refused = client.post(f"/projects/{project.pk}/", {**values, "idle_minutes": "0"}).content.decode()
    assert "greater than or equal to 1" in refused
