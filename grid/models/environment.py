"""Environments: the image, command and port that an execution runs."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models, transaction
from django.utils import timezone

from grid.core.reasons import ANYBODY, words_of
from grid.core.regexes import Expression
from grid.core.translation import gettext as _
from grid.models.fields import Named, validate_image, validate_object_name, validate_slug_name, validate_url_path

# Names that every program can read; Kubernetes allows more. A name is also a key of the execution's Secret, which allows fewer.
VARIABLE_NAME = Expression(r"[A-Za-z_][A-Za-z0-9_]{0,199}")


class Kind(models.TextChoices):
    WORKSPACE = "workspace", _("Workspace")
    JOB = "job", _("Job")
    APP = "app", _("App")
    CLUSTER = "cluster", _("Cluster")


class KindWords(NamedTuple):
    """A kind within a sentence: any execution of it, the one that is meant, and all of them; and launching it, as the palette says."""

    indefinite: str
    definite: str
    plural: str
    launch: str


KIND_WORDS: Mapping[str, KindWords] = {
    Kind.WORKSPACE: KindWords(_("a workspace"), _("the workspace"), _("workspaces"), _("Launch a workspace")),
    Kind.JOB: KindWords(_("a job"), _("the job"), _("jobs"), _("Launch a job")),
    Kind.APP: KindWords(_("an app"), _("the app"), _("apps"), _("Launch an app")),
    Kind.CLUSTER: KindWords(_("a cluster"), _("the cluster"), _("clusters"), _("Launch a cluster")),
}


def kind_words(kind: str) -> KindWords:
    """Return the words of a kind; its name in place of each when it has none."""
    return KIND_WORDS.get(kind, KindWords(kind, kind, kind, kind))


class Framework(models.TextChoices):
    DASK = "dask", "Dask"
    RAY = "ray", "Ray"
    SPARK = "spark", "Spark"


class Environment(Named):
    """The program that an execution runs. `command` is a list of arguments; `{port}` and `{base_url}` in it are filled in for each
    execution. `frameworks` maps each framework that the image contains to its version: a cluster can be made of those, and a workspace or
    job can talk to clusters of those. What a cluster's containers run is defined by the framework."""

    id = models.CharField(primary_key=True, max_length=40, validators=[validate_slug_name])
    name = models.CharField(max_length=80)
    description = models.CharField(max_length=300, blank=True)
    kind = models.CharField(max_length=20, choices=Kind.choices, default=Kind.WORKSPACE)
    image = models.CharField(max_length=255, validators=[validate_image])
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
        help_text=_("Name of a Secret with the registry's credentials, in the executions' namespace."),
    )
    variables = models.JSONField(default=dict, blank=True, help_text=_("Environment variables, name to value."))
    frameworks = models.JSONField(
        default=dict, blank=True, help_text=_("Frameworks in the image, name to version, such as dask: 2026.8.0.")
    )
    allows_service_workers = models.BooleanField(
        default=False, help_text=_("Only for IDEs that need service workers, such as VS Code.")
    )
    is_visible = models.BooleanField(default=True)
    is_archived = models.BooleanField(default=False)
    current_revision = models.PositiveIntegerField(
        default=0, editable=False, help_text=_("Number of the revision that launches take; `image` is its image.")
    )
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]

    def save(self, *args: Any, **options: Any) -> None:
        """Save it. An image that is not the current revision's becomes a revision of its own, which is then the current one."""
        fields, is_new = options.get("update_fields"), options.get("force_insert")
        if fields is not None and "image" not in fields:
            super().save(*args, **options)
            return
        with transaction.atomic():
            super().save(*args, **options)
            self._keep_image(is_new=bool(is_new))

    def _keep_image(self, *, is_new: bool) -> None:
        current = None if is_new else self.revisions.filter(state=EnvironmentRevision.State.READY).first()
        if current is None or current.image != self.image:
            latest = None if is_new else self.revisions.first()
            number = latest.number + 1 if latest else 1
            current = self.revisions.create(number=number, image=self.image, state=EnvironmentRevision.State.READY)
        if self.current_revision != current.number:
            self.current_revision = current.number
            type(self).objects.filter(pk=self.pk).update(current_revision=current.number)

    def clean(self) -> None:
        errors: dict[str, Any] = {}
        is_page = self.kind in (Kind.WORKSPACE, Kind.APP)
        if not isinstance(self.command, list) or not all(isinstance(part, str) for part in self.command):
            errors["command"] = _("Give the command as a list of texts, one for each argument.")
        if is_page and self.port is None:
            errors["port"] = _("A workspace or an app is opened in the browser, so it needs the port it listens on.")
        if not isinstance(self.variables, dict) or not all(
            VARIABLE_NAME.fullmatch(name) and isinstance(value, str) for name, value in self.variables.items()
        ):
            errors["variables"] = _("Give variables as names of letters, digits and underscores, with text values.")
        if not isinstance(self.frameworks, dict) or not all(
            name in Framework.values and isinstance(version, str) and version.strip()
            for name, version in self.frameworks.items()
        ):
            errors["frameworks"] = _("Give frameworks as names (dask, ray, spark) with their versions.")
        elif self.kind == Kind.CLUSTER and not self.frameworks:
            errors["frameworks"] = _("Say which frameworks a cluster of this environment can have.")
        for name in ("start_path", "readiness_path"):
            if getattr(self, name) and not is_page:
                errors[name] = _("Only a workspace or an app is opened in the browser; leave this empty.")
        if errors:
            raise ValidationError(errors)


