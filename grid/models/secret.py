"""Stored secrets: passwords, keys and files that programs need and that nobody may read again."""

from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.utils import timezone

from grid.core.translation import gettext as _
from grid.models.environment import VARIABLE_NAME
from grid.models.fields import validate_file_name
from grid.models.project import Project
from grid.models.variables import is_obeyed, is_taken


class StoredSecret(models.Model):
    """A project's secret without an `owner`; with one that person's, in all projects or, with a `project`, in that one alone.

    `ciphertext` is `grid.database.encryption`'s. Only the controller decrypts it, when it creates an execution's objects.
    """

    name = models.CharField(max_length=100)
    is_file = models.BooleanField(default=False, help_text="A file of that name, instead of an environment variable.")
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="secrets", null=True, blank=True
    )
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="secrets", null=True, blank=True)
    ciphertext = models.TextField()
    changed_at = models.DateTimeField(default=timezone.now)
    changed_by = models.CharField(max_length=150)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=Q(owner__isnull=False) | Q(project__isnull=False), name="secret_is_somebodys"
            ),
            models.UniqueConstraint(
                fields=["project", "name"], condition=Q(owner__isnull=True), name="projects_secret_named_once"
            ),
            models.UniqueConstraint(
                fields=["owner", "name"], condition=Q(project__isnull=True), name="own_secret_named_once"
            ),
            models.UniqueConstraint(
                fields=["owner", "project", "name"],
                condition=Q(owner__isnull=False, project__isnull=False),
                name="own_secret_in_project_named_once",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        errors: dict[str, Any] = {}
        if self.is_file:
            try:
                validate_file_name(self.name)
            except ValidationError as error:
                errors["name"] = error
        elif not VARIABLE_NAME.fullmatch(self.name):
            errors["name"] = _("Use letters, digits and underscores, and begin with a letter, such as DB_PASSWORD.")
        elif is_taken(self.name):
            errors["name"] = _("{name} is set by Compute Grid itself. Choose another name.", name=self.name)
        elif self.owner_id is None and is_obeyed(self.name):
            errors["name"] = _(
                "{name} decides what programs of other members load, run or trust, so a project cannot set it for them. "
                "Choose another name, or store it as your own secret.",
                name=self.name,
            )
        if errors:
            raise ValidationError(errors)
