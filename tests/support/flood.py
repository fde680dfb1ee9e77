"""Many things of one person that are due at once, written without the rules that would take their time."""

from datetime import datetime

from msgspec import to_builtins

from grid.jobs.jobrows import record_with
from grid.jobs.jobsettings import settings_of
from grid.models import Job, JobRun, RunSettings, Schedule
from tests.support.shop import Shop


def copies_of(job: Job, count: int) -> list[Job]:
    """Store jobs like this one, without runs."""
    columns = {
        field.attname: getattr(job, field.attname) for field in Job._meta.concrete_fields if field.attname != "id"
    }
    return Job.objects.bulk_create(Job(**columns | {"id": f"copy{number}", "runs_made": 0}) for number in range(count))


def flood_of_schedules(job: Job, count: int, *, due: datetime) -> None:
    """Store so many jobs like this one, each with a schedule that is due each minute since then."""
    Schedule.objects.bulk_create(
        Schedule(job=copy, cron="* * * * *", time_zone="UTC", set_at=due, next_at=due) for copy in copies_of(job, count)
    )


def flood_of_runs(job: Job, shop: Shop, count: int, *, due: datetime) -> None:
    """Store so many jobs like this one, each with a run that was to start then."""
    kept = settings_of(job)
    settings = RunSettings.objects.bulk_create(
        RunSettings(job=copy, record=to_builtins(record_with(copy, shop.job, shop.tier, kept)))
        for copy in copies_of(job, count)
    )
    JobRun.objects.bulk_create(
        JobRun(
            job=setting.job, number=1, settings=setting, requested_at=due, requested_by="a flood", next_attempt_at=due
        )
        for setting in settings
    )
    Job.objects.filter(pk__in=[setting.job_id for setting in settings]).update(runs_made=1)
