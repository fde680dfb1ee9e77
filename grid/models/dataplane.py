"""Data planes: the Kubernetes clusters that executions run in."""

from django.db import models

LOCAL = "local"  # the one that each database has, see `grid.dataplanes`


class DataPlane(models.Model):
    """One Kubernetes cluster. A tier's nodes are in one, and an execution stays in that of its tier."""

    id = models.CharField(primary_key=True, max_length=40)
    name = models.CharField(max_length=80)

    def __str__(self) -> str:
        return self.name
