"""What operators have asked of nodes: cordon, uncordon, drain, taints and labels. The leading controller carries it out."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from grid.core.translation import gettext as _

REASON_LONGEST = 200


class NodeTask(models.Model):
    """One request of an operator's about a node, open until `ended_at`. A node has at most one open task."""

    class Action(models.TextChoices):
        CORDON = "cordon", _("Cordon")
        UNCORDON = "uncordon", _("Uncordon")
        DRAIN = "drain", _("Drain")
        TAINT = "taint", _("Add taint")
        UNTAINT = "untaint", _("Remove taint")
        LABEL = "label", _("Set label")
        UNLABEL = "unlabel", _("Remove label")

    class Outcome(models.TextChoices):
        DONE = "done", _("Done")
        CANCELLED = "cancelled", _("Cancelled")
        GONE = "gone", _("Node gone")
        CHANGED = "changed", _("Node was changed")
        REFUSED = "refused", _("Refused")

    node_name = models.CharField(max_length=253)
    node_uid = models.CharField(max_length=64, help_text="A new node with the name of an old one is left alone.")
    action = models.CharField(max_length=10, choices=Action.choices)
    reason = models.CharField(max_length=REASON_LONGEST, blank=True)
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.SET_NULL, related_name="+")
    actor_name = models.CharField(max_length=150, help_text="Kept when the account goes.")
    asked_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=10, choices=Outcome.choices, blank=True)
    trouble = models.CharField(max_length=500, blank=True, help_text="Why it waits now.")
    mark = models.JSONField(default=dict, help_text="Of a taint or label: its key, value and effect.")
    looked_at = models.CharField(max_length=16, blank=True, help_text="Which labels and taints were looked at.")
    progress = models.JSONField(default=dict, help_text="Of a drain: its pods, and what each waits for.")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["node_name"], condition=models.Q(ended_at=None), name="one_open_task_of_a_node"
            )
        ]
        indexes = [models.Index(fields=["node_name", "-id"], name="node_task_by_node")]

    def __str__(self) -> str:
        return self.node_name
