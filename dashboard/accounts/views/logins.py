"""The admins' page of logins that are locked after too many wrong passwords."""

import ipaddress

from django.contrib import messages
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from dashboard.accounts.viewmodels.logins import lock_rows
from dashboard.administration.viewmodel import history_lines
from dashboard.shell.access import admin_required, user_of
from grid.accounts import lockouts
from grid.accounts.lockouts import Scope
from grid.core.translation import gettext as _
from grid.models import AuditEntry

_HISTORY_LENGTH = 50


@require_GET
@admin_required
def logins(request: HttpRequest) -> HttpResponse:
    now = timezone.now()
    entries = AuditEntry.objects.filter(action=AuditEntry.Action.UNLOCKED)[:_HISTORY_LENGTH]
    context = {
        "rows": lock_rows(lockouts.locks(now)),
        "now": now,
        "policy": lockouts.policy(),
        "history": history_lines(entries, {"failures": _("Wrong passwords")}),
    }
    return render(request, "accounts/logins.html", context)


@require_POST
@admin_required
def unlock(request: HttpRequest) -> HttpResponse:
    """End one lock. It is no error when the lock has expired in the meantime."""
    name, address = request.POST.get("name", ""), request.POST.get("address", "")
    try:
        if address:
            ipaddress.ip_address(address)  # PostgreSQL rejects anything else for that column
        ended = lockouts.unlock(Scope(request.POST.get("scope", "")), name, address, actor=user_of(request))
    except ValueError:
        raise SuspiciousOperation(_("There is no such kind of lock.")) from None
    messages.success(
        request, _("Unlocked: logging in is possible again.") if ended else _("That lock had already ended.")
    )
    return redirect("logins")
