"""Django's own admin, for what the dashboard does not edit: accounts, and groups. What is changed there is in the audit log, too."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group
from django.db import models, transaction
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from grid.audit.entries import write_entry
from grid.core.errors import Rejected
from grid.core.translation import gettext as _
from grid.models import AuditEntry, User
from grid.notifications.channels import change_address

Action = AuditEntry.Action
_PASSWORD = "password"

if TYPE_CHECKING:
    _Base = admin.ModelAdmin[Any]
    _UserAdmin = UserAdmin[User]
else:
    _Base, _UserAdmin = admin.ModelAdmin, UserAdmin


class Audited(_Base):
    """Writes an audit entry in the transaction of each change, in which Django writes its own entry."""

    def save_related(self, request: HttpRequest, form: "ModelForm[Any]", formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        changes = changes_of(form)
        if changes or not change:
            write_entry(_actor(request), form.instance, changes, action=Action.CHANGED if change else Action.CREATED)

    def log_deletions(self, request: HttpRequest, queryset: Iterable[models.Model]) -> Any:
        for row in queryset:
            write_entry(_actor(request), row, {}, action=Action.DELETED)
        return super().log_deletions(request, queryset)  # type: ignore[arg-type]


class AuditedUserAdmin(Audited, _UserAdmin):
    def save_model(self, request: HttpRequest, obj: User, form: "ModelForm[User]", change: bool) -> None:
        """Have a typed address confirmed by its owner, as one that he types himself."""
        if not change or "email" not in form.changed_data:
            super().save_model(request, obj, form, change)
            return
        address, obj.email = obj.email, form.initial["email"]
        form.changed_data.remove("email")
        super().save_model(request, obj, form, change)
        try:
            changes = change_address(obj, address, now=timezone.now())
        except Rejected as refused:
            messages.error(request, refused.sentences)
            return
        write_entry(_actor(request), obj, changes)
        if "new_email" in changes:
            messages.info(request, _("A link to confirm it was sent to {address}.", address=address))

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        with transaction.atomic():
            answer: HttpResponse = super().user_change_password(request, id, form_url)
            user = self.get_object(request, id)
            if request.method == "POST" and answer.status_code == 302 and user is not None:
                write_entry(_actor(request), user, {_PASSWORD: ["old", "changed"]})
        return answer


class AuditedGroupAdmin(Audited, GroupAdmin):
    pass


def changes_of(form: "ModelForm[Any]") -> dict[str, list[Any]]:
    """Return field -> [old, new] of what the form changes, without any password."""
    names = [name for name in form.changed_data if name in form.cleaned_data and _PASSWORD not in name]
    return {name: [_plain(form.initial.get(name)), _plain(form.cleaned_data[name])] for name in names}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    return sorted(map(str, value)) if isinstance(value, Iterable) else str(value)


def _actor(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user


admin.site.site_header = "Compute Grid accounts"
admin.site.site_title = "Compute Grid"
admin.site.register(User, AuditedUserAdmin)
admin.site.unregister(Group)
admin.site.register(Group, AuditedGroupAdmin)
# Each account is deleted on its own page. Django's list would end in an error for a choice that is no number.
admin.site.disable_action("delete_selected")
