"""The kinds of objects that admins edit, all of them in the views of `administration`."""

from dataclasses import dataclass
from typing import Any

from django.db import models
from django.db.models import Prefetch

from dashboard.forms.administration import CatalogueForm, EnvironmentForm, ProjectForm, TierForm
from dashboard.forms.knowledge import KnowledgeForm
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
    related: tuple["str | Prefetch[Any]", ...] = ()  # the relations that its list fetches along
    is_frozen_at_launch: bool = False  # an execution keeps a copy, so an edit changes nothing that runs
    one: str = ""  # the name of one object within a sentence, where it is not the title's singular
    while_archived: str = "nobody can choose it"

    @property
    def table(self) -> str:
        return f"dashboard/fragments/{self.singular}_table.html"

    @property
    def noun(self) -> str:
        """The name of one object within a sentence."""
        return self.one or self.title.removesuffix("s").lower()

    @property
    def object_type(self) -> str:
        return self.model._meta.model_name or ""


TIERS = EditedKind(
    "tiers",
    "tier",
    "Hardware tiers",
    HardwareTier,
    TierForm,
    "The sizes of machine that people choose from.",
    related=("groups",),
    is_frozen_at_launch=True,
)
ENVIRONMENTS = EditedKind(
    "environments",
    "environment",
    "Environments",
    Environment,
    EnvironmentForm,
    "The images and commands that run.",
    is_frozen_at_launch=True,
)
PROJECTS = EditedKind(
    "projects",
    "project",
    "Projects",
    Project,
    ProjectForm,
    "Who works together, and where their files are.",
    # The users joined: asked for apart, each would be a condition, and SQLite takes a thousand.
    related=(Prefetch("memberships", Membership.objects.select_related("user")),),
)
KNOWLEDGE = EditedKind(
    "knowledge",
    "knowledge-entry",
    "Knowledge base",
    KnowledgeEntry,
    KnowledgeForm,
    "Known lines in the logs of failed programs: what they mean, and the usual cure.",
    one="entry",
    while_archived="no log is searched for it",
)
