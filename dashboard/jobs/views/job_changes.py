"""The forms of jobs: run, sweep, edit, stop and delete. Each works without a script."""

import hashlib
from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial, wraps
from typing import Any

import msgspec
from asgiref.sync import sync_to_async
from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from dashboard.executions.forms import MachineForm, new_token
from dashboard.executions.launch_facts import pool_states, tier_cards
from dashboard.executions.views.stopping import stop_runs
from dashboard.jobs.forms.jobs import JobPart, ParametersForm, SweepForm, typed_of
from dashboard.jobs.job_records import read_run
from dashboard.jobs.run_records import deprecated_since, ran_with
from dashboard.jobs.viewmodels.jobs import asked_facts, preview_words
from dashboard.jobs.viewmodels.runs import changed_size, launch_facts
from dashboard.jobs.views.jobs import managed, number_in
from dashboard.shell.access import user_of
from dashboard.shell.forms.fields import add_problems
from grid.audit.entries import differences, snapshot, write_entry
from grid.core.errors import Problem, Rejected
from grid.core.translation import gettext as _, ngettext
from grid.diagnosis.launchfit import Pools
from grid.executions.spec import tier_spec
from grid.jobs import jobs as rules
from grid.jobs.jobrows import record_with
from grid.models import AuditEntry, HardwareTier, Job, JobRun
from grid.models.environment import Kind
from grid.runtime import get_runtime

_FORM_METHODS = ["GET", "HEAD", "POST"]
_TWICE = timedelta(seconds=10)  # a double click is faster; who goes back to the page is slower


def _with_pools(
    view: Callable[[HttpRequest, str, Pools | None], HttpResponse],
) -> Callable[[HttpRequest, str], Coroutine[Any, Any, HttpResponse]]:
    """Make a view of a form that shows how tiers fit: it is given the states of the node pools."""

    @require_http_methods(_FORM_METHODS)
    @wraps(view)
    async def answer(request: HttpRequest, id: str) -> HttpResponse:
        return await sync_to_async(view)(request, id, await pool_states(get_runtime()))

    return answer


@_with_pools
def job_run(request: HttpRequest, id: str, pools: Pools | None) -> HttpResponse:
    """Ask for a run, with the job's settings or others; those of the job stay as they are."""
    forms = _JobForms(request, id)

    def start() -> HttpResponse:
        chosen = forms.machine.cleaned_data
        # How many may be active at once is a setting of the job.
        typed = msgspec.structs.replace(forms.part.settings(), at_once=forms.job.at_once)
        settings = record_with(forms.job, chosen["environment"], chosen["tier"], typed)
        parameters, now = forms.parameters.cleaned_data["parameters"], timezone.now()
        with transaction.atomic():
            run = rules.start(
                id,
                by=request.user.get_username(),
                now=now,
                parameters=parameters,
                after=forms.part.cleaned_data["after"],
                record=settings,
                request_key=_request_key(request, msgspec.to_builtins(settings), parameters, forms.part.choices()),
            )
            _write_launched(request, [run], now)
        return _to_run(request, run, now)

    return _answer(request, forms, start, pools, is_run=True)


@_with_pools
def job_edit(request: HttpRequest, id: str, pools: Pools | None) -> HttpResponse:
    """Change what the job's later runs run with."""
    forms = _JobForms(request, id)

    def save() -> HttpResponse:
        chosen, title = forms.machine.cleaned_data, request.POST.get("title", "")
        with transaction.atomic():
            before = snapshot(rules.locked(id))
            rules.edit(id, title=title, **chosen, settings=forms.part.settings(), now=timezone.now())
            job = Job.objects.get(pk=id)
            if changes := differences(before, snapshot(job)):
                write_entry(request.user.get_username(), job, _without_values(changes))
        messages.info(request, _("Saved. Its next runs use these settings."))
        return redirect("job", id=id)

    return _answer(request, forms, save, pools, is_run=False)


