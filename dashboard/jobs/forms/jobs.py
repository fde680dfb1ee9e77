"""The forms of jobs: their fields in the launch form and on their own pages, the table of a sweep, and schedules."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, TypeVar
from zoneinfo import available_timezones

import msgspec
from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db.models import Exists, OuterRef, Q
from django.forms.models import ModelChoiceIterator

from dashboard.executions.forms import LaunchSection, SectionPlace
from dashboard.jobs.viewmodels.jobs import MISSED_WORDS, OVERLAP_WORDS
from dashboard.shell.forms.fields import MAXIMUM_TEXT, PairsField, wrong_length
from grid.core.regexes import Expression
from grid.core.translation import gettext as _
from grid.core.wording import exact_duration, plural
from grid.executions.launchrequest import JobSettings, LaunchRequest, projects_for
from grid.jobs import jobs
from grid.jobs.commands import script_name
from grid.jobs.jobs import MAXIMUM_ROWS
from grid.jobs.jobsettings import clean_folder
from grid.jobs.schedules import ScheduleSettings
from grid.models import Execution, Job, JobRun, User

_Field = TypeVar("_Field", bound=forms.Field)
_UNITS = {"s": 1, "sec": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_PART = Expression(r"\s*(\d{1,9})\s*(d|h|min|m|sec|s)\s*")
_LONGEST_DURATION = 40  # characters
MOST_OFFERED = 50  # runs to start after
_SETTINGS = {
    **{name: name for name in ("command", "variables", "folder", "files_at", "page_port")},
    "timeout": "timeout_seconds",
    "retries": "retries",
    "retry_wait": "retry_seconds",
    "at_once": "at_once",
}  # by their fields


def _area(rows: int, placeholder: str) -> forms.Textarea:
    attrs = {"rows": rows, "class": "mono", "spellcheck": "false", "autocapitalize": "off", "placeholder": placeholder}
    return forms.Textarea(attrs=attrs)


def _optional(kind: type[_Field], label: str, help_text: str, **attributes: str) -> _Field:
    line = forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", **attributes})
    return kind(label=label, required=False, widget=line, help_text=help_text)


class DurationField(forms.CharField):
    """A time as people type it: 2h, 90m, 1h 30m; seconds, or None when it is empty."""

    def prepare_value(self, value: Any) -> Any:
        return exact_duration(value) if isinstance(value, int) else value

    def to_python(self, value: Any) -> Any:
        text, seconds = str(super().to_python(value)).strip().lower(), 0
        wrong_length(text, _LONGEST_DURATION)
        while text:
            part = _PART.match(text)
            if part is None:
                raise ValidationError(_("Write a time with its unit, such as 2h, 90m or 1h 30m."))
            seconds += int(part[1]) * _UNITS[part[2]]
            text = text[part.end() :]
        return seconds or None


class ScriptField(forms.CharField):
    """A script of several lines, as it was typed, with the line ends of Unix."""

    def to_python(self, value: Any) -> Any:
        text = str(super().to_python(value))
        wrong_length(text, MAXIMUM_TEXT)
        return text.replace("\r\n", "\n").replace("\r", "\n").rstrip()


class TableField(forms.CharField):
    """A table as text: cells with commas between them, or tabs as spreadsheets paste it, and quotes as in CSV; a list of rows of texts."""

    def to_python(self, value: Any) -> Any:
        text = str(super().to_python(value)).replace("\r\n", "\n").replace("\r", "\n")
        wrong_length(text, MAXIMUM_TEXT)
        try:
            return list(_rows(text.split("\n")))
        except csv.Error as error:
            advice = _('A line cannot be read: {error}. Close each quote, and write “""” for a quote inside.')
            raise ValidationError(advice.format(error=error)) from error


def _rows(lines: list[str]) -> Iterator[list[str]]:
    """Yield the rows of a table without empty lines. Blanks after a comma do not count, unless they are quoted."""
    separator = "\t" if "\t" in next(filter(str.strip, lines), "") else ","
    text, skips = (f"{line}\n" for line in lines), separator == ","
    reader = csv.reader(text, delimiter=separator, skipinitialspace=skips, strict=True)
    for row in reader:
        if lines[reader.line_num - 1].strip():
            yield row


class LatestRuns(ModelChoiceIterator):  # type: ignore[type-arg]
    """The latest runs of all that may be chosen; of a sweep its last one, because a list of thousands helps nobody."""

    def __init__(self, field: Any) -> None:
        super().__init__(field)
        of_sweep = JobRun.objects.filter(job=OuterRef("job"), sweep=OuterRef("sweep"), outcome="")
        later = of_sweep.filter(number__gt=OuterRef("number"))
        self.queryset = self.queryset.exclude(~Q(sweep="") & Exists(later))[:MOST_OFFERED]


class RunChoiceField(forms.ModelChoiceField):  # type: ignore[type-arg]
    iterator = LatestRuns

    def label_from_instance(self, obj: Any) -> str:
        of_sweep = _("Run {number} of {job}, the last of a sweep ({project})")
        words = of_sweep if obj.sweep else _("Run {number} of {job} ({project})")
        return words.format(number=obj.number, job=obj.job, project=obj.job.project.name)


class JobPart(LaunchSection):
    """What a job runs with; every field may be empty. `after` offers the open runs of the user's projects."""

    template = "jobs/fragments/launch_job.html"

    command = ScriptField(
        label=_("Command"),
        required=False,
        strip=False,
        widget=_area(4, 'python train.py --rate "$rate"'),
        help_text=_("A line or a script for /bin/sh. Leave it empty for the environment's own command."),
    )
    variables = PairsField(
        kind="variable",
        label=_("Environment variables"),
        required=False,
        widget=_area(3, "NAME=value"),
        help_text=_("One NAME=value per line. Its project's members can read them."),
    )
    folder = _optional(
        forms.CharField, _("Folder"), _("Below the project's files, where the command starts. Empty: at their root.")
    )
    files_at = _optional(
        forms.CharField,
        _("Begin with"),
        _("Only for files in Git: a branch, or a commit, which gives the same files each time."),
        placeholder="main",
    )
    page_port = _optional(
        forms.IntegerField,
        _("Port of its web page"),
        _(
            "Where the program serves a page while it runs, such as TensorBoard; you open it from the run's page. Empty: none."
        ),
        placeholder="6006",
    )
    timeout = _optional(DurationField, _("Timeout"), _("Of each attempt, such as 2h or 90m. Empty: none."))
    retries = _optional(forms.IntegerField, _("Retries"), _("Further attempts of a run that failed: 0 to 10."))
    retry_wait = _optional(DurationField, _("Wait before a retry"), _("Doubles with each retry, up to 1 h."))
    at_once = _optional(
        forms.IntegerField, _("Runs at once"), _("The maximum number of active runs of this job. Empty: no limit.")
    )
    after = RunChoiceField(
        label=_("Start after"),
        help_text=_(
            "It starts when that run has succeeded. The latest {most} are offered, of a sweep the last run.",
            most=MOST_OFFERED,
        ),
        queryset=JobRun.objects.none(),
        required=False,
        empty_label=_("Nothing: start at once"),
        error_messages={"invalid_choice": _("This run has ended or is not of your projects; choose another.")},
    )

    def __init__(self, data: Mapping[str, Any] | None, *, user: User, initial: Mapping[str, Any]) -> None:
        super().__init__(data, initial={"retries": 0, "retry_wait": 30, **initial})
        field: Any = self.fields["after"]
        # The latest first, in projects in which the user may launch.
        open_runs = JobRun.objects.filter(outcome="", job__project__in=projects_for(user))
        field.queryset = open_runs.select_related("job__project").order_by("-pk")

    @classmethod
    def offered(cls, data: Mapping[str, Any] | None, place: SectionPlace) -> "JobPart":
        return cls(data, user=place.user, initial=place.initial)

    @classmethod
    def linked(cls, query: Mapping[str, str]) -> dict[str, Any]:
        return {name: query[name] for name in _SETTINGS if query.get(name)}

    @classmethod
    def typed_in(cls, execution: Execution) -> dict[str, Any]:
        """Return the initial values as an execution of another person's job ran with them."""
        spec = execution.spec.get("job") or {}
        return {field: spec[name] for field, name in _SETTINGS.items() if spec.get(name)}

    def launch_values(self) -> dict[str, Any]:
        return {"job": self.settings()}

    def launch(self, request: LaunchRequest, *, id: str, now: datetime) -> Job | None:
        """Store what starts after another run: a job with a run that waits."""
        after = self.cleaned_data["after"]
        return jobs.create(request, after=after, now=now, job_id=id).job if after is not None else None

    def settings(self) -> JobSettings:
        """Return what was typed; the form must have no errors."""
        typed = self.cleaned_data
        empty: dict[str, Any] = {"variables": {}, "retries": 0, "retry_wait": 30}
        values = {name: typed[field] or empty.get(field, typed[field]) for field, name in _SETTINGS.items()}
        return JobSettings(**values | {"folder": clean_folder(typed["folder"])})

    def choices(self) -> tuple[str, ...]:
        after = self.cleaned_data["after"]
        return (msgspec.json.encode(self.settings(), order="sorted").decode(), str(after.pk) if after else "")

    def link(self) -> dict[str, str]:
        values = {name: str(self[name].value() or "") for name in _SETTINGS}
        return {name: text for name, text in values.items() if text and text not in ("0", "30 s")}

    def name_of_launched(self) -> str:
        return script_name(str(self["command"].value() or ""))

    def as_sent(self) -> dict[str, str]:
        return {name: str(self[name].value() or "") for name in (*_SETTINGS, "after")}

    @property
    def short_fields(self) -> list[forms.BoundField]:
        files = ("files_at",) if settings.REPOSITORIES else ()
        return [self[name] for name in ("folder", *files, "page_port", "timeout", "retries", "retry_wait", "at_once")]

    @property
    def has_options(self) -> bool:
        """Whether an option is set or wrong, so that the options are shown open."""
        options = ("variables", "folder", "files_at", "page_port", "timeout", "retries", "at_once", "after")
        return any(self[name].value() for name in options) or any(name != "command" for name in self.errors)


