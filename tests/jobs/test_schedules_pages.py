"""Schedules over HTTP: checked, saved, shown on the job and in the list, edited, paused, resumed and deleted.

Who gets which answer is told by `tests/access/answers.txt`.
"""

import html
import re
from typing import Any

import pytest
from django.utils import timezone

from grid.jobs import schedules
from grid.jobs.schedules import ScheduleSettings
from grid.models import Job, Schedule
from tests.conftest import People
from tests.jobs.conftest import launch_job
from tests.shell.browsing import client_of, page_at

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("runtime")]
HOSTILE = "<script>alert(1)</script>"
TYPED = {"cron": "30 6 * * 1-5", "time_zone": "Europe/Berlin", "overlap": "queue", "missed": "none"}


@pytest.fixture
def job(people: People) -> Job:
    return launch_job(people)


def post(people: People, path: str, fields: dict[str, Any] | None = None) -> tuple[int, str]:
    answer = client_of(people.owner).post(path, fields or {})
    return answer.status_code, html.unescape(answer.content.decode())


def page(people: People, path: str, *, user: str = "owner") -> str:
    return page_at(getattr(people, user), path)


def saved(job: Job, **changes: str) -> Schedule:
    return schedules.create(job.pk, ScheduleSettings(**(TYPED | changes)), now=timezone.now())


def test_saved_schedule_shows_its_words_and_next_five_times(people: People, job: Job) -> None:
    status, _ = post(people, f"/jobs/{job.pk}/schedules/new/", TYPED)
    schedule = Schedule.objects.get()
    assert (status, {name: getattr(schedule, name) for name in TYPED}) == (302, TYPED)
    shown = page(people, f"/jobs/{job.pk}/")
    assert "Monday to Friday at 06:30" in shown and "Queue it" in shown and "Do not run" in shown
    assert len(re.findall(r"<li>\w{3} \d+ \w+ \d{4} 06:30 CES?T</li>", shown)) == 5
    assert "schedules" in page(people, "/jobs/") and "data-until" in page(people, "/jobs/")


def test_team_mates_see_schedules_without_buttons(people: People, job: Job) -> None:
    saved(job)
    shown = page(people, f"/jobs/{job.pk}/", user="teammate")
    assert "Monday to Friday at 06:30" in shown
    assert not any(word in shown for word in ("New schedule", "Pause", "schedules/"))


def test_checking_says_what_is_typed_and_saves_nothing(people: People, job: Job) -> None:
    for path, extra in (("check", {}), ("new", {"check": "on"})):
        status, shown = post(people, f"/jobs/{job.pk}/schedules/{path}/", TYPED | extra)
        assert status == 200 and "Monday to Friday at 06:30" in shown and shown.count("06:30 CE") == 5
        status, shown = post(people, f"/jobs/{job.pk}/schedules/{path}/", TYPED | extra | {"cron": "0 0 30 2 *"})
        assert status == 200 and "No such date comes within five years" in shown
    assert not Schedule.objects.exists()


@pytest.mark.parametrize(("field", "typed"), [("cron", HOSTILE), ("time_zone", HOSTILE), ("overlap", "x")])
def test_invalid_schedule_is_reported_at_its_field_without_markup(
    people: People, job: Job, field: str, typed: str
) -> None:
    answer = client_of(people.owner).post(f"/jobs/{job.pk}/schedules/new/", TYPED | {field: typed})
    shown = answer.content.decode()
    assert answer.status_code == 422 and f'id="id_{field}_error"' in shown and HOSTILE not in shown
    assert not Schedule.objects.exists()


def test_a_schedule_is_edited_paused_resumed_and_deleted(people: People, job: Job) -> None:
    own = f"/jobs/{job.pk}/schedules/{saved(job).pk}/"
    assert 'value="30 6 * * 1-5"' in page(people, own)
    assert post(people, own, TYPED | {"cron": "@hourly"})[0] == 302
    assert "Every hour, on the hour" in page(people, f"/jobs/{job.pk}/")
    for _ in range(2):
        assert post(people, f"{own}pause/")[0] == 302
    assert f"Paused by {people.owner.get_username()}." in page(people, f"/jobs/{job.pk}/")
    assert "Paused" in page(people, "/jobs/")
    assert post(people, f"{own}pause/", {"resume": "on"})[0] == 302
    assert Schedule.objects.get().next_at is not None
    assert "Every hour, on the hour" in page(people, f"{own}delete/")
    for _ in range(2):
        assert post(people, f"{own}delete/")[0] == 302
    assert not Schedule.objects.exists()
    assert client_of(people.owner).get(own).status_code == 404


def test_the_schedule_of_another_job_is_not_found(people: People, job: Job) -> None:
    schedule = saved(job)
    other = Job.objects.create(
        id="other", owner=people.owner, project=job.project, environment=job.environment, tier=job.tier
    )
    for number in (schedule.pk, 10**30):
        for path in ("", "pause/"):
            assert post(people, f"/jobs/{other.pk}/schedules/{number}/{path}", TYPED)[0] == 404
        post(people, f"/jobs/{other.pk}/schedules/{number}/delete/")
    assert Schedule.objects.get().paused_at is None
