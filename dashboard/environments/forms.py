"""The admins' form of an environment, and those of its revisions; the rules of `grid.environments.revisions` decide what is valid."""

from collections.abc import Iterable
from typing import Any

from django import forms

from dashboard.administration.forms import ID_HELP, CatalogueForm
from dashboard.secrets.forms import ONE_LINE
from dashboard.shell.forms.fields import FrameworksField, LinesField, PairsField, Section
from grid.core.translation import gettext as _
from grid.environments.revisions import LONGEST_TEXT
from grid.models import Environment
from grid.models.fields import validate_image

IMAGE, BUILT = "image", "built"


def _one_line(label: str, help: str) -> forms.CharField:
    widget = forms.TextInput(attrs={"dir": "auto", "autocomplete": "off"})
    return forms.CharField(label=label, required=False, max_length=300, widget=widget, help_text=help)


class RevisionForm(forms.Form):
    """A new revision: an image, or requirements on top of one that is ready."""

    what = forms.ChoiceField(
        label=_("What it is"),
        choices=[(IMAGE, _("An image")), (BUILT, _("Requirements on top of a revision"))],
        widget=forms.RadioSelect,
        initial=IMAGE,
    )
    image = forms.CharField(
        label=_("Image"),
        required=False,
        max_length=255,
        validators=[validate_image],
        widget=forms.TextInput(attrs={**ONE_LINE, "class": "mono"}),
        help_text=_("For an image: its name with tag or digest, such as registry.example.com/lab:4."),
    )
    base = forms.TypedChoiceField(label=_("On top of"), coerce=int, required=False)
    requirements = forms.CharField(
        label=_("Requirements"),
        required=False,
        max_length=LONGEST_TEXT,
        widget=forms.Textarea(attrs={**ONE_LINE, "rows": 6, "class": "mono"}),
        help_text=_(
            "For requirements: Python packages, one a line, such as polars==1.9.0. No options, files or addresses."
        ),
    )
    note = _one_line(_("Note"), _("What is new in it, for people who choose."))

    def __init__(self, data: Any, *, bases: Iterable[tuple[int, str]], initial: dict[str, Any]) -> None:
        super().__init__(data, initial=initial)
        field: Any = self.fields["base"]
        field.choices = list(bases)

    @property
    def is_built(self) -> bool:
        return bool(self.cleaned_data["what"] == BUILT)


class DeprecationForm(forms.Form):
    because = _one_line(_("Why"), _("Shown to people who still have it, with the number of the current revision."))


class EnvironmentForm(CatalogueForm):
    """The form of an environment; a command has one argument a line, so that nothing has to be quoted."""

    layout = (
        Section(_("What it is"), _("Shown to people when they choose."), ("id", "name", "description", "is_visible")),
        Section(
            _("Program"),
            _("The image and its command."),
            (
                *("kind", "port", "image", "image_pull_secret", "command"),
                *("start_path", "readiness_path", "allows_service_workers"),
            ),
        ),
        Section(
            _("Frameworks"),
            _("Cluster frameworks in the image, to run a cluster or to connect to an attached one."),
            ("frameworks",),
        ),
        Section(_("Variables"), _("The program's environment variables."), ("variables",)),
    )
    units = {}
    wide = ("description", "is_visible", "image", "image_pull_secret", "allows_service_workers")
    command = LinesField(
        label=_("Command"),
        required=False,
        rows=8,
        help_text=_(
            "One argument per line. {port}, {base_url} and {project}, the folder of the project's files, are filled "
            "in, and $(NAME) is a variable. So that nobody reaches the program beside the nginx in front of it, let it listen on "
            "{host} and {port}, or on the Unix socket {socket}: with arguments for both, the ones that do not hold are left out. "
            "Leave empty for the image's own command. A workspace starts in HOME; a cluster's "
            "containers run what its framework needs."
        ),
    )
    frameworks = FrameworksField(
        label=_("Frameworks"),
        required=False,
        help_text=_(
            "One per line with its version, such as dask 2026.8.0, ray 2.60.0 or spark 4.3.0. The launch form warns "
            "when a workspace and its cluster have different versions."
        ),
    )
    variables = PairsField(
        label=_("Variables"),
        kind="variable",
        required=False,
        help_text=_(
            "One NAME=value per line. Values are kept in a Secret, except those that refer "
            "to another variable, such as postgres://grid:$(PASSWORD)@db; give each secret a variable of its own."
        ),
    )

    class Meta:
        model = Environment
        fields = (
            *("id", "name", "description", "kind", "image", "image_pull_secret", "command", "port", "frameworks"),
            *("start_path", "readiness_path", "variables", "allows_service_workers", "is_visible"),
        )
        labels = {
            "name": _("Name"),
            "description": _("Description"),
            "kind": _("Kind"),
            "image": _("Image"),
            "port": _("Port"),
            "id": "Id",
            "start_path": _("Start path"),
            "readiness_path": _("Readiness path"),
            "image_pull_secret": _("Registry credentials"),
            "allows_service_workers": _("May use service workers"),
            "is_visible": _("Shown in the launch form"),
        }
        help_texts = {
            "id": ID_HELP,
            "image_pull_secret": _(
                "Name of a Secret in the executions' namespace, for private images. Leave empty for none."
            ),
            "allows_service_workers": _(
                "Only for IDEs that need them, such as VS Code: a service worker answers requests "
                "in the browser instead of the program."
            ),
            "kind": _("Workspaces and apps open in the browser; a cluster runs one of the frameworks."),
            "image": _("With its registry and tag, for example registry.example.org/team/lab:4.6."),
            "port": _("The port that the program listens on. Workspaces and apps need one; jobs and clusters do not."),
            "start_path": _(
                "Where Open leads to, such as /lab or /?folder=/mnt/project. Leave empty for the program’s own first page."
            ),
            "readiness_path": _(
                "Answers with a status from 200 to 399 once the program is ready, without a login, such as /api "
                "or /healthz. Leave empty when accepting connections on the port is enough."
            ),
            "is_visible": _("When hidden, running executions keep it."),
        }
        widgets = {
            **dict.fromkeys(("start_path", "readiness_path", "image"), forms.TextInput(attrs={"spellcheck": "false"})),
            "image_pull_secret": forms.TextInput(attrs={"spellcheck": "false", "autocomplete": "off"}),
        }
