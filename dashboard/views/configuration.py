"""The central configuration page: every key with its meaning, bounds, default and the value in force."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from dashboard.access import admin_required
from dashboard.forms.administration import SettingForm
from dashboard.viewmodels.administration import amount, history_lines, number
from grid import centralconfig
from grid.errors import Rejected
from grid.models import AuditEntry, ConfigRecord

_HISTORY_LENGTH = 50
# The part of a key before its last, which says what it is about.
_TOPICS = {
    "sagaStateTimeouts": "Time limits of executions",
    "userExecutionsQuota": "Slots and queue",
    "nodes": "Nodes and the autoscaler",
}


@admin_required
def configuration(request: HttpRequest) -> HttpResponse:
    return _page(request, SettingForm())


@require_POST
@admin_required
def configuration_change(request: HttpRequest) -> HttpResponse:
    form = SettingForm(request.POST, label_suffix="")
    if form.is_valid():
        try:
            value = centralconfig.change(form.cleaned_data["key"], form.cleaned_data["value"], actor=_actor(request))
        except Rejected as error:
            for problem in error.problems:
                form.add_error(problem.path, problem.message)
        else:
            setting = centralconfig.lookup(form.cleaned_data["key"])
            messages.success(request, f"{setting.title} is now {amount(value, setting.unit)}; it is in force already.")
            return redirect("configuration")
    return _page(request, form, status=400)


@require_POST
@admin_required
def configuration_reset(request: HttpRequest) -> HttpResponse:
    try:
        value = centralconfig.reset(request.POST.get("key", ""), actor=_actor(request))
    except Rejected as error:
        messages.error(request, str(error))
    else:
        setting = centralconfig.lookup(request.POST["key"])
        messages.success(request, f"{setting.title} is back to the default of {amount(value, setting.unit)}.")
    return redirect("configuration")


def _page(request: HttpRequest, form: SettingForm, status: int = 200) -> HttpResponse:
    typed_key = form.data.get("key", "") if form.is_bound else ""
    context = {
        "topics": _topics(form, typed_key),
        "form": form,
        "keys": list(centralconfig.REGISTRY),
        "key_form": form if form.is_bound and typed_key not in centralconfig.REGISTRY else SettingForm(label_suffix=""),
        "history": history_lines(
            AuditEntry.objects.filter(object_type="setting")[:_HISTORY_LENGTH], {"value": ""}, is_reversible=False
        ),
    }
    return render(request, "dashboard/configuration.html", context, status=status)


def _topics(form: SettingForm, typed_key: str) -> dict[str, list[dict[str, Any]]]:
    """Every setting with its value in force, or as typed where that was wrong, by topic."""
    values = centralconfig.all_values()
    records = {record.key: record for record in ConfigRecord.objects.filter(namespace=centralconfig.NAMESPACE)}
    topics: dict[str, list[dict[str, Any]]] = {}
    for key, setting in centralconfig.REGISTRY.items():
        row = {
            "setting": setting,
            "value": form.data.get("value", "") if key == typed_key else values[key],
            "errors": form.errors.get("value") if key == typed_key else None,
            "now": amount(values[key], setting.unit),
            "default": number(setting.default, setting.unit),
            "maximum": number(setting.maximum, setting.unit),
            "record": records.get(key),
        }
        topics.setdefault(_TOPICS.get(key.split(".")[-2], "Other"), []).append(row)
    return topics


def _actor(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user
