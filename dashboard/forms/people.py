"""The admins' forms for people: an invitation, a role, and the conditions of the list."""

from django import forms
from django.contrib.auth.forms import UsernameField

from dashboard.viewmodels.people import ROLE_WORDS, PersonState
from grid.models import User

_ROLES = [(name, f"{name.capitalize()}: {words}") for name, words in ROLE_WORDS.items()]


class RoleForm(forms.Form):
    role = forms.ChoiceField(choices=_ROLES)


class InviteForm(forms.ModelForm):  # type: ignore[type-arg]
    """A username as Django allows them, which no other account has in capitals or small letters, and a role."""

    role = forms.ChoiceField(choices=_ROLES, initial="practitioner")

    class Meta:
        model = User
        fields = ("username",)
        field_classes = {"username": UsernameField}
        help_texts = {"username": "Letters, digits and @ . + - _. Other people see it."}

    def clean_username(self) -> str:
        name: str = self.cleaned_data["username"]
        if User.objects.filter(username__iexact=name).exists():
            raise forms.ValidationError("This name is taken.", code="unique")
        return name


class PeopleFilterForm(forms.Form):
    """The conditions of the list; what is not valid is no condition."""

    text = forms.CharField(max_length=150, required=False)
    role = forms.ChoiceField(choices=[(name, name.capitalize()) for name in ROLE_WORDS], required=False)
    state = forms.ChoiceField(
        choices=[(state.value, state.value.capitalize()) for state in PersonState], required=False
    )

    def conditions(self) -> dict[str, str]:
        self.is_valid()
        return {name: value for name, value in self.cleaned_data.items() if value}
