"""The kinds of objects that admins edit, all of them in the views of `administration`."""

from dataclasses import dataclass
from typing import Any

from django.db import models
from django.db.models import Prefetch

from dashboard.administration.forms import CatalogueForm, EnvironmentForm, TierForm
from dashboard.logs.forms import KnowledgeForm
from dashboard.projects.forms import ProjectForm
from grid.core.translation import gettext as _
from grid.models import Environment, HardwareTier, KnowledgeEntry, Membership, Project


@dataclass(frozen=True, slots=True)
class EditedKind:
    """One kind of object that admins edit; `name` is the URL name of its list, `singular` begins its other URL names."""

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

    @property
    def table(self) -> str:
        return f"{self.name}/fragments/{self.singular}_table.html"

    @property
    def object_type(self) -> str:
        return self.model._meta.model_name or ""


TIERS = EditedKind(
    "tiers",
    "tier",
    _("Hardware tiers"),
    HardwareTier,
    TierForm,
    _("The sizes of machine that people choose from."),
    _("New hardware tier"),
    _("Archive the hardware tier {name}?"),
    related=("groups",),
    is_frozen_at_launch=True,
)
ENVIRONMENTS = EditedKind(
    "environments",
    "environment",
    _("Environments"),
    Environment,
    EnvironmentForm,
    _("The images and commands that run."),
    _("New environment"),
    _("Archive the environment {name}?"),
    is_frozen_at_launch=True,
)
PROJECTS = EditedKind(
    "projects",
    "project",
    _("Projects"),
    Project,
    ProjectForm,
    _("Who works together, and where their files are."),
    _("New project"),
    _("Archive the project {name}?"),
    # The users joined: asked for apart, each would be a condition, and SQLite takes a thousand.
    related=(Prefetch("memberships", Membership.objects.select_related("user")),),
)
KNOWLEDGE = EditedKind(
    "knowledge",
    "knowledge-entry",
    _("Knowledge base"),
    KnowledgeEntry,
    KnowledgeForm,
    _("Known lines in the logs of failed programs: what they mean, and the usual cure."),
    _("New entry"),
    _("Archive the entry {name}?"),
    while_archived=_("no log is searched for it"),
)