@require_http_methods(_FORM_METHODS)
def job_again(request: HttpRequest, id: str, number: int) -> HttpResponse:
    """Ask for a run with all that an earlier run ran with; the number 0 means the job as it is now."""
    record = managed(request, id)
    by, now = request.user.get_username(), timezone.now()
    earlier = JobRun.objects.filter(job=id, number=number).first()
    if number and earlier is None:
        raise Http404(_("This run is no longer in the history. Run the job with its current settings."))
    if request.method != "POST":
        run = read_run(id, number, now)
        ran = ran_with(run.execution_id) if run and run.latest else None
        tier = HardwareTier.objects.filter(pk=ran.spec.tier.id).first() if ran else None
        context = {
            "record": record,
            "number": number,
            "run": run,
            "facts": (asked_facts(run) if run else {}) | (launch_facts(ran) if ran else {}),
            "changes": changed_size(ran, tier_spec(tier)) if ran and tier else [],
            "deprecated": deprecated_since(ran) if ran else "",
            "token": new_token(),
        }
        return render(request, "jobs/job_again.html", context)
    key = _again_key(request, id, number, now)
    try:
        with transaction.atomic():
            start = partial(rules.start, id) if earlier is None else partial(rules.start_again, earlier.pk)
            started = start(by=by, now=now, request_key=key)
            _write_launched(request, [started], now)
    except Rejected as refused:
        for problem in refused.problems:
            messages.error(request, _("{name} was not run: {reason}", name=record.name, reason=problem.message))
        return redirect("job", id=id)
    return _to_run(request, started, now)


@require_http_methods(_FORM_METHODS)
def job_sweep(request: HttpRequest, id: str) -> HttpResponse:
    """Ask for a run for each line of a table, after a preview."""
    record = managed(request, id)
    form = SweepForm(request.POST if request.method == "POST" else None)
    preview, now = "", timezone.now()
    if form.is_bound and form.is_valid():
        rows = form.cleaned_data["table"]
        preview = preview_words(rows)
        if "preview" not in request.POST:
            try:
                key = _request_key(request, rows)
                with transaction.atomic():
                    runs = rules.start_sweep(id, rows, by=request.user.get_username(), now=now, request_key=key)
                    _write_launched(request, runs, now)
                words = ngettext("{count:,} run requested.", "{count:,} runs requested.", len(runs))
                messages.info(request, _sent_twice(runs[0], now) or words)
                return redirect(f"/jobs/{id}/?sweep={runs[0].sweep}")
            except Rejected as refused:
                add_problems(form, refused.problems)
    context = {"record": record, "form": form, "preview": "" if form.errors else preview, "token": _token(request)}
    return render(request, "jobs/job_sweep.html", context, status=422 if form.errors else 200)


@require_http_methods(_FORM_METHODS)
def job_stop(request: HttpRequest, id: str) -> HttpResponse:
    """Stop all open runs of a job, of one sweep, or one run, after a confirmation."""
    record = managed(request, id)
    number, sweep = number_in(request, "number"), str(number_in(request, "sweep") or "")
    if request.method == "POST":
        stopped = stop_runs(id, request.user.get_username(), sweep=sweep, number=number or None)
        words = ngettext("Stop of {count:,} run requested.", "Stop of {count:,} runs requested.", stopped)
        messages.info(request, words if stopped else _("Nothing was left to stop."))
        return redirect("job", id=id)
    chosen = {name: value for name, value in (("sweep", sweep), ("number", number)) if value}
    count = JobRun.objects.filter(job=id, outcome="", **chosen).count()
    return render(request, "jobs/job_stop.html", {"record": record, "count": count, "number": number, "sweep": sweep})


@require_http_methods(_FORM_METHODS)
def job_delete(request: HttpRequest, id: str) -> HttpResponse:
    """Delete the job after a confirmation. Deleting it twice changes nothing."""
    own = Job.objects.filter(pk=id, owner=request.user.pk or 0, deleted_at__isnull=False)
    if request.method == "POST" and own.exists():
        return redirect("jobs")
    record = managed(request, id)
    problems: tuple[Problem, ...] = ()
    if request.method == "POST":
        try:
            with transaction.atomic():
                rules.delete(id, now=timezone.now())
                write_entry(request.user.get_username(), Job.objects.get(pk=id), {}, action=AuditEntry.Action.DELETED)
            words = _("{name} was deleted. Its runs stay in the history, and its files in the project.")
            messages.info(request, words.format(name=record.name))
            return redirect("jobs")
        except Rejected as refused:
            problems = refused.problems
    context = {"record": record, "problems": problems}
    return render(request, "jobs/job_delete.html", context, status=422 if problems else 200)


