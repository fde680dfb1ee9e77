"""The launch form and its submission."""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode

from asgiref.sync import sync_to_async
from django.contrib import messages
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from dashboard.executions.forms import LaunchForm, linked, new_token
from dashboard.executions.kinds import face_of
from dashboard.executions.last_launches import last_launches
from dashboard.executions.launch_facts import card_of, check_of, cluster_known, running_by_tier, slots_of
from dashboard.executions.launch_sections import SECTIONS, attached_kind
from dashboard.executions.records import run_place, visible_executions
from dashboard.executions.viewmodels.fit_card import ClusterKnown
from dashboard.executions.viewmodels.launch import Slots, TierCard, TierOffer, tier_cards
from dashboard.shell.access import viewer_of
from dashboard.shell.routes import id_in
from dashboard.shell.viewmodels.format import cores_words, memory_words
from dashboard.shell.viewmodels.states import KINDS
from dashboard.usage.size_records import hint_of
from dashboard.usage.viewmodels.sizehints import SizeHint
from dashboard.usage.viewmodels.usage import price_words
from grid.audit.entries import write_entry
from grid.core.errors import Rejected
from grid.core.translation import gettext as _
from grid.core.wording import plural
from grid.diagnosis.launchfit import Pools
from grid.executions.launch_choices import LAUNCHABLE_KINDS, kinds_for
from grid.executions.preview import pod_plan
from grid.executions.request import submit
from grid.executions.spec import tier_spec
from grid.models import AuditEntry, Execution, HardwareTier, Job, User, Workspace
from grid.queue.launches import why_not_launch
from grid.runtime import get_runtime

_ORDER = [kind for kind in KINDS if kind in LAUNCHABLE_KINDS]


@require_http_methods(["GET", "HEAD", "POST"])
async def launch(request: HttpRequest) -> HttpResponse:
    """Show the launch form or submit it. The nodes are read here, on the event loop; the database is used in a thread."""
    runtime = get_runtime()
    known = await cluster_known(runtime)
    answer: HttpResponse = await sync_to_async(_launch)(request, known)
    if answer.status_code == HTTPStatus.FOUND:
        runtime.executions.hint()
    return answer


def _launch(request: HttpRequest, known: ClusterKnown) -> HttpResponse:
    """Return where a launch leads to, or the page with the form."""
    assert isinstance(request.user, User)
    offered = kinds_for(request.user)
    kinds = [kind for kind in _ORDER if kind in offered]
    model = _model(request)
    asked = request.POST.get("kind") or request.GET.get("kind") or (model.kind if model else "")
    kind = asked if asked in _ORDER else next(iter(kinds), _ORDER[0])
    held, last = slots_of(request.user), last_launches(request.user)
    is_check = "check" in request.POST or "choose" in request.POST
    notes: list[str] = []
    if request.method == "POST":
        form = LaunchForm(_with_choice(request.POST), user=request.user, kind=kind, pools=known.pools)
        if not is_check and form.is_valid():
            launched = _submit(request, form)
            if launched is not None:
                return launched
    elif (again := _of_own_job(request.user, model)) and "kind" not in request.GET:
        return redirect(again)
    else:
        wanted = _wanted(kind, model) | linked(request.GET)
        initial, free = last.first_choices(kind) | wanted, held.maximum - held.used
        form = LaunchForm(initial=initial, user=request.user, kind=kind, slots=free, pools=known.pools)
        notes = form.withhold(wanted)
    if asked and asked not in _ORDER:
        notes.append(_("The kind of work that was asked for does not exist; choose from what is offered."))
    running = running_by_tier()
    context = _context(form, kinds, known.pools, held, running)
    for shown in (form.attached_kind, form.kind):
        context |= face_of(shown).launch_context(form, held, running)
    context["environments"] = last.in_order(form.environments, context["chosen_environment"])
    context |= {"notes_of_link": notes, "link": link_of(form)}
    if "check" in request.POST:
        context["check"] = check_of(form, known, is_awaited=False)
    context["card"] = card_of(form if form.is_bound else form.as_sent, held, known, running)
    return render(request, "executions/launch.html", context, status=422 if form.is_bound and not is_check else 200)


def _submit(request: HttpRequest, form: LaunchForm) -> HttpResponse | None:
    """Redirect to the new execution, or to what this form has launched before. Return None, with errors in the form, when rejected."""
    wanted = form.execution_id()
    try:
        with transaction.atomic():
            now = timezone.now()
            for section in form.sections:
                if url := section.launch(form.request, id=wanted, now=now, pools=form.pools):
                    return redirect(url)
            execution = submit(form.request, gate=why_not_launch, now=now, execution_id=wanted, pools=form.pools)
            write_launched(form.user, execution)
        return redirect("execution", id=execution.pk)
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
                kind=KINDS.get(form.kind, form.kind).lower(),
            )
            form.add_error(None, sentence)
            return None
        messages.info(request, _("This form was sent twice; it was launched once."))
        return redirect(address)


