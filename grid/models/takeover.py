"""Times in which an operator decides by hand which waiting executions start."""

from datetime import datetime

from django.conf import settings
from django.db import models

from grid.core.translation import gettext as _


class QueueTakeoverQuerySet(models.QuerySet["QueueTakeover"]):
    def in_force(self, now: datetime) -> "QueueTakeoverQuerySet":
        return self.filter(from_at__lte=now, until_at__gt=now)


class QueueTakeover(models.Model):
    """One time in which only what operators put in front starts. It ends by itself at `until_at`, which is set to now when an operator
    gives the queue back earlier."""

    actor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    actor_name = models.CharField(max_length=150, help_text="Kept when the account goes.")
    reason = models.CharField(max_length=200)
    from_at = models.DateTimeField()
    until_at = models.DateTimeField(db_index=True)

    objects = QueueTakeoverQuerySet.as_manager()

    def __str__(self) -> str:
        return _("queue taken over by {actor_name}", actor_name=self.actor_name)
