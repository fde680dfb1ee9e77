"""Saved views: names that somebody has given to ways of looking at a table."""

from django.conf import settings
from django.db import models
from django.db.models import Q


class SavedView(models.Model):
    """The filters, the order and the hidden columns of one person's table. The page parses `query` again each time it is opened."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="saved_views")
    table = models.CharField(
        max_length=20, help_text="A key of VIEWED_TABLES in dashboard/shell/viewmodels/saved_views.py."
    )
    name = models.CharField(max_length=60)
    query = models.TextField(help_text="Query string of the page, beginning with a question mark.")
    hidden = models.CharField(max_length=60, blank=True, help_text="Numbers of the hidden columns, with dots between.")
    is_default = models.BooleanField(default=False, help_text="The page opens with it.")

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["user", "table", "name"], name="saved_view_named_once"),
            models.UniqueConstraint(fields=["user", "table"], condition=Q(is_default=True), name="one_default_view"),
        ]

    def __str__(self) -> str:
        return self.name
