"""The forms by which its owner chooses who may open an app, and shares a port of a workspace."""

from collections.abc import Collection
from typing import Any

from django import forms

from grid.core.translation import gettext as _
from grid.models import User
from grid.sharing.sharing import HIGHEST, LOWEST, port_problem

_PERIODS = [
    (0, _("until the workspace stops")),
    (1, _("for an hour")),
    (8, _("for 8 hours")),
    (24, _("for a day")),
    (168, _("for a week")),
]


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


class PortShareForm(ShareForm):
    """`own_port` is the one that the workspace's own program listens on."""

    port = forms.IntegerField(
        label=_("Port"),
        min_value=LOWEST,
        max_value=HIGHEST,
        help_text=_(
            "On which your app listens, such as 8501 for Streamlit. It has to listen on 0.0.0.0, not only on 127.0.0.1."
        ),
    )
    name = forms.CharField(
        label=_("Name"), max_length=80, help_text=_("By which the members find it on their home page.")
    )
    hours = forms.TypedChoiceField(label=_("Shared"), choices=_PERIODS, coerce=int, initial=0)
    field_order = ("port", "name", "members", "hours")

    def __init__(self, *args: Any, offered: Collection[User], own_port: int, **kwargs: Any) -> None:
        super().__init__(*args, offered=offered, **kwargs)
        self._own_port = own_port
        self.fields["members"].required = True

    def clean_port(self) -> int:
        port: int = self.cleaned_data["port"]
        if problem := port_problem(port, self._own_port):
            raise forms.ValidationError(problem)
        return port
