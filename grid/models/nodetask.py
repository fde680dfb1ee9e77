"""What operators have asked of nodes: cordon, uncordon, drain. The leading controller carries it out."""

from django.conf import settings
from django.db import models
from django.utils import timezone

REASON_LONGEST = 200


class NodeTask(models.Model):
    """One request of an operator's about a node, open until `ended_at`. A node has at most one open task."""

    class Action(models.TextChoices):
        CORDON = "cordon", "Cordon"
        UNCORDON = "uncordon", "Uncordon"
        DRAIN = "drain", "Drain"

    class Outcome(models.TextChoices):
        DONE = "done", "Done"
        CANCELLED = "cancelled", "Cancelled"
        GONE = "gone", "Node gone"

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
