"""The central configuration page: every key with its meaning, bounds, default and the value in force."""

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from dashboard.access import admin_required
from dashboard.forms.administration import SettingForm
from grid import centralconfig
from grid.errors import Rejected
from grid.models import AuditEntry, ConfigRecord

_HISTORY_LENGTH = 50


@admin_required
def configuration(request: HttpRequest) -> HttpResponse:
    return _page(request, SettingForm())


@require_POST
@admin_required
def configuration_change(request: HttpRequest) -> HttpResponse:
    form = SettingForm(request.POST)
    if form.is_valid():
        try:
            value = centralconfig.change(form.cleaned_data["key"], form.cleaned_data["value"], actor=_actor(request))
        except Rejected as error:
            for problem in error.problems:
                form.add_error(problem.path, problem.message)
        else:
            setting = centralconfig.lookup(form.cleaned_data["key"])
            messages.success(request, f"{setting.title} is now {value} {setting.unit}; it is in force already.")
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
        messages.success(request, f"Back to the default of {value}.")
    return redirect("configuration")


def _page(request: HttpRequest, form: SettingForm, status: int = 200) -> HttpResponse:
    values = centralconfig.all_values()
    records = {record.key: record for record in ConfigRecord.objects.filter(namespace=centralconfig.NAMESPACE)}
    typed_key = form.data.get("key", "") if form.is_bound else ""
    rows = [
        {
            "setting": setting,
            "value": form.data.get("value", "") if key == typed_key else values[key],
            "errors": form.errors.get("value") if key == typed_key else None,
            "record": records.get(key),
        }
        for key, setting in centralconfig.REGISTRY.items()
    ]
    context = {
        "rows": rows,
        "form": form,
        "empty_form": SettingForm(auto_id="new_%s"),
        "is_unknown_key": form.is_bound and typed_key not in centralconfig.REGISTRY,
        "history": AuditEntry.objects.filter(object_type="setting")[:_HISTORY_LENGTH],
    }
    return render(request, "dashboard/configuration.html", context, status=status)


def _actor(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user
