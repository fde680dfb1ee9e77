"""Puts jobs, their runs, sweeps and schedules into words, and compares two runs; pure."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from zoneinfo import ZoneInfo

from dashboard.jobs.viewmodels.runs import number_words
from dashboard.shell.viewmodels.states import Severity, StatusLine, state_status
from grid.core.errors import Rejected
from grid.core.translation import gettext as _, ngettext
from grid.core.wording import duration, exact_duration
from grid.diagnosis.exits import code_words
from grid.executions.launchrequest import JobSettings
from grid.jobs.jobsettings import RunRecord
from grid.jobs.scheduletimes import cron_words, read_timetable

OVERLAP_WORDS = {
    "skip": _("Skip that time"),
    "queue": _("Queue it: it starts when the earlier run has ended"),
    "replace": _("Replace the earlier run: it is stopped first"),
}
MISSED_WORDS = {"once": _("Run once"), "none": _("Do not run")}


@dataclass(frozen=True, slots=True)
class ScheduleTimes:
    """What a schedule's text means: in words, and the next times; or why it is none."""

    words: str = ""
    times: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScheduleLine:
    id: int
    cron: str
    time_zone: str
    overlap: str
    missed: str
    next_at: datetime | None
    paused: str
    meaning: ScheduleTimes
    history: tuple[tuple[str, str], ...]  # when, and a sentence
    waits: str = ""  # why a time that has come is put off

    @property
    def name(self) -> str:
        return self.meaning.words or self.cron

    @property
    def fragment(self) -> str:
        """The id of the part of the page that says when it runs next."""
        return f"schedule-next-{self.id}"

    @property
    def facts(self) -> Sequence[tuple[str, str]]:
        return (
            (_("Time zone"), self.time_zone),
            (_("If an earlier run has not ended"), OVERLAP_WORDS.get(self.overlap, self.overlap)),
            (_("After an outage"), MISSED_WORDS.get(self.missed, self.missed)),
        )


def schedule_times(cron: str, time_zone: str, now: datetime) -> ScheduleTimes:
    try:
        timetable = read_timetable(cron, time_zone, now)
    except Rejected as refused:
        return ScheduleTimes(problems=tuple(problem.message for problem in refused.problems))
    times = (local_time(moment, timetable.zone) for moment in timetable.following(now))
    return ScheduleTimes(cron_words(timetable.cron), tuple(times))


def local_time(moment: datetime, zone: ZoneInfo) -> str:
    """Return "Tue 24 Nov 2026 14:00 CET"."""
    return f"{moment.astimezone(zone):%a %-d %b %Y %H:%M %Z}"


_OUTCOMES = {
    "succeeded": StatusLine("ok", _("Succeeded")),
    "failed": StatusLine("problem", _("Failed")),
    "stopped": StatusLine("neutral", _("Stopped")),
    "not_started": StatusLine("problem", _("Not started")),
}


