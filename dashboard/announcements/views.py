"""Announcements: operators and admins write, edit and end them; everybody may hide one from their own pages."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from dashboard.administration.views import latest_changes
from dashboard.announcements import records
from dashboard.announcements.forms import AnnouncementForm
from dashboard.announcements.viewmodel import announcement_rows
from dashboard.shell.access import Permission, requires, user_of
from dashboard.shell.routes import id_in
from dashboard.shell.viewmodels.listing import Confirmation
from dashboard.shell.views.preferences import back
from grid.core.translation import gettext as _
from grid.models import Announcement

_MOST_LISTED = 100
_operators_only = requires(Permission.OPERATE, _("Only operators and admins write announcements."))


@require_safe
@_operators_only
def announcements(request: HttpRequest) -> HttpResponse:
    labels = {name: str(field.label) for name, field in AnnouncementForm.base_fields.items()}
    rows = announcement_rows(Announcement.objects.all()[:_MOST_LISTED], timezone.now())
    context = {"rows": rows, "history": latest_changes(labels, object_type="announcement")}
    return render(request, "announcements/announcements.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@_operators_only
def announcement_edit(request: HttpRequest, id: str = "") -> HttpResponse:
    row = get_object_or_404(Announcement, pk=id) if id else None
    if row is not None and row.until_at is not None and row.until_at <= timezone.now():
        messages.info(request, _("This announcement has ended. Write a new one instead."))
        return redirect("announcements")
    form = AnnouncementForm(request.POST if request.method == "POST" else None, instance=row)
    if form.is_bound and form.is_valid():
        if records.save(form.instance, user_of(request)):
            messages.success(request, _("The announcement is saved."))
        return redirect("announcements")
    status = 400 if form.errors else 200
    return render(request, "announcements/announcement_edit.html", {"form": form, "row": row}, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@_operators_only
def announcement_end(request: HttpRequest, id: str) -> HttpResponse:
    if request.method == "POST":
        if records.end(id, user_of(request), timezone.now()):
            messages.success(request, _("The announcement has ended."))
        return redirect("announcements")
    row = get_object_or_404(Announcement, pk=id)
    question = Confirmation(
        *(_("End the announcement {subject}"), str(row)),
        (_("It disappears from all pages. To show it again, write a new one."),),
        action_url=request.path,
        answer=_("End it now"),
        keep_url=reverse("announcements"),
    )
    return render(request, "shell/question.html", {"question": question})


@require_POST
def announcement_hide(request: HttpRequest) -> HttpResponse:
    """Hide an announcement from the pages of whoever asks, for its life, and redirect back."""
    id = id_in(request.POST, "announcement")
    if id and request.user.pk is not None:
        records.hide(id, request.user.pk, timezone.now())
    return back(request)