def posted_form(request: HttpRequest, pools: Pools | None) -> LaunchForm:
    """Return the form as it is filled in now, bound to the posted values."""
    assert isinstance(request.user, User)
    return LaunchForm(request.POST, user=request.user, kind=request.POST.get("kind", ""), pools=pools)


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


def write_launched(person: User, execution: Execution) -> None:
    """Write an audit entry of a launch; what it was launched with is in the execution's `spec`."""
    changes = {"project": ["", execution.project.name], "tier": ["", execution.tier.name]}
    write_entry(person, execution, changes, action=AuditEntry.Action.LAUNCHED, at=execution.requested_at)


def _launched_before(id: str, owner: User) -> str | None:
    """Return the URL of the owner's execution with that id, or of its workspace or job when there is no such execution (any more); ""
    when that was deleted, None when there is neither."""
    if Execution.objects.filter(pk=id, owner=owner).exists():
        return reverse("execution", kwargs={"id": id})
    for name, rows in (("workspace", Workspace.objects), ("job", Job.objects)):
        kept = rows.filter(pk=id, owner=owner).first()
        if kept is not None:
            return reverse(name, kwargs={"id": id}) if kept.deleted_at is None else ""
    return None


def _model(request: HttpRequest) -> Execution | None:
    """Return the execution to launch again, or None when there is none that the user may see."""
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
    of_attached = _typed_in(attached) if attached is not None else {}
    return {
        "project": model.project_id,
        "environment": model.environment_id,
        "tier": model.tier_id,
        "title": model.title,
        **_typed_in(model),
        **of_attached,
        "with_cluster": bool(of_attached),
    }


def _typed_in(execution: Execution) -> dict[str, Any]:
    section = SECTIONS.get(execution.kind)
    return section.typed_in(execution) if section is not None else {}


def _context(
    form: LaunchForm, kinds: list[str], pools: Pools | None, held: Slots, running: Mapping[str, int]
) -> dict[str, Any]:
    projects, environments = list(form.projects), list(form.environments)
    offers, chosen = tier_offers(form.tiers, running), form.chosen("environment")
    cards = tier_cards(offers, chosen=form.chosen("tier"), pools=pools)
    missing = ""
    if not projects:
        missing = _(
            "You are not a contributor of any project yet. Ask an admin to create one for you or to add you to one."
        )
    elif (not form.has_machine and form.own is None) or not environments:
        missing = _("No environment is offered for this kind of work. Ask your admin to add one.")
    elif not offers:
        missing = _("No hardware tier is offered to you for this kind of work. Ask your admin.")
    return {
        "form": form,
        "kind": form.kind,
        "kinds": {kind: KINDS[kind] for kind in kinds},
        "projects": projects,
        "chosen_project": form.chosen("project"),
        "chosen_environment": chosen,
        "tiers": cards,
        "size_hint": _size_hint(form, cards) if not missing and form.has_machine else None,
        "slots": held,
        "missing": missing,
        "token": form["token"].value() or new_token(),
    }


def _size_hint(form: LaunchForm, cards: Iterable[TierCard]) -> SizeHint | None:
    """Return which smaller tier would have done for the last launches like this one."""
    environment = form.chosen_environment
    project = next((project for project in form.projects if project.pk == form.chosen("project")), None)
    if environment is None or project is None:
        return None  # a link asked for what is not offered, so nothing is chosen yet
    title = str(form["title"].value() or "").strip()
    like = Execution(kind=form.kind, environment=environment, project=project, title=title)
    unfit = [card.offer.id for card in cards if card.now.severity == "problem"]
    return hint_of(form.user, like, chosen=form.chosen("tier"), tiers=form.tiers, unfit=unfit)


def tier_offers(tiers: Iterable[HardwareTier], running: Mapping[str, int] | None = None) -> list[TierOffer]:
    """Return the tiers as the form offers them; what is `running` on each is read when it is not given."""
    running = running_by_tier() if running is None else running
    return [
        TierOffer(
            id=tier.pk,
            name=tier.name,
            description=tier.description,
            cores=cores_words(tier.cores),
            memory=memory_words(tier.memory),
            gpus=plural(tier.gpus, "GPU", "GPUs") if tier.gpus else "",
            price=price_words(tier.cost_per_hour),
            maximum=tier.maximum_simultaneous,
            running=running.get(tier.pk, 0),
            plan=pod_plan(tier_spec(tier)),
        )
        for tier in tiers
    ]
