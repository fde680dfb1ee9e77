"""The launch form, its submission, and what it shows before: the cluster's confirmation, and the objects as YAML."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cache
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib import messages
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from dashboard.executions import launch_facts
from dashboard.executions.forms import SECTIONS, LaunchForm, attached_kind, linked, new_token
from dashboard.executions.kinds import face_of
from dashboard.executions.records import run_place, visible_executions
from dashboard.executions.viewmodels.launch import ClusterKnown, Slots, TierCard
from dashboard.executions.viewmodels.manifest import as_yaml
from dashboard.shell.access import user_of, viewer_of
from dashboard.shell.routes import id_in
from dashboard.shell.viewmodels.states import KINDS, kind_name
from dashboard.usage.size_records import hint_of
from dashboard.usage.viewmodels.sizehints import SizeHint
from grid.audit.entries import write_launched
from grid.core.errors import Rejected
from grid.core.translation import gettext as _
from grid.diagnosis.launchfit import Pools
from grid.executions.launchrequest import kinds_for
from grid.executions.preview import Preview
from grid.executions.request import submit
from grid.executions.storage import Storage
from grid.kube.redaction import HIDDEN
from grid.models import Execution, Job, User, Workspace
from grid.queue.launches import why_not_launch
from grid.runtime import get_runtime

_ORDER = list(KINDS)


@require_http_methods(["GET", "HEAD", "POST"])
async def launch(request: HttpRequest) -> HttpResponse:
    """Show the launch form or submit it. The nodes are read here, on the event loop; the database is used in a thread."""
    runtime = get_runtime()
    answer: HttpResponse = await sync_to_async(_launch)(request, await launch_facts.cluster_known(runtime))
    if answer.status_code == HTTPStatus.FOUND:
        runtime.executions.hint()
    return answer


def _launch(request: HttpRequest, known: ClusterKnown) -> HttpResponse:
    user, model = user_of(request), _model(request)
    kinds = cache(lambda: sorted(kinds_for(user), key=_ORDER.index))
    asked = request.POST.get("kind") or request.GET.get("kind") or (model.kind if model else "")
    kind = asked if asked in _ORDER else next(iter(kinds()), _ORDER[0])
    is_check = "check" in request.POST or "choose" in request.POST
    notes: list[str] = []
    if request.method == "POST":
        posted = _with_choice(request.POST)
        form = LaunchForm(posted, user=user, kind=kind, pools=known.pools, is_submitted=not is_check)
        if not is_check and form.is_valid() and (launched := _launched(request, form)) is not None:
            return launched
    elif (again := _of_own_job(user, model)) and "kind" not in request.GET:
        return redirect(again)
    held, last = launch_facts.slots_of(user), launch_facts.last_launches(user)
    if request.method != "POST":
        wanted = _wanted(kind, model) | linked(request.GET)
        initial, free = last.first_choices(kind) | wanted, held.maximum - held.used
        form = LaunchForm(initial=initial, user=user, kind=kind, slots=free, pools=known.pools)
        notes = form.withhold(wanted)
    if asked and asked not in _ORDER:
        notes.append(_("The kind of work that was asked for does not exist; choose from what is offered."))
    holding = launch_facts.holding_beside(user, get_runtime())
    running = launch_facts.running_by_tier(holding)
    context = _context(form, kinds(), held, running)
    for shown in (form.attached_kind, form.kind):
        context |= face_of(shown).launch_context(form, held, running)
    context["environments"] = last.in_order(form.environments, context["chosen_environment"])
    context |= {"notes_of_link": notes, "link": link_of(form)}
    if "check" in request.POST:
        context["check"] = launch_facts.check_of(form, known, is_awaited=False)
    context["card"] = launch_facts.card_of(form if form.is_bound else form.as_sent, held, known, holding)
    return render(request, "executions/launch.html", context, status=422 if form.is_bound and not is_check else 200)


def _launched(request: HttpRequest, form: LaunchForm) -> HttpResponse | None:
    """Redirect to what the form launches, or to what it has launched before. Return None, with errors in the form, when rejected."""
    wanted = form.execution_id()
    try:
        return redirect(_submit(form, wanted, timezone.now()))
    except Rejected as refused:
        form.add_problems(refused.problems)
        return None
    except IntegrityError:
        # The id is derived from the form, so the existing row came from an earlier submission of it.
        address = _launched_before(wanted, form.user)
        if address is None:
            raise
        if not address:
            sentence = _(
                "This form was sent before, and the {kind} that it launched was deleted. Open a new form to launch another.",
                kind=kind_name(form.kind).lower(),
            )
            form.add_error(None, sentence)
            return None
        messages.info(request, _("This form was sent twice; it was launched once."))
        return redirect(address)


@transaction.atomic
def _submit(form: LaunchForm, id: str, now: datetime) -> str:
    """Store what a valid form asks for, and return its address. Raise Rejected; IntegrityError when there is something of this id."""
    job = form.own.launch(form.request, id=id, now=now) if form.own is not None else None
    launched = job or submit(form.request, gate=why_not_launch, now=now, execution_id=id, pools=form.pools)
    write_launched(form.user, launched, at=now)
    return reverse("job" if job else "execution", args=[launched.pk])


def posted_form(request: HttpRequest, pools: Pools | None) -> LaunchForm:
    """Return the form as it is filled in now, bound to the posted values."""
    return LaunchForm(request.POST, user=user_of(request), kind=request.POST.get("kind", ""), pools=pools)


def link_of(form: LaunchForm) -> str:
    """Return the address that opens the form with its present values."""
    return f"{reverse('launch')}?{urlencode(form.link())}"


def _with_choice(data: QueryDict) -> QueryDict:
    """Return the posted values with the tier of the pressed button "Choose ..." in its field."""
    field, _unused, id = data.get("choose", "").partition(":")
    if not field.endswith("tier") or not id:
        return data
    changed = data.copy()
    changed[field] = id
    return changed


def _launched_before(id: str, owner: User) -> str | None:
    """Return the URL of the owner's execution with that id, or else of its workspace or job; "" when that was deleted, None without any."""
    if Execution.objects.filter(pk=id, owner=owner).exists():
        return reverse("execution", kwargs={"id": id})
    for name, rows in (("workspace", Workspace.objects), ("job", Job.objects)):
        kept = rows.filter(pk=id, owner=owner).first()
        if kept is not None:
            return reverse(name, kwargs={"id": id}) if kept.deleted_at is None else ""
    return None


