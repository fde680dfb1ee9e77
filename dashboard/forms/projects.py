"""The forms with which an owner manages the own project; what is the admins', such as the size of its volume, is in `administration`."""

from django import forms

from dashboard.forms.projectfiles import ProjectFilesMixin
from dashboard.forms.shutdown import LIMIT_LABELS, LIMIT_UNITS, PROJECT_LIMIT_HELP
from grid.models import Membership, Project, User


class OwnProjectForm(ProjectFilesMixin, forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Project
        fields = ("name", "description", "files", "idle_minutes", "lifetime_hours")
        labels = {name: f"{label}, in {LIMIT_UNITS[name]}" for name, label in LIMIT_LABELS.items()}
        help_texts = PROJECT_LIMIT_HELP


class MemberForm(forms.Form):
    """One person by username, typed because the owner need not know who else has an account, and the role."""

    ROLES = ((Membership.Role.CONTRIBUTOR.value, "Contributor"), (Membership.Role.VIEWER.value, "Viewer"))

    username = forms.CharField(
        max_length=150, widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"})
    )
    role = forms.ChoiceField(choices=[*ROLES, ("remove", "Remove")])

    def clean_username(self) -> User:
        name = self.cleaned_data["username"]
        user = User.objects.filter(username=name).first()
        if user is None:
            raise forms.ValidationError(f"There is no account {name}.")
        return user

    def clean_role(self) -> str:
        """Return the role; "" to remove the person."""
        role: str = self.cleaned_data["role"]
        return "" if role == "remove" else role

    def clean(self) -> None:
        """A closed account can only be removed: it may stay in a project, and cannot come into one."""
        user = self.cleaned_data.get("username")
        if user is not None and self.cleaned_data.get("role") and not user.is_active:
            self.add_error("username", f"The account {user} is deactivated.")