@dataclass(frozen=True, slots=True)
class AttemptLine:
    """An attempt of a run: an execution."""

    execution_id: str
    number: int
    state: str
    message: str
    started_at: datetime | None
    ended_at: datetime | None
    exit_code: int | None = None


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run of a job; `attempts` has its latest attempt only, where a page shows many runs."""

    number: int
    sweep: str
    parameters: Mapping[str, str]
    record: RunRecord
    requested_at: datetime
    requested_by: str
    outcome: str
    message: str
    next_attempt_at: datetime | None
    after: str
    attempts: Sequence[AttemptLine]
    cost: str
    now: datetime
    metrics: Mapping[str, float] = field(default_factory=dict)  # the last values of its latest attempt

    @property
    def latest(self) -> AttemptLine | None:
        return self.attempts[-1] if self.attempts else None

    @property
    def execution_id(self) -> str:
        return self.latest.execution_id if self.latest else ""

    @property
    def status(self) -> StatusLine:
        if self.outcome:
            return _OUTCOMES[self.outcome]
        if self.message or self.latest is None:
            return StatusLine("wait", _("Waiting"))
        return state_status(self.latest.state)[0]

    @property
    def attempt_words(self) -> str:
        number = self.latest.number if self.latest else 0
        return _("{number} of {most}", number=number, most=self.record.job.retries + 1)

    @property
    def exit_code(self) -> int | None:
        """How the program of its latest attempt ended; None until its pod says so."""
        return self.latest.exit_code if self.latest else None

    @property
    def took(self) -> str:
        """How long its latest attempt ran, up to now while it runs; "" when it did not start."""
        latest = self.latest
        return duration((latest.ended_at or self.now) - latest.started_at) if latest and latest.started_at else ""


@dataclass(frozen=True, slots=True)
class SweepLine:
    """The runs of a sweep, counted."""

    id: str
    total: int
    ended: int
    failed: int
    requested_at: datetime
    requested_by: str

    @property
    def runs(self) -> str:
        return ngettext("{count} run", "{count} runs", self.total)

    @property
    def status(self) -> StatusLine:
        severity: Severity = "wait" if self.ended < self.total else "problem" if self.failed else "ok"
        words = _("{ended} of {total} done, {failed} failed") if self.failed else _("{ended} of {total} done")
        return StatusLine(severity, words.format(ended=self.ended, total=self.total, failed=self.failed))


@dataclass(frozen=True, slots=True)
class JobRecord:
    id: str
    name: str
    owner_id: int
    owner_username: str
    project_id: str
    project_name: str
    project_roles: Mapping[int, str]
    environment_name: str
    tier_name: str
    settings: JobSettings
    has_cluster: bool
    open_runs: int = 0

    @property
    def project_member_ids(self) -> Collection[int]:
        return self.project_roles.keys()

    @property
    def facts(self) -> Sequence[tuple[str, str]]:
        """What each run runs with, but for the command."""
        _command, *others = _settings_words(self.settings)
        return others


@dataclass(frozen=True, slots=True)
class JobCard:
    """A job in a list, with its latest line, and when a schedule runs it next."""

    job: JobRecord
    run: RunLine | None
    sweep: SweepLine | None
    next_at: datetime | None = None
    paused_schedules: int = 0


@dataclass(frozen=True, slots=True)
class ProjectRun:
    """A run or a sweep of any job of a project."""

    job_id: str
    job_name: str
    owner_username: str
    line: RunLine | SweepLine


@dataclass(frozen=True, slots=True)
class ComparedFact:
    name: str
    first: str
    second: str

    @property
    def differs(self) -> bool:
        return self.first != self.second


def compared(
    first_run: RunLine, second_run: RunLine, first_ran: Mapping[str, str], second_ran: Mapping[str, str]
) -> list[ComparedFact]:
    """Return the facts of two runs' records, what differs first; `ran` are those of what an attempt was launched with."""
    came_of_it = [_outcome_facts(run) for run in (first_run, second_run)]
    first = asked_facts(first_run) | came_of_it[0] | dict(first_ran)
    second = asked_facts(second_run) | came_of_it[1] | dict(second_ran)
    facts = [ComparedFact(name, first.get(name, ""), second.get(name, "")) for name in first | second]
    facts = [fact for fact in facts if fact.first or fact.second]
    # Parameters come first, since a sweep differs in them, and what came of the runs last.
    ranks = dict.fromkeys(chain(*came_of_it), 2)
    ranks |= dict.fromkeys(map(_parameter, chain(first_run.parameters, second_run.parameters)), 0)
    return sorted(facts, key=lambda fact: (not fact.differs, ranks.get(fact.name, 1)))


def _parameter(name: str) -> str:
    return _("Parameter {name}", name=name)


def _outcome_facts(run: RunLine) -> dict[str, str]:
    facts = {
        _("Started after"): run.after,
        _("Requested by"): run.requested_by,
        _("Outcome"): run.status.word,
        _("Exit code"): "" if run.exit_code is None else code_words(run.exit_code),
        _("Attempts"): run.attempt_words,
        _("Message"): run.message,
        _("Duration"): run.took,
        _("Cost"): run.cost,
    }
    facts |= {_("Metric {name}", name=name): number_words(value) for name, value in run.metrics.items()}
    return {name: text for name, text in facts.items() if text}


def asked_facts(run: RunLine) -> dict[str, str]:
    record = run.record
    facts = {_parameter(name): value for name, value in run.parameters.items()}
    facts |= dict(_settings_words(record.job))
    facts |= {_("Environment"): record.environment_name, _("Hardware tier"): record.tier_name}
    if record.cluster:
        facts[_("Cluster")] = ", ".join(f"{name} {value}" for name, value in record.cluster.items())
    return facts


def _settings_words(settings: JobSettings) -> Iterator[tuple[str, str]]:
    yield _("Command"), settings.command or _("the environment's own")
    for name, value in sorted(settings.variables.items()):
        yield _("Variable {name}", name=name), value
    yield _("Folder"), settings.folder or _("the root of the project's files")
    if settings.files_at:
        yield _("Begins with"), settings.files_at
    if settings.page_port:
        yield _("Port of its web page"), str(settings.page_port)
    yield _("Timeout"), exact_duration(settings.timeout_seconds) if settings.timeout_seconds else _("none")
    retries = str(settings.retries) if settings.retries else _("none")
    if settings.retries:
        retries = _("{retries}, the first after {delay}", retries=retries, delay=exact_duration(settings.retry_seconds))
    yield _("Retries"), retries
    yield _("Runs at once"), str(settings.at_once) if settings.at_once else _("no limit")


def preview_words(rows: Sequence[Mapping[str, str]]) -> str:
    """Return how many runs a table makes, and the parameters of the first."""
    first = parameter_words(rows[0])
    return ngettext("{count:,} run, with {first}.", "{count:,} runs; the first with {first}.", len(rows), first=first)


def parameter_words(parameters: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in parameters.items())
