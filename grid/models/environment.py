"""Environments: the image, command and port that an execution runs."""

import re
from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models

from grid.models.fields import validate_object_name, validate_slug_name, validate_url_path

# Names that every program can read; Kubernetes allows more. A name is also a key of the execution's Secret, which allows fewer.
VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}")


class Kind(models.TextChoices):
    """The kind of an execution, as its user knows it."""

    WORKSPACE = "workspace", "Workspace"
    JOB = "job", "Job"
    APP = "app", "App"
    CLUSTER = "cluster", "Cluster"


class Framework(models.TextChoices):
    """The framework of an on-demand cluster."""

    DASK = "dask", "Dask"
    RAY = "ray", "Ray"
    SPARK = "spark", "Spark"


class Environment(models.Model):
    """The program that an execution runs. `command` is a list of arguments; `{port}` and `{base_url}` in it are filled in for each
    execution.

    `frameworks` maps each framework that the image contains to its version: a cluster can be made of those, and a workspace or job can talk
    to clusters of those. What a cluster's containers run is defined by the framework, not by the environment.
    """

    id = models.CharField(primary_key=True, max_length=40, validators=[validate_slug_name])
    name = models.CharField(max_length=80)
    description = models.CharField(max_length=300, blank=True)
    kind = models.CharField(max_length=20, choices=Kind.choices, default=Kind.WORKSPACE)
    image = models.CharField(max_length=255)
    command = models.JSONField(default=list, blank=True)
    port = models.PositiveIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1024), MaxValueValidator(65535)]
    )
    start_path = models.CharField(max_length=200, blank=True, validators=[validate_url_path])
    readiness_path = models.CharField(max_length=200, blank=True, validators=[validate_url_path])
    image_pull_secret = models.CharField(
        max_length=253,
        blank=True,
        validators=[validate_object_name],
        help_text="Name of a Secret with the registry's credentials, in the executions' namespace.",
    )
    variables = models.JSONField(default=dict, blank=True, help_text="Environment variables, name to value.")
    frameworks = models.JSONField(
        default=dict, blank=True, help_text="Frameworks in the image, name to version, such as dask: 2026.8.0."
    )
    allows_service_workers = models.BooleanField(
        default=False, help_text="Only for IDEs that need service workers, such as VS Code."
    )
    is_visible = models.BooleanField(default=True)
    is_archived = models.BooleanField(default=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    def clean(self) -> None:
        errors: dict[str, Any] = {}
        if not isinstance(self.command, list) or not all(isinstance(part, str) for part in self.command):
            errors["command"] = "Give the command as a list of texts, one for each argument."
        if self.kind in (Kind.WORKSPACE, Kind.APP) and self.port is None:
            errors["port"] = "A workspace or an app is opened in the browser, so it needs the port it listens on."
        if not isinstance(self.variables, dict) or not all(
            VARIABLE_NAME.fullmatch(name) and isinstance(value, str) for name, value in self.variables.items()
        ):
            errors["variables"] = "Give variables as names of letters, digits and underscores, with text values."
        if not isinstance(self.frameworks, dict) or not all(
            name in Framework.values and isinstance(version, str) and version.strip()
            for name, version in self.frameworks.items()
        ):
            errors["frameworks"] = "Give frameworks as names (dask, ray, spark) with their versions."
        elif self.kind == Kind.CLUSTER and not self.frameworks:
            errors["frameworks"] = "Say which frameworks a cluster of this environment can have."
        if self.kind not in (Kind.WORKSPACE, Kind.APP):
            for name in ("start_path", "readiness_path"):
                if getattr(self, name):
                    errors[name] = "Only a workspace or an app is opened in the browser; leave this empty."
        if errors:
            raise ValidationError(errors)
