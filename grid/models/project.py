"""Projects: the place of people's files and the border of who sees whose executions."""

from django.conf import settings
from django.db import models

from grid.models.fields import validate_quantity, validate_slug_name


class Project(models.Model):
    """Owner and members see and launch its executions; its files live in one volume, named after its id."""

    id = models.CharField(primary_key=True, max_length=40, validators=[validate_slug_name])
    name = models.CharField(max_length=80)
    description = models.CharField(max_length=300, blank=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="owned_projects")
    members = models.ManyToManyField(settings.AUTH_USER_MODEL, blank=True, related_name="projects")
    volume_size = models.CharField(max_length=20, default="10Gi", validators=[validate_quantity])
    is_archived = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def volume_name(self) -> str:
        return f"project-{self.id}"