class _JobForms:
    """The three forms that make up the page of a run and of the settings: the machine, the job's part, and the parameters."""

    def __init__(self, request: HttpRequest, job_id: str) -> None:
        self.record = managed(request, job_id)
        data: Mapping[str, Any] | None = request.POST if request.method == "POST" else None
        self.job = Job.objects.select_related("environment", "tier", "project").get(pk=job_id)
        machine = {"environment": self.job.environment_id, "tier": self.job.tier_id}
        self.machine = MachineForm(data, user=user_of(request), kind=Kind.JOB, initial=machine)
        self.part = JobPart(data, user=user_of(request), initial=typed_of(self.job))
        self.parameters = ParametersForm(data)
        self.title = request.POST.get("title", "") if data is not None else self.job.title
        self.title_errors: list[str] = []

    def are_valid(self) -> bool:
        return all([self.machine.is_valid(), self.part.is_valid(), self.parameters.is_valid()])

    def add(self, problems: tuple[Problem, ...]) -> None:
        for problem in self.part.add_problems(problems):
            if problem.path == "title":
                self.title_errors.append(problem.message)
            else:
                add_problems(self.parameters if problem.path == "parameters" else self.machine, (problem,))


def _answer(
    request: HttpRequest, forms: _JobForms, act: Callable[[], HttpResponse], pools: Pools | None, *, is_run: bool
) -> HttpResponse:
    """Return the answer of `act`, or the page with what keeps it from being done."""
    status = 422 if request.method == "POST" else 200
    if status == 422 and forms.are_valid():
        try:
            return act()
        except Rejected as refused:
            forms.add(refused.problems)
    machine = forms.machine
    context = {
        "record": forms.record,
        "forms": forms,
        "form": machine,
        "part": forms.part,
        "is_run": is_run,
        "token": _token(request),
        "kind": Kind.JOB,
        "notes": {},
        "environments": list(machine.environments),
        "chosen_environment": machine.chosen("environment"),
        "tiers": tier_cards(machine.tiers, chosen=machine.chosen("tier"), pools=pools),
    }
    return render(request, "jobs/job_form.html", context, status=status)


def _token(request: HttpRequest) -> str:
    return request.POST.get("token", "") or new_token()


def _request_key(request: HttpRequest, *choices: object) -> str:
    """Return one key for the same choices in one showing of a form, which the database takes once; "" for a form without a token."""
    token = request.POST.get("token", "")
    return hashlib.sha256(msgspec.json.encode([token, *choices])).hexdigest()[:32] if token else ""


def _again_key(request: HttpRequest, job_id: str, number: int, now: datetime) -> str:
    """Return the key of "Run again", which is another one after a while: its page is live, so it stays open and keeps its token."""
    key, runs = _request_key(request, number), JobRun.objects.filter(job=job_id, requested_at__lt=now - _TWICE)
    while key and (known := runs.filter(request_key=key).first()):
        key = _request_key(request, number, known.number)
    return key


def _write_launched(request: HttpRequest, runs: Sequence[JobRun], now: datetime) -> None:
    if not _sent_twice(runs[0], now):
        first, last = runs[0].number, runs[-1].number
        numbers = _("{first} to {last}", first=first, last=last) if len(runs) > 1 else str(first)
        changes = {"run": ["", numbers]}
        write_entry(request.user.get_username(), runs[0].job, changes, action=AuditEntry.Action.LAUNCHED, at=now)


def _without_values(changes: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Return the changes with the names of environment variables alone: what somebody typed as a value may be secret."""
    public = {name: values for name, values in changes.items() if name != "variables"}
    if "variables" in changes:
        before, after = changes["variables"]
        changed = {name for name, value in after.items() if before.get(name, value) != value}
        names = [_("{name} (new value)", name=name) if name in changed else name for name in after]
        public["variables by name"] = [sorted(before), sorted(names)]
    return public


def _sent_twice(run: JobRun, now: datetime) -> str:
    """Return a sentence when the run was asked for before; "" when it is new."""
    return _("This form was sent twice; it was run once.") if run.requested_at < now else ""


def _to_run(request: HttpRequest, run: JobRun, now: datetime) -> HttpResponse:
    if again := _sent_twice(run, now):
        messages.info(request, again)
    execution = run.attempts.order_by("-attempt").first()
    if execution is not None:
        return redirect("execution", id=execution.pk)
    words = _("Run {number}: {reason}") if run.words else _("Run {number} starts in a moment.")
    messages.info(request, words.format(number=run.number, reason=run.words))
    return redirect("job", id=run.job_id)
