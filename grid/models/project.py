"""Projects: they hold people's files, here or in a remote repository, and decide who sees whose executions."""

from collections.abc import Iterable
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models, transaction
from django.utils import timezone

from grid.core.translation import gettext as _
from grid.models.fields import (
    LONGEST_IDLE_MINUTES,
    LONGEST_LIFETIME_HOURS,
    Named,
    validate_quantity,
    validate_slug_name,
)
from grid.models.user import User


class ProjectQuerySet(models.QuerySet["Project"]):
    def start(self, *, owner: User, **fields: Any) -> "Project":
        """Create a project together with its owner; every project has one."""
        with transaction.atomic():
            project = self.create(**fields)
            Membership.objects.create(project=project, user=owner, role=Membership.Role.OWNER)
        return project


class Project(Named):
    """A group of people who see each other's executions; each member's role says what else they may do. The project's files live in one
    volume, named after its id, or in a Git repository."""

    class Files(models.TextChoices):
        VOLUME = "volume", _("A shared volume")
        GIT = "git", _("Git, in a repository of this installation")
        REMOTE = "remote", _("Git, in a remote repository")

    id = models.CharField(primary_key=True, max_length=40, validators=[validate_slug_name])
    name = models.CharField(max_length=80)
    description = models.CharField(max_length=300, blank=True)
    members = models.ManyToManyField(settings.AUTH_USER_MODEL, through="Membership", related_name="projects")
    volume_size = models.CharField(max_length=20, default="10Gi", validators=[validate_quantity])
    idle_minutes = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(LONGEST_IDLE_MINUTES)],
        help_text=_("Idle time of its workspaces and apps, within the admin's bound; empty means as their tiers say."),
    )
    lifetime_hours = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(LONGEST_LIFETIME_HOURS)],
        help_text=_(
            "Maximum lifetime of its workspaces and apps, within the admin's bound; empty means as their tiers say."
        ),
    )
    files = models.CharField(max_length=10, choices=Files.choices, default=Files.VOLUME)
    is_archived = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = ProjectQuerySet.as_manager()

    class Meta:
        ordering = ["name"]

    @property
    def is_in_git(self) -> bool:
        return self.files != self.Files.VOLUME

    @property
    def volume_name(self) -> str:
        return f"project-{self.id}"

    def people(self) -> dict[str, Any]:
        """Return the usernames of its owner, contributors and viewers; "" and empty lists before it has any."""
        rows = list(self.memberships.order_by("user__username").values_list("user__username", "role"))
        named = {wanted: [name for name, role in rows if role == wanted] for wanted in Membership.Role}
        owner, role = "".join(named[Membership.Role.OWNER]), Membership.Role
        return {"owner": owner, "contributors": named[role.CONTRIBUTOR], "viewers": named[role.VIEWER]}

    def assign(self, *, owner: User, contributors: Iterable[User], viewers: Iterable[User]) -> None:
        """Give the named people their roles, the highest to those named twice, and remove all other members; in one transaction."""
        roles = {user.pk: Membership.Role.VIEWER for user in viewers}
        roles |= {user.pk: Membership.Role.CONTRIBUTOR for user in contributors}
        roles[owner.pk] = Membership.Role.OWNER
        with transaction.atomic():
            Project.objects.select_for_update(no_key=True).get(pk=self.pk)  # serializes concurrent assignments
            known = {member.user_id: member for member in self.memberships.all()}
            self.memberships.exclude(user__in=roles).delete()
            # Who comes back is not shared again what was shared before. By name, because shares know projects.
            shares = apps.get_model("grid", "AppShare")._default_manager
            shares.filter(execution__project=self).exclude(user__in=roles).delete()
            ports = apps.get_model("grid", "PortShare").members.through._default_manager
            ports.filter(portshare__execution__project=self).exclude(user__in=roles).delete()
            # The new owner is saved last, because a constraint allows only one.
            for user, role in sorted(roles.items(), key=lambda item: item[1] == Membership.Role.OWNER):
                member = known.get(user) or Membership(project=self, user_id=user, role="")
                if member.role != role:
                    member.role = role
                    member.save()


class Membership(models.Model):
    """A person's role in a project. The owner also stops and changes what others run; a contributor launches, opens and uses the files;
    a viewer only looks."""

    class Role(models.TextChoices):
        OWNER = "owner", _("Owner")
        CONTRIBUTOR = "contributor", _("Contributor")
        VIEWER = "viewer", _("Viewer")

    CONTRIBUTING = (Role.OWNER, Role.CONTRIBUTOR)

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="memberships")
    # The role with the fewest rights by default.
    role = models.CharField(max_length=20, choices=Role.choices, default=Role.VIEWER)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "user"], name="one_membership_per_person"),
            models.UniqueConstraint(fields=["project"], condition=models.Q(role="owner"), name="one_owner_per_project"),
            models.CheckConstraint(condition=models.Q(role__in=["owner", "contributor", "viewer"]), name="known_role"),
        ]

    def __str__(self) -> str:
        return _("{user} is {role} of {project}", user=self.user, role=self.role, project=self.project)


class RemoteRepository(models.Model):
    """The URL of a project's files with the secret that its server asks for: a token over HTTPS, a key over SSH. `ciphertext` is
    `grid.database.encryption`'s, never decrypted for another URL than the one it was stored with."""

    project = models.OneToOneField(Project, on_delete=models.CASCADE, primary_key=True, related_name="remote")
    url = models.CharField(max_length=500)
    branch = models.CharField(
        max_length=200, default="main", help_text="Where executions begin, and what they push to."
    )
    username = models.CharField(
        max_length=100, blank=True, help_text="What the server is told beside the token; not for SSH."
    )
    ciphertext = models.TextField()
    host_key = models.TextField(
        blank=True, help_text='The SSH server\'s key that a person has confirmed; "" until then.'
    )
    changed_at = models.DateTimeField(default=timezone.now)
    changed_by = models.CharField(max_length=150)

    def __str__(self) -> str:
        return self.url

    @property
    def is_ssh(self) -> bool:
        return self.url.startswith("ssh://")

    @property
    def is_usable(self) -> bool:
        """False while nobody has confirmed whose server it is."""
        return bool(self.host_key) or not self.is_ssh