def _model(request: HttpRequest) -> Execution | None:
    asked = id_in(request.GET, "from")
    viewer = viewer_of(request.user) if asked else None
    return visible_executions(viewer).filter(pk=asked).first() if viewer else None


def _of_own_job(user: User, model: Execution | None) -> str:
    """Return the URL that runs the same again, when the execution to launch again is of the user's own job; else ""."""
    place = run_place(model) if model is not None and model.owner_id == user.pk else None
    return place.again if place else ""


def _wanted(kind: str, model: Execution | None) -> dict[str, Any]:
    """Return the values of the execution to launch again, and of what was launched with it; {} without one of this kind."""
    if model is None or model.kind != kind:
        return {}
    attached = model.attached.order_by("requested_at").first() if attached_kind(kind) else None
    own, of_attached = (
        SECTIONS[row.kind].typed_in(row) if row and row.kind in SECTIONS else {} for row in (model, attached)
    )
    rows = {"project": model.project_id, "environment": model.environment_id, "tier": model.tier_id}
    return {**rows, "title": model.title, **own, **of_attached, "with_cluster": bool(of_attached)}


def _context(form: LaunchForm, kinds: list[str], held: Slots, running: Mapping[str, int]) -> dict[str, Any]:
    projects, environments = list(form.projects), list(form.environments)
    cards = launch_facts.tier_cards(form.tiers, chosen=form.chosen("tier"), pools=form.pools, running=running)
    missing = ""
    if not projects:
        missing = _(
            "You are not a contributor of any project yet. Ask an admin to create one for you or to add you to one."
        )
    elif (not form.has_machine and form.own is None) or not environments:
        missing = _("No environment is offered for this kind of work. Ask your admin to add one.")
    elif not cards:
        missing = _("No hardware tier is offered to you for this kind of work. Ask your admin.")
    return {
        "form": form,
        "kind": form.kind,
        "kinds": {kind: KINDS[kind] for kind in kinds},
        "projects": projects,
        "chosen_project": form.chosen("project"),
        "chosen_environment": form.chosen("environment"),
        "tiers": cards,
        "size_hint": _size_hint(form, cards) if not missing and form.has_machine else None,
        "slots": held,
        "missing": missing,
        "suggested_name": form.suggested_name,
        "token": form["token"].value() or new_token(),
    }


def _size_hint(form: LaunchForm, cards: Iterable[TierCard]) -> SizeHint | None:
    environment = form.chosen_row("environment")
    project = form.chosen_row("project")
    if environment is None or project is None:
        return None  # a link asked for what is not offered, so nothing is chosen yet
    title = str(form["title"].value() or "").strip() or form.name_of_launched
    like = Execution(kind=form.kind, environment=environment, project=project, title=title)
    unfit = [card.tier.pk for card in cards if card.now.severity == "problem"]
    return hint_of(form.user, like, chosen=form.chosen("tier"), tiers=form.tiers, unfit=unfit)


@require_POST
async def launch_check(request: HttpRequest) -> HttpResponse:
    """Ask for a dry run of the posted form, unless it was asked for a moment ago, and return what is known as a fragment."""
    return await _checked(request, await launch_facts.cluster_known(get_runtime()))


@sync_to_async
def _checked(request: HttpRequest, known: ClusterKnown) -> HttpResponse:
    check = launch_facts.check_of(posted_form(request, known.pools), known, is_awaited="awaited" in request.POST)
    return render(request, "executions/fragments/fit_check.html", {"check": check})


@require_POST
async def launch_objects(request: HttpRequest) -> HttpResponse:
    """Show the objects of the posted form, or what is missing in it."""
    return await _objects(request, await launch_facts.pool_states(get_runtime()))


@sync_to_async
def _objects(request: HttpRequest, pools: Pools | None) -> HttpResponse:
    form = posted_form(request, pools)
    if not form.is_valid():
        return render(request, "executions/launch_objects.html", {"text": ""}, status=422)
    storage = Storage(access_mode=settings.VOLUME_ACCESS_MODE, storage_class=settings.VOLUME_STORAGE_CLASS)
    preview = Preview.of(launch_facts.drafted(form, timezone.now()))
    objects = preview.objects(namespace=settings.GRID_NAMESPACE, storage=storage, token=HIDDEN)
    context = {"text": "---\n".join(as_yaml(manifest.body) for manifest in objects), "count": len(objects)}
    return render(request, "executions/launch_objects.html", context)
