"""Stored overrides of the central configuration; meaning, type and bounds of each key are in `grid.configuration`."""

from django.db import models


class ConfigRecord(models.Model):
    """One override; without a record the default of the key applies."""

    namespace = models.CharField(max_length=60, default="common")
    key = models.CharField(max_length=200)
    value = models.CharField(max_length=1000)
    updated_at = models.DateTimeField(auto_now=True)
    updated_by = models.CharField(max_length=150, blank=True)

    class Meta:
        ordering = ["namespace", "key"]
        constraints = [models.UniqueConstraint(fields=["namespace", "key"], name="one_value_for_a_key")]

    def __str__(self) -> str:
        return f"{self.key} = {self.value}"
