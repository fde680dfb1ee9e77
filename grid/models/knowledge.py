"""The knowledge base: the admins' own entries about lines of logs, and where any entry was found."""

from django.core.exceptions import ValidationError
from django.core.validators import URLValidator
from django.db import models
from django.utils import timezone

from grid.core import regexes
from grid.core.translation import gettext as _
from grid.models.fields import validate_slug_name
from grid.models.recorded import ExecutionLog

_is_address = URLValidator(schemes=["http", "https"])
LONGEST_KEY = 60


def validate_pattern(text: str) -> None:
    """Raise ValidationError unless `text` is a regular expression that can be searched in bounded time."""
    if problem := regexes.problem_of(text):
        raise ValidationError(problem, code="pattern")


def validate_link(text: str) -> None:
    """Raise ValidationError unless `text` is an address of http or https, or a path of this site."""
    if text.startswith("/") and not text.startswith(("//", "/\\")):
        return
    try:
        _is_address(text)
    except ValidationError as error:
        sentence = _("Give an address that begins with https:// or http://, or a path such as /help/.")
        raise ValidationError(sentence) from error


class KnowledgeEntry(models.Model):
    """What a line of a log means, and the usual cure. An archived entry is switched off. A row whose id is the key of a built-in entry
    (`grid.diagnosis.logfindings`) only says whether that one is in force."""

    id = models.CharField(primary_key=True, max_length=LONGEST_KEY, validators=[validate_slug_name])
    pattern = models.CharField(max_length=regexes.LONGEST_PATTERN, validators=[validate_pattern])
    meaning = models.CharField(max_length=200)
    cure = models.CharField(max_length=300)
    link = models.CharField(max_length=500, blank=True, validators=[validate_link])
    is_archived = models.BooleanField(default=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["id"]
        verbose_name_plural = _("knowledge entries")

    def __str__(self) -> str:
        return self.meaning or self.id

    def clean(self) -> None:
        if "{}" in self.meaning and (regexes.problem_of(self.pattern) or not regexes.has_groups(self.pattern)):
            problem = _(
                "{} stands for the first group of the pattern, which has none; put a part of it in parentheses."
            )
            raise ValidationError({"meaning": problem})


class LogOccurrence(models.Model):
    """An entry of the knowledge base that was found in a kept log; it goes with the log."""

    log = models.ForeignKey(ExecutionLog, on_delete=models.CASCADE, related_name="occurrences")
    entry = models.CharField(max_length=LONGEST_KEY, help_text=_("Key of the entry, which may be gone by now."))
    meaning = models.CharField(max_length=300)
    line = models.CharField(max_length=300)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["entry", "-at"], name="occurrences_by_entry")]
        constraints = [models.UniqueConstraint(fields=["log", "entry", "meaning"], name="each_finding_once")]

    def __str__(self) -> str:
        return f"{self.entry}: {self.meaning}"
