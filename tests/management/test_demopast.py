"""The demo's made-up past: it is the same each time, says that it is made up, agrees with itself and changes nothing that runs."""

import random
from datetime import timedelta

import pytest
from django.db.models import Sum

from grid.management.demo import create_demo_data, new_accounts
from grid.management.demopast import DAYS, PEOPLE, create_past, make_up
from grid.models import DailyUsage, Execution, LifecycleEntry, StartDay, StartUp, State, UsageInterval, User
from tests.support.builders import MOMENT


def test_the_same_seed_and_moment_make_up_the_same() -> None:
    made = make_up(MOMENT, random.Random(1))
    assert made == make_up(MOMENT, random.Random(1)) != make_up(MOMENT, random.Random(2))
    assert {each.person for each in made} == set(range(len(PEOPLE)))
    assert all(MOMENT - timedelta(days=DAYS + 1) < each.requested_at < each.started_at < each.ended_at for each in made)
    assert max(each.ended_at for each in made) < MOMENT


def test_what_is_made_up_has_failures_waits_and_nodes_that_had_to_be_started() -> None:
    made = make_up(MOMENT, random.Random(1))
    assert 800 < len(made) < 2_500
    failed = sum(each.end.state == State.FAILED for each in made)
    assert 0.02 < failed / len(made) < 0.2
    assert any(each.queued > 60 for each in made)
    assert any(each.node_wait > 0 for each in made)


@pytest.fixture
def count(db: None) -> int:
    create_demo_data(new_accounts())
    return create_past(MOMENT, random.Random(1))


def test_the_past_has_ended_and_says_that_it_is_made_up(count: int) -> None:
    assert Execution.objects.count() == count
    assert not Execution.objects.unsettled().exists()
    for row in Execution.objects.select_related("project"):
        assert row.project.name.endswith("(made up)")
        assert row.message.endswith("(Made up.)")
    assert not User.objects.filter(username__in=PEOPLE, is_active=True).exists(), "nobody logs in as these"


def test_usage_and_starts_of_the_past_agree_with_its_executions(count: int) -> None:
    ran = UsageInterval.objects.aggregate(Sum("seconds"))["seconds__sum"]
    assert DailyUsage.objects.aggregate(Sum("pod_seconds"))["pod_seconds__sum"] == ran > 0
    assert not UsageInterval.objects.filter(added_up=False).exists()
    all_starts = StartDay.objects.filter(grouping=StartDay.Grouping.ALL)
    assert all_starts.aggregate(Sum("starts"))["starts__sum"] == StartUp.objects.count() == count
    for entry in LifecycleEntry.objects.filter(to_state=State.RUNNING).select_related("execution")[:50]:
        assert entry.at == entry.execution.started_at
