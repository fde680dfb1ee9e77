"""The form by which its owner chooses who may open an app."""

from collections.abc import Collection
from typing import Any

from django import forms

from grid.core.translation import gettext as _
from grid.models import User


class ShareForm(forms.Form):
    members = forms.ModelMultipleChoiceField(
        User.objects.none(),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        label=_("Who may open it"),
        error_messages={"invalid_choice": _("Choose members of its project; somebody you chose is not one.")},
    )

    def __init__(self, *args: Any, offered: Collection[User], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field: Any = self.fields["members"]
        field.queryset = User.objects.filter(pk__in=[user.pk for user in offered]).order_by("username")
        field.label_from_instance = User.get_username
