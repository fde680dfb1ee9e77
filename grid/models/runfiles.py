"""What became of the files of an execution whose project keeps them in Git."""

from django.db import models

from grid.core.translation import gettext as _
from grid.models.execution import Execution


class RunFiles(models.Model):
    """The commits with which an execution began and ended, as its executor reported them; written by the controller.

    `branch` is where its changes went, "" when they could not be pushed: `kept` then says where they are (`repository`, `home`, a `copy`
    beside the branches, `unsure` where saving was cut short), and `problem` why. With `left_out` a copy of all files is kept there, too.
    `results_problem` says what of the results is not kept, and `results_kept` where a copy of them is.
    """

    execution = models.OneToOneField(Execution, on_delete=models.CASCADE, primary_key=True, related_name="files")
    began = models.CharField(max_length=40, blank=True, help_text='"" for an empty repository.')
    ended = models.CharField(max_length=40, blank=True)
    branch = models.CharField(max_length=200, blank=True)
    kept = models.CharField(max_length=20, blank=True)
    problem = models.TextField(blank=True)
    left_out = models.PositiveIntegerField(default=0, help_text="Files that could not be read.")
    left_out_names = models.TextField(blank=True, help_text="Some of them, each with the reason.")
    results = models.CharField(max_length=40, blank=True, help_text="The commit that has the results of a job.")
    results_files = models.PositiveIntegerField(default=0)
    results_bytes = models.PositiveBigIntegerField(default=0)
    results_problem = models.TextField(blank=True)
    results_kept = models.CharField(max_length=20, blank=True)

    def __str__(self) -> str:
        return _("files of {execution_id}", execution_id=self.execution_id)

    @property
    def has_trouble(self) -> bool:
        """True when changes or results are not where they belong."""
        return bool(self.problem or self.left_out or self.results_kept)
