"""The admins' forms for people: an invitation, a role, and the conditions of the list."""

from django import forms
from django.contrib.auth.forms import UsernameField

from dashboard.accounts.viewmodels.people import ROLE_WORDS, STATE_TITLES
from dashboard.shell.viewmodels.states import ROLE_TITLES
from grid.core.translation import gettext as _
from grid.models import User

_ROLES = [(name, f"{ROLE_TITLES[name]}: {words}") for name, words in ROLE_WORDS.items()]


class RoleForm(forms.Form):
    role = forms.ChoiceField(label=_("Role"), choices=_ROLES)


class InviteForm(forms.ModelForm):  # type: ignore[type-arg]
    """A username as Django allows them, which no other account has in capitals or small letters, and a role."""

    role = forms.ChoiceField(label=_("Role"), choices=_ROLES, initial="practitioner")

    class Meta:
        model = User
        fields = ("username",)
        labels = {"username": _("Username")}
        field_classes = {"username": UsernameField}
        help_texts = {"username": _("Letters, digits and @ . + - _. Other people see it.")}

    def clean_username(self) -> str:
        name: str = self.cleaned_data["username"]
        if User.objects.filter(username__iexact=name).exists():
            raise forms.ValidationError(_("This name is taken."), code="unique")
        return name


class PeopleFilterForm(forms.Form):
    """The conditions of the list; what is not valid is no condition."""

    text = forms.CharField(label=_("Text"), max_length=150, required=False)
    role = forms.ChoiceField(label=_("Role"), choices=list(ROLE_TITLES.items()), required=False)
    state = forms.ChoiceField(label=_("State"), choices=list(STATE_TITLES.items()), required=False)

    def conditions(self) -> dict[str, str]:
        self.is_valid()
        return {name: value for name, value in self.cleaned_data.items() if value}
