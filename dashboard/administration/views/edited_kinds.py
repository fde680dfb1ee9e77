"""One kind of object that admins edit, in the views of `administration`; each kind is in its own room."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import models
from django.db.models import Prefetch
from django.http import HttpRequest

from dashboard.administration.forms import CatalogueForm
from dashboard.shell.viewmodels.listing import Confirmation
from grid.core.translation import gettext as _
from grid.diagnosis.nodeshapes import PoolShapes
from grid.models import AuditEntry

Pools = Mapping[str, PoolShapes]


@dataclass(frozen=True, slots=True)
class EditedKind:
    """One kind of object that admins edit; `name` is the URL name of its list, `singular` begins its other URL names. The room of a kind
    overrides the methods with what it adds to the views."""

    name: str
    singular: str
    title: str
    model: type[models.Model]
    form: type[CatalogueForm]
    purpose: str
    new: str  # the title of the page for a new one
    archive: str  # the question before one is archived, with {name} in it
    related: tuple["str | Prefetch[Any]", ...] = ()  # the relations that its list fetches along
    is_frozen_at_launch: bool = False  # an execution keeps a copy, so an edit changes nothing that runs
    while_archived: str = _("nobody can choose it")
    roles: frozenset[str] = frozenset()  # the names of people's roles in its history, which are no fields of the model

    @property
    def table(self) -> str:
        return f"{self.name}/fragments/{self.singular}_table.html"

    @property
    def object_type(self) -> str:
        return self.model._meta.model_name or ""

    async def pools(self) -> Pools | None:
        """Return the shapes of the pools' nodes; None until the nodes are read, and of a kind that needs none."""
        return None

    def words(self, instance: Any) -> object:
        """Return what stands beside the object in its table."""
        return None

    def list_context(self, instances: Sequence[Any], pools: Pools | None) -> dict[str, Any]:
        """Return more of the template context of the list."""
        return {}

    def edit_context(self, form: Any, instance: Any, pools: Pools | None) -> dict[str, Any]:
        """Return more of the template context of the form; `instance` is None for a new object."""
        return {}

    def doubts(self, form: Any) -> Sequence[str]:
        """Return sentences about what saving a valid form does that hardly anybody means, or that others lose by; none as a rule."""
        return ()

    def question(self, form: Any, request: HttpRequest) -> Confirmation | None:
        """Return what to ask before a valid form is saved; None when nothing is, or when the answer was yes."""
        if "confirmed" in request.POST or not (sentences := self.doubts(form)):
            return None
        sent = [
            (name, value) for name, values in request.POST.lists() if name != "csrfmiddlewaretoken" for value in values
        ]
        return Confirmation(
            _("Save changes to {subject}"),
            str(form.instance),
            sentences,
            action_url=request.path,
            answer=_("Save"),
            keep=_("Do not save"),
            keep_url=request.path,
            fields=[*sent, ("confirmed", "on")],
        )

    def has_problem(self, instance: Any, pools: Pools | None) -> bool:
        """Return whether the saved object has a problem, which its own page says."""
        return False

    def restore_roles(self, instance: Any, entry: AuditEntry) -> None:
        """Undo the part of a change that is of `roles`. Raise ValidationError when that cannot be."""
