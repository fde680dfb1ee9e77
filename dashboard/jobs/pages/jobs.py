"""The user's own jobs, live: each with its latest run. Woken by these jobs, their runs and schedules, and the runs' executions."""

from collections.abc import Collection, Hashable, Iterator, Sequence
from datetime import datetime

from django.http import QueryDict

from dashboard.jobs.job_records import JobsPage, jobs_of
from dashboard.jobs.viewmodels.job_rows import JOBS, job_fragments
from dashboard.jobs.viewmodels.jobs import RunLine
from dashboard.shell.access import Viewer
from dashboard.shell.pages.page import LivePage
from dashboard.shell.routes import id_in
from dashboard.shell.viewmodels.live import Fragment
from grid.database import threads as database
from grid.jobs.jobrows import attempt_id
from grid.kube.hub import NAME, Topic
from grid.runtime import Runtime
from grid.runtime.executions import TOPIC as EXECUTIONS
from grid.runtime.written import jobs_of as jobs_written
from grid.runtime.written import runs_of_job


def attempts_of(job_id: str, run: RunLine) -> Iterator[Topic]:
    """Yield the topics of the executions that an open run has and is given next: an attempt's id is known before it is launched."""
    if not run.outcome:
        number = run.latest.number if run.latest else 0
        for attempt in filter(None, (number, number + 1)):
            yield (EXECUTIONS, NAME, attempt_id(job_id, run.number, attempt))


class JobsListPage(LivePage[str, JobsPage]):
    """The view is the id of the job before the page's first one, "" for the first page."""

    name = "jobs"
    regions = frozenset({JOBS})
    rest_seconds = 0.5
    tick_seconds = 10.0  # without a change feed, nothing else tells of a run

    def view(self, query: QueryDict) -> str:
        return id_in(query, "before")

    def allowed(self, runtime: Runtime, viewer: Viewer, view: str) -> bool:
        return True

    def audience(self, viewer: Viewer) -> Hashable:
        return viewer.id

    async def read(self, runtime: Runtime, viewer: Viewer, view: str) -> JobsPage:
        return await database.pages.run(jobs_of, viewer.id, view, runtime.clock())

    def topics(self, runtime: Runtime, viewer: Viewer, view: str, page: JobsPage) -> Collection[Topic]:
        topics: set[Topic] = {jobs_written(str(viewer.id)), jobs_written(), runs_of_job()}
        for card in page.cards:
            topics.add(runs_of_job(card.job.id))
            if card.run is not None:
                topics.update(attempts_of(card.job.id, card.run))
        return topics

    def fragments(
        self, runtime: Runtime, viewer: Viewer, view: str, page: JobsPage, now: datetime
    ) -> Sequence[Fragment]:
        return job_fragments(page.cards, now, older=page.older)


JOBS_LIST = JobsListPage()
