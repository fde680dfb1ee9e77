"""The central configuration page: every key with its meaning, bounds, default and the value in force.

One form holds all settings. What was changed in it is shown with its consequences before it is saved, all or nothing. Each page carries
the overrides that it was made from (`base`): what differs from them is what the admin changed, and what differs from them in the database
was changed by somebody else meanwhile.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus

import msgspec
from django.contrib import messages
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from dashboard.administration.views import latest_changes
from dashboard.configuration import viewmodel
from dashboard.configuration.setting_effects import effects
from dashboard.shell.access import admin_required, user_of
from grid import configuration as centralconfig
from grid.configuration import REGISTRY, ChangedMeanwhile
from grid.core.errors import Rejected
from grid.core.translation import gettext as _
from grid.models import AuditEntry, ConfigRecord

_LONGEST_KEY = 200
_LONGEST_TEXT = 100  # of a value; no valid one is as long


@dataclass(frozen=True, slots=True)
class SubmittedSettings:
    """What an admin sent: the overrides of the page they saw, and the texts that differ from it, by key."""

    base: Mapping[str, str]
    texts: Mapping[str, str]

    def typed_over(self) -> dict[str, str]:
        """Return the part of the base that is about what was typed."""
        return {key: value for key, value in self.base.items() if key in self.texts}


@require_http_methods(["GET", "HEAD", "POST"])
@admin_required
def configuration(request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        return _page(request)
    submitted = _submitted(request.POST)
    if request.POST.get("do") == "back":
        return _page(request, submitted)
    stored = centralconfig.overrides()
    stale = [key for key in submitted.texts if key in REGISTRY and submitted.base.get(key) != stored.get(key)]
    try:
        if stale:
            raise ChangedMeanwhile(stale)
        changes = centralconfig.plan(submitted.texts, stored)
        if request.POST.get("do") == "save":
            centralconfig.apply(changes, actor=user_of(request))
    except ChangedMeanwhile as error:
        now = replace(submitted, base=centralconfig.overrides())
        return _page(request, now, _overtaken(error.keys), status=HTTPStatus.CONFLICT)
    except Rejected as error:
        errors = {problem.path: (problem.message,) for problem in error.problems}
        return _page(request, submitted, errors, status=HTTPStatus.BAD_REQUEST)
    if not changes:
        messages.info(request, _("Nothing was changed."))
    elif request.POST.get("do") == "save":
        messages.success(request, viewmodel.saved_sentence(changes))
    else:
        lines = viewmodel.review_lines(changes, effects(changes, now=timezone.now()))
        base = msgspec.json.encode(submitted.typed_over()).decode()
        context = {"lines": lines, "base": base, "here": request.get_full_path()}
        return render(request, "configuration/configuration_review.html", context)
    return redirect(request.get_full_path())


def _submitted(posted: QueryDict) -> SubmittedSettings:
    """Read the form. Raise SuspiciousOperation for what no page of ours sends."""
    try:
        base = msgspec.json.decode(posted.get("base", ""), type=dict[str, str])
        shown = {key: viewmodel.own_text(setting, base) for key, setting in REGISTRY.items()}
    except (ValueError, msgspec.DecodeError, RecursionError):
        raise SuspiciousOperation(_("The form is not one of this page.")) from None

    def field(name: str, length: int = _LONGEST_TEXT) -> str:
        return str(posted.get(name, "")).strip()[:length]

    texts = {key: field(key) for key in REGISTRY if key in posted and field(key) != shown[key]}
    if (reset := field("reset", _LONGEST_KEY)) in REGISTRY:
        texts[reset] = ""
    if (key := field("key", _LONGEST_KEY)) or field("value"):
        texts[key] = field("value")
    return SubmittedSettings(base, texts)


def _overtaken(keys: Collection[str]) -> dict[str, tuple[str, ...]]:
    values, sentences = centralconfig.all_values(), dict[str, tuple[str, ...]]()
    for key in keys:
        entry = AuditEntry.objects.filter(object_type="setting", object_id=key).first()
        who, at = (entry.actor_name, entry.at) if entry else ("", None)
        sentences[key] = (viewmodel.overtaken_sentence(REGISTRY[key], values[key], who, at),)
    return sentences


def _page(
    request: HttpRequest,
    submitted: SubmittedSettings | None = None,
    errors: Mapping[str, tuple[str, ...]] | None = None,
    status: int = 200,
) -> HttpResponse:
    """Render the page with what was typed, over the settings as they are now; what was typed keeps the base that it was typed over."""
    submitted, errors = submitted or SubmittedSettings({}, {}), errors or {}
    records = {record.key: record for record in ConfigRecord.objects.filter(namespace=centralconfig.NAMESPACE)}
    stored = {key: record.value for key, record in records.items()}
    untouched = {key: value for key, value in stored.items() if key in REGISTRY and key not in submitted.texts}
    shown = viewmodel.SettingFilter(request.GET.get("q", "")[:_LONGEST_TEXT], "changed" in request.GET)
    typed = viewmodel.Typed(submitted.texts, errors)
    sections = viewmodel.setting_sections(REGISTRY.values(), centralconfig.values_with(stored), records, typed, shown)
    direct = ((key, text, errors.get(key)) for key, text in submitted.texts.items())
    context = {
        "sections": sections,
        "filter": shown,
        "is_nothing_shown": not any(section.is_shown for section in sections),
        "wrong": [row for section in sections for row in section.rows if row.errors],
        "is_overtaken": status == HTTPStatus.CONFLICT,
        "base": msgspec.json.encode({**untouched, **submitted.typed_over()}).decode(),
        "direct": next((typed for typed in direct if typed[0] not in REGISTRY), None),
        "keys": list(REGISTRY),
        "here": request.get_full_path(),
        "history": latest_changes({"value": ""}, object_type="setting"),
    }
    return render(request, "configuration/configuration.html", context, status=status)
