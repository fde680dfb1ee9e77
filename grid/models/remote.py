"""Remote repositories: where a project's files are when its owner keeps them on a Git server of the project's own."""

from django.db import models
from django.utils import timezone

from grid.models.project import Project


class RemoteRepository(models.Model):
    """The URL of a project's files with the secret that its server asks for: a token over HTTPS, a key over SSH.

    `ciphertext` is `grid.database.encryption`'s. It is decrypted when an execution's objects are created, when the connection is tested,
    and when changes are pushed again; never for another URL than the one it was stored with.
    """

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