class EnvironmentRevision(models.Model):
    """What an environment's image was from some time on: an image of a registry, or requirements that are built on top of a base. The
    current one is the newest that is ready. Its image, and that of a deprecated one, never changes."""

    class State(models.TextChoices):
        BUILDING = "building", _("Building")
        READY = "ready", _("Ready")
        FAILED = "failed", _("Failed")
        DEPRECATED = "deprecated", _("Deprecated")

    environment = models.ForeignKey(Environment, on_delete=models.CASCADE, related_name="revisions", db_index=False)
    number = models.PositiveIntegerField(help_text=_("Counts the revisions of its environment from 1."))
    image = models.CharField(
        max_length=255,
        validators=[validate_image],
        help_text=_("What pods run; of one that is built, the name it gets."),
    )
    base = models.ForeignKey(
        "self",
        on_delete=models.RESTRICT,
        related_name="built_on_it",
        null=True,
        blank=True,
        help_text=_("Of a built one."),
    )
    requirements = models.TextField(
        blank=True, help_text=_("Of a built one: requirements of Python packages, one a line.")
    )
    state = models.CharField(max_length=20, choices=State.choices)
    reason = models.CharField(max_length=40, blank=True, help_text=_("Why it waits: a code with its sentence."))
    reason_values = models.JSONField(default=dict, blank=True, help_text=_("What the sentence of that code needs."))
    message = models.TextField(blank=True, help_text=_("Why it waits or failed, as its builder says."))
    log = models.TextField(blank=True, help_text=_("The end of the build's log."))
    build = models.CharField(max_length=32, blank=True, help_text=_("Id of the cluster's present attempt to build it."))
    builds = models.PositiveIntegerField(default=0, help_text=_("How often the cluster began to build it."))
    digest = models.CharField(max_length=100, blank=True)
    size_bytes = models.PositiveBigIntegerField(null=True, blank=True, help_text=_("With its base; null: not known."))
    layer_bytes = models.PositiveBigIntegerField(null=True, blank=True, help_text=_("What it adds to its base."))
    packages_report = models.JSONField(null=True, blank=True, help_text=_("What the package index said of them last."))
    packages_asked_at = models.DateTimeField(null=True, blank=True, help_text=_("When the index was asked last."))
    packages_unchecked = models.TextField(
        blank=True, help_text=_('Why it said nothing then, as a sentence; "" if it did.')
    )
    made_by = models.CharField(max_length=150, blank=True)
    made_at = models.DateTimeField(default=timezone.now)
    ready_at = models.DateTimeField(null=True, blank=True)
    note = models.CharField(max_length=300, blank=True, help_text=_("What is new in it, for people who choose."))
    deprecated_because = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ["environment", "-number"]
        indexes = [models.Index(fields=["id"], condition=models.Q(state="building"), name="revisions_to_build")]
        constraints = [models.UniqueConstraint(fields=["environment", "number"], name="revision_numbers")]

    def __str__(self) -> str:
        return _("revision {number} of {environment_id}", number=self.number, environment_id=self.environment_id)

    @property
    def words(self) -> str:
        return words_of(self.reason, self.reason_values, self.message, ANYBODY)
