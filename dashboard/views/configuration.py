"""The central configuration page: every key with its meaning, bounds, default and the value in force."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST, require_safe

from dashboard.access import admin_required
from dashboard.forms.administration import SettingForm
from dashboard.viewmodels.administration import history_lines
from dashboard.viewmodels.settings import Typed, in_force, setting_groups
from grid import centralconfig
from grid.errors import Rejected
from grid.models import AuditEntry, ConfigRecord, User

_HISTORY_LENGTH = 50


@require_safe
@admin_required
def configuration(request: HttpRequest) -> HttpResponse:
    return _page(request, SettingForm())


@require_POST
@admin_required
def configuration_change(request: HttpRequest) -> HttpResponse:
    key = request.POST.get("key", "")
    if (
        key in centralconfig.REGISTRY
        and centralconfig.REGISTRY[key].general
        and not request.POST.get("value", "").strip()
    ):
        return configuration_reset(request)  # an empty field of a framework resets it to the value for all frameworks
    form = SettingForm(request.POST)
    if form.is_valid():
        try:
            value = centralconfig.change(form.cleaned_data["key"], form.cleaned_data["value"], actor=_actor(request))
        except Rejected as error:
            for problem in error.problems:
                form.add_error(problem.path, problem.message)
        else:
            setting = centralconfig.lookup(form.cleaned_data["key"])
            messages.success(request, f"{setting.title} is now {in_force(setting, value)}; it is in force already.")
            return redirect("configuration")
    return _page(request, form, status=400)


@require_POST
@admin_required
def configuration_reset(request: HttpRequest) -> HttpResponse:
    try:
        value = centralconfig.reset(request.POST.get("key", ""), actor=_actor(request))
    except Rejected as error:
        messages.error(request, " ".join(problem.message for problem in error.problems))
    else:
        setting = centralconfig.lookup(request.POST["key"])
        back_to = "as for all frameworks," if setting.general else "back to the default of"
        messages.success(request, f"{setting.title} is {back_to} {in_force(setting, value)}.")
    return redirect("configuration")


def _page(request: HttpRequest, form: SettingForm, status: int = 200) -> HttpResponse:
    typed_key = form.data.get("key", "") if form.is_bound else ""
    typed = Typed(typed_key, form.data.get("value", ""), tuple(str(error) for error in form.errors.get("value", [])))
    records = {record.key: record for record in ConfigRecord.objects.filter(namespace=centralconfig.NAMESPACE)}
    context = {
        "groups": setting_groups(centralconfig.REGISTRY.values(), centralconfig.all_values(), records, typed),
        "form": form,
        "keys": list(centralconfig.REGISTRY),
        "key_form": form if form.is_bound and typed_key not in centralconfig.REGISTRY else SettingForm(),
        "history": history_lines(
            AuditEntry.objects.filter(object_type="setting")[:_HISTORY_LENGTH], {"value": ""}, is_reversible=False
        ),
    }
    return render(request, "dashboard/configuration.html", context, status=status)


def _actor(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user