class ParametersForm(forms.Form):
    parameters = PairsField(
        label=_("Parameters"),
        kind="variable",
        required=False,
        widget=_area(3, "rate=0.1"),
        help_text=_("One name=value per line. The command reads them as environment variables: $rate."),
    )


class SweepForm(forms.Form):
    """The table of a sweep: names in the first line, then a line of values for each run, with commas or tabs between them."""

    table = TableField(
        label=_("Parameters"),
        required=False,
        strip=False,
        widget=_area(12, "rate,depth\n0.1,3\n0.01,5"),
        help_text=_(
            "The names first, then a line of values for each run, with commas or tabs between them; a value with a comma "
            "in double quotes. The command reads them as environment variables: $rate."
        ),
    )

    def clean_table(self) -> list[dict[str, str]]:
        header, *lines = self.cleaned_data["table"] or [[]]
        if not lines:
            raise ValidationError(_("Write the names in the first line, and a line of values for each run below."))
        names = [name.strip() for name in header]
        if len(set(names)) < len(names):
            raise ValidationError(_("The first line has a name twice."))
        if len(lines) > MAXIMUM_ROWS:
            too_many = _("Use at most {most:,} lines of values; these are {lines:,}.")
            raise ValidationError(too_many.format(most=MAXIMUM_ROWS, lines=len(lines)))
        for number, values in enumerate(lines, 1):
            if len(values) != len(names):
                has, needs = plural(len(values), "value", "values"), plural(len(names), "name", "names")
                wrong = _("Line {number} has {values}, but the first line has {names}.")
                raise ValidationError(wrong.format(number=number, values=has, names=needs))
        return [dict(zip(names, values, strict=True)) for values in lines]


