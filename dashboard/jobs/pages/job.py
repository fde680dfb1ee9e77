"""The live pages of jobs: the user's own, each with its latest run, and one job with its runs, or those of a sweep, and its schedules."""

from collections import OrderedDict
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from django.http import QueryDict

from dashboard.jobs import job_records
from dashboard.jobs.viewmodels import job_rows
from dashboard.jobs.viewmodels.jobs import JobRecord, RunLine, ScheduleLine, SweepLine
from dashboard.jobs.viewmodels.runs import ORDERS
from dashboard.shell.access import Viewer, may_manage_job, may_see_job
from dashboard.shell.pages.page import LivePage
from dashboard.shell.routes import id_in
from dashboard.shell.viewmodels.live import Fragment
from grid.core.translation import gettext as _
from grid.database import threads as database
from grid.jobs.jobrows import attempt_id
from grid.jobs.runmetrics.lines import LONGEST_NAME
from grid.kube.hub import NAME, Topic
from grid.runtime import Runtime
from grid.runtime.executions import TOPIC as EXECUTIONS
from grid.runtime.written import jobs_of as jobs_written, roles_in, runs_of_job


def attempts_of(job_id: str, run: RunLine) -> Iterator[Topic]:
    """Yield the topics of the executions that an open run has and is given next: an attempt's id is known before it is launched."""
    if not run.outcome:
        number = run.latest.number if run.latest else 0
        for attempt in filter(None, (number, number + 1)):
            yield (EXECUTIONS, NAME, attempt_id(job_id, run.number, attempt))


class JobsListPage(LivePage[str, job_records.JobsPage]):
    """The view is the id of the job before the page's first one, "" for the first page."""

    name = "jobs"
    regions = frozenset({job_rows.JOBS})
    rest_seconds = 0.5
    tick_seconds = 10.0  # without a change feed, nothing else tells of a run

    def view(self, query: QueryDict) -> str:
        return id_in(query, "before")

    def allowed(self, runtime: Runtime, viewer: Viewer, view: str) -> bool:
        return True

    def audience(self, viewer: Viewer) -> Hashable:
        return viewer.id

    async def read(self, runtime: Runtime, viewer: Viewer, view: str) -> job_records.JobsPage:
        return await database.pages.run(job_records.jobs_of, viewer.id, view, runtime.clock())

    def topics(self, runtime: Runtime, viewer: Viewer, view: str, page: job_records.JobsPage) -> Collection[Topic]:
        topics: set[Topic] = {jobs_written(str(viewer.id)), jobs_written(), runs_of_job()}
        for card in page.cards:
            topics.add(runs_of_job(card.job.id))
            if card.run is not None:
                topics.update(attempts_of(card.job.id, card.run))
        return topics

    def fragments(
        self, runtime: Runtime, viewer: Viewer, view: str, page: job_records.JobsPage, now: datetime
    ) -> Sequence[Fragment]:
        return job_rows.job_fragments(page.cards, now, older=page.older)


JOBS_LIST = JobsListPage()


_KEPT = 2_000
_LARGEST = 2**31 - 1  # that both databases take as a number


