"""The forms of a project: the admins', and those with which an owner manages the own one, without what is the admins'."""

from typing import Any

from django import forms
from django.db.models import Q, QuerySet

from dashboard.administration.forms import ID_HELP, CatalogueForm
from dashboard.files.forms import ProjectFilesMixin
from dashboard.shell.forms.fields import RowsField, Section
from dashboard.workspaces.viewmodels.shutdown import LIMIT_LABELS, LIMIT_UNITS, PROJECT_LIMIT_HELP
from grid.core.translation import gettext as _
from grid.models import Membership, Project, User


def _account_name(user: User) -> str:
    return user.get_username() if user.is_active else _("{user} (account closed)", user=user.get_username())


class ProjectForm(ProjectFilesMixin, CatalogueForm):
    layout = (
        Section(_("What it is"), _("Shown to people when they choose."), ("id", "name", "description")),
        Section(
            _("Who"),
            _("Members see its executions and logs. The owner and contributors also launch in it and share its files."),
            ("owner", "contributors", "viewers"),
        ),
        Section(_("Files"), _("Found at /mnt/project in every execution of the project."), ("volume_size", "files")),
        Section(
            _("Shut-down"),
            _("When its workspaces and apps are stopped by themselves."),
            ("idle_minutes", "lifetime_hours"),
        ),
    )
    units = LIMIT_UNITS
    owner = forms.ModelChoiceField(
        User.objects.none(), label=_("Owner"), help_text=_("Also stops and changes other members' executions.")
    )
    contributors = RowsField(User.objects.none(), label=_("Contributors"))
    viewers = RowsField(User.objects.none(), label=_("Viewers"), help_text=_("See everything, change nothing."))

    class Meta:
        model = Project
        fields = ("id", "name", "description", "volume_size", "files", "idle_minutes", "lifetime_hours")
        labels = {
            "name": _("Name"),
            "description": _("Description"),
            "files": _("Files"),
            "id": "Id",
            "volume_size": _("Volume size"),
            **LIMIT_LABELS,
        }
        help_texts = {
            "id": ID_HELP,
            "volume_size": _("For example 10Gi; the volume is created when the files are first used."),
            **PROJECT_LIMIT_HELP,
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        roles = {} if "id" in self.fields else dict(self.instance.memberships.values_list("user_id", "role"))
        # A member with a closed account stays in the form until removed: the account may be opened again.
        people = User.objects.filter(Q(is_active=True) | Q(pk__in=roles)).order_by("username")
        for name in ("owner", "contributors", "viewers"):
            field: Any = self.fields[name]
            field.queryset, field.label_from_instance = people, _account_name
        chosen = {
            role: [user for user, role_of_user in roles.items() if role_of_user == role]
            for role in Membership.Role.values
        }
        self.initial = {
            **self.initial,
            "owner": next(iter(chosen[Membership.Role.OWNER]), None),
            "contributors": chosen[Membership.Role.CONTRIBUTOR],
            "viewers": chosen[Membership.Role.VIEWER],
        }

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        viewers = set(data.get("viewers") or ())
        if both := set(data.get("contributors") or ()) & viewers:
            names = ", ".join(sorted(user.get_username() for user in both))
            self.add_error("viewers", _("Choose one role for {names}: contributor or viewer.", names=names))
        if data.get("owner") in viewers:
            self.add_error("viewers", _("{owner} is the owner, and cannot be a viewer as well.", owner=data["owner"]))
        return data

    def save(self, commit: bool = True) -> Project:
        project: Project = super().save(commit)
        owner, *contributors = self.contributing()
        project.assign(owner=owner, contributors=contributors, viewers=self.cleaned_data["viewers"])
        return project

    def contributing(self) -> list[User]:
        """Return who would launch in the project: the owner first, then the contributors, with the previous owner if not named."""
        return [self.cleaned_data["owner"], *self.cleaned_data["contributors"], *self._owner_before()]

    def consequence(self) -> str:
        return "".join(
            _(
                "{user} was the owner and is a contributor now; remove them and save again if they should have no access.",
                user=user,
            )
            for user in self._owner_before()
        )

    def _owner_before(self) -> QuerySet[User]:
        """Return the previous owner if the form gives that user no role any more; otherwise an empty queryset."""
        named = [self.cleaned_data["owner"], *self.cleaned_data["contributors"], *self.cleaned_data["viewers"]]
        return User.objects.filter(pk=self.initial["owner"] or 0).exclude(pk__in=[user.pk for user in named])


class OwnProjectForm(ProjectFilesMixin, forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Project
        fields = ("name", "description", "files", "idle_minutes", "lifetime_hours")
        limits = {n: _("{limit}, in {unit}", limit=label, unit=LIMIT_UNITS[n]) for n, label in LIMIT_LABELS.items()}
        labels = {"name": _("Name"), "description": _("Description"), "files": _("Files"), **limits}
        help_texts = PROJECT_LIMIT_HELP


class MemberForm(forms.Form):
    """One person by username, typed because the owner need not know who else has an account, and the role."""

    ROLES = ((Membership.Role.CONTRIBUTOR.value, _("Contributor")), (Membership.Role.VIEWER.value, _("Viewer")))

    username = forms.CharField(
        label=_("Username"),
        max_length=150,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    role = forms.ChoiceField(label=_("Role"), choices=[*ROLES, ("remove", _("Remove"))])

    def clean_username(self) -> User:
        name = self.cleaned_data["username"]
        user = User.objects.filter(username=name).first()
        if user is None:
            raise forms.ValidationError(_("There is no account {name}.", name=name))
        return user

    def clean_role(self) -> str:
        """Return the role; "" to remove the person."""
        role: str = self.cleaned_data["role"]
        return "" if role == "remove" else role

    def clean(self) -> None:
        """A closed account can only be removed: it may stay in a project, and cannot come into one."""
        user = self.cleaned_data.get("username")
        if user is not None and self.cleaned_data.get("role") and not user.is_active:
            self.add_error("username", _("The account {user} is deactivated.", user=user))