def typed_of(job: Job) -> dict[str, Any]:
    return {field: getattr(job, name) for field, name in _SETTINGS.items()}


_TYPED = {"autocomplete": "off", "spellcheck": "false"}


@cache
def zone_names() -> Sequence[str]:
    """Return the time zones to offer: those of places, and UTC. They are read from hundreds of files, once."""
    return ("UTC", *sorted(name for name in available_timezones() if "/" in name and not name.startswith("Etc/")))


class ScheduleForm(forms.Form):
    cron = forms.CharField(
        label=_("Schedule"),
        required=False,
        widget=forms.TextInput(attrs={"class": "mono", **_TYPED, "placeholder": "0 6 * * 1-5"}),
        help_text=_("Minute, hour, day of the month, month, day of the week, as in cron; or @daily and its like."),
    )
    time_zone = forms.CharField(
        label=_("Time zone"),
        required=False,
        widget=forms.TextInput(attrs={"list": "time-zones", **_TYPED}),
        help_text=_("Its name, such as Europe/Berlin. Runs follow its local time, in summer and in winter."),
    )
    overlap = forms.ChoiceField(
        label=_("If an earlier run has not ended"), choices=list(OVERLAP_WORDS.items()), widget=forms.RadioSelect
    )
    missed = forms.ChoiceField(
        label=_("If a run was missed during an outage"), choices=list(MISSED_WORDS.items()), widget=forms.RadioSelect
    )

    def __init__(self, data: Mapping[str, Any] | None, *, initial: Mapping[str, Any], takes_browser_zone: bool) -> None:
        super().__init__(data, initial={"overlap": "skip", "missed": "once", **initial})
        if takes_browser_zone and data is None:
            self.fields["time_zone"].widget.attrs["data-browser-zone"] = True

    def settings(self) -> ScheduleSettings:
        """Return what was typed; the form must have no errors."""
        return ScheduleSettings(**{name: self.cleaned_data[name] for name in ScheduleSettings.__struct_fields__})
