"""The URLs of this room's pages."""

from django.urls import URLPattern

from dashboard.executions.views import stopping
from dashboard.jobs.views import job_changes, jobs, schedules
from dashboard.shell.routes import path

urlpatterns: list[URLPattern] = [
    path("executions/<id:id>/results/", jobs.execution_results, name="execution-results"),
    path("executions/<id:id>/record/", jobs.execution_record, name="execution-record"),
    path("executions/<id:id>/metrics/", jobs.execution_metrics, name="execution-metrics"),
    path("jobs/", jobs.jobs, name="jobs"),
    path("jobs/stop/", stopping.jobs_stop, name="jobs-stop"),
    path("jobs/<id:id>/", jobs.job, name="job"),
    path("jobs/<id:id>/run/", job_changes.job_run, name="job-run"),
    path("jobs/<id:id>/sweep/", job_changes.job_sweep, name="job-sweep"),
    path("jobs/<id:id>/edit/", job_changes.job_edit, name="job-edit"),
    path("jobs/<id:id>/delete/", job_changes.job_delete, name="job-delete"),
    path("jobs/<id:id>/stop/", job_changes.job_stop, name="job-stop"),
    path("jobs/<id:id>/again/<int:number>/", job_changes.job_again, name="job-again"),
    path("jobs/<id:id>/schedules/new/", schedules.schedule_new, name="schedule-new"),
    path("jobs/<id:id>/schedules/check/", schedules.schedule_check, name="schedule-check"),
    path("jobs/<id:id>/schedules/<int:number>/", schedules.schedule_edit, name="schedule-edit"),
    path("jobs/<id:id>/schedules/<int:number>/pause/", schedules.schedule_pause, name="schedule-pause"),
    path("jobs/<id:id>/schedules/<int:number>/delete/", schedules.schedule_delete, name="schedule-delete"),
    path("jobs/<id:id>/metrics/", jobs.job_metrics, name="job-metrics"),
    path("jobs/<id:id>/compare/", jobs.job_compare, name="job-compare"),
]