def typed_number(text: str) -> int:
    """Return the number of an address; 0 when it is none."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 11 and int(text) <= _LARGEST else 0


@dataclass(frozen=True, slots=True)
class JobRunsView:
    """`sweep` is the number of the sweep that is shown, "" for all runs; `before` is the number of the run before the first, 0 for none."""

    id: str
    sweep: str = ""
    before: int = 0
    metric: str = ""  # whose values the table shows; "" for the first that there is
    order: str = ""  # of a sweep's runs by that metric: `runs.ORDERS`

    def query(self, older: int) -> str:
        parts = {"before": older, "sweep": self.sweep, "metric": self.metric, "order": self.order}
        return f"?{urlencode({name: value for name, value in parts.items() if value})}"


@dataclass(frozen=True, slots=True)
class JobFacts:
    record: JobRecord
    runs: job_records.RunsPage
    sweep: SweepLine | None
    schedules: Sequence[ScheduleLine]


def _read(view: JobRunsView, reader_id: int, now: datetime) -> JobFacts | None:
    record = job_records.read_job(view.id) if view.id else None
    if record is None:
        return None
    sweep = job_records.read_sweep(view.id, view.sweep) if view.sweep else None
    if view.sweep and view.metric and view.order:
        ranking = (view.sweep, view.metric, view.order)
        runs = job_records.ranked_runs_of(view.id, *ranking, start=view.before, reader_id=reader_id, now=now)
    else:
        runs = job_records.runs_of(view.id, sweep=view.sweep, before=view.before, reader_id=reader_id, now=now)
    return JobFacts(record, runs, sweep, () if sweep else job_records.schedules_of(view.id, now))


class JobPage(LivePage[JobRunsView, JobFacts | None]):
    name = "job"
    regions = frozenset({job_rows.RUNS})
    rest_seconds = 0.5
    tick_seconds = 10.0  # what a run costs so far; and without a change feed, nothing else tells of one
    refusal = _("This job does not exist, or you have no access to it.")

    def __init__(self) -> None:
        self._records: OrderedDict[str, JobRecord | None] = OrderedDict()

    def view(self, query: QueryDict) -> JobRunsView:
        sweep = str(query.get("sweep", ""))
        return JobRunsView(
            id_in(query, "id"),
            sweep if sweep.isascii() and sweep.isdigit() else "",
            typed_number(str(query.get("before", ""))),
            str(query.get("metric", ""))[:LONGEST_NAME].replace("\0", ""),
            order if (order := str(query.get("order", ""))) in ORDERS else "",
        )

    async def prepare(self, runtime: Runtime, viewer: Viewer, view: JobRunsView) -> None:
        self._remember(view.id, await database.pages.run(job_records.read_job, view.id) if view.id else None)

    def allowed(self, runtime: Runtime, viewer: Viewer, view: JobRunsView) -> bool:
        record = self._records.get(view.id)
        return record is not None and may_see_job(viewer, record)

    def still_allowed(self, runtime: Runtime, viewer: Viewer, view: JobRunsView) -> bool:
        """Return True also for a job that is no longer kept: its next reading keeps it again."""
        return view.id not in self._records or self.allowed(runtime, viewer, view)

    async def read(self, runtime: Runtime, viewer: Viewer, view: JobRunsView) -> JobFacts | None:
        facts = await database.pages.run(_read, view, viewer.id, runtime.clock())
        self._remember(view.id, facts.record if facts else None)
        return facts

    def topics(self, runtime: Runtime, viewer: Viewer, view: JobRunsView, facts: JobFacts | None) -> Collection[Topic]:
        topics: set[Topic] = {runs_of_job(view.id), runs_of_job()}
        if facts is not None:
            topics |= {roles_in(facts.record.project_id), roles_in()}
            for line in facts.runs.lines:
                if isinstance(line, RunLine):
                    topics.update(attempts_of(view.id, line))
        return topics

    def fragments(
        self, runtime: Runtime, viewer: Viewer, view: JobRunsView, facts: JobFacts | None, now: datetime
    ) -> Sequence[Fragment]:
        if facts is None or not may_see_job(viewer, facts.record):
            return []
        may_manage = may_manage_job(viewer, facts.record)
        older = view.query(facts.runs.older) if facts.runs.older else ""
        metric = view.metric or next(iter(facts.runs.metrics), "")
        return [
            job_rows.job_ending(view.id, facts.sweep, open_runs=facts.record.open_runs, may_end=may_manage),
            *([Fragment("sweep-head", "jobs/fragments/sweep_head.html", facts.sweep)] if facts.sweep else ()),
            *(Fragment(line.fragment, "jobs/fragments/schedule_next.html", line) for line in facts.schedules),
            Fragment("runs-metric", "jobs/fragments/runs_metric.html", metric),
            job_rows.metric_choice(view.sweep, metric, view.order, facts.runs.metrics),
            *job_rows.run_fragments(view.id, facts.runs.lines, now, older=older, may_stop=may_manage, metric=metric),
        ]

    def _remember(self, job_id: str, record: JobRecord | None) -> None:
        """Keep who may see the job: that is asked where the database must not be."""
        self._records[job_id] = record
        self._records.move_to_end(job_id)
        if len(self._records) > _KEPT:
            self._records.popitem(last=False)


JOB = JobPage()
